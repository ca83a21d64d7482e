// Answers as a file, with the columns and the cells of `dppp query`.

import { csvText } from "./csv.js";

const COLUMNS = { choice: ["label"], labels: ["labels"], number: ["value", "standard_error"] };

export const answersCsv = (kind, answers) => csvText([COLUMNS[kind], ...answers.map((answer) => cellsOf(kind, answer))]);

function cellsOf(kind, answer) {
  if (kind === "labels") return [(answer.labels ?? []).map(inCell).join(";")];
  if (kind === "choice") return [answer.label ?? ""];
  return answer.value === null ? ["", ""] : [digits(answer.value, 10), digits(answer.standard_error, 3)];
}

// A label with a semicolon or a quote in it stands in quotes.
const inCell = (label) => (/[";\r\n]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label);

const digits = (number, most) => String(Number(number.toPrecision(most)));
