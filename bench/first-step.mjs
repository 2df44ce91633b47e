/**
 * @file The wait before the first step, by part: trace, plan, code (generated, compiled, loaded), and the first step itself, each in
 * a fresh process; with an empty cache folder and with the one that the first process left. Needs a build (`npm run build`).
 *
 *   node bench/first-step.mjs [NAME:TARGET …] [--runs=3] [--json|--write]
 *
 * NAME is a built-in program, a file of bench/networks, or `gpt32`, which is `gpt` with 32 blocks. With the target `auto` it may start
 * on WebAssembly (`startOnWasm` of `compileAsync`). The row of the least total
 * counts, by the clock; `processor` is the time of this process and of the compilers that it waited for, all threads, which
 * other work on the machine lengthens less.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { publish } from "./speed-page.mjs";

const CASES = [
  ...["gpt:wasm", "resnet18.mjs:wasm", "gpt32:wasm"],
  ...["mlp:native", "cnn:native", "gpt:native", "vit.mjs:native"],
  ...["resnet18.mjs:auto", "resnet18.mjs:native", "unet.mjs:native", "mobilenet.mjs:native"],
];
/** The goals for two idle cores, in milliseconds: empty cache, and full. */
const GOALS = { "gpt:wasm": [350], "gpt32:wasm": [800], "gpt:native": [1000, 250], "resnet18.mjs:native": [3000, 400] };

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ runs: { type: "string", default: "3" }, one: { type: "string" } },
    ...{ json: { type: "boolean" }, write: { type: "boolean" } },
  },
});

/** Milliseconds of this process and of the processes that it waited for. */
function processorMs() {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1000;
  if (!existsSync("/proc/self/stat")) return own;
  const [, numbers] = readFileSync("/proc/self/stat", "utf8").split(") ");
  const [children, ofSystem] = numbers.split(" ").slice(13, 15).map(Number);
  return own + (children + ofSystem) * 10;
}

async function programNamed(name) {
  if (name === "gpt32") {
    const { languageModel } = await import("../dist/bench/insides.js");
    const size = { batch: 8, time: 128, width: 128, heads: 4, blocks: 32, vocabulary: 512, tied: false };
    return languageModel(name, "a GPT of 32 blocks", size);
  }
  if (name.endsWith(".mjs")) return (await import(`./networks/${name}`)).program;
  const { ALL_PROGRAMS } = await import("../dist/cli/programs/built-in.js");
  return ALL_PROGRAMS.find((program) => program.name === name);
}

/** One first step, in this process. */
async function measure(name, target) {
  const { compile, compileAsync } = await import("../dist/api/index.js");
  await import("../dist/node/index.js");
  const program = await programNamed(name);
  const args = [program.init(), ...program.batch()];
  const [started, used] = [performance.now(), processorMs()];
  const options = { donate: [0], target };
  const step =
    target === "auto"
      ? await compileAsync(program.step, args, { ...options, startOnWasm: "any-bits" })
      : compile(program.step, options);
  const { traceMs, planMs, planCached, kernelFunctions } = step.program(...args);
  const compiled = performance.now();
  const cpuMs = processorMs() - used;
  step(...args);
  const stepMs = performance.now() - compiled;
  const totalMs = compiled - started;
  return { traceMs, planMs, codeMs: totalMs - traceMs - planMs, totalMs, cpuMs, stepMs, planCached, kernelFunctions };
}

function inOwnProcess(wanted, cache) {
  const env = { ...process.env, TIDEMARK_CACHE: cache };
  const words = [fileURLToPath(import.meta.url), `--one=${wanted}`];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`${wanted}: ${stderr.trim().split("\n").slice(0, 6).join("\n")}`);
  return JSON.parse(stdout);
}

const fastest = (rows) => rows.reduce((a, b) => (b.totalMs < a.totalMs ? b : a));

function measureCase(wanted) {
  const [cold, warm] = [[], []];
  for (let run = 0; run < Number(options.runs); run++) {
    const cache = mkdtempSync(join(tmpdir(), "tidemark-first-"));
    cold.push(inOwnProcess(wanted, cache));
    warm.push(inOwnProcess(wanted, cache));
    rmSync(cache, { recursive: true });
  }
  return { case: wanted, goals: GOALS[wanted] ?? [], cold: fastest(cold), warm: fastest(warm) };
}

function text(rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const cells = ({ traceMs, planMs, codeMs, totalMs, cpuMs }) =>
    [traceMs, planMs, codeMs, totalMs, cpuMs].map((ms) => ms.toFixed(0));
  return [
    line(["ms", "cache", "functions", "trace", "plan", "code", "total", "processor", "goal"]),
    line(["---", "---", ...Array(7).fill("---:")]),
    ...rows.flatMap(({ case: wanted, goals, cold, warm }) => {
      const name = wanted.replace(":", ", ");
      return [
        line([name, "empty", cold.kernelFunctions, ...cells(cold), goals[0] ?? "–"]),
        line(["", "full", warm.kernelFunctions, ...cells(warm), goals[1] ?? "–"]),
      ];
    }),
  ].join("\n");
}

if (options.one !== undefined) {
  console.log(JSON.stringify(await measure(...options.one.split(":"))));
} else {
  const rows = (positionals.length > 0 ? positionals : CASES).map(measureCase);
  if (options.json) console.log(JSON.stringify(rows));
  else publish("first step", text(rows), options.write);
}
