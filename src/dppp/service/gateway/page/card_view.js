// The privacy card in a few lines; the whole of it as a file.

import { byId, make } from "./dom.js";
import { download, get } from "./gateway.js";

const NAMES = { protects: "Protects", price: "Price", against: "Against", ballots: "Ballots", not: "Not promised" };

export async function startCard() {
  byId("privacy-card").onclick = () => download("/api/card", "privacy-card.html");
  const lines = await get("/api/card/lines").catch(() => []);
  const texts = new Map();
  for (const { name, text } of lines) texts.set(name, [...(texts.get(name) ?? []), text]);
  byId("card-lines").replaceChildren(
    ...[...texts].map(([name, several]) =>
      make("div", {}, make("dt", { text: NAMES[name] ?? name }), ...several.map((text) => make("dd", { text }))),
    ),
  );
}
