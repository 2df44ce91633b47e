/** @file The example in a page: compiled in a worker, trained between frames, saved to a file and read back. */
import { compileAsync, load, save, spec, trainLoop } from "tidemark";
import { byId, download, drawLine, resultText, showProgress } from "../shared/page.mjs";
import { alphabet, charactersOf, description, sizesOf, training, writer } from "./gpt.mjs";

const BATCH = 12;
const SHOWN_EACH = 10;

let stop = new AbortController();
/** The file to go on from, which may still be read. */
let chosen = Promise.resolve(null);
/** The last state, and the model that it is of. */
let trained = null;

/** `most`: steps after which it stops, as if the page were left. */
async function train(most = Number.POSITIVE_INFINITY) {
  stop = new AbortController();
  const text = byId("text").value;
  const given = await chosen;
  const sizes = given
    ? sizesOf(given)
    : { characters: charactersOf(text), context: 64, width: 64, heads: 4, blocks: 2 };
  const total = Number(byId("steps").value);
  const { init, step, batch } = training(sizes, { ids: alphabet(sizes.characters).encode(text), batch: BATCH, total });
  const state = given ? load(given, init()) : init();
  const ids = spec([BATCH, sizes.context], "i32");
  const memory = byId("memory").value;
  const { signal } = stop;
  const compiled = await compileAsync(step, [state, ids, ids], {
    donate: [0],
    memory,
    onProgress: showProgress,
    signal,
  });
  byId("result").textContent = resultText(compiled.program(state, ...batch(0)));
  const begun = state.step.item();
  const losses = [];
  const run = await trainLoop({
    state,
    steps: Math.min(most, Math.max(0, total - begun)),
    step: (current, i) => compiled(current, ...batch(begun + i)),
    onStep(i, loss) {
      losses.push(loss.item());
      if (i % SHOWN_EACH !== 0) return;
      byId("status").textContent = `step ${begun + i + 1} of ${total}: loss ${losses.at(-1).toFixed(3)}`;
      byId("progress").value = (begun + i + 1) / total;
      drawLine(document.querySelector("svg"), losses, total - begun);
    },
    signal,
  });
  trained = { state: run.state, sizes };
  drawLine(document.querySelector("svg"), losses, losses.length - 1);
  byId("status").textContent = `${begun + run.steps} steps, loss ${losses.at(-1)?.toFixed(3) ?? "-"}`;
  const onText = (written) => {
    byId("sample").textContent = written;
  };
  const { prepare, write } = writer(sizes);
  await prepare(run.state.params, { onProgress: showProgress });
  await write(run.state.params, { prompt: text.slice(0, 20), count: 200, onText });
  return losses;
}

const checkpoint = () => save(trained.state, { metadata: description(trained.sizes) });

async function begin(most) {
  byId("start").disabled = true;
  byId("stop").disabled = false;
  try {
    return await train(most);
  } catch (error) {
    byId("status").textContent = error.message;
    return [];
  } finally {
    byId("start").disabled = false;
    byId("stop").disabled = true;
    byId("save").disabled = trained === null;
  }
}

byId("text").value ||= await fetch("../../README.md").then((answer) => answer.text());
byId("start").addEventListener("click", () => begin());
byId("stop").addEventListener("click", () => stop.abort());
byId("save").addEventListener("click", () => download("char-gpt.safetensors", checkpoint()));
byId("file").addEventListener("change", ({ target }) => {
  chosen = target.files[0]?.arrayBuffer().then((buffer) => new Uint8Array(buffer)) ?? Promise.resolve(null);
});

/** For the console and for tests. */
Object.assign(globalThis, { example: { begin } });
