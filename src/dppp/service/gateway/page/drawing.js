// A pad to draw on with a pointer or with the keyboard; keeps strokes, not pixels.

import { setText } from "./dom.js";

const STEP = 1 / 16;
const PEN = 0.09;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pad {
  constructor(canvas, status, onChange) {
    this.strokes = [];
    this.canvas = canvas;
    this.status = status;
    this.onChange = onChange;
    this.cursor = null; // of the keyboard's pen
    this.isDown = false;
    canvas.addEventListener("pointerdown", (event) => this.#begin(event));
    canvas.addEventListener("pointermove", (event) => this.#go(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => this.#lift());
    canvas.addEventListener("keydown", (event) => this.#key(event));
    this.clear();
  }

  clear() {
    this.strokes = [];
    this.#lift();
    this.#changed();
  }

  #begin(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.cursor = null;
    this.#put(this.#place(event), true);
  }

  #go(event) {
    if (!this.isDown || this.cursor) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) this.strokes.at(-1).push(this.#place(each));
    this.#changed();
  }

  #put(point, isNew) {
    this.isDown = true;
    if (isNew) this.strokes.push([point]);
    else this.strokes.at(-1).push(point);
    this.#changed();
  }

  #lift() {
    this.isDown = false;
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  }

  #key(event) {
    if (event.key === "Delete" || event.key === "Backspace") this.clear();
    else if (event.key === " ") this.#toggle();
    else if (event.key in ARROWS) this.#move(...ARROWS[event.key]);
    else return;
    event.preventDefault();
    this.#changed();
  }

  #toggle() {
    this.cursor ??= { x: 0.5, y: 0.5 };
    if (this.isDown) this.#lift();
    else this.#put({ ...this.cursor }, true);
    setText(this.status, this.isDown ? "pen down" : "pen up");
  }

  #move(right, down) {
    const { x, y } = this.cursor ?? { x: 0.5, y: 0.5 };
    const kept = (value) => Math.max(STEP, Math.min(1 - STEP, value));
    this.cursor = { x: kept(x + right * STEP), y: kept(y + down * STEP) };
    if (this.isDown) this.#put({ ...this.cursor }, false);
    const [column, row] = [this.cursor.x, this.cursor.y].map((value) => Math.round(value / STEP));
    setText(this.status, `pen ${this.isDown ? "down" : "up"}, column ${column}, row ${row} of 16`);
  }

  #changed() {
    this.#draw();
    this.onChange(this.strokes);
  }

  #draw() {
    const { width, height } = this.canvas;
    const pen = this.canvas.getContext("2d");
    pen.clearRect(0, 0, width, height);
    Object.assign(pen, { lineWidth: PEN * width, lineCap: "round", lineJoin: "round", strokeStyle: "#1d2530" });
    for (const stroke of this.strokes) {
      pen.beginPath();
      stroke.forEach(({ x, y }) => pen.lineTo(x * width, y * height));
      if (stroke.length === 1) pen.lineTo(stroke[0].x * width + 0.1, stroke[0].y * height);
      pen.stroke();
    }
    if (this.cursor) this.#drawCursor(pen, width, height);
  }

  #drawCursor(pen, width, height) {
    Object.assign(pen, { lineWidth: 3, strokeStyle: this.isDown ? "#a5361f" : "#2f5d8a" });
    pen.beginPath();
    pen.arc(this.cursor.x * width, this.cursor.y * height, 14, 0, 2 * Math.PI);
    pen.stroke();
  }
}

// A small picture of a grid of numbers from 0 to `most`.
export function drawGrid(canvas, grid, size, most) {
  const pen = canvas.getContext("2d");
  const side = canvas.width / size;
  grid.forEach((value, place) => {
    const shade = Math.round(255 * (1 - value / most));
    pen.fillStyle = `rgb(${shade} ${shade} ${shade})`;
    pen.fillRect((place % size) * side, Math.floor(place / size) * side, side, side);
  });
}
