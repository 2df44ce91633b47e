/**
 * @file The tools that are compared with each other, and one measurement of each as a process of its own: Tidemark on
 * both targets, TensorFlow.js, jax-js and PyTorch, with one and two threads. The peers' harness is not part of the
 * package; its packages are installed into a cache folder on first use.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
export const HARNESS = path("../../shared/bench/peers");
/** Where the harness and its packages are when they run. */
export const PEERS_FOLDER = path("../node_modules/.cache/peers");
const CACHE = PEERS_FOLDER;
const PYTHON = "/usr/bin/python3";
const LONGEST = 900e3;

export const PROGRAMS = { A: "mlp", B: "cnn", C: "lstm", D: "gpt", E64: "chain64", E256: "chain256" };

export const say = (text) => process.stderr.write(`${text}\n`);

/** The peers' scripts beside their packages; ends the program where there are none. */
export function prepareHarness(harness) {
  if (!existsSync(join(harness, "measure.mjs"))) {
    say(`no harness of the peers at ${harness}: it is not part of the package; name its folder with --harness`);
    process.exit(1);
  }
  mkdirSync(CACHE, { recursive: true });
  // by content: the harness may be read-only, the copy may not
  for (const entry of readdirSync(harness, { withFileTypes: true })) {
    if (entry.isFile()) writeFileSync(join(CACHE, entry.name), readFileSync(join(harness, entry.name)));
  }
}

/** What is missing of TensorFlow.js and jax-js; null where both are there. */
export function installPeers() {
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
function fewSteps(workload, steps) {
  if (workload === "E256") return ["--warmup=1", "--minSteps=1", "--maxSeconds=1"];
  if (workload !== "A") return ["--warmup=1", "--minSteps=3", "--maxSeconds=20"];
  return steps ? [`--minSteps=${steps}`] : [];
}

/** PyTorch's pool and OpenBLAS's wait without spinning against each other. */
function torchThreads(threads, blas) {
  const names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"];
  const waiting = { OMP_WAIT_POLICY: "PASSIVE", ...(blas ? { LD_LIBRARY_PATH: blas } : {}) };
  return { ...Object.fromEntries(names.map((n) => [n, String(threads)])), ...(threads > 1 ? waiting : {}) };
}

const javascriptMissing = once(installPeers);
const pythonMissing = once(torchMissing);
const node = (...words) => [process.execPath, ...words];

function tidemark(target, threads, { steps }) {
  const words = (w) => [`--program=${PROGRAMS[w]}`, `--target=${target}`, `--threads=${threads}`];
  return {
    name: `${target} ${threads}t`,
    ...{ peer: "tidemark", threads },
    missing: () => null,
    command: (w) => node(path("peer-step.mjs"), CACHE, ...words(w), ...(steps ? [`--minSteps=${steps}`] : [])),
  };
}

const jaxjs = (threads, { steps }) => ({
  name: `jax-js ${threads}t`,
  ...{ peer: "jax-js", threads },
  missing: javascriptMissing,
  command: (w) => node("jaxjs.mjs", `--workload=${w}`, `--threads=${threads}`, ...fewSteps(w, steps)),
});

/** Its WebAssembly backend lacks the gradients of filters and of embeddings: written in other operations, as users must. */
const TFJS_DETOURS = { B: ["--conv=im2col"], D: ["--embed=onehot"] };
const tfjs = ({ steps }) => ({
  name: "tfjs 1t",
  ...{ peer: "tfjs", threads: 1 },
  missing: javascriptMissing,
  command: (w) =>
    node("tfjs.mjs", "--backend=wasm", `--workload=${w}`, ...(TFJS_DETOURS[w] ?? []), ...fewSteps(w, steps)),
});

const torch = (threads, { blas }) => ({
  name: `torch ${threads}t`,
  ...{ peer: "torch", threads, env: torchThreads(threads, blas) },
  missing: pythonMissing,
  command: (w) => [PYTHON, "torch_bench.py", `--workload=${w}`, `--threads=${threads}`],
});

/** Steps that are recorded as they run: on a tape, and as TensorFlow.js and PyTorch do without being asked. */
export const recorded = (how) => [tidemark("tape", 1, how), tfjs(how), torch(1, how)];

/** All of them. `steps`: at least how many are timed where a tool lets itself be told; `blas`: a folder of PyTorch's BLAS. */
export const runners = (how) => [
  ...[tidemark("wasm", 1, how), jaxjs(1, how), tfjs(how), tidemark("wasm", 2, how), jaxjs(2, how)],
  ...[tidemark("native", 1, how), torch(1, how), tidemark("native", 2, how), torch(2, how)],
];

/** The result of one process, or the reason for its failure. */
export function runOnce(runner, workload) {
  const [command, ...words] = runner.command(workload);
  const env = { ...process.env, ...runner.env };
  const made = spawnSync(command, words, { cwd: CACHE, env, encoding: "utf8", maxBuffer: 1 << 26, timeout: LONGEST });
  const line = made.stdout?.split("\n").find((l) => l.startsWith("RESULT "));
  if (line) return JSON.parse(line.slice("RESULT ".length));
  const [told] = (made.stderr ?? "").split("\n").filter((l) => /Error|error/.test(l));
  return { error: told ?? `no result, status ${made.status ?? made.signal}` };
}
