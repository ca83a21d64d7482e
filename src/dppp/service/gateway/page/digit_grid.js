// A drawing as the numbers that scikit-learn's digits are: a bitmap of 32 × 32, ink counted in blocks.
//
// Their bitmaps fill the height, keep their proportions, stand in the middle, leave the outer columns
// free, and have about 310 black pixels whatever the digit. So a drawing is moved and scaled like that,
// and its pen is made as thick as that takes.

const BITMAP = 32;
const WIDEST = 25;
const INK = 310;
const PENS = { thinnest: 1.1, thickest: 3.6 };

// The side of a square image whose features are named pixel_<row>_<column>, or null.
export function gridSize(features) {
  const size = Math.sqrt(features.length);
  const isGrid = features.every((name, place) => name === `pixel_${Math.floor(place / size)}_${place % size}`);
  return isGrid && BITMAP % size === 0 ? size : null;
}

// Strokes are lists of points {x, y}; the result goes row by row, 0 to (32 / size)².
export function gridOf(strokes, size) {
  const bitmap = bitmapOf(strokes);
  const block = BITMAP / size;
  const counts = new Array(size * size).fill(0);
  bitmap.forEach((isInk, place) => {
    const row = Math.floor(Math.floor(place / BITMAP) / block);
    const column = Math.floor((place % BITMAP) / block);
    counts[row * size + column] += isInk;
  });
  return counts;
}

function bitmapOf(strokes) {
  if (!strokes.some((stroke) => stroke.length)) return new Array(BITMAP * BITMAP).fill(0);
  let { thinnest: low, thickest: high } = PENS;
  for (let step = 0; step < 6; step += 1) {
    const middle = (low + high) / 2;
    const ink = rasterise(strokes, middle).reduce((sum, each) => sum + each, 0);
    if (ink > INK) high = middle;
    else low = middle;
  }
  return rasterise(strokes, (low + high) / 2);
}

function rasterise(strokes, pen) {
  const segments = fit(strokes, pen);
  const bitmap = new Array(BITMAP * BITMAP);
  for (let place = 0; place < bitmap.length; place += 1) {
    const x = (place % BITMAP) + 0.5;
    const y = Math.floor(place / BITMAP) + 0.5;
    bitmap[place] = segments.some((segment) => distance2(x, y, segment) <= pen * pen) ? 1 : 0;
  }
  return bitmap;
}

// The lines of the drawing in a box that is as high as the bitmap, less half a pen at each edge.
function fit(strokes, pen) {
  const points = strokes.flat();
  const left = Math.min(...points.map((point) => point.x));
  const right = Math.max(...points.map((point) => point.x));
  const top = Math.min(...points.map((point) => point.y));
  const bottom = Math.max(...points.map((point) => point.y));
  const room = BITMAP - 2 * pen;
  const scale = room / Math.max(bottom - top, (right - left) / 4, 1e-9);
  const narrower = Math.min(1, (WIDEST - 2 * pen) / Math.max((right - left) * scale, 1e-9));
  const move = (point) => ({
    x: BITMAP / 2 + (point.x - (left + right) / 2) * scale * narrower,
    y: BITMAP / 2 + (point.y - (top + bottom) / 2) * scale,
  });
  return strokes.flatMap((stroke) => segmentsOf(stroke.map(move)));
}

function segmentsOf(points) {
  if (points.length === 1) return [[points[0], points[0]]];
  return points.slice(1).map((point, place) => [points[place], point]);
}

function distance2(x, y, [from, to]) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length2 = dx * dx + dy * dy;
  const along = length2 ? Math.max(0, Math.min(1, ((x - from.x) * dx + (y - from.y) * dy) / length2)) : 0;
  return (x - from.x - along * dx) ** 2 + (y - from.y - along * dy) ** 2;
}
