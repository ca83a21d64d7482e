// Elements without a framework.

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

// A drawing of paths; `box` is its width and height in the units of the paths.
export function drawing(box, attributes, ...paths) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${box}`, ...attributes })) svg.setAttribute(name, value);
  for (const [kind, d] of paths) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", kind);
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

// Writing what is there already costs a layout; under load that is most of what is written.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setData(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

// On a phone what is new comes below what is there, and nobody would see it.
export function bringIntoView(element) {
  const { top } = element.getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2) element.scrollIntoView({ block: "start" });
}

export function setPart(element, part) {
  element.style.setProperty("--part", String(Math.max(0, Math.min(1, part))));
}
