/**
 * @file One measurement of Tidemark for bench/peers.mjs, in this process, with the stopwatch that measures the peers:
 * the same warm-up, the same number of steps, the same reset of the peak of resident memory after the import.
 *
 *   node bench/peer-step.mjs HARNESS --program=gpt --target=native --threads=2 [--minSteps=10] [--maxSeconds=40]
 *
 * `--target=tape` runs the step on a tape; `--target=webgpu` needs WebGPU in this process (`--import` of bench/webgpu-preload.mjs).
 *
 * The import counts what a peer's does: the library, and the smallest product on the target, which starts it. The first
 * step counts what a peer's does: trace, plan, compile, run. Prints `RESULT` and one line of JSON.
 */
import { pathToFileURL } from "node:url";

const [harness, ...words] = process.argv.slice(2);
const { baseline, measure, parseArgs, peakRss, report } = await import(pathToFileURL(`${harness}/measure.mjs`).href);
const { program: name, target, ...args } = parseArgs(words);
const threads = Number(args.threads ?? 1);
const options = { target, threads };

const started = performance.now();
const { compile, ones, webgpu } = await import("../dist/api/index.js");
if (target === "native" || threads > 1) await import("../dist/node/index.js");

/** A step on a tape, with its state donated, and the most that its pool took. */
async function onTape(step) {
  const { tape } = await import("../dist/tape/index.js");
  let memory;
  const run = (state, ...batch) =>
    tape(
      (t) => {
        memory = t.memory;
        return step(state, ...batch);
      },
      { donate: state },
    );
  return { run, ownPeakBytes: () => memory().peak.reserved };
}

function compiled(program) {
  const run = compile(program.step, { ...options, donate: [0], name });
  return { run, ownPeakBytes: (...args) => run.program(...args).arenaBytes };
}

/** Fails if fewer threads start than requested, which would be another measurement under this name. */
async function requireThreads() {
  const { chooseTarget, currentHost } = await import("../dist/bench/insides.js");
  const { target: chosen, note } = chooseTarget(currentHost(), target, { threads });
  if (chosen.threads !== threads) throw new Error(note ?? `${chosen.threads} threads, not ${threads}`);
}

async function run() {
  const isTape = target === "tape";
  if (target === "webgpu") await webgpu();
  const first = compile((a, b) => a.matmul(b), isTape ? {} : options)(ones([4, 4]), ones([4, 4]));
  await first.dataAsync();
  const importMs = performance.now() - started;
  if (!isTape) await requireThreads();
  const { BUILT_IN } = await import("../dist/cli/programs/built-in.js");
  const program = BUILT_IN.find((p) => p.name === name);
  const base = baseline();
  const batch = program.batch();
  const { run: step, ownPeakBytes } = isTape ? await onTape(program.step) : compiled(program);
  let state = program.init();
  const oneStep = async () => {
    const [next, loss] = step(state, ...batch);
    state = next;
    if (target === "webgpu") await loss.dataAsync();
    return loss.item();
  };
  const measured = await measure(oneStep, {
    warmup: 3,
    minSteps: Number(args.minSteps ?? 10),
    minSeconds: args.minSteps ? 0 : 4,
    maxSeconds: Number(args.maxSeconds ?? 40),
  });
  const figures = { peakRssBytes: peakRss() - base, baselineRssBytes: base };
  return { importMs, ...measured, ...figures, ownPeakBytes: ownPeakBytes(state, ...batch) };
}

const found = await run().catch((error) => ({ error: String(error.message ?? error).split("\n")[0] }));
report({ peer: "tidemark", target, threads, ...found });
process.exit(0);
