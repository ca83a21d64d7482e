// Server-sent events by fetch, since EventSource cannot send a token; opened again when lost.

import { Refused, open } from "./gateway.js";

const SILENCE_MILLISECONDS = 20_000; // the gateway gives a sign of life every five seconds
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

export async function follow(path, { onEvent, onState }) {
  let pause = FIRST_PAUSE;
  for (;;) {
    try {
      await readOnce(path, onEvent, () => {
        pause = FIRST_PAUSE;
        onState("open");
      });
    } catch (error) {
      if (error instanceof Refused && error.status === 401) return onState("refused");
    }
    onState("lost");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
}

async function readOnce(path, onEvent, onOpen) {
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(), SILENCE_MILLISECONDS);
  try {
    const response = await open(path, { signal: stop.signal });
    onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), SILENCE_MILLISECONDS);
      rest = takeEvents(rest + value, onEvent);
    }
  } finally {
    clearTimeout(timer);
  }
}

// Hands over every whole event and returns the beginning of the next one.
export function takeEvents(text, onEvent) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop();
  for (const block of blocks) {
    for (const line of block.split("\n")) {
      if (line.startsWith("data: ")) onEvent(JSON.parse(line.slice(6)));
    }
  }
  return rest;
}
