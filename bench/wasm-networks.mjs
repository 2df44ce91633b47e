/**
 * @file Training steps of networks on WebAssembly beside PyTorch, on one thread: without relaxed SIMD (this Node, if it is 20) and with
 * it (a newer one, by its path). Processes alternate; what counts is the least processor time of a step, which
 * does not count waiting for other processes. Needs a build; PyTorch from Debian's python3-torch, with libopenblas0.
 *
 *   node bench/wasm-networks.mjs [resnet18|unet|vit|mobilenet …] [--newer=PATH] [--rounds=3] [--steps=6] [--lanes=8]
 *
 * `node tests/support/tool.mjs node24` installs Node 24 under node_modules/.cache/tool-node24. With --lanes=8 PyTorch's libraries are told to use registers of 256 bits, as on processors that have no wider ones.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values: options, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    lanes: { type: "string" },
    newer: { type: "string" },
    rounds: { type: "string", default: "3" },
    steps: { type: "string", default: "6" },
  },
});
const path = (name) => fileURLToPath(new URL(name, import.meta.url));

function printed(command, ...args) {
  const narrow = options.lanes === "8" ? { OPENBLAS_CORETYPE: "Haswell", DNNL_MAX_CPU_ISA: "AVX2" } : {};
  const env = { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", ...narrow };
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  return JSON.parse(stdout.trim().split("\n").at(-1));
}
const onWasm = (node, name) => {
  const args = ["bench", path(`networks/${name}.mjs`), "--target=wasm", `--steps=${options.steps}`, "--json"];
  return printed(node, path("../bin/tidemark.js"), ...args).stepCpuMs;
};

/** Milliseconds of a step of a network. */
const RUNNERS = {
  PyTorch: (name) => printed("/usr/bin/python3", path("networks/networks.py"), name, options.steps).bestCpuMs,
  [`Node ${process.versions.node.split(".")[0]}`]: (name) => onWasm(process.execPath, name),
};
if (options.newer) RUNNERS["newer Node"] = (name) => onWasm(options.newer, name);

const names = Object.keys(RUNNERS);
console.log(`| ms | ${names.join(" | ")} | ${names.slice(1).join(" / PyTorch | ")} / PyTorch |`);
console.log(`| --- |${" ---: |".repeat(2 * names.length - 1)}`);
for (const name of wanted.length > 0 ? wanted : ["resnet18", "unet", "vit"]) {
  const best = names.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < Number(options.rounds); round++) {
    names.forEach((runner, i) => {
      best[i] = Math.min(best[i], RUNNERS[runner](name));
    });
  }
  const ratios = best.slice(1).map((ms) => (ms / best[0]).toFixed(2));
  console.log(`| ${name} | ${best.map((ms) => ms.toPrecision(3)).join(" | ")} | ${ratios.join(" | ")} |`);
}
