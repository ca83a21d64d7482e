// Asking: rows go out, a label comes back, and what it cost stands beside it.

import { drawAnswer, drawPrice, hideAnswer, showRefusal } from "./answer_view.js";
import { startDrawing, startFields, startFile } from "./ask_ways.js";
import { askBudget, lastBudget, onBudget } from "./budget.js";
import { byId, setText } from "./dom.js";
import { Refused, get, post } from "./gateway.js";
import { untilAnswered } from "./patience.js";

const POLL_MILLISECONDS = 250;
const WORDS = {
  votes: () => "The teachers are asked.",
  ballots: (state, task) => `${state.ballots} of ${task.teachers} ballots are in.`,
  tally: () => "The ballots are added up, still encrypted.",
  endorsements: (state, task) => `The list of ballots is checked: ${state.endorsements} of ${task.threshold} teachers signed it.`,
  answers: (state, task) => `The tally is opened together: ${state.answers} of ${task.threshold} answers.`,
  dispute: () => "The tally does not open yet: it is found out why.",
};

export async function startAsk(task, refresh) {
  const ways = {};
  let isAsking = false;
  const rows = () => ways[chosenWay()]?.() ?? [];
  const released = new Set(); // rows answered in this tab: asking again is free
  const changed = () => {
    const [given, budget] = [rows(), lastBudget()];
    const cost = new Set(given.map(String).filter((row) => !released.has(row))).size;
    byId("ask-now").disabled = isAsking || !given.length || (budget !== null && cost > budget.left_to_you);
    drawPrice(given.length, cost, budget);
  };
  const { rows: examples } = await get("/api/examples").catch(() => ({ rows: [] }));
  ways.fields = startFields(task, examples, changed);
  ways.file = startFile(task, changed);
  const drawing = startDrawing(task, changed);
  if (drawing) ways.draw = drawing;
  chooseWay(ways, drawing ? "draw" : "fields", changed);
  byId("ask-now").addEventListener("click", async () => {
    isAsking = true;
    changed();
    const asked = rows();
    if (await askFor(task, asked)) for (const row of asked) released.add(String(row));
    isAsking = false;
    changed();
    refresh();
  });
  onBudget(changed);
}

const chosenWay = () => document.querySelector("#ways input:checked")?.value;

function chooseWay(ways, first, changed) {
  const show = () => {
    for (const way of ["draw", "fields", "file"]) byId(`way-${way}`).hidden = way !== chosenWay();
    changed();
  };
  for (const input of document.querySelectorAll("#ways input")) {
    input.parentElement.hidden = !(input.value in ways);
    input.checked = input.value === first;
    input.addEventListener("change", show);
  }
  show();
}

// Whether there is an answer.
async function askFor(task, rows) {
  hideAnswer();
  try {
    const before = await patiently(askBudget);
    const state = await untilOver(task, await send(rows));
    const after = await patiently(askBudget);
    if (state.stage === "aborted") {
      showRefusal(`The batch was aborted: ${state.reason}`, 410);
      return false;
    }
    const { labels } = await patiently(() => get(`/api/batches/${state.id}/labels`));
    drawAnswer(task, labels, state, before, after);
    return true;
  } catch (error) {
    showRefusal(error.message, error instanceof Refused ? error.status : 0);
    return false;
  } finally {
    setText(byId("ask-status"), "");
  }
}

const patiently = (ask) =>
  untilAnswered(ask, (why) => setText(byId("ask-status"), `${why}; trying again. What was asked is not lost.`));

// Under its own key: what is sent twice is charged once.
function send(rows) {
  const key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return patiently(() => post("/api/batches", { rows }, { "Idempotency-Key": key }));
}

async function untilOver(task, state) {
  while (state.stage in WORDS) {
    setText(byId("ask-status"), WORDS[state.stage](state, task));
    await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
    state = await patiently(() => get(`/api/batches/${state.id}`));
  }
  return state;
}
