// Noisy counts as bars, the winner's first in weight, and its margin in words.

import { make, setPart } from "./dom.js";
import { whole } from "./words.js";

// All classes in the task's order, or only the few with the highest counts, highest first.
export function countBars(classes, answer, few = classes.length) {
  const widest = Math.max(1, ...answer.counts);
  const bars = make("div", { class: "bars" });
  const places = [...classes.keys()];
  if (few < classes.length) places.sort((one, other) => answer.counts[other] - answer.counts[one]).splice(few);
  places.forEach((place) => {
    const name = classes[place];
    const won = name === answer.label ? " won" : "";
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

export function marginWords(answer) {
  const [first, second] = [...answer.counts].sort((one, other) => other - one);
  if (answer.label === null) return "no class had enough votes";
  return first === second ? "a tie, broken by lot" : `ahead by ${whole(first - second)}`;
}

// A warning, if any of these answers has counts that are not to be believed.
export function flagOf(answers) {
  const text = "Votes and noise hardly ever give such counts: a teacher may have cast more than a vote.";
  return answers.some((answer) => answer.flagged) ? [make("p", { class: "bad small flagged", text })] : [];
}
