/**
 * @file The target `webgpu` on the adapter at hand: are its bits those of the other targets, and how fast is it? Run by hand where there is
 * a GPU with its Vulkan driver, and the package `webgpu`:
 *
 *   npx rolldown tests/support/webgpu-device.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs \
 *     --file node_modules/.cache/webgpu-device.mjs && node node_modules/.cache/webgpu-device.mjs [SECTION…]
 *
 *   adapter    what it is called, its limits and its arithmetic
 *   samples    every operation on every sample without f64, against the kernel interpreter; with fused multiply-add where the adapter
 *              has it, against the interpreter of block programs, whose fma is exact
 *   graphs     random graphs, gradients and loops, against WebAssembly; neither fuses multiplications with additions
 *   programs   training steps of the built-in programs: plain, against `wasm`; where the adapter has fma, against `native`, which fuses
 *              too (needs a C compiler and koffi)
 *   product    a product of 4096 × 4096 × 4096 in f32
 *   steps      milliseconds of a step, of encoding and submitting its commands, and the number of calls
 *   profile    milliseconds of each kernel of gpt, run again and again
 *
 * WEBGPU_PACKAGE names the package's file where it is not installed; FLAGS are Dawn's, separated by semicolons (`backend=null` runs
 * nothing: steps then shows encoding alone).
 */
import { compile } from "../../src/api/compile.ts";
import "../../src/api/methods.ts";
import { plansOf } from "../../src/api/plan.ts";
import { vjp } from "../../src/autodiff/vjp.ts";
import { grouped } from "../../src/base/errors.ts";
import { at } from "../../src/base/invariant.ts";
import { type AnyProgram, BUILT_IN } from "../../src/cli/programs/built-in.ts";
import { interpretBlocks } from "../../src/codegen/block/interpret.ts";
import { blockProgram } from "../../src/codegen/block/schedule.ts";
import { deviceClass, type WebgpuOptions } from "../../src/codegen/wgsl/description.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { isFloat, type TypedArray } from "../../src/kernel/dtype.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import { nativeTarget } from "../../src/node/native/target.ts";
import { nodeGpu } from "../../src/node/webgpu.ts";
import type { Target } from "../../src/runtime/device.ts";
import { Executable } from "../../src/runtime/executable.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import type { GpuDevice } from "../../src/runtime/webgpu/gpu.ts";
import { type WebgpuAnswer, webgpuTarget } from "../../src/runtime/webgpu/target.ts";
import type { AnyFunction } from "../../src/trace/function.ts";
import { tensor } from "../../src/trace/literal.ts";
import type { Tensor } from "../../src/trace/tensor.ts";
import { flatten } from "../../src/trace/tree.ts";
import { DeviceReport, difference, wrongSamples } from "./device-report.ts";
import { type KernelSample, kernelOps, kernelSamples } from "./kernel-samples.ts";
import { randomGraph, randomInputs } from "./random-graph.ts";
import { looped, randomCase } from "./random-loops.ts";
import { runGraph } from "./run-graph.ts";
import { runGraphLater } from "./run-graph-later.ts";

const FLAGS = (process.env.FLAGS ?? "").split(";").filter((flag) => flag !== "");
const gpu = await nodeGpu(process.env.WEBGPU_PACKAGE, FLAGS);

async function opened(less: Partial<WebgpuOptions> = {}): Promise<WebgpuAnswer> {
  if (typeof gpu === "string") throw new Error(gpu);
  const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("no adapter");
  return webgpuTarget(adapter, less);
}

const found = async (less: Partial<WebgpuOptions> = {}): Promise<Target> => (await opened(less)).target;

/** What the target was made with, which its key says. */
function optionsOf({ description: { key = "" } }: Target): WebgpuOptions {
  return JSON.parse(key.slice(key.indexOf("{"))) as WebgpuOptions;
}

const report = new DeviceReport();

// ---- samples ------------------------------------------------------------------------------------------------------

async function samples(): Promise<void> {
  const plain = { fma: false };
  await compareSamples("samples", await found(plain));
  await compareSamples("samples, quotients and roots by bits", await found({ ...plain, exactly: true }));
  const own = await found();
  if (optionsOf(own).fma) await compareSamples("samples, fused multiply-add", own);
  else console.log("the adapter has no fused multiply-add");
}

async function compareSamples(name: string, target: Target): Promise<void> {
  const own = new Set(target.description.storageTypes);
  const all = kernelOps
    .flatMap((op) => kernelSamples(op, target.description))
    .filter(({ kernel }) => kernel.operands.every(({ dtype }) => own.has(dtype)));
  const options = optionsOf(target);
  report.compared(name, await wrongSamples(target, all, (sample) => expected(sample, options)), all.length);
}

/** What the operands of a kernel are after it: of a target that fuses, as block programs define it. */
function expected({ kernel, storage }: KernelSample, options: WebgpuOptions): readonly TypedArray[] {
  const buffers = storage();
  if (options.fma) interpretBlocks(blockProgram(kernel, deviceClass(options)), buffers);
  else interpretKernel(kernel, buffers as never);
  return buffers;
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
    report.compared(name, wrong, all.length);
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
  await comparePrograms("plain, wasm", await found({ fma: false }), wasmTarget(false));
  const own = await found();
  if (!optionsOf(own).fma) return;
  const native = nativeTarget({ winograd: "never" });
  if (typeof native === "string") console.log(`no native target to compare fused products with: ${native}`);
  else await comparePrograms("fused, native", own, native);
}

