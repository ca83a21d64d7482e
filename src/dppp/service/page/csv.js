// A CSV file as rows of numbers in the order of the task's features; what is wrong is said by line.

export function readRows(text, features) {
  const [header, ...lines] = splitCsv(text);
  if (!header) throw new Error("the file is empty");
  const names = header.map((name) => name.trim());
  const missing = features.filter((feature) => !names.includes(feature));
  if (missing.length) throw new Error(`the header has no column “${missing[0]}”${missing.length > 1 ? ` and ${missing.length - 1} more` : ""}`);
  const places = features.map((feature) => names.indexOf(feature));
  const rows = lines.map((line, position) => places.map((place) => numberIn(line, place, names, position + 2)));
  if (!rows.length) throw new Error("the file has a header and no rows");
  return { rows, ignored: names.filter((name) => !features.includes(name)) };
}

function numberIn(line, place, names, number) {
  const text = (line[place] ?? "").trim();
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) {
    throw new Error(`line ${number}, column “${names[place]}”: “${text}” is no number`);
  }
  return value;
}

// Fields may be quoted and then hold commas, doubled quotes and line ends.
export function splitCsv(text) {
  const lines = [];
  let line = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  text = text.replace(/^\uFEFF/, "");
  while (field.lastIndex < text.length) {
    const found = field.exec(text);
    if (!found) throw new Error(`line ${lines.length + 1} has a stray quote`);
    line.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    if (found[3] !== ",") {
      if (line.length > 1 || line[0] !== "") lines.push(line);
      line = [];
    } else if (field.lastIndex === text.length) {
      line.push("");
    }
  }
  if (line.length) lines.push(line);
  return lines;
}
