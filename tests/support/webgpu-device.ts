/**
 * @file The target `webgpu` on the adapter at hand: are its bits those of the other targets, and how fast is it? Run by hand where there is
 * a GPU with its Vulkan driver, and the package `webgpu`:
 *
 *   npx rolldown tests/support/webgpu-device.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs \
 *     --file node_modules/.cache/webgpu-device.mjs && node node_modules/.cache/webgpu-device.mjs [adapter samples graphs programs product steps]
 *
 *   adapter    what it is called, its limits and its arithmetic
 *   samples    every operation on every sample without f64, against the kernel interpreter
 *   graphs     random graphs, gradients and loops, against WebAssembly; neither fuses multiplications with additions
 *   programs   training steps of the built-in programs, against `wasm`; bits where both fuse or neither does
 *   product    a product of 4096 × 4096 × 4096 in f32
 *   steps      milliseconds of a step, and of the processor for it
 *
 * WEBGPU_PACKAGE names the package's file where it is not installed.
 */
import { compile } from "../../src/api/compile.ts";
import "../../src/api/methods.ts";
import { vjp } from "../../src/autodiff/vjp.ts";
import { grouped } from "../../src/base/errors.ts";
import { at } from "../../src/base/invariant.ts";
import { type AnyProgram, BUILT_IN } from "../../src/cli/programs/built-in.ts";
import type { PlacedProgram } from "../../src/codegen/placed.ts";
import type { WebgpuOptions } from "../../src/codegen/wgsl/description.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { bytesOf, isFloat, type TypedArray } from "../../src/kernel/dtype.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import { nodeGpu } from "../../src/node/webgpu.ts";
import type { DeviceMemory, Target } from "../../src/runtime/device.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import { webgpuTarget } from "../../src/runtime/webgpu/target.ts";
import { tensor } from "../../src/trace/literal.ts";
import type { Tensor } from "../../src/trace/tensor.ts";
import { flatten } from "../../src/trace/tree.ts";
import { type KernelSample, kernelOps, kernelSamples } from "./kernel-samples.ts";
import { randomGraph, randomInputs } from "./random-graph.ts";
import { looped, randomCase } from "./random-loops.ts";
import { runGraph } from "./run-graph.ts";
import { runGraphLater } from "./run-graph-later.ts";

const ALIGNMENT = 256;

const gpu = await nodeGpu(process.env.WEBGPU_PACKAGE);
if (typeof gpu === "string") throw new Error(gpu);

async function found(less: Partial<WebgpuOptions> = {}): Promise<Target> {
  if (typeof gpu === "string") throw new Error(gpu);
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("no adapter");
  return (await webgpuTarget(adapter, less)).target;
}

/** First element in which two arrays differ, or -1; NaN equals NaN whatever its bits. */
function difference(a: TypedArray, b: TypedArray): number {
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return i;
  return a.length === b.length ? -1 : Math.min(a.length, b.length);
}

let failures = 0;

function report(name: string, wrong: readonly string[], of: number): void {
  failures += wrong.length;
  console.log(`${name}: ${of - wrong.length} of ${of} equal`);
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
}

// ---- samples ------------------------------------------------------------------------------------------------------

async function samples(): Promise<void> {
  for (const exactly of [undefined, true]) {
    const target = await found({ fma: false, ...(exactly ? { exactly } : {}) });
    const own = new Set(target.description.storageTypes);
    const all = kernelOps
      .flatMap((op) => kernelSamples(op, target.description))
      .filter(({ kernel }) => kernel.operands.every(({ dtype }) => own.has(dtype)));
    const wrong = await wrongSamples(target, all);
    report(`samples${exactly ? ", quotients and roots by bits" : ""}`, wrong, all.length);
  }
}

