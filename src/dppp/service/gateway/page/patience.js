// A gateway that restarts or is busy, or a network that fails for a while, loses nothing: ask again before giving up.

import { Refused } from "./gateway.js";

const BUSY = 503;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8_000;
const PATIENCE_MILLISECONDS = 60_000;

// Repeats what may be repeated until there is an answer, be it a refusal; `onPause` is told why it waits.
export async function untilAnswered(ask, onPause) {
  const until = Date.now() + PATIENCE_MILLISECONDS;
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      return await ask();
    } catch (error) {
      const isSilent = !(error instanceof Refused);
      if (!isSilent && error.status !== BUSY) throw error;
      if (Date.now() > until) throw isSilent ? new Error("The gateway has not answered for a minute.") : error;
      onPause(isSilent ? "The gateway does not answer" : `The gateway says: ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}
