/** @file The example in a page: planned in a worker within a budget, one iteration after the other between frames. */
import { compileAsync, trainLoop } from "tidemark";
import { byId, drawLine, resultText, showProgress } from "../shared/page.mjs";
import { anomaly, inversion, likeness, survey } from "./wave.mjs";

const SIZE = 32;
const SHOTS = 2;
/** Of the medium: what is drawn darkest and lightest. */
const RANGE = [-0.2, 0.25];

let stop = new AbortController();

function draw(canvas, medium) {
  const [rows, columns] = medium.shape;
  [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  medium.data().forEach((value, i) => {
    const shade = Math.round(255 * Math.min(1, Math.max(0, (value - RANGE[0]) / (RANGE[1] - RANGE[0]))));
    image.data.set([shade, shade, shade, 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

async function find() {
  stop = new AbortController();
  const { signal } = stop;
  const known = survey({ size: SIZE, shots: SHOTS, steps: Number(byId("steps").value) });
  const { observe, init, step } = inversion(known);
  const wanted = anomaly(known);
  draw(byId("true"), wanted);
  const state = init();
  const heard = (await compileAsync(observe, [wanted]))(wanted);
  const options = { donate: [0], memory: byId("memory").value, onProgress: showProgress, signal };
  const compiled = await compileAsync(step, [state, heard], options);
  byId("result").textContent = resultText(compiled.program(state, heard));
  const iterations = Number(byId("iterations").value);
  const misfits = [];
  let medium = state.params;
  await trainLoop({
    state,
    steps: iterations,
    yieldEvery: 0,
    step(current) {
      const [next, misfit] = compiled(current, heard);
      medium = next.params;
      return [next, misfit];
    },
    onStep(i, misfit) {
      misfits.push(misfit.item());
      draw(byId("found"), medium);
      drawLine(document.querySelector("svg"), misfits, iterations);
      byId("progress").value = (i + 1) / iterations;
      const alike = likeness(medium, wanted).toFixed(3);
      byId("status").textContent = `iteration ${i + 1}: misfit ${misfits.at(-1).toExponential(2)}, likeness ${alike}`;
    },
    signal,
  });
  return misfits;
}

async function begin() {
  byId("start").disabled = true;
  byId("stop").disabled = false;
  try {
    return await find();
  } catch (error) {
    byId("status").textContent = error.message;
    return [];
  } finally {
    byId("start").disabled = false;
    byId("stop").disabled = true;
  }
}

byId("start").addEventListener("click", begin);
byId("stop").addEventListener("click", () => stop.abort());

/** For the console and for tests. */
Object.assign(globalThis, { example: { begin } });
