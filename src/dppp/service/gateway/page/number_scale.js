// Where a number lies between its bounds, and how far noise may have moved it.

import { make, setPart } from "./dom.js";
import { figure } from "./words.js";

export function numberScale({ low, high }, answer) {
  const scale = make("div", { class: "scale" });
  if (answer.value !== null) scale.append(trackOf(low, high, answer));
  scale.append(make("span", { text: figure(low) }), make("span", { text: figure(high) }));
  return scale;
}

function trackOf(low, high, { value, standard_error: error }) {
  const part = (number) => Math.max(0, Math.min(1, (number - low) / (high - low)));
  const [from, to] = [part(value - 2 * error), part(value + 2 * error)];
  const fill = make("span");
  setPart(fill, to - from);
  fill.style.setProperty("--at", String(from));
  const mark = make("i");
  mark.style.setProperty("--at", String(Math.min(part(value), 0.995)));
  return make("div", { class: "track" }, fill, mark);
}
