/**
 * @file Trains a GPT on the characters of a text, within a budget, and writes a few lines:
 *
 *   npm run example:gpt -- [--text FILE] [--steps 300] [--memory 6MiB] [--checkpoint char-gpt.safetensors]
 *
 * The checkpoint is written every 50 steps; when the command is given again it goes on from there, with the same numbers as
 * a run that never stopped.
 */
import { existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { compile, fileInfo } from "tidemark";
import { loadFile, saveFile } from "tidemark/node";
import { budgetText } from "../shared/budget.mjs";
import { alphabet, charactersOf, description, sizesOf, training, writer } from "./gpt.mjs";

const EACH = 50;

async function main() {
  const { values } = parseArgs({
    options: {
      text: { type: "string", default: new URL("../../README.md", import.meta.url).pathname },
      steps: { type: "string", default: "300" },
      memory: { type: "string", default: "6MiB" },
      checkpoint: { type: "string", default: "char-gpt.safetensors" },
      prompt: { type: "string", default: "The " },
    },
  });
  const text = readFileSync(values.text, "utf8");
  const resumed = existsSync(values.checkpoint);
  const sizes = resumed
    ? sizesOf(readFileSync(values.checkpoint))
    : { characters: charactersOf(text), context: 64, width: 64, heads: 4, blocks: 2 };
  const total = Number(values.steps);
  const ids = alphabet(sizes.characters).encode(text);
  const { init, step, batch } = training(sizes, { ids, batch: 12, total });
  let state = init();
  if (resumed) {
    state = await loadFile(values.checkpoint, state);
    console.log(`goes on after step ${state.step.item()} of ${values.checkpoint}`);
  }
  const compiled = compile(step, { donate: [0], memory: values.memory, name: "char_gpt" });
  const first = state.step.item();
  const info = compiled.program(state, ...batch(first));
  console.log(
    `${text.length} characters, ${sizes.characters.length} of them different; ${budgetText(info, info.arenaBytes)}`,
  );
  for (let i = first; i < total; i++) {
    const [next, loss] = compiled(state, ...batch(i));
    state = next;
    if (i % EACH === 0 || i === total - 1) console.log(`step ${i}: loss ${loss.item().toFixed(3)}`);
    if ((i + 1) % EACH === 0 || i === total - 1) {
      await saveFile(values.checkpoint, state, { metadata: description(sizes) });
    }
  }
  const { tensors } = fileInfo(readFileSync(values.checkpoint));
  console.log(`${values.checkpoint}: ${tensors.length} tensors\n`);
  console.log(await writer(sizes).write(state.params, { prompt: values.prompt, count: 300 }));
}

await main();
