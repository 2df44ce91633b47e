/**
 * @file Tidemark beside other tools, in one run: step time, peak of resident memory and start-up of five training
 * workloads on WebAssembly and native code, TensorFlow.js, jax-js and PyTorch. Needs Linux, a build (`npm run build`) and
 * the harness of the peers; they are no dependencies of this package and are installed into a cache folder when they are
 * first asked for. A peer that cannot run is left out, loudly.
 *
 *   npm run bench:peers -- [--only=REGEX] [--rounds=3] [--steps=N] [--json|--write|--list] [--harness=FOLDER] [--blas=FOLDER]
 *
 *   round 1   wasm 1t  native 1t  torch 1t  …      every measurement is a process of its own, all of a workload one after
 *   round 2   …  torch 1t  native 1t  wasm 1t      the other and in turned order in the next round, so that what else the
 *   round 3   wasm 1t  native 1t  …                machine does falls on all of them
 *
 * Of the rounds, the least of each quantity counts (start-up is a second start where the first one filled a cache). What
 * takes longer than a second a step runs in the first round only. All must compute the same losses. `--only` picks by names
 * such as `native 1t/D`; `--steps` is at least how many steps are timed where a tool lets itself be told; `--write` puts the
 * tables into docs/speed.md.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { barsText, leastOf, ratiosText, stepsText } from "./peers-table.mjs";
import { publish } from "./speed-page.mjs";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const HARNESS = path("../../shared/bench/peers");
const CACHE = path("../node_modules/.cache/peers");
const PYTHON = "/usr/bin/python3";
/** Milliseconds of a step beyond which one round is enough. */
const SLOW = 1000;
const LONGEST = 900e3;

const PROGRAMS = { A: "mlp", B: "cnn", C: "lstm", D: "gpt", E64: "chain64", E256: "chain256" };

const { values: options } = parseArgs({
  options: {
    ...{ only: { type: "string" }, rounds: { type: "string", default: "3" }, steps: { type: "string" } },
    ...{ json: { type: "boolean" }, write: { type: "boolean" }, list: { type: "boolean" } },
    ...{ harness: { type: "string", default: HARNESS }, blas: { type: "string" } },
  },
});
const say = (text) => process.stderr.write(`${text}\n`);

/** The peers' scripts beside their packages; ends the program where there are none. */
function prepareHarness() {
  if (!existsSync(join(options.harness, "measure.mjs"))) {
    say(`no harness of the peers at ${options.harness}: it is not part of the package; name its folder with --harness`);
    process.exit(1);
  }
  mkdirSync(CACHE, { recursive: true });
  // by content: the harness may be read-only, the copy may not
  for (const entry of readdirSync(options.harness, { withFileTypes: true })) {
    if (entry.isFile()) writeFileSync(join(CACHE, entry.name), readFileSync(join(options.harness, entry.name)));
  }
}

function installPackages() {
  if (existsSync(join(CACHE, "node_modules/@jax-js/jax")) && existsSync(join(CACHE, "node_modules/@tensorflow/tfjs"))) {
    return null;
  }
  say(`installing TensorFlow.js and jax-js into ${CACHE}`);
  const made = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: CACHE, encoding: "utf8", timeout: LONGEST });
  return made.status === 0 ? null : `npm ci: ${made.stderr?.trim().split("\n").at(-1) ?? made.error}`;
}

function torchMissing() {
  const made = spawnSync(PYTHON, ["-c", "import torch"], { encoding: "utf8" });
  return made.status === 0 ? null : `${PYTHON} has no torch (Debian: python3-torch)`;
}

const once = (ask) => {
  let answer;
  return () => {
    if (answer === undefined) answer = ask();
    return answer;
  };
};

/** JavaScript peers take seconds for a step where Tidemark takes milliseconds: fewer steps of the large workloads. */
function fewSteps(workload) {
  if (workload === "E256") return ["--warmup=1", "--minSteps=1", "--maxSeconds=1"];
  if (workload !== "A") return ["--warmup=1", "--minSteps=3", "--maxSeconds=20"];
  return options.steps ? [`--minSteps=${options.steps}`] : [];
}

/** PyTorch's pool and OpenBLAS's wait without spinning against each other. */
function torchThreads(threads) {
  const names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"];
  const waiting = { OMP_WAIT_POLICY: "PASSIVE", ...(options.blas ? { LD_LIBRARY_PATH: options.blas } : {}) };
  return { ...Object.fromEntries(names.map((n) => [n, String(threads)])), ...(threads > 1 ? waiting : {}) };
}

const javascriptMissing = once(installPackages);
const pythonMissing = once(torchMissing);
const node = (...words) => [process.execPath, ...words];

function tidemark(target, threads) {
  const steps = options.steps ? [`--minSteps=${options.steps}`] : [];
  return {
    name: `${target} ${threads}t`,
    ...{ peer: "tidemark", threads },
    missing: () => null,
    command: (w) =>
      node(
        path("peer-step.mjs"),
        CACHE,
        `--program=${PROGRAMS[w]}`,
        `--target=${target}`,
        `--threads=${threads}`,
        ...steps,
      ),
  };
}

const jaxjs = (threads) => ({
  name: `jax-js ${threads}t`,
  ...{ peer: "jax-js", threads },
  missing: javascriptMissing,
  command: (w) => node("jaxjs.mjs", `--workload=${w}`, `--threads=${threads}`, ...fewSteps(w)),
});

/** Its WebAssembly backend lacks the gradients of filters and of embeddings: written in other operations, as users must. */
const TFJS_DETOURS = { B: ["--conv=im2col"], D: ["--embed=onehot"] };
const tfjs = {
  name: "tfjs 1t",
  ...{ peer: "tfjs", threads: 1 },
  missing: javascriptMissing,
  command: (w) => node("tfjs.mjs", "--backend=wasm", `--workload=${w}`, ...(TFJS_DETOURS[w] ?? []), ...fewSteps(w)),
};

const torch = (threads) => ({
  name: `torch ${threads}t`,
  ...{ peer: "torch", threads, env: torchThreads(threads) },
  missing: pythonMissing,
  command: (w) => [PYTHON, "torch_bench.py", `--workload=${w}`, `--threads=${threads}`],
});

const RUNNERS = [
  ...[tidemark("wasm", 1), jaxjs(1), tfjs, tidemark("wasm", 2), jaxjs(2)],
  ...[tidemark("native", 1), torch(1), tidemark("native", 2), torch(2)],
];

/** The result of one process, or why there is none. */
function runOnce(runner, workload) {
  const [command, ...words] = runner.command(workload);
  const env = { ...process.env, ...runner.env };
  const made = spawnSync(command, words, { cwd: CACHE, env, encoding: "utf8", maxBuffer: 1 << 26, timeout: LONGEST });
  const line = made.stdout?.split("\n").find((l) => l.startsWith("RESULT "));
  if (line) return JSON.parse(line.slice("RESULT ".length));
  const [told] = (made.stderr ?? "").split("\n").filter((l) => /Error|error/.test(l));
  return { error: told ?? `no result, status ${made.status ?? made.signal}` };
}

const wanted = (() => {
  const only = new RegExp(options.only ?? "");
  return Object.keys(PROGRAMS).flatMap((workload) =>
    RUNNERS.filter(({ name }) => only.test(`${name}/${workload}`)).map((runner) => ({ runner, workload })),
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
  prepareHarness();
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
