// A batch as a picture: teachers, their sealed ballots, the list of them, the counts.

import { drawing, make } from "./dom.js";
import { duration, several, size, whole } from "./words.js";

const MOST_DOTS = 60;
const ICON = "24 24";
const ICONS = {
  ballots: "M3 6h18v13H3z M3 6l9 7 9-7 M9 16h6",
  list: "M5 3h14v18H5z M8 8h8 M8 12h8 M8 16h4",
  counts: "M4 20V11 M10 20V5 M16 20v-6 M21 20H2",
};

export function flowNode(flight, task, first) {
  const { ballots, tally, endorsements, released } = flight.stages;
  const since = (reached) => (reached ? `+${duration(reached.last - first)}` : "");
  const stations = [
    ["teachers", "Teachers vote", dots(flight, task), `${whole(ballots?.done ?? 0)} of ${whole(task.teachers)} answered`, since(ballots), ballots],
    ["ballots", "Sealed ballots", icon("ballots"), sizeWords(flight, ballots), since(ballots), ballots],
    ["list", "The list, signed", icon("list"), signedWords(endorsements, tally), since(endorsements ?? tally), tally],
    ["counts", "Noisy counts", icon("counts"), countWords(flight, task), since(released), released],
  ];
  return make("ol", { class: "flow", "aria-label": "The way of this batch" }, ...stations.map((each) => stationNode(flight, ...each)));
}

function stationNode(flight, name, title, picture, words, time, reached) {
  const isOpen = reached || (name === "teachers" && !flight.isOver);
  const state = isOpen ? "on" : "later";
  return make(
    "li",
    { "data-station": name, "data-state": state },
    picture,
    make("b", { text: title }),
    make("span", { text: words }),
    make("span", { text: time }),
  );
}

const icon = (name) => drawing(ICON, { class: "icon", "aria-hidden": "true" }, ["", ICONS[name]]);

// One dot per teacher, filled when its ballot is in; with very many, a bar.
function dots(flight, task) {
  const node = make("div", { class: "dots", "aria-hidden": "true" });
  if (task.teachers > MOST_DOTS) {
    const fill = make("span");
    fill.style.setProperty("--part", String((flight.stages.ballots?.done ?? 0) / task.teachers));
    node.append(make("div", { class: "track" }, fill));
    return node;
  }
  for (let teacher = 1; teacher <= task.teachers; teacher += 1) node.append(make("i", { class: flight.voters[teacher] ? "in" : null }));
  return node;
}

function sizeWords(flight, ballots) {
  if (!ballots) return "none yet";
  return flight.ballotBytes ? `${whole(ballots.done)} × ${size(flight.ballotBytes)}` : several(ballots.done, "ballot");
}

function signedWords(endorsements, tally) {
  if (!tally) return "not closed yet";
  const closed = several(tally.done, "ballot");
  return endorsements ? `${closed}; ${whole(endorsements.done)} signed, ${whole(endorsements.of)} needed` : closed;
}

function countWords(flight, task) {
  if (!flight.stages.released) return flight.stage === "aborted" ? "never opened" : "still sealed";
  return `${several(flight.queries, "query", "queries")} × ${several(task.classes.length, "count")}`;
}
