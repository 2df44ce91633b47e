/**
 * @file Fine-tunes a GPT-2 by low-rank adapters and writes the adapter in the files of PEFT:
 *
 *   npm run example:lora -- MODEL.safetensors --heads 12 [--text FILE] [--rank 8] [--targets c_attn,c_proj] [--steps 100]
 *                           [--batch 2] [--time 16] [--memory 2MiB] [--out FOLDER]
 *
 * Prints the memory of a step beside that of training all parameters.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compile, plan, spec, specsOf } from "tidemark";
import { loadFile } from "tidemark/node";
import { sizeText } from "../shared/budget.mjs";
import { adapting, batches, tokensOf, wholeTraining } from "./gpt2.mjs";

const EACH = 20;

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      text: { type: "string", default: new URL("../../README.md", import.meta.url).pathname },
      heads: { type: "string", default: "12" },
      rank: { type: "string", default: "8" },
      targets: { type: "string", default: "c_attn" },
      steps: { type: "string", default: "100" },
      batch: { type: "string", default: "2" },
      time: { type: "string", default: "16" },
      memory: { type: "string" },
      out: { type: "string" },
    },
  });
  const [path] = positionals;
  if (path === undefined) throw new Error("usage: npm run example:lora -- MODEL.safetensors --heads 12");
  const params = await loadFile(path);
  const [heads, rank, batch, time] = [values.heads, values.rank, values.batch, values.time].map(Number);
  const { tuned, init, step } = adapting(params, { heads, rank, targets: values.targets.split(",") });
  const options = { donate: [0], ...(values.memory ? { memory: values.memory } : {}) };
  const ids = spec([batch, time], "i32");
  const whole = wholeTraining(params, { heads });
  const { arenaBytes: all } = plan(whole.step, options)(specsOf(whole.init)(), ids, ids);
  const compiled = compile(step, options);
  const next = batches(tokensOf(readFileSync(values.text, "utf8")), { batch, time });
  let state = init();
  const { arenaBytes } = compiled.program(state, params, ...next(0));
  const less = (100 * (1 - arenaBytes / all)).toFixed(1);
  console.log(`arena ${sizeText(arenaBytes)}; training all parameters ${sizeText(all)}: ${less} % less`);
  for (let i = 0; i < Number(values.steps); i++) {
    const [after, loss] = compiled(state, params, ...next(i));
    state = after;
    if (i % EACH === 0 || i === Number(values.steps) - 1) console.log(`step ${i}: loss ${loss.item().toFixed(3)}`);
  }
  if (values.out === undefined) return;
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, "adapter_model.safetensors"), tuned.save(state.params));
  writeFileSync(join(values.out, "adapter_config.json"), JSON.stringify(tuned.config(), null, 2));
}

await main();
