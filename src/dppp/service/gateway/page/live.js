// The live view: one stream of events, and what has to be asked again when a batch ends.

import { askBudget, lastBudget } from "./budget.js";
import { byId, setData, setText } from "./dom.js";
import { drawBudget } from "./budget_view.js";
import { startCard } from "./card_view.js";
import { drawFlights, hasOpenFlight } from "./flights_view.js";
import { gatewayNow, get } from "./gateway.js";
import { LiveState } from "./live_state.js";
import { paintSoon } from "./paint.js";
import { drawReleases } from "./releases_view.js";
import { drawSpent } from "./spent_view.js";
import { follow } from "./stream.js";
import { drawTeachers } from "./teachers_view.js";
import { atMostEvery } from "./throttle.js";

const CONNECTION = { open: "live", lost: "reconnecting …", refused: "token refused" };
const SHOWN_RELEASES = 12;
const SHOWN_STEPS = 40;
const REFRESH_MILLISECONDS = 60_000; // what others spend comes with no event

export function startLive(task) {
  const state = new LiveState();
  const known = { batches: [], steps: [] };
  const draw = () => {
    state.forgetSilent(gatewayNow());
    drawTeachers(state);
    drawFlights(state, task);
    if (lastBudget()) {
      drawBudget(lastBudget());
      drawSpent(task, known.steps, lastBudget());
    }
    drawReleases(task, known.batches);
    setData(byId("connection"), "events", String(state.events));
  };
  startCard();
  const refresh = atMostEvery(1000, async () => {
    await refreshAll(state, known);
    paintSoon(draw);
  });
  follow("/api/events", {
    onEvent: (event) => {
      if (state.apply(event)) refresh();
      paintSoon(draw);
    },
    onState: (word) => {
      setData(byId("connection"), "state", word);
      setText(byId("connection"), CONNECTION[word]);
      if (word === "open") refresh();
    },
  });
  setInterval(refresh, REFRESH_MILLISECONDS);
  setInterval(() => paintSoon(draw), 1000);
  setInterval(() => hasOpenFlight(state) && paintSoon(draw), 100);
  return refresh;
}

async function refreshAll(state, known) {
  const since = state.events;
  try {
    const [teachers, batches, steps] = await Promise.all([
      get("/api/teachers"),
      get(`/api/batches?limit=${SHOWN_RELEASES}`),
      get(`/api/budget/steps?limit=${SHOWN_STEPS}`),
      askBudget(),
    ]);
    state.setTeachers(teachers, since);
    known.batches = batches;
    known.steps = steps;
  } catch {
    // The stream says whether the gateway is there; when it is back, this runs again.
  }
}
