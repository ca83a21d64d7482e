// Planning: sliders ask the gateway's own calibration, one family at a time, and old questions are dropped.

import { drawBest, drawFamily, startFamilies } from "./families_view.js";
import { byId, make, setText } from "./dom.js";
import { Refused, get } from "./gateway.js";
import { FAMILIES, SLIDERS, scaleWith } from "./plan_terms.js";

const PAUSE_MILLISECONDS = 120;
const BUSY_MILLISECONDS = 2000;

const SIZED_BY = { labels: ["some of several labels", "--max-labels"], number: ["a number", "--levels"] };

// The plans are of one class; noise for the other kinds of questions is another.
function sayWhatIsPlanned({ question }) {
  if (question.kind === "choice") return;
  const [asked, option] = SIZED_BY[question.kind];
  byId("plan-question").append(
    `This task asks for ${asked}, and what is planned here is a question of one class. `,
    make("code", { text: `dppp calibrate ${option}` }),
    " sizes the noise of a question like this task's.",
  );
  byId("plan-question").hidden = false;
}

export function startPlan(task) {
  sayWhatIsPlanned(task);
  const sliders = SLIDERS.map((slider) => addSlider(slider, task));
  startFamilies();
  let timer = 0;
  let asking = new AbortController();
  let isNew = true;
  const ask = () => {
    asking.abort();
    asking = new AbortController();
    askAll(values(sliders), asking.signal);
  };
  byId("sliders").addEventListener("input", () => {
    limitTrust(sliders);
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MILLISECONDS);
  });
  byId("sliders").addEventListener("submit", (event) => event.preventDefault());
  const begin = () => {
    if (isNew && location.hash === "#plan") {
      isNew = false;
      ask();
    }
  };
  addEventListener("hashchange", begin);
  begin();
}

function addSlider(slider, task) {
  const scale = scaleWith(slider.scale, slider.from(task));
  const input = make("input", { type: "range", min: 0, max: scale.length - 1, step: 1, name: slider.name });
  const output = make("span", { class: "value" }); // an <output> would take the label for itself
  input.value = scale.indexOf(slider.from(task));
  const made = { ...slider, input, value: () => scale[input.valueAsNumber], scale };
  made.show = () => {
    const words = slider.words(made.value());
    setText(output, words);
    input.setAttribute("aria-valuetext", words);
  };
  input.addEventListener("input", made.show);
  byId("sliders").append(make("label", {}, slider.label, output, input));
  made.show();
  return made;
}

const values = (sliders) => Object.fromEntries(sliders.map((slider) => [slider.name, slider.value()]));

// Colluders and dropouts past half of the teachers make no sense.
function limitTrust(sliders) {
  const { teachers } = values(sliders);
  for (const slider of sliders.filter((each) => ["colluders", "dropouts"].includes(each.name))) {
    const most = slider.scale.findLastIndex((value) => value <= teachers / 2);
    slider.input.max = String(most);
    slider.show();
  }
}

// Many may plan at once: wait for a place in the queue.
async function askPatiently(path, signal) {
  for (;;) {
    try {
      return await get(path, signal);
    } catch (error) {
      if (!(error instanceof Refused && error.status === 503)) throw error;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MILLISECONDS));
    }
  }
}

async function askAll(question, signal) {
  drawBest([], "Working out each noise …");
  setText(byId("plan-trust"), "");
  const found = [];
  await Promise.all(
    FAMILIES.map(async (family) => {
      drawFamily(family, "waiting");
      try {
        const planned = await askPatiently(`/api/plan?${new URLSearchParams({ ...question, ...family })}`, signal);
        found.push(planned);
        drawFamily(family, planned);
        setText(
          byId("plan-trust"),
          `Noise of ${planned.honest_shares} honest teachers keeps the promise; any ${planned.threshold} decrypt together.`,
        );
      } catch (error) {
        if (error instanceof Refused) drawFamily(family, error.message);
        else if (error.name !== "AbortError") drawFamily(family, "the gateway is out of reach");
      }
    }),
  );
  if (!signal.aborted) drawBest(found, "Every noise tried here breaks this promise or drowns the votes.");
}
