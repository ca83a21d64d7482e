// A CSV file as rows of numbers in the order of the task's features; what is wrong is said by line. Labels go out as one column.

// As people write numbers: no 0x10, which JavaScript would take.
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

export function readRows(text, features) {
  const [header, ...lines] = splitCsv(text);
  if (!header) throw new Error("the file is empty");
  const names = header.cells.map((name) => name.trim());
  const missing = features.filter((feature) => !names.includes(feature));
  if (missing.length) throw new Error(`the header has no column “${missing[0]}”${missing.length > 1 ? ` and ${missing.length - 1} more` : ""}`);
  const twice = features.find((feature) => names.indexOf(feature) !== names.lastIndexOf(feature));
  if (twice !== undefined) throw new Error(`the header has the column “${twice}” twice`);
  const places = features.map((feature) => names.indexOf(feature));
  const rows = lines.map((line) => rowOf(line, places, names));
  if (!rows.length) throw new Error("the file has a header and no rows");
  return { rows, ignored: names.filter((name) => !features.includes(name)) };
}

function rowOf({ cells, number }, places, names) {
  if (cells.length !== names.length) throw new Error(`line ${number} has ${cells.length} values, the header ${names.length}`);
  return places.map((place) => {
    const text = cells[place].trim();
    if (!DECIMAL.test(text) || !Number.isFinite(Number(text))) {
      throw new Error(`line ${number}, column “${names[place]}”: “${text}” is not a number`);
    }
    return Number(text);
  });
}

// Fields may be quoted and then hold commas, doubled quotes and line ends; a line knows where in the file it began.
export function splitCsv(text) {
  const lines = [];
  let cells = [];
  let [number, next] = [1, 1];
  const field = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  text = text.replace(/^\uFEFF/, "");
  while (field.lastIndex < text.length) {
    const found = field.exec(text);
    if (!found) throw new Error(`line ${next} has a stray quote`);
    next += found[0].split("\n").length - 1;
    cells.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    if (found[3] !== ",") {
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

// One column under its name, quoted so that any text comes back as it was.
export function columnCsv(name, values) {
  return [name, ...values].map((value) => `"${value.replaceAll('"', '""')}"\n`).join("");
}
