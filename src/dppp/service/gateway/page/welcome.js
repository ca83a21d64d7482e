// A first visit in three steps. Who has read them is remembered by this browser; a button opens them again.

import { byId, make, setText } from "./dom.js";
import { chance, figure, several, whole } from "./words.js";

const PLACE = "dppp welcome read";
let isOpened = false;

export function startWelcome(task) {
  write(task);
  byId("welcome-open").hidden = false;
  byId("welcome-open").addEventListener("click", () => (isShown() ? close() : open()));
  byId("welcome-close").addEventListener("click", close);
  byId("welcome").addEventListener("keydown", (event) => event.key === "Escape" && close());
}

// Unasked it stands on the first view only: whoever goes on to ask has something else in mind.
export function showWelcome(view) {
  const isFirst = view === "live" && !hasRead();
  byId("welcome").hidden = !(isOpened || isFirst);
  byId("welcome-open").setAttribute("aria-expanded", String(isShown()));
}

const isShown = () => !byId("welcome").hidden;

function open() {
  isOpened = true;
  showWelcome("");
  byId("welcome-title").focus();
  scrollTo(0, 0);
}

function close() {
  isOpened = false;
  remember();
  showWelcome("");
  byId("welcome-open").focus();
}

// A browser may keep nothing, and then it shows the steps again.
function hasRead() {
  try {
    return localStorage.getItem(PLACE) !== null;
  } catch {
    return false;
  }
}

function remember() {
  try {
    localStorage.setItem(PLACE, "1");
  } catch {
    isOpened = false;
  }
}

function poolingWords(colluders) {
  if (!colluders) return ", as long as no teacher works together with the aggregator";
  return `, even if ${several(colluders, "teacher")} and the aggregator pool what they know`;
}

function write(task) {
  const votes = task.votes.reduce((sum, each) => sum + each, 0);
  setText(
    byId("welcome-what"),
    `${several(task.teachers, "organisation")} that may not share their records answer together. Here they are called teachers. ` +
      `For each row that you send, every teacher's own models vote: ${several(votes, "vote")} in all. ` +
      `You ask for ${task.question.description}.`,
  );
  const sees = [
    ["You", `the answer and ${task.question.kind === "number" ? "the mean, with noise" : "the counts, with noise"}`],
    ["Teachers", "your rows: they must, to vote on them"],
    ["This gateway", "the rows that you type here, and what you see; dppp query hides the rows from it"],
    ["Nobody", `a record, a model or a single vote${poolingWords(task.colluders)}`],
  ];
  byId("welcome-sees").replaceChildren(...sees.flatMap(([who, what]) => [make("dt", { text: who }), make("dd", { text: what })]));
  setText(
    byId("welcome-cost"),
    `Every answer tells a little about the records. ε measures how much at most: the smaller, the safer, and the more noise. ` +
      `All agreed on ε = ${figure(task.epsilon)} (δ = ${chance(task.delta)}) for ${several(task.queries, "query", "queries")}. ` +
      `Each new row takes one of these ${whole(task.queries)}; what was released before is free, and what was answered stays spent.`,
  );
}
