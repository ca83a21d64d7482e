// This querier's last batches: labels, counts as bars, abstentions, aborts, and the mark.

import { answerText, isNothing, marginWords } from "./answer_words.js";
import { countBars, flagOf, widestOf } from "./bars.js";
import { byId, make } from "./dom.js";
import { gatewayNow } from "./gateway.js";
import { keepOnly, markOf } from "./verification.js";
import { ago, several } from "./words.js";

const FEW_CLASSES = 3;
const FEW_ROWS = 2;
let drawnBefore = "";

export function drawReleases(task, batches) {
  const drawn = JSON.stringify(batches);
  if (drawn === drawnBefore) return;
  drawnBefore = drawn;
  keepOnly(new Set(batches.map((batch) => batch.state.id)));
  const widest = widestOf(batches.flatMap((batch) => batch.labels));
  byId("releases-none").hidden = batches.length > 0;
  byId("releases").replaceChildren(...batches.map((batch) => releaseNode(task, batch, widest)));
}

function releaseNode(task, batch, widest) {
  const { state } = batch;
  const price = state.charged ? `${several(state.charged, "query", "queries")} charged` : "free: released before";
  return make(
    "li",
    { class: "release", "data-stage": state.stage },
    make("div", {}, make("h3", { text: titleOf(task, batch) }), make("p", { class: "quiet small", text: whenWords(batch) })),
    bodyOf(task, batch, widest),
    make("div", { class: "end" }, make("div", { class: "quiet small", text: price }), endOf(state)),
  );
}

function titleOf(task, { state, labels }) {
  if (state.stage === "aborted") return "Aborted";
  if (state.stage !== "released") return `At stage ${state.stage}`;
  const shown = labels.map((each) => answerText(each, "abstained")).join(task.question.kind === "choice" ? ", " : " · ");
  return state.rows > labels.length ? `${shown}, … (${state.rows} rows)` : shown;
}

function whenWords({ times }) {
  return times.length ? ago(gatewayNow() - times[times.length - 1].at) : "earlier";
}

function bodyOf(task, { state, labels }, widest) {
  if (state.stage === "aborted") return make("p", { class: "bad", text: abortWords(state) });
  const rows = labels.slice(0, FEW_ROWS).map((answer) => rowNode(task, answer, widest));
  return make("div", { class: "rows" }, ...rows, ...flagOf(labels));
}

function rowNode(task, answer, widest) {
  const margin = make("p", { class: isNothing(answer) ? "margin abstained" : "margin", text: marginWords(answer) });
  return make("div", {}, countBars(task, answer, widest, FEW_CLASSES), margin);
}

function abortWords(state) {
  const missing = state.missing.length ? `; missing: teachers ${state.missing.join(", ")}` : "";
  const culprits = state.culprits.length ? `; at fault: teachers ${state.culprits.join(", ")}` : "";
  return `${state.reason}${missing}${culprits}. Its queries stay charged.`;
}

function endOf(state) {
  if (state.stage !== "released" || state.batch === null) return "";
  return markOf(state);
}