async function comparePrograms(how: string, target: Target, other: Target): Promise<void> {
  for (const program of named(["mlp", "cnn", "lstm", "gpt"])) {
    const got = await train(program, target, 3);
    const want = await train(program, other, 3);
    const wrong = want.state.flatMap((tensor, i) => {
      const e = difference(at(got.state, i), tensor);
      return e < 0 ? [] : [`tensor ${i}, element ${e}: ${at(got.state, i)[e]}, not ${tensor[e]}`];
    });
    report.compared(`${program.name} after 3 steps (${how})`, wrong, want.state.length);
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

/** Calls of the encoders that a device makes, the milliseconds from an encoder to its end, and those of handing commands over. */
interface Encoding {
  calls: number;
  encodeMs: number;
  submitMs: number;
}

/** Counts and times what a device is told from now on. */
function watched(device: GpuDevice): Encoding {
  const seen: Encoding = { calls: 0, encodeMs: 0, submitMs: 0 };
  const counted = <T extends object>(object: T, names: readonly (keyof T)[]): T => {
    for (const name of names) {
      const own = (object[name] as (...args: unknown[]) => unknown).bind(object);
      object[name] = ((...args: unknown[]) => {
        seen.calls += 1;
        return own(...args);
      }) as T[keyof T];
    }
    return object;
  };
  const { queue } = device;
  const [create, submit] = [device.createCommandEncoder.bind(device), queue.submit.bind(queue)];
  let started = 0;
  device.createCommandEncoder = () => {
    started = performance.now();
    if (process.env.COUNT !== "1") return create();
    const encoder = counted(create(), ["copyBufferToBuffer", "finish"]);
    const begin = encoder.beginComputePass.bind(encoder);
    encoder.beginComputePass = () => counted(begin(), ["setPipeline", "setBindGroup", "dispatchWorkgroups", "end"]);
    seen.calls += 2;
    return encoder;
  };
  queue.submit = (commands) => {
    const encoded = performance.now();
    seen.encodeMs += encoded - started;
    submit(commands);
    seen.submitMs += performance.now() - encoded;
    seen.calls += 1;
  };
  return seen;
}

async function steps(): Promise<void> {
  const { target, device } = await opened();
  console.log(`${target.uses}; ${target.description.arithmetic.name}`);
  const seen = watched(device);
  for (const program of named(["mlp", "cnn", "lstm", "gpt"])) {
    const step = compile(program.step, { donate: [0], target, name: program.name });
    const batch = program.batch();
    const began = performance.now();
    let [state, loss] = step(program.init(), ...batch);
    await loss.dataAsync();
    const firstMs = performance.now() - began;
    for (let i = 0; i < 10; i++) [state, loss] = step(state, ...batch);
    await loss.dataAsync();
    Object.assign(seen, { calls: 0, encodeMs: 0, submitMs: 0 });
    const [count, cpu, started] = [50, process.cpuUsage(), performance.now()];
    for (let i = 0; i < count; i++) {
      [state, loss] = step(state, ...batch);
      if (i % 2 === 1) await loss.dataAsync();
    }
    await loss.dataAsync();
    const ms = (performance.now() - started) / count;
    const { user, system } = process.cpuUsage(cpu);
    const [encode, handOver, own] = [seen.encodeMs, seen.submitMs, (user + system) / 1000].map((sum) => sum / count);
    console.log(
      `${program.name}: ${ms.toFixed(2)} ms a step; encoding ${encode?.toFixed(2)}, submitting ${handOver?.toFixed(2)}, ` +
        `all threads ${own?.toFixed(2)} ms of the processor${process.env.COUNT === "1" ? `; ${seen.calls / count} calls` : ""}; ` +
        `first ${firstMs.toFixed(0)} ms`,
    );
  }
}

// ---- kernels ------------------------------------------------------------------------------------------------------

/** Milliseconds of every step of gpt: many runs of it less few of them, since results are read once. */
async function profile(): Promise<void> {
  const target = await found();
  const program = at(named([process.env.PROGRAM ?? "gpt"]), 0);
  const args = [program.init(), ...program.batch()];
  const { plans } = plansOf(program.step as AnyFunction, args, { donate: [0] }, target);
  const executable = new Executable(plans.placed(plans.choose({}), 0), target, { stepwise: true });
  const { machine, memory, placed } = executable;
  memory.fill(0, placed.base + placed.plan.height, 0);
  machine.step(0);
  await memory.read(placed.base, 4);
  const timed = async (i: number, runs: number): Promise<number> => {
    const started = performance.now();
    for (let r = 0; r < runs; r++) machine.step(i);
    await memory.read(placed.base, 4);
    return performance.now() - started;
  };
  const rows: { readonly name: string; readonly ms: number }[] = [];
  for (const [i, node] of placed.kernelNodes.entries()) {
    await timed(i, 2);
    const ms = ((await timed(i, 24)) - (await timed(i, 4))) / 20;
    const ops = node.regions[0]?.nodes.map(({ op }) => op.name) ?? [node.op.name];
    const types = node.outputs.map(({ type }) => `[${type.shape}]`);
    rows.push({ name: `${node.phase} ${ops.slice(0, 8).join("+")} -> ${types.join(" ")}`, ms });
  }
  rows.sort((a, b) => b.ms - a.ms);
  console.log(
    `${program.name}: ${rows.length} steps, ${rows.reduce((sum, { ms }) => sum + ms, 0).toFixed(2)} ms one by one`,
  );
  for (const { name, ms } of rows.slice(0, 40)) console.log(`  ${ms.toFixed(3)} ms  ${name.slice(0, 100)}`);
}

const SECTIONS = { adapter, samples, graphs, programs, product, steps, profile };

await report.run(SECTIONS, process.argv.slice(2));
