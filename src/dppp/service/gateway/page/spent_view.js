// ε over time: what this querier's last batches cost, as steps under the task's limit.

import { byId, drawing, make, setText } from "./dom.js";
import { gatewayNow } from "./gateway.js";
import { clock, figure, several } from "./words.js";

const WIDTH = 100;
const HEIGHT = 40;
let drawnBefore = "";

export function drawSpent(task, steps, budget) {
  const drawn = JSON.stringify([steps, budget]);
  if (drawn === drawnBefore) return;
  drawnBefore = drawn;
  byId("spent").hidden = steps.length === 0;
  if (!steps.length) return;
  const [from, to] = [steps[0].at, Math.max(gatewayNow(), steps[steps.length - 1].at)];
  const span = Math.max(to - from, 1);
  const start = from - span / 20;
  const x = (at) => (WIDTH * (at - start)) / (to - start);
  const y = (epsilon) => HEIGHT * (1 - Math.min(1, epsilon / task.epsilon));
  const line = `M0 ${y(steps[0].epsilon_before)} ${steps.map((step) => `H${x(step.at)} V${y(step.epsilon)}`).join(" ")} H${WIDTH}`;
  byId("spent-picture").replaceChildren(
    drawing(
      `${WIDTH} ${HEIGHT}`,
      { preserveAspectRatio: "none", role: "img", "aria-label": spokenWords(task, steps) },
      ["area", `${line} V${HEIGHT} H0 Z`],
      ["line", line],
      ["limit", `M0 0 H${WIDTH}`],
      ...(isAlone(steps, budget) ? [] : [["all", `M0 ${y(budget.epsilon_spent)} H${WIDTH}`]]),
    ),
    make("span", { class: "most", text: `ε = ${figure(task.epsilon)}, all that was agreed on` }),
    make("span", { text: clock(start) }),
    make("span", { text: "now" }),
  );
  setText(byId("spent-line"), captionWords(task, steps, budget));
}

// Whether all that was spent is in the steps.
const isAlone = (steps, budget) => budget.charged === steps[steps.length - 1].queries;

function captionWords(task, steps, budget) {
  const { epsilon, queries } = steps[steps.length - 1];
  const own = `Your ${several(queries, "query", "queries")} cost ε = ${figure(epsilon)}.`;
  if (isAlone(steps, budget)) return own;
  return `${own} With everybody's it is ${figure(budget.epsilon_spent)}, the dashed line.`;
}

const spokenWords = (task, steps) =>
  `ε over time, of ${figure(task.epsilon)}: ${steps.map((step) => `${figure(step.epsilon)} at ${clock(step.at)}`).join(", ")}`;
