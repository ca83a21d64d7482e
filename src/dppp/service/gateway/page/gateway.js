// Talking to the gateway: the token in every request, one kind of error for every refusal.

import { takeToken } from "./token.js";

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let aheadSeconds = 0;

// Seconds since 1970 by the gateway's clock, as far as an answer's date tells.
export const gatewayNow = () => Date.now() / 1000 - aheadSeconds;

export async function open(path, options = {}) {
  const headers = { Authorization: `Bearer ${takeToken()}`, ...options.headers };
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  noteClock(response);
  if (!response.ok) throw new Refused(response.status, await reasonOf(response));
  return response;
}

export const get = async (path, signal) => (await open(path, { signal })).json();

export async function post(path, body, headers) {
  const sent = { "Content-Type": "application/json", ...headers };
  const response = await open(path, { method: "POST", headers: sent, body: JSON.stringify(body) });
  return response.json();
}

// The browser cannot send a token with a plain link, so a click fetches the file and hands it over.
export async function download(path, name) {
  offer(await (await open(path)).blob(), name);
}

export function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function reasonOf(response) {
  try {
    const { detail, hint } = await response.json();
    return hint ? `${detail}; ${hint}` : detail;
  } catch {
    return `the gateway answered ${response.status}`;
  }
}

function noteClock(response) {
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date)) {
    const ahead = (Date.now() - date) / 1000;
    aheadSeconds = Math.abs(ahead) > 2 ? ahead : 0;
  }
}