async function wrongSamples(target: Target, all: readonly KernelSample[]): Promise<readonly string[]> {
  let top = 0;
  const kernels = all.map(({ kernel }) => {
    const addresses = kernel.operands.map(({ elements, dtype }) => {
      const address = top;
      top += Math.ceil((elements * bytesOf(dtype)) / ALIGNMENT + 1) * ALIGNMENT;
      return address;
    });
    return { kernel, addresses };
  });
  const placed = { kernels, copies: [], base: 0, plan: { height: top } } as unknown as PlacedProgram;
  const started = performance.now();
  const machine = target.load(placed, { stepwise: false });
  machine.memory.fill(0, top, 0xa5);
  all.forEach((sample, s) => {
    sample.storage().forEach((data, i) => {
      if (sample.kernel.operands[i]?.role !== "in") return;
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      machine.memory.write(at(at(kernels, s).addresses, i), bytes.length, (into) => into.set(bytes));
    });
  });
  machine.run();
  const wrong: string[] = [];
  for (const [s, sample] of all.entries()) {
    wrong.push(...(await wrongIn(sample, at(kernels, s).addresses, machine.memory)));
  }
  const ms = (performance.now() - started).toFixed(0);
  console.log(`${machine.kernelFunctions} modules compiled and run in ${ms} ms`);
  return wrong;
}

async function wrongIn(
  { name, kernel, outputs, storage }: KernelSample,
  addresses: readonly number[],
  memory: DeviceMemory,
): Promise<readonly string[]> {
  const expected = storage();
  interpretKernel(kernel, expected as never);
  for (const output of outputs) {
    const want = at(expected, output);
    const got = want.slice();
    new Uint8Array(got.buffer).set(await memory.read(at(addresses, output), want.byteLength));
    const i = difference(got, want);
    if (i >= 0) return [`${name}: element ${i} of ${want.length} is ${got[i]}, not ${want[i]}`];
  }
  return [];
}

// ---- graphs -------------------------------------------------------------------------------------------------------

const OWN = { dtypes: ["f32"], casts: ["f32", "i32", "bool"] } as const;
const SMOOTH = { dtypes: ["f32"], casts: ["f32"] } as const;

async function graphs(): Promise<void> {
  const target = await found({ fma: false });
  const compared = async (name: string, all: readonly Graph[]): Promise<void> => {
    const wrong: string[] = [];
    for (const [seed, graph] of all.entries()) {
      const inputs = randomInputs(graph, seed);
      const got = await runGraphLater(target, graph, seed);
      const want = runGraph(wasmTarget(false), graph, (_, i) => at(inputs, i));
      const bad = want.findIndex((expected, i) => difference(at(got, i) as TypedArray, expected) >= 0);
      if (bad >= 0) wrong.push(`graph ${seed}, result ${bad}`);
    }
    report(name, wrong, all.length);
  };
  const seeds = Array.from({ length: 25 }, (_, seed) => seed);
  await compared(
    "random graphs",
    seeds.map((seed) => randomGraph(seed, { nodes: 5 + (seed % 25), ...OWN })),
  );
  const gradients = seeds.map((seed) => {
    const graph = randomGraph(seed, { nodes: 4 + (seed % 16), smooth: true, scalar: true, ...SMOOTH });
    return vjp(
      graph,
      graph.params.map(({ type }) => isFloat(type.dtype)),
    );
  });
  await compared("random gradients", gradients);
  await compared(
    "random loops",
    seeds.map((seed) => looped(randomCase(seed, OWN))),
  );
}

// ---- programs -----------------------------------------------------------------------------------------------------

const tensorsOf = (tree: unknown): readonly Tensor[] => flatten(tree, "state").leaves;

interface Trained {
  readonly state: readonly TypedArray[];
  readonly losses: readonly number[];
  readonly arenaBytes: number;
}

