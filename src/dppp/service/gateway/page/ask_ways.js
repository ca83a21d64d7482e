// Three ways to say what to ask: draw it, fill in fields, or give a CSV file. Each gives rows.

import { readRows } from "./csv.js";
import { gridOf, gridSize } from "./digit_grid.js";
import { byId, make, setText } from "./dom.js";
import { Pad, drawGrid } from "./drawing.js";
import { several } from "./words.js";

const MOST_FILE_BYTES = 20 * 2 ** 20;

export function startDrawing(task, onChange) {
  const size = gridSize(task.features);
  if (size === null) return null;
  const most = (32 / size) ** 2;
  let rows = [];
  const pad = new Pad(byId("pad"), byId("pad-status"), (strokes) => {
    const grid = gridOf(strokes, size);
    rows = strokes.length ? [grid] : [];
    drawGrid(byId("seen"), grid, size, most);
    onChange();
  });
  byId("pad-clear").addEventListener("click", () => pad.clear());
  return () => rows;
}

export function startFields(task, examples, onChange) {
  const inputs = task.columns.map((column) => {
    const input = fieldOf(column, onChange);
    byId("fields").append(make("label", {}, column.name, input));
    return input;
  });
  let next = 0;
  byId("example").hidden = examples.length === 0;
  byId("example").addEventListener("click", () => {
    const row = examples[next % examples.length];
    inputs.forEach((input, place) => (input.value = row[place] === null ? "" : String(row[place])));
    next += 1;
    onChange();
  });
  byId("fields").addEventListener("submit", (event) => event.preventDefault());
  return () => {
    const read = inputs.map((input, place) => valueOf(input, task.columns[place]));
    return read.includes(undefined) ? [] : [read];
  };
}

// A field for a number, a choice of a category's values, or a line of text.
function fieldOf(column, onChange) {
  const required = column.may_be_missing ? undefined : "";
  const placeholder = column.may_be_missing ? "missing" : undefined;
  const more = { name: column.name, required, oninput: onChange };
  if (column.kind === "number") return make("input", { type: "number", step: "any", placeholder, ...more });
  if (column.kind === "text") return make("input", { type: "text", placeholder, ...more });
  const none = make("option", { value: "", text: column.may_be_missing ? "missing" : "choose" });
  return make("select", more, none, ...column.values.map((value) => make("option", { value, text: value })));
}

// What a field holds; null if it is missing, undefined if it must not be.
function valueOf(input, column) {
  if (input.validity.badInput) return undefined;
  if (input.value.trim() === "") return column.may_be_missing ? null : undefined;
  return column.kind === "number" ? input.valueAsNumber : input.value.trim();
}

export function startFile(task, onChange) {
  let rows = [];
  // Choosing the same file again, corrected, is a change as well.
  byId("file").addEventListener("click", (event) => (event.target.value = ""));
  byId("file").addEventListener("change", async (event) => {
    rows = [];
    const line = byId("file-line");
    try {
      const file = event.target.files[0];
      if (file) {
        if (file.size > MOST_FILE_BYTES) throw new Error("the file is larger than 20 MB; use dppp query");
        const read = readRows(await file.text(), task.columns);
        rows = read.rows;
        const ignored = read.ignored.length ? `; not sent: ${read.ignored.join(", ")}` : "";
        setText(line, `${several(rows.length, "row")} read${ignored}`);
      }
    } catch (error) {
      setText(line, `This file cannot be used: ${error.message}.`);
    }
    onChange();
  });
  return () => rows;
}
