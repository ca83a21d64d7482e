// Many answers: a line per row of the file, their bars on one scale.

import { answerText, isNothing, marginWords, spreadWords } from "./answer_words.js";
import { flagOf, widestOf } from "./bars.js";
import { make, setPart } from "./dom.js";
import { numberScale } from "./number_scale.js";
import { percent, whole } from "./words.js";

export function answersTable(task, answers) {
  const { headings, cells } = columnsOf(task, widestOf(answers));
  const head = make("tr", {}, make("th", { scope: "col", text: "row" }), ...headings.map((text) => make("th", { scope: "col", text })));
  const lines = answers.map((answer, place) => lineOf(answer, place + 1, cells));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines));
  return make("div", { class: "answers", tabindex: "0", role: "region", "aria-label": "Answers by row" }, table);
}

// What stands beside the answer, by the kind of question.
function columnsOf(task, widest) {
  const counts = (answer) => {
    const highest = Math.max(...answer.counts);
    const fill = make("span");
    setPart(fill, highest / widest);
    return [make("td", { class: "highest", text: whole(highest) }), make("td", {}, make("div", { class: "track" }, fill))];
  };
  const margin = (answer) => make("td", { text: marginWords(answer) });
  const sure = (answer) => make("td", { text: byNoise(answer.lead_by_noise) });
  const scale = (answer) => make("td", {}, numberScale(task.question, answer));
  const noise = (answer) => make("td", { text: answer.value === null ? "" : spreadWords(answer) });
  return {
    choice: { headings: ["label", "highest count", "beside others", "lead", "by noise alone"], cells: (each) => [...counts(each), margin(each), sure(each)] },
    labels: { headings: ["labels", "highest count", "beside others", "passed"], cells: (each) => [...counts(each), margin(each)] },
    number: { headings: [task.classes[0], "noise in 95 of 100", "between the bounds"], cells: (each) => [noise(each), scale(each)] },
  }[task.question.kind];
}

function lineOf(answer, number, cells) {
  const label = answerText(answer);
  return make(
    "tr",
    { class: flagOf([answer]).length ? "bad" : null },
    make("td", { text: whole(number) }),
    make("td", { "data-label": label, class: isNothing(answer) ? "abstained" : null, text: label }),
    ...cells(answer),
  );
}

function byNoise(share) {
  if (share === null) return "";
  return share < 0.001 ? "< 0.1 %" : percent(share);
}
