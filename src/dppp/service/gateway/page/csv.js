// A CSV file as rows in the order of the task's columns; what is wrong is said by line. Labels go out as one column.

// As people write numbers: no 0x10, which JavaScript would take.
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

// Thousands set apart by commas, by points where commas are decimal, or by spaces: as dppp query has them too.
const GROUPED = /^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/;
const GROUPED_BY_POINTS = /^[+-]?\d{1,3}((\.\d{3})+,\d+|(\.\d{3}){2,})$/;
const GROUPED_BY_SPACES = /^[+-]?\d{1,3}([ '\u00a0\u202f\u2019]\d{3})+([.,]\d+)?$/;
const DECIMAL_COMMA = /^[+-]?\d+,\d+(e[+-]?\d+)?$/i;

// Cells that hold nothing, as dppp query has them too.
const MISSING = new Set(" ? NA N/A n/a #N/A #NA <NA> NaN nan -NaN -nan NaT NULL null None".split(" "));

export function readRows(text, columns) {
  const features = columns.map((column) => column.name);
  const [header, ...lines] = splitCsv(text);
  if (!header) throw new Error("the file is empty");
  const names = header.cells.map((name) => name.trim());
  const missing = features.filter((feature) => !names.includes(feature));
  if (missing.length) throw new Error(`the header has no column “${missing[0]}”${missing.length > 1 ? ` and ${missing.length - 1} more` : ""}`);
  const twice = features.find((feature) => names.indexOf(feature) !== names.lastIndexOf(feature));
  if (twice !== undefined) throw new Error(`the header has the column “${twice}” twice`);
  const places = features.map((feature) => names.indexOf(feature));
  const hasDecimalCommas = delimiterOf(text) !== ",";
  const rows = lines.map((line) => rowOf(line, places, names, columns, hasDecimalCommas));
  if (!rows.length) throw new Error("the file has a header and no rows");
  return { rows, ignored: names.filter((name) => !features.includes(name)) };
}

function rowOf({ cells, number }, places, names, columns, hasDecimalCommas) {
  if (cells.length !== names.length) throw new Error(`line ${number} has ${cells.length} values, the header ${names.length}`);
  return places.map((place, index) => {
    const text = cells[place].trim();
    const [value, fault] = readCell(text, columns[index], hasDecimalCommas);
    if (fault) throw new Error(`line ${number}, column “${names[place]}”: ${fault}`);
    return value;
  });
}

// What is in a cell of a column: a number, a text, null if it is missing; or what is wrong with it.
function readCell(text, column, hasDecimalCommas) {
  if (column.may_be_missing && MISSING.has(text)) return [null, null];
  if (column.kind === "number") {
    const number = numberIn(text, hasDecimalCommas);
    return Number.isFinite(number) ? [number, null] : [null, `“${text}” is not a number`];
  }
  if (MISSING.has(text)) return [null, "the value is missing"];
  const value = text.normalize("NFC");
  if (column.kind === "category" && !column.values.includes(value)) {
    return [null, `“${text}” is not one of ${column.values.slice(0, 8).join(", ")}${column.values.length > 8 ? ", …" : ""}`];
  }
  return [value, null];
}

function numberIn(text, hasDecimalCommas) {
  let written = text.replace(/\s*%$/, "");
  if (GROUPED_BY_SPACES.test(written)) written = written.replaceAll(/[ '\u00a0\u202f\u2019]/g, "");
  if (hasDecimalCommas && GROUPED_BY_POINTS.test(written)) written = written.replaceAll(".", "");
  if (hasDecimalCommas && DECIMAL_COMMA.test(written)) written = written.replace(",", ".");
  else if (GROUPED.test(written)) written = written.replaceAll(",", "");
  return DECIMAL.test(written) ? Number(written) : NaN;
}

// Fields may be quoted and then hold commas, doubled quotes and line ends; a line knows where in the file it began.
export function splitCsv(text) {
  const lines = [];
  let cells = [];
  let [number, next] = [1, 1];
  text = text.replace(/^\uFEFF/, "");
  const between = delimiterOf(text);
  const mark = between === "|" ? "\\|" : between;
  const field = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^"${mark}\\r\\n]*))(${mark}|\\r?\\n|$)`, "gy");
  while (field.lastIndex < text.length) {
    const found = field.exec(text);
    if (!found) throw new Error(`line ${next} has a stray quote`);
    next += found[0].split("\n").length - 1;
    cells.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    if (found[3] !== between) {
      if (cells.length > 1 || cells[0] !== "") lines.push({ cells, number });
      cells = [];
      number = next;
    } else if (field.lastIndex === text.length) {
      cells.push("");
    }
  }
  if (cells.length) lines.push({ cells, number });
  return lines;
}

// What divides the first line most often, outside of quotes; a comma if nothing does.
function delimiterOf(text) {
  const first = text.split("\n").find((line) => line.trim()) ?? "";
  const outside = first.split('"').filter((_, place) => place % 2 === 0).join("");
  const count = (mark) => outside.split(mark).length;
  return [",", ";", "\t", "|"].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
}

// Lines of cells, quoted so that any text comes back as it was.
export function csvText(lines) {
  const quoted = (cell) => `"${cell.replaceAll('"', '""')}"`;
  return lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
}
