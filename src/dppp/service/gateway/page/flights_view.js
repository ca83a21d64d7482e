// Batches on their way: six stages, when each was reached, how many of how many.

import { byId, make, setText } from "./dom.js";
import { flowNode } from "./flow_view.js";
import { gatewayNow } from "./gateway.js";
import { duration, several } from "./words.js";

const STAGES = ["votes", "ballots", "tally", "endorsements", "answers", "release"];
const SHOWN = 3;
let drawnBefore = "";

export function drawFlights(state, task) {
  const flights = [...state.flights.values()].reverse().slice(0, SHOWN);
  const drawn = JSON.stringify(flights) + flights.some((flight) => !flight.isOver) * Date.now();
  if (drawn === drawnBefore && drawn !== "[]0") return;
  drawnBefore = drawn;
  byId("flights").replaceChildren(...(flights.length ? flights.map((flight, place) => flightNode(flight, place === 0 ? task : null)) : [idle()]));
  if (flights.length) setText(byId("flight-status"), statusOf(flights[0]));
}

export const hasOpenFlight = (state) => [...state.flights.values()].some((flight) => !flight.isOver);

const idle = () => make("p", { class: "quiet", text: "No batch of yours is under way." });

function statusOf(flight) {
  if (flight.stage === "aborted") return `Batch aborted: ${flight.reason}`;
  return flight.isOver ? "Batch released" : `Batch at stage ${flight.stage}`;
}

// With the task, also as a picture.
function flightNode(flight, task) {
  const first = flight.stages.votes?.at ?? Math.min(...Object.values(flight.stages).map((each) => each.at));
  const end = flight.isOver ? flight.stages[flight.stage].at : gatewayNow();
  const word = { released: "released", aborted: "aborted" }[flight.stage] ?? "under way";
  const node = make(
    "article",
    { class: "flight", "data-batch": flight.batch },
    make(
      "header",
      {},
      make("span", { text: `${several(flight.queries, "query", "queries")} · ${flight.batch.slice(0, 8)}` }),
      make("span", { text: `${word}, ${duration(end - first)}` }),
    ),
    ...(task ? [flowNode(flight, task, first)] : []),
    make("ol", { class: "stages", "aria-label": "Stages" }, ...STAGES.map((stage) => stageNode(flight, stage, first))),
  );
  if (flight.reason) node.append(make("p", { class: "bad", text: `Aborted: ${flight.reason}` }));
  return node;
}

function stageNode(flight, stage, first) {
  const name = stage === "release" ? "released" : stage;
  const reached = flight.stages[name];
  const node = make("li", { "data-stage": stage, "data-state": stageState(flight, name, reached) }, make("b", { text: stage }));
  const words = reached && name !== "votes" ? `+${duration(reached.last - first)}` : "";
  // The answer that opens a batch comes together with its release.
  const done = name === "answers" && flight.stage === "released" ? reached?.of : reached?.done;
  const part = reached?.of ? `${done}/${reached.of}` : "";
  node.append(make("span", { text: part }), make("span", { text: words }));
  return node;
}

function stageState(flight, name, reached) {
  if (flight.stage === "aborted") return reached ? "done" : "failed";
  if (flight.stage === name && !flight.isOver) return "now";
  // A dispute has no place of its own: what was reached before it stays done.
  if (flight.stage === "dispute") return reached ? "done" : "later";
  const order = ["votes", "ballots", "tally", "endorsements", "answers", "released"];
  return order.indexOf(flight.stage) >= order.indexOf(name) ? "done" : "later";
}
