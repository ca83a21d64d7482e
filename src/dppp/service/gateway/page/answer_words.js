// An answer in words, whatever the question: one class, some labels or a number.

import { figure, whole } from "./words.js";

const MOST_DECIMALS = 12;

export const isNothing = (answer) => answer.label === null && answer.labels === null && answer.value === null;

export function answerText(answer, otherwise = "No answer") {
  if (isNothing(answer)) return otherwise;
  if (answer.value !== null) return numberText(answer);
  return answer.label ?? (answer.labels.join(", ") || "no label");
}

// With as many digits as the noise leaves of it.
function numberText({ value, standard_error: error }) {
  const decimals = error > 0 ? 1 - Math.floor(Math.log10(2 * error)) : MOST_DECIMALS;
  return value.toLocaleString("en", { maximumFractionDigits: Math.max(0, Math.min(decimals, MOST_DECIMALS)) });
}

// Whether the answer names this class or label.
export const names = (answer, name) => answer.label === name || (answer.labels ?? []).includes(name);

export const spreadWords = (answer) => `± ${figure(2 * answer.standard_error)}`;

// How clear it is: by how much a class leads, how far noise may move a number, how many labels passed.
export function marginWords(answer) {
  if (answer.value !== null) return `${spreadWords(answer)} by noise in 95 of 100 answers`;
  if (answer.labels !== null) return `${whole(answer.labels.length)} of ${whole(answer.counts.length)} labels passed`;
  if (answer.label === null) return "nothing had enough votes";
  const [first, second] = [...answer.counts].sort((one, other) => other - one);
  return first === second ? "a tie, broken by lot" : `ahead by ${whole(first - second)}`;
}
