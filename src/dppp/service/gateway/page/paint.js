// However many events come, every part of the page is drawn at most once per frame.

const waiting = new Set();
let isAsked = false;

export function paintSoon(draw) {
  waiting.add(draw);
  if (!isAsked) {
    isAsked = true;
    requestAnimationFrame(paint);
  }
}

function paint() {
  isAsked = false;
  const draws = [...waiting];
  waiting.clear();
  for (const draw of draws) draw();
}
