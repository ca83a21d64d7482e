// Numbers, times and names as people read them.

export const NOISES = { skellam: "Skellam", polya: "Pólya", binomial: "Binomial", "discrete-gaussian": "Discrete Gaussian" };

export function ago(seconds) {
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds / 5) * 5} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export const duration = (seconds) => `${Math.max(0, seconds).toFixed(2)} s`;
export const whole = (number) => number.toLocaleString("en");
export const percent = (part) => (part > 0.9995 && part < 1 ? "> 99.9 %" : `${(100 * part).toFixed(1)} %`);
export const chance = (part) => (part > 0 && part < 0.01 ? Number(part.toPrecision(3)).toExponential() : figure(part));
export const several = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

export const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");

export function figure(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e6 || size < 1e-3) return Number(number.toPrecision(3)).toExponential().replace("e+", "e");
  return size >= 100 ? whole(Math.round(number)) : String(Number(number.toPrecision(3)));
}
