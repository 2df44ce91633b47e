/** @file The example in a page: weights from a file that the user chooses, training between frames, the adapter as a download. */
import { compileAsync, loadFrom, spec, trainLoop } from "tidemark";
import { sizeText } from "../shared/budget.mjs";
import { byId, download, drawLine, showProgress } from "../shared/page.mjs";
import { adapting, batches, sizesOf, tokensOf, wholeTraining } from "./gpt2.mjs";

const SHOWN_EACH = 10;
/** Weights whose optimizer state is small enough to be made for a comparison alone. */
const MOST_COMPARED = 2 ** 24;

let stop = new AbortController();
/** Tensors of the chosen file, by name. */
let params = null;
/** The model with adapters, and the adapter. */
let trained = null;

const numberOf = (id) => Number(byId(id).value);

async function choose(file) {
  params = await loadFrom(file);
  const sizes = sizesOf(params, 1);
  // GPT-2 has heads of 64
  byId("heads").value = Math.max(1, sizes.width / 64);
  byId("status").textContent = `${sizes.blocks} blocks of ${sizes.width}, vocabulary ${sizes.vocabulary}`;
  byId("start").disabled = false;
}

async function train() {
  stop = new AbortController();
  const { signal } = stop;
  const targets = byId("targets")
    .value.split(/[\s,]+/)
    .filter((name) => name !== "");
  const { tuned, init, step } = adapting(params, { heads: numberOf("heads"), rank: numberOf("rank"), targets });
  const [batch, time, steps] = ["batch", "time", "steps"].map(numberOf);
  const next = batches(tokensOf(byId("text").value), { batch, time });
  const state = init();
  const ids = spec([batch, time], "i32");
  const options = { donate: [0], onProgress: showProgress, signal };
  const compiled = await compileAsync(step, [state, params, ids, ids], options);
  const { arenaBytes } = compiled.program(state, params, ...next(0));
  const count = tuned.targets.length;
  const adapted = `${count} of ${Object.keys(params).length} weights have an adapter`;
  byId("result").textContent = `${sizeText(arenaBytes)} for everything; ${adapted}`;
  const losses = [];
  const run = await trainLoop({
    state,
    steps,
    step: (current, i) => compiled(current, params, ...next(i)),
    onStep(i, loss) {
      losses.push(loss.item());
      if (i % SHOWN_EACH !== 0) return;
      byId("status").textContent = `step ${i + 1} of ${steps}: loss ${losses.at(-1).toFixed(3)}`;
      byId("progress").value = (i + 1) / steps;
      drawLine(document.querySelector("svg"), losses, steps);
    },
    signal,
  });
  trained = { tuned, adapter: run.state.params };
  drawLine(document.querySelector("svg"), losses, losses.length - 1);
  byId("progress").value = 1;
  const [first, last] = [losses[0], losses.at(-1)].map((loss) => loss?.toFixed(3) ?? "-");
  byId("status").textContent = `${run.steps} steps, loss ${first} → ${last}`;
  const elements = Object.values(params).reduce((sum, tensor) => sum + tensor.elements, 0);
  if (elements <= MOST_COMPARED) {
    const all = await wholeBytes(ids, signal);
    const less = `${Math.round(100 * (1 - arenaBytes / all))} % less than the ${sizeText(all)} of training all weights`;
    byId("result").textContent = `${sizeText(arenaBytes)} for everything, ${less}; ${adapted}`;
  }
  return { losses, arenaBytes };
}

/** Bytes of a step that trains all weights, which is planned and not run. */
async function wholeBytes(ids, signal) {
  const { init, step } = wholeTraining(params, { heads: numberOf("heads") });
  const state = init();
  const whole = await compileAsync(step, [state, ids, ids], { donate: [0], signal });
  return whole.program(state, ids, ids).arenaBytes;
}

async function begin() {
  byId("start").disabled = true;
  byId("stop").disabled = false;
  try {
    return await train();
  } catch (error) {
    byId("status").textContent = error.message;
    return { losses: [], arenaBytes: 0 };
  } finally {
    byId("start").disabled = false;
    byId("stop").disabled = true;
    for (const id of ["save", "config"]) byId(id).disabled = trained === null;
  }
}

byId("text").value ||= await fetch("../../README.md").then((answer) => answer.text());
byId("start").addEventListener("click", begin);
byId("stop").addEventListener("click", () => stop.abort());
byId("save").addEventListener("click", () =>
  download("adapter_model.safetensors", trained.tuned.save(trained.adapter)),
);
byId("config").addEventListener("click", () =>
  download("adapter_config.json", JSON.stringify(trained.tuned.config(), null, 2)),
);
byId("file").addEventListener("change", ({ target }) =>
  choose(target.files[0]).catch((error) => {
    byId("status").textContent = error.message;
  }),
);

/** For the console and for tests. */
Object.assign(globalThis, { example: { begin } });
