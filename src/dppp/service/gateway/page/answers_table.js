// Many answers: a line per row of the file, their bars on one scale.

import { answerText, isNothing, marginWords } from "./answer_words.js";
import { flagOf, widestOf } from "./bars.js";
import { make, setPart } from "./dom.js";
import { percent, whole } from "./words.js";

const HEADINGS = {
  choice: ["row", "label", "highest count", "", "lead", "by noise alone"],
  labels: ["row", "labels", "highest count", "", "passed", ""],
  number: ["row", "number", "noisy sum", "", "noise", ""],
};

export function answersTable(answers, kind) {
  const widest = widestOf(answers);
  const head = make("tr", {}, ...HEADINGS[kind].map((text) => make("th", { scope: "col", text })));
  const lines = answers.map((answer, place) => lineOf(answer, place + 1, widest));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines));
  return make("div", { class: "answers", tabindex: "0", role: "region", "aria-label": "Answers by row" }, table);
}

function lineOf(answer, number, widest) {
  const label = answerText(answer);
  const highest = Math.max(...answer.counts);
  const fill = make("span");
  setPart(fill, highest / widest);
  return make(
    "tr",
    { class: flagOf([answer]).length ? "bad" : null },
    make("td", { text: whole(number) }),
    make("td", { "data-label": label, class: isNothing(answer) ? "abstained" : null, text: label }),
    make("td", { class: "highest", text: whole(highest) }),
    make("td", {}, make("div", { class: "track" }, fill)),
    make("td", { text: marginWords(answer) }),
    make("td", { text: byNoise(answer.lead_by_noise) }),
  );
}

function byNoise(share) {
  if (share === null) return "";
  return share < 0.001 ? "< 0.1 %" : percent(share);
}
