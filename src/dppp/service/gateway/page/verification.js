// The mark on a release: the aggregator's own check, one release after the other; a click saves the receipt.

import { make } from "./dom.js";
import { Refused, download, get } from "./gateway.js";

const found = new Map(); // by batch id; as long as the releases that are shown
const MOST_ROWS = 200; // larger batches take the gateway too long to check unasked
let last = Promise.resolve();

export function keepOnly(ids) {
  for (const id of found.keys()) if (!ids.has(id)) found.delete(id);
}

export function markOf(state) {
  const mark = receiptButton(state.id);
  if (found.get(state.id)) show(mark, found.get(state.id));
  else if (state.rows <= MOST_ROWS) showLater(mark, state.id);
  return mark;
}

function receiptButton(id) {
  const fetchIt = () => download(`/api/batches/${id}/receipt`, `${id.slice(0, 16)}.receipt`);
  return make("button", { type: "button", class: "mark plain", text: "receipt", onclick: fetchIt });
}

function showLater(mark, id) {
  last = last.then(async () => {
    if (!found.has(id)) await check(id);
    show(mark, found.get(id));
  });
}

async function check(id) {
  try {
    found.set(id, await get(`/api/batches/${id}/verification`));
  } catch (error) {
    if (error instanceof Refused && error.status !== 503) found.set(id, null);
    // otherwise it is tried again with the next drawing
  }
}

function show(mark, verification) {
  if (!verification) return;
  mark.className = verification.is_verified ? "mark" : "mark bad";
  mark.textContent = verification.is_verified ? "✓ verified" : "✗ not verified";
  mark.title = verification.is_verified
    ? `The aggregator checked ${verification.checks.join(", ")}: ${verification.endorsements} teachers signed the list of ` +
      `${verification.ballots} ballots. Click for the receipt and run: ${verification.command}`
    : verification.reason;
}
