/**
 * @file How fast the target `cuda` is on the device at hand. Needs an NVIDIA GPU with its driver, a CUDA toolkit and koffi.
 *
 *   npx rolldown bench/cuda.ts -p node --external koffi --file node_modules/.cache/cuda.mjs &&
 *     node node_modules/.cache/cuda.mjs [kernels large]
 *
 *   kernels    rates of single kernels
 *   large      GPT-2 small, one step
 */
import { compile } from "../src/api/compile.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import "../src/api/methods.ts";
import { grouped } from "../src/base/errors.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import { LARGE } from "../src/cli/programs/built-in.ts";
import { Build } from "../src/ir/build.ts";
import type { Value } from "../src/ir/graph.ts";
import { elementsOf, tensorType } from "../src/ir/type.ts";
import { cudaTarget } from "../src/node/cuda/target.ts";
import { sum } from "../src/ops/broadcast.ts";
import { add } from "../src/ops/elementwise.ts";
import { matmul } from "../src/ops/matmul.ts";
import { transpose } from "../src/ops/movement.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";

function found(answer: TargetAnswer): Target {
  if (typeof answer !== "string") return answer;
  console.error(answer);
  process.exit(1);
}

/** Seconds of one run of a graph. */
function secondsOf(target: Target, build: (b: Build) => readonly Value[], repeat = 10): number {
  const b = new Build("kernel");
  const executable = loadGraph(b.finish(build(b)), { target });
  const random = hostRandom(1);
  executable.placed.graph.params.forEach(({ type }, i) => {
    const data = Float32Array.from({ length: Math.min(elementsOf(type.shape), 2 ** 20) }, () => random.next() - 0.5);
    executable.memory.write(at(executable.placed.params, i), 4 * elementsOf(type.shape), (into) => {
      const floats = new Float32Array(into.buffer, into.byteOffset, elementsOf(type.shape));
      for (let from = 0; from < floats.length; from += data.length) {
        floats.set(data.subarray(0, Math.min(data.length, floats.length - from)), from);
      }
    });
  });
  const word = new Uint8Array(4);
  const wait = (): void => executable.memory.readInto?.(0, word);
  executable.run();
  executable.run();
  wait();
  const started = performance.now();
  for (let i = 0; i < repeat; i++) executable.run();
  wait();
  const seconds = (performance.now() - started) / 1000 / repeat;
  executable.close();
  return seconds;
}

function kernels(): void {
  const target = found(cudaTarget());
  const rate = (name: string, amount: number, unit: string, seconds: number): void =>
    console.log(`${name}: ${(seconds * 1000).toFixed(3)} ms, ${(amount / seconds / 1e12).toFixed(2)} ${unit}`);
  const f32 = (...shape: number[]) => tensorType("f32", shape);
  const n = 2 ** 28;
  rate(
    "x + y, 2^28 elements",
    12 * n,
    "TB/s",
    secondsOf(target, (b) => [b.call(add, [b.param(f32(n)), b.param(f32(n))], {})]),
  );
  const rows = 2 ** 14;
  const sums = (axes: readonly number[]) => (b: Build) => [b.call(sum, [b.param(f32(rows, rows))], { axes })];
  rate("sum along rows of 2^14 x 2^14", 4 * rows ** 2, "TB/s", secondsOf(target, sums([1])));
  rate("sum along columns of 2^14 x 2^14", 4 * rows ** 2, "TB/s", secondsOf(target, sums([0])));
  rate("sum of 2^28", 4 * rows ** 2, "TB/s", secondsOf(target, sums([0, 1])));
  const turned = (b: Build) => [b.call(transpose, [b.param(f32(rows, rows))], { perm: [1, 0] })];
  rate("transpose of 2^14 x 2^14", 8 * rows ** 2, "TB/s", secondsOf(target, turned));
  for (const [m, c, k] of [
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [8192, 3072, 768],
    [8192, 768, 3072],
    [768, 3072, 8192],
  ] as const) {
    const product = (b: Build) => [b.call(matmul, [b.param(f32(m, k)), b.param(f32(k, c))], { ta: false, tb: false })];
    rate(`product ${m}x${c}x${k}`, 2 * m * c * k, "TFLOP/s", secondsOf(target, product));
  }
}

function large(): void {
  const program = LARGE.find(({ name }) => name === "gpt2-small");
  if (!program) return;
  const step = compile(program.step, { donate: [0], target: found(cudaTarget()), name: program.name });
  const batch = program.batch();
  let state = program.init();
  const times: number[] = [];
  let last = 0;
  for (let i = 0; i < 8; i++) {
    const started = performance.now();
    const [next, loss] = step(state, ...batch);
    state = next;
    last = loss.item();
    times.push(performance.now() - started);
  }
  const { arenaBytes } = step.program(state, ...batch);
  const ms = times.slice(2).sort((a, b) => a - b);
  console.log(`gpt2-small: ${at(ms, 2).toFixed(1)} ms a step, arena ${grouped(arenaBytes)} bytes, loss ${last}`);
}

const SECTIONS = { kernels, large };

for (const name of process.argv.slice(2)) {
  const started = performance.now();
  SECTIONS[name as keyof typeof SECTIONS]();
  console.log(`-- ${name} ${((performance.now() - started) / 1000).toFixed(1)} s`);
}
