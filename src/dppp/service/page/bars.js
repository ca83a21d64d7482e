// Noisy counts as bars, the winner's first in weight, and its margin in words.

import { make, setPart } from "./dom.js";
import { whole } from "./words.js";

export function countBars(classes, answer) {
  const widest = Math.max(1, ...answer.counts);
  const bars = make("div", { class: "bars" });
  classes.forEach((name, place) => {
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
  return answer.label === null ? "no class had enough votes" : `ahead by ${whole(first - second)}`;
}
