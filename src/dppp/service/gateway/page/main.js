// The page begins here: a token, the task, and three views chosen by the address's fragment.

import { startAsk } from "./ask.js";
import { byId, setText } from "./dom.js";
import { Refused, get } from "./gateway.js";
import { startLive } from "./live.js";
import { startPlan } from "./plan.js";
import { forgetToken, keepToken, takeToken } from "./token.js";
import { showWelcome, startWelcome } from "./welcome.js";
import { NOISES, chance, figure, several, whole } from "./words.js";

const VIEWS = ["live", "ask", "plan"];
const UNKNOWN_TOKEN = "This gateway does not know this token. Look for a missing or extra character, or ask whoever gave it to you for a new one.";

async function enter() {
  try {
    const task = await get("/api/task");
    byId("door").hidden = true;
    byId("about").hidden = true;
    describe(task);
    startWelcome(task);
    const refresh = startLive(task);
    startAsk(task, refresh);
    startPlan(task);
    byId("views").hidden = false;
    addEventListener("hashchange", showView);
    showView();
  } catch (error) {
    const isUnknown = error instanceof Refused && error.status === 401;
    if (isUnknown) forgetToken();
    showDoor(isUnknown ? UNKNOWN_TOKEN : error.message);
  }
}

function describe(task) {
  document.title = `${task.name} · dppp`;
  setText(byId("task-name"), task.name);
  setText(
    byId("task-line"),
    `asks for ${task.question.description}; ${several(task.teachers, "teacher")}, ${NOISES[task.noise]} noise, ε = ${figure(task.epsilon)} and ` +
      `δ = ${chance(task.delta)} over ${whole(task.queries)} queries`,
  );
}

function showDoor(message) {
  byId("door").hidden = false;
  setText(byId("door-message"), message);
  byId("token").focus();
}

function showView() {
  const wanted = location.hash.slice(1);
  if (wanted === "content") return;
  const shown = VIEWS.includes(wanted) ? wanted : VIEWS[0];
  for (const view of VIEWS) byId(view).hidden = view !== shown;
  showWelcome(shown);
  for (const link of byId("views").children) {
    if (link.hash === `#${shown}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
}

byId("door-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  enter();
});

if (takeToken()) enter();
else showDoor("");
