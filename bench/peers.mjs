/**
 * @file Tidemark beside other tools, in one run: step time, peak of resident memory and start-up of five training
 * workloads on WebAssembly and native code, TensorFlow.js, jax-js and PyTorch. Needs Linux, a build (`npm run build`)
 * and the harness of the peers; they are not dependencies of this package and are installed into a cache folder on
 * first use. A peer that cannot run is skipped with a message.
 *
 *   npm run bench:peers -- [--only=REGEX] [--rounds=3] [--steps=N] [--json|--write|--list] [--harness=FOLDER] [--blas=FOLDER]
 *
 *   round 1   wasm 1t  native 1t  torch 1t  …      every measurement is a process of its own, all of a workload one after
 *   round 2   …  torch 1t  native 1t  wasm 1t      the other and in turned order in the next round, so that what else the
 *   round 3   wasm 1t  native 1t  …                machine does falls on all of them
 *
 * Of the rounds, the least of each quantity counts (start-up is a second start where the first one filled a cache).
 * What takes longer than a second a step runs in the first round only. All must compute the same losses. `--only` picks
 * by names such as `native 1t/D`; `--steps` is at least how many steps are timed where a tool lets itself be told;
 * `--write` puts the tables into docs/speed.md.
 */
import { parseArgs } from "node:util";
import { HARNESS, PROGRAMS, prepareHarness, runners, runOnce, say } from "./peer-runners.mjs";
import { barsText, leastOf, ratiosText, stepsText } from "./peers-table.mjs";
import { publish } from "./speed-page.mjs";

/** Milliseconds of a step beyond which one round is enough. */
const SLOW = 1000;

const { values: options } = parseArgs({
  options: {
    ...{ only: { type: "string" }, rounds: { type: "string", default: "3" }, steps: { type: "string" } },
    ...{ json: { type: "boolean" }, write: { type: "boolean" }, list: { type: "boolean" } },
    ...{ harness: { type: "string", default: HARNESS }, blas: { type: "string" } },
  },
});
const tools = runners(options);
const wanted = (() => {
  const only = new RegExp(options.only ?? "");
  return Object.keys(PROGRAMS).flatMap((workload) =>
    tools.filter(({ name }) => only.test(`${name}/${workload}`)).map((runner) => ({ runner, workload })),
  );
})();

/** A pair of tool and workload, measured once more; `best` keeps the least of each quantity. */
function measurePair({ runner, workload }, best) {
  const id = `${runner.name}/${workload}`;
  const before = best.get(id);
  if (before && (before.error || before.medianMs > SLOW)) return;
  const missing = runner.missing();
  const found = missing === null ? runOnce(runner, workload) : { error: missing };
  const { error, medianMs, cpuMedianMs, foreignCpu } = found;
  const others = `${(100 * (foreignCpu ?? 0)).toFixed(0)} % of the machine used by others`;
  say(
    error ? `SKIPPED ${id}: ${error}` : `${id}: ${medianMs.toFixed(2)} ms, ${cpuMedianMs.toFixed(2)} of cpu, ${others}`,
  );
  if (error && before) return;
  best.set(
    id,
    error ? { id, tool: runner.name, workload, error } : leastOf(before, { ...found, id, tool: runner.name, workload }),
  );
}

if (options.list) {
  for (const { runner, workload } of wanted) console.log(`${runner.name}/${workload}`);
} else {
  prepareHarness(options.harness);
  const best = new Map();
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const workload of Object.keys(PROGRAMS)) {
      const pairs = wanted.filter((pair) => pair.workload === workload);
      for (const pair of round % 2 === 0 ? pairs : pairs.toReversed()) measurePair(pair, best);
    }
  }
  const results = [...best.values()];
  if (options.json) console.log(JSON.stringify({ programs: PROGRAMS, results }));
  else {
    const text = `${ratiosText(results, PROGRAMS)}\n${stepsText(results, PROGRAMS)}\n${barsText(results)}`;
    publish("peers", text, options.write);
  }
}