async function train(program: AnyProgram, target: Target, steps: number): Promise<Trained> {
  const step = compile(program.step, { donate: [0], target, name: program.name });
  const batch = program.batch();
  let state = program.init();
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const [next, loss] = step(state, ...batch);
    state = next;
    losses.push(at(await loss.dataAsync(), 0));
  }
  const { arenaBytes } = step.program(state, ...batch);
  const after: TypedArray[] = [];
  for (const leaf of tensorsOf(state)) after.push((await leaf.dataAsync()).slice());
  return { state: after, losses, arenaBytes };
}

const named = (names: readonly string[]): readonly AnyProgram[] => BUILT_IN.filter(({ name }) => names.includes(name));

async function programs(): Promise<void> {
  const target = await found({ fma: false });
  for (const program of named(["mlp", "cnn", "lstm", "gpt"])) {
    const got = await train(program, target, 3);
    const want = await train(program, wasmTarget(false), 3);
    const wrong = want.state.flatMap((expected, i) => {
      const e = difference(at(got.state, i), expected);
      return e < 0 ? [] : [`tensor ${i}, element ${e}: ${at(got.state, i)[e]}, not ${expected[e]}`];
    });
    report(`${program.name} after 3 steps`, wrong, want.state.length);
    console.log(`  losses ${got.losses.join(", ")}; arena ${grouped(got.arenaBytes)} bytes`);
  }
}

// ---- times --------------------------------------------------------------------------------------------------------

async function adapter(): Promise<void> {
  const { uses, description } = await found();
  console.log(`${uses}\n${description.key}\n${description.arithmetic.name}`);
}

/** Milliseconds of one more product: those of many less those of few, since results are read once. */
async function product(): Promise<void> {
  const n = Number(process.env.PRODUCT_N ?? 4096);
  const target = await found();
  const b = tensor(new Float32Array(n * n).fill(1 / n)).reshape([n, n]);
  // a constant stays on the device; an argument would be sent at every call
  const multiply = compile((x: Tensor) => x.matmul(b), { target, donate: [0] });
  let a = multiply(tensor(new Float32Array(n * n).fill(1 / n)).reshape([n, n]));
  const timed = async (runs: number): Promise<number> => {
    const started = performance.now();
    for (let i = 0; i < runs; i++) a = multiply(a);
    await a.dataAsync();
    return performance.now() - started;
  };
  await timed(3);
  const ms = ((await timed(25)) - (await timed(5))) / 20;
  console.log(`product ${n}³: ${ms.toFixed(2)} ms, ${((2 * n ** 3) / ms / 1e9).toFixed(1)} TFLOP/s`);
}

async function steps(): Promise<void> {
  const target = await found();
  console.log(`${target.uses}; ${target.description.arithmetic.name}`);
  for (const program of named(["mlp", "cnn", "lstm", "gpt"])) {
    const step = compile(program.step, { donate: [0], target, name: program.name });
    const batch = program.batch();
    const began = performance.now();
    let [state, loss] = step(program.init(), ...batch);
    await loss.dataAsync();
    const firstMs = performance.now() - began;
    const [count, cpu, started] = [50, process.cpuUsage(), performance.now()];
    for (let i = 0; i < count; i++) {
      [state, loss] = step(state, ...batch);
      if (i % 2 === 1) await loss.dataAsync();
    }
    await loss.dataAsync();
    const ms = (performance.now() - started) / count;
    const { user, system } = process.cpuUsage(cpu);
    const own = (user + system) / 1000 / count;
    console.log(
      `${program.name}: ${ms.toFixed(2)} ms a step, ${own.toFixed(2)} ms of the processor, first ${firstMs.toFixed(0)} ms`,
    );
  }
}

const SECTIONS = { adapter, samples, graphs, programs, product, steps };

for (const name of process.argv.slice(2)) {
  const started = performance.now();
  await SECTIONS[name as keyof typeof SECTIONS]();
  console.log(`-- ${name} ${((performance.now() - started) / 1000).toFixed(1)} s`);
}
process.exit(failures > 0 ? 1 : 0);
