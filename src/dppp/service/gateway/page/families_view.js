// One block per family of noise: accuracy as a bar, variance, and δ promised against delivered.

import { byId, make, setPart, setText } from "./dom.js";
import { FAMILIES } from "./plan_terms.js";
import { NOISES, chance, figure, percent, several, whole } from "./words.js";

const LEAST_DELTA = -12; // of ten, at the left end of the bars

const keyOf = ({ noise, calibration }) => `${noise}-${calibration}`;
const titleOf = ({ noise, calibration }) => NOISES[noise] + (calibration === "paper" ? ", as in the paper" : "");

export function startFamilies() {
  byId("families").append(...FAMILIES.map((family) => make("article", { class: "family", id: `family-${keyOf(family)}` })));
}

// `found` is "waiting", what the gateway planned, or in words why it did not.
export function drawFamily(family, found) {
  const block = byId(`family-${keyOf(family)}`);
  block.dataset.state = found === "waiting" ? "waiting" : "done";
  if (found === "waiting" && block.children.length) return;
  const isPlanned = typeof found === "object";
  block.dataset.kept = isPlanned && found.exact_delta !== null && !found.is_certified ? "no" : "yes";
  const header = make("header", {}, make("b", { text: titleOf(family) }), make("span", { text: isPlanned ? accuracyWords(found) : "" }));
  block.replaceChildren(header, ...(isPlanned ? plannedNodes(found) : [make("p", { text: found === "waiting" ? "…" : found })]));
}

const accuracyWords = (found) => (found.accuracy === null ? "drowned in noise" : `${percent(found.accuracy)} right`);

function plannedNodes(found) {
  const fill = make("span");
  setPart(fill, found.accuracy ?? 0);
  const limit = make("i");
  limit.style.setProperty("--at", String(Math.min(found.accuracy_without_noise, 0.995)));
  const bar = make("div", { class: "track", role: "img", "aria-label": accuracyWords(found) }, fill, limit);
  const variance = make("p", { text: `variance ${figure(found.variance)} from the honest shares, ${figure(found.tally_variance)} when all teachers vote` });
  return [bar, variance, found.calibration === "paper" ? promiseNode(found) : make("p", { text: deltaWords(found) })];
}

const deltaWords = (found) => `δ promised ${chance(found.promised_delta)}, delivered ${chance(found.exact_delta)}`;

function promiseNode(found) {
  if (found.exact_delta === null) return make("p", { text: "δ delivered: far below the promise, with far more noise than needed" });
  const node = make("div", { class: "promise" });
  for (const [word, delta] of [["promised", found.promised_delta], ["delivered", found.exact_delta]]) {
    const fill = make("span");
    setPart(fill, delta > 0 ? 1 - Math.log10(delta) / LEAST_DELTA : 0);
    node.append(make("span", { text: `δ ${word}` }), make("div", { class: `track ${word}` }, fill), make("span", { text: chance(delta) }));
  }
  node.append(make("strong", { class: found.is_certified ? "good" : "bad", text: found.is_certified ? "kept" : "broken" }));
  return node;
}

// Which noise is best is known only when every one has been worked out.
export function drawBest(found, otherwise) {
  const certified = found.filter((each) => each.is_certified && each.accuracy !== null);
  const place = byId("plan-best");
  if (!certified.length) {
    setText(byId("plan-lead"), "");
    return (place.textContent = otherwise);
  }
  const best = certified.reduce((one, other) => (other.variance < one.variance ? other : one));
  setText(byId("plan-lead"), leadWords(best));
  place.replaceChildren(
    make("strong", { text: `${titleOf(best)} noise` }),
    ` of variance ${figure(best.variance)} keeps the promise with the least noise: the right label in `,
    make("strong", { text: percent(best.accuracy) }),
    ` of queries with such a lead, ${percent(best.accuracy_without_noise)} without noise.`,
  );
}

// What follows from public numbers alone, whatever the models know.
function leadWords({ tally_deviation: deviation, votes_in_all: votes, lead_needed: lead }) {
  const beside = `A count carries noise of ±${figure(deviation)} (standard deviation) beside ${several(votes, "vote")} in all.`;
  if (lead > votes) return `${beside} To be released in 90 % of queries a class would have to lead by ${whole(lead)}: more than all votes.`;
  return `${beside} To be released in 90 % of queries a class must lead every other by ${several(lead, "vote")}, ${percent(lead / votes)} of all.`;
}
