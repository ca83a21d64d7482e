// What is spent and left, as the gateway last said: asked again when a batch ends, not at every stroke of the pen.

import { get } from "./gateway.js";

const tellers = [];
let last = null;

export const lastBudget = () => last;
export const onBudget = (tell) => tellers.push(tell);

export async function askBudget() {
  last = await get("/api/budget");
  for (const tell of tellers) tell();
  return last;
}
