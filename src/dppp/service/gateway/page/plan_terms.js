// What can be planned: the sliders with their scales, and the families in the order of asking.

import { chance, figure, percent, whole } from "./words.js";

const range = (last) => Array.from({ length: last + 1 }, (_, place) => place);
const COUNTS = [...range(20), ...[25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 250, 300, 400, 500]];

export const SLIDERS = [
  {
    name: "teachers",
    label: "Teachers",
    scale: [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 250, 300, 400, 500, 750, 1000],
    from: (task) => task.teachers,
    words: whole,
  },
  {
    name: "votes",
    label: "Votes of each teacher",
    scale: [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100],
    from: () => 1,
    words: whole,
  },
  { name: "colluders", label: "Colluders among them", scale: COUNTS, from: (task) => task.colluders, words: whole },
  { name: "dropouts", label: "Dropouts to survive", scale: COUNTS, from: (task) => task.dropouts, words: whole },
  {
    name: "epsilon",
    label: "ε in total",
    scale: [0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 10, 12, 16, 20, 32],
    from: (task) => task.epsilon,
    words: figure,
  },
  {
    name: "delta",
    label: "δ in total",
    scale: [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3],
    from: (task) => task.delta,
    words: chance,
  },
  {
    name: "queries",
    label: "Queries",
    scale: [1, 2, 3, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000],
    from: (task) => Math.min(task.queries, 1000),
    words: whole,
  },
  { name: "classes", label: "Classes", scale: [2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 50, 100], from: (task) => Math.max(2, Math.min(task.classes.length, 100)), words: whole },
  {
    name: "margin",
    label: "Lead of the winner, of all votes",
    scale: range(19).map((place) => (place + 1) / 20),
    from: () => 0.4,
    words: percent,
  },
];

// A scale in which the task's own value has its place.
export const scaleWith = (scale, value) => [...new Set([...scale, value])].sort((one, other) => one - other);

export const FAMILIES = [
  { noise: "skellam", calibration: "exact" },
  { noise: "binomial", calibration: "paper" },
  { noise: "discrete-gaussian", calibration: "paper" },
  { noise: "polya", calibration: "exact" },
  { noise: "binomial", calibration: "exact" },
  { noise: "discrete-gaussian", calibration: "exact" },
];
