// Noisy counts as bars, the winner's first in weight, and its margin in words.

import { names } from "./answer_words.js";
import { make, setPart } from "./dom.js";
import { numberScale } from "./number_scale.js";
import { percent, whole } from "./words.js";

// The longest bar of several answers, so that a bar of one can be held against that of another.
export const widestOf = (answers) => answers.reduce((widest, { counts }) => Math.max(widest, ...counts), 1);

// All classes in the task's order, or only the few with the highest counts, highest first.
// A number's one count says nothing that its place between the bounds does not say.
export function countBars({ classes, question }, answer, widest, few = classes.length) {
  if (question.kind === "number") return numberScale(question, answer);
  const bars = make("div", { class: "bars" });
  const places = [...classes.keys()];
  if (few < classes.length) places.sort((one, other) => answer.counts[other] - answer.counts[one]).splice(few);
  places.forEach((place) => {
    const name = classes[place];
    const won = names(answer, name) ? " won" : "";
    const fill = make("span");
    setPart(fill, answer.counts[place] / widest);
    bars.append(
      make("b", { class: won, text: name }),
      make("div", { class: `track${won}` }, fill),
      make("output", { class: won, text: whole(answer.counts[place]) }),
    );
  });
  return bars;
}

// What a lead says without knowing the votes; it is not the chance that the label is wrong.
export function surenessWords(answer) {
  const share = answer.lead_by_noise;
  const often = share < 0.001 ? "in fewer than 0.1 % of answers" : `in ${percent(share)} of answers`;
  const meaning = share > 0.2 ? "so this label may well be noise" : share > 0.01 ? "so doubt is in place" : "so noise hardly explains it";
  return `If the two leading classes had equal votes, noise alone would give such a lead ${often}: ${meaning}.`;
}

// A warning, if any of these answers has counts that are not to be believed.
export function flagOf(answers) {
  const text = "Votes and noise hardly ever give such counts: a teacher may have cast more than a vote.";
  return answers.some((answer) => answer.flagged) ? [make("p", { class: "bad small flagged", text })] : [];
}
