/**
 * @file A step of GPT-2 small at batch 1 in the smallest arena and a tenth more, on native code, compared bit by bit with the step
 * that stores everything:
 *
 *   npm run example:gpt2 -- [--over 0.1] [--target native] [--threads 1]
 *
 * It takes 6 GB of memory and a minute or two, most of it for the two steps.
 */
import { parseArgs } from "node:util";
import { compile, plan, tree } from "tidemark";
import "tidemark/node";
import { program } from "./gpt2.mjs";

const MIB = 2 ** 20;
const mib = (bytes) => `${(bytes / MIB).toFixed(0)} MiB`;

/** Numbers after one step, and what it took. */
function trained(options) {
  const step = compile(program.step, { donate: [0], name: "gpt2", ...options });
  const state = program.init();
  const batch = program.batch();
  const info = step.program(state, ...batch);
  const started = performance.now();
  const [next, loss] = step(state, ...batch);
  const numbers = tree.flatten([next, loss]).leaves.map((one) => new Uint32Array(Float32Array.from(one.data()).buffer));
  const seconds = (performance.now() - started) / 1000;
  console.log(`${mib(info.arenaBytes)}, loss ${loss.item().toFixed(6)}, ${seconds.toFixed(1)} s`);
  step.dispose();
  return numbers;
}

async function main() {
  const { values } = parseArgs({
    options: {
      over: { type: "string", default: "0.1" },
      target: { type: "string", default: "native" },
      threads: { type: "string", default: "1" },
    },
  });
  const { target } = values;
  const threads = Number(values.threads);
  const least = plan(program.step, { donate: [0], memory: "min", target })(...program.specs());
  const memory = Math.ceil(least.arenaBytes * (1 + Number(values.over)));
  console.log(
    `persistent ${mib(least.persistentBytes)}, the smallest arena ${mib(least.arenaBytes)}, budget ${mib(memory)}`,
  );
  const small = trained({ memory, target, threads });
  const stored = trained({ target, threads });
  const same = small.every((own, i) => own.every((word, e) => word === stored[i][e]));
  console.log(same ? `${small.length} tensors have the same bits` : "bits differ");
  process.exitCode = same ? 0 : 1;
}

await main();
