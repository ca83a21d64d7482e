// Who is there: a dot, a name and the last answer; grey when offline or missing from the last batch.

import { byId, make, setData, setText } from "./dom.js";
import { gatewayNow } from "./gateway.js";
import { ago } from "./words.js";

const nodes = new Map();

export function drawTeachers(state) {
  let online = 0;
  for (const teacher of state.teachers.values()) {
    online += teacher.is_online;
    drawTeacher(teacher);
  }
  setText(byId("teachers-online"), `${online} of ${state.teachers.size} online`);
}

function drawTeacher(teacher) {
  const node = nodes.get(teacher.teacher) ?? addNode(teacher);
  setData(node.item, "state", stateOf(teacher));
  setText(node.line, lineOf(teacher));
}

function addNode(teacher) {
  const line = make("small");
  const name = make("b", { text: teacher.name, title: teacher.name });
  const item = make("li", { "data-teacher": teacher.teacher }, make("span", { class: "dot" }), name, line);
  byId("teachers").append(item);
  const node = { item, line };
  nodes.set(teacher.teacher, node);
  return node;
}

function stateOf(teacher) {
  if (!teacher.is_online) return "off";
  return teacher.has_missed_last ? "missed" : "on";
}

function lineOf(teacher) {
  const missed = teacher.missed ? ` · missed ${teacher.missed}` : "";
  if (!teacher.is_online) return "offline" + missed;
  if (teacher.answered_at === null) return "no answer yet" + missed;
  return `answered ${ago(gatewayNow() - teacher.answered_at)}${missed}`;
}
