// What was spent of the task's budget, and what is left.

import { byId, setPart, setText } from "./dom.js";
import { chance, figure, several, whole } from "./words.js";

export function drawBudget(budget) {
  setText(byId("queries-left"), whole(budget.left_to_you));
  setText(byId("queries-spent"), whole(budget.charged));
  setText(byId("queries-of"), `of ${whole(budget.queries)} spent`);
  setText(byId("epsilon-spent"), figure(budget.epsilon_spent));
  setText(byId("epsilon-of"), `of ε = ${figure(budget.epsilon)} spent`);
  const bar = byId("budget-bar");
  setPart(bar.firstElementChild, budget.charged / budget.queries);
  bar.setAttribute("aria-label", `${budget.charged} of ${budget.queries} queries spent`);
  setText(
    byId("budget-line"),
    `At δ = ${chance(budget.delta)}. You spent ${several(budget.yours, "query", "queries")}; ` +
      `${whole(budget.left)} are left in all, ${whole(budget.left_to_you)} for you.`,
  );
}
