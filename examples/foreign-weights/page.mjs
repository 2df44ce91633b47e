/** @file The example in a page: a digit is drawn, and recognised after every stroke. */
import { compileAsync, loadFrom, spec, tensor } from "tidemark";
import { byId } from "../shared/page.mjs";
import { layersOf, PIXELS, scores } from "./digits.mjs";

const SIDE = 28;
const canvas = byId("digit");
const brush = canvas.getContext("2d", { willReadFrequently: true });
brush.strokeStyle = "white";
[brush.lineWidth, brush.lineCap, brush.lineJoin] = [2.2, "round", "round"];

const answer = await fetch("digits.safetensors");
const theirs = await loadFrom(answer);
const params = (await compileAsync(layersOf, [theirs]))(theirs);
const shares = await compileAsync((given, x) => scores(given, x).softmax(-1), [params, spec([1, PIXELS])]);

/** The probability of each digit for what is drawn. */
function recognise() {
  const { data } = brush.getImageData(0, 0, SIDE, SIDE);
  const pixels = Float32Array.from({ length: PIXELS }, (_, i) => data[4 * i] / 255);
  const chances = [...shares(params, tensor(pixels, { shape: [1, PIXELS] })).data()];
  const best = chances.indexOf(Math.max(...chances));
  byId("status").textContent = `${best}, with ${Math.round(100 * chances[best])} %`;
  byId("scores").textContent = chances.map((p, digit) => `${digit} ${"█".repeat(Math.round(40 * p))}`).join("\n");
  return chances;
}

function clear() {
  brush.fillStyle = "black";
  brush.fillRect(0, 0, SIDE, SIDE);
  byId("status").textContent = "";
  byId("scores").textContent = "";
}

/** Draws from point to point, in pixels of the image, and recognises it. */
function stroke(points) {
  brush.beginPath();
  for (const [x, y] of points) brush.lineTo(x, y);
  brush.stroke();
  return recognise();
}

let last = null;
const placeOf = ({ offsetX, offsetY }) => [
  (offsetX * SIDE) / canvas.clientWidth,
  (offsetY * SIDE) / canvas.clientHeight,
];
canvas.style.touchAction = "none";
canvas.addEventListener("pointerdown", (event) => {
  last = placeOf(event);
});
canvas.addEventListener("pointermove", (event) => {
  if (last === null) return;
  stroke([last, placeOf(event)]);
  last = placeOf(event);
});
globalThis.addEventListener("pointerup", () => {
  last = null;
});
byId("clear").addEventListener("click", clear);
clear();

/** For the console and for tests. */
Object.assign(globalThis, { example: { stroke, clear } });
