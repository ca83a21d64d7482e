// The answer: label, noisy counts, the price before and after; or why there is none.

import { answersCsv } from "./answers_file.js";
import { answerText, isNothing, marginWords } from "./answer_words.js";
import { countBars, flagOf, surenessWords, widestOf } from "./bars.js";
import { answersTable } from "./answers_table.js";
import { bringIntoView, byId, make, setText } from "./dom.js";
import { offer } from "./gateway.js";
import { markOf } from "./verification.js";
import { chance, figure, several, whole } from "./words.js";

const SHOWN_ROWS = 1000;

// `cost` leaves out the rows that were answered in this tab before.
export function drawPrice(rows, cost, budget) {
  setText(byId("price"), budget ? priceWords(rows, cost, budget) : "");
}

function priceWords(rows, cost, budget) {
  const left = `${whole(budget.left_to_you)} of ${whole(budget.queries)} left`;
  if (!rows) return `${left}.`;
  if (!cost) return `Free: this was released before. ${left}.`;
  const price = several(cost, "query", "queries");
  if (cost <= budget.left_to_you) return `Costs ${price} at most, ${left}. What was released before is free.`;
  if (!budget.left_to_you) return `This costs ${price}, and none are left to you. The parties must agree on a new task for more.`;
  return `This costs ${price}, and ${whole(budget.left_to_you)} are left to you. Ask for fewer rows.`;
}

export function hideAnswer() {
  byId("answer").hidden = true;
  byId("refusal").hidden = true;
}

export function drawAnswer(task, labels, state, before, after) {
  const shown = labels.slice(0, SHOWN_ROWS);
  const isSingle = labels.length === 1;
  const more = labels.length - shown.length;
  const rest = more ? `And ${whole(more)} more, in the file. ` : "";
  byId("answer-body").replaceChildren(
    isSingle ? answerNode(task, labels[0]) : answersTable(task, shown),
    ...(isSingle ? [] : flagOf(labels)),
    make("p", { class: "quiet small", text: rest + noiseWords(task) }),
  );
  drawCost(state, before, after);
  byId("answer-links").replaceChildren(...linksOf(task, labels, state));
  byId("answer").hidden = false;
  bringIntoView(byId("answer"));
}

// How far a count may be from the votes, so that nobody takes a lead of two for certain.
function noiseWords(task) {
  const honest = task.teachers - task.colluders - task.dropouts;
  const spread = Math.sqrt((task.variance * task.teachers) / honest);
  const votes = task.votes.reduce((sum, each) => sum + each, 0);
  const inAll = votes === task.teachers ? "" : ` (${whole(votes)} in all)`;
  if (task.question.kind === "number") {
    return `The mean of ${whole(votes)} votes of ${several(task.teachers, "teacher")}, each from ${figure(task.question.low)} to ${figure(task.question.high)}, plus their noise.`;
  }
  const counts = `Each count is the votes of ${several(task.teachers, "teacher")}${inAll} plus their noise, about ±${figure(spread)}.`;
  if (task.question.kind === "choice") return counts;
  return `${counts} A label is released from ${whole(Math.ceil(task.question.share * votes))} of ${several(votes, "vote")} on.`;
}

function answerNode(task, answer) {
  const label = answerText(answer);
  const kind = isNothing(answer) ? " abstained" : "";
  const shown = { class: "big" + kind, "data-label": label, "data-value": answer.value, "data-error": answer.standard_error };
  return make(
    "div",
    {},
    make("p", { ...shown, text: label }),
    make("p", { class: "margin", text: `${answer.value === null ? "noisy counts" : "noisy mean"}, ${marginWords(answer)}` }),
    ...(answer.lead_by_noise === null || answer.label === null ? [] : [make("p", { class: "sureness quiet small", text: surenessWords(answer) })]),
    countBars(task, answer, widestOf([answer])),
    ...flagOf([answer]),
  );
}

function drawCost(state, before, after) {
  const rows = [
    ["", "before", "after"],
    ["queries left to you", whole(before.left_to_you), whole(after.left_to_you)],
    [`ε spent at δ = ${chance(after.delta)}`, figure(before.epsilon_spent), figure(after.epsilon_spent)],
  ];
  const cells = rows.flatMap(([name, ...values], place) => [
    make("dt", { text: name }),
    ...values.map((value) => make("dd", { class: place ? null : "head", text: value })),
  ]);
  byId("cost").replaceChildren(...cells);
  byId("cost").dataset.charged = String(state.charged);
}

function linksOf(task, labels, state) {
  const whose = " by the aggregator; click and run dppp verify to be sure";
  const links =
    state.batch === null
      ? [make("span", { class: "quiet", text: "Free: this was released before." })]
      : [markOf(state), make("span", { class: "quiet small", text: whose })];
  if (labels.length > 1) {
    const { kind } = task.question;
    const what = kind === "number" ? "numbers" : "labels";
    const save = () => offer(new Blob([answersCsv(kind, labels)], { type: "text/csv" }), `${what}.csv`);
    links.push(" ", make("button", { type: "button", class: "mark plain", text: `${what} as CSV`, onclick: save }));
  }
  return links;
}

const NEXT = {
  403: "The budget protects the people in the teachers' data, so nobody can add to it here. Rows that were released before stay free. For more, the parties must agree on a new task.",
  410: "Ask again when the teachers are back; it will be charged again.",
  503: "Ask again in half a minute.",
};

export function showRefusal(reason, status) {
  setText(byId("refusal-reason"), reason);
  setText(byId("refusal-next"), NEXT[status] ?? "");
  byId("refusal").hidden = false;
  bringIntoView(byId("refusal"));
}
