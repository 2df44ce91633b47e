/**
 * @file Training steps on several threads beside PyTorch, native code: milliseconds, ratio and efficiency (the time on one thread over threads
 * times the time on several). Processes alternate and the fastest step counts. Needs a build, and a machine that does nothing else.
 *
 *   node bench/threads.mjs [PROGRAM …] [--threads=1,2,4,8,16] [--rounds=2] [--seconds=3] [--harness=FOLDER] [--python=FILE] [--tidemark=FILE]
 *
 * Programs: the built-in ones (PyTorch's side is in the harness, bench/peer-runners.mjs) and those of bench/networks.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const text = (value) => ({ type: "string", default: value });
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ threads: text("1,2,4,8,16"), rounds: text("2"), python: text("/usr/bin/python3"), seconds: text("3") },
    ...{ harness: text(path("../../shared/bench/peers")), tidemark: text(path("../bin/tidemark.js")) },
  },
});
const BUILT_IN = { mlp: "A", cnn: "B", lstm: "C", gpt: "D", chain64: "E64", chain256: "E256" };
const NETWORKS = ["resnet18", "vit", "gru"];

/** As many steps as take the time of one measurement: the first ones are slower than the others, on both sides. */
const stepsOf = (ms) => Math.max(8, Math.min(2000, Math.ceil((1000 * Number(options.seconds)) / ms)));

function printed(command, args, threads) {
  const names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"];
  const env = { ...process.env, ...Object.fromEntries(names.map((name) => [name, String(threads)])) };
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  return JSON.parse(
    stdout
      .trim()
      .split("\n")
      .at(-1)
      .replace(/^RESULT /, ""),
  );
}

function ours(name, threads, ms) {
  const program = name in BUILT_IN ? name : path(`networks/${name}.mjs`);
  const how = ["--target=native", `--threads=${threads}`, `--steps=${stepsOf(ms)}`, "--json"];
  return printed(process.execPath, [options.tidemark, "bench", program, ...how], threads).stepMs.p10;
}

function torch(name, threads, ms) {
  if (!(name in BUILT_IN)) {
    return printed(options.python, [path("networks/networks.py"), name, String(stepsOf(ms))], threads).bestMs;
  }
  const how = [`--workload=${BUILT_IN[name]}`, `--threads=${threads}`, `--maxSeconds=${options.seconds}`];
  return printed(options.python, [`${options.harness}/torch_bench.py`, ...how], threads).minMs;
}

const counts = options.threads.split(",").map(Number);
const figure = (n) => (n >= 100 ? n.toFixed(0) : n.toPrecision(3));
console.log("| program | threads | native, ms | efficiency | PyTorch, ms | efficiency | native / PyTorch |");
console.log("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
for (const name of positionals.length > 0 ? positionals : [...Object.keys(BUILT_IN), ...NETWORKS]) {
  const alone = {};
  for (const threads of counts) {
    const best = { ours: Number.POSITIVE_INFINITY, torch: Number.POSITIVE_INFINITY };
    for (let round = 0; round < Number(options.rounds); round++) {
      best.ours = Math.min(best.ours, ours(name, threads, Math.min(best.ours, 300)));
      best.torch = Math.min(best.torch, torch(name, threads, best.ours));
    }
    if (threads === 1) Object.assign(alone, best);
    const efficiency = (side) => (alone[side] ? (alone[side] / best[side] / threads).toFixed(2) : "");
    const cells = [figure(best.ours), efficiency("ours"), figure(best.torch), efficiency("torch")];
    console.log(`| ${name} | ${threads} | ${cells.join(" | ")} | ${(best.ours / best.torch).toFixed(2)} |`);
  }
}
