// A function that may be wanted a thousand times per second and runs once in a while.

export function atMostEvery(milliseconds, work) {
  let isRunning = false;
  let isWanted = false;
  async function run() {
    isRunning = true;
    isWanted = false;
    try {
      await work();
    } finally {
      setTimeout(() => {
        isRunning = false;
        if (isWanted) run();
      }, milliseconds);
    }
  }
  return () => {
    isWanted = true;
    if (!isRunning) run();
  };
}
