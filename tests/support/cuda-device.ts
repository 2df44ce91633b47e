/**
 * @file The target `cuda` on the device at hand: are its bits those of the other targets? Run by hand, where there is an NVIDIA
 * GPU with its driver, a CUDA toolkit, a C compiler and koffi:
 *
 *   npx rolldown tests/support/cuda-device.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/cuda-device.mjs &&
 *     node node_modules/.cache/cuda-device.mjs [samples graphs tensor halves programs nccl budgets memory soak]
 *
 *   samples    every operation on every sample, against the kernel interpreter
 *   graphs     random graphs, gradients and loops, against WebAssembly; neither fuses multiplications with additions
 *   tensor     products on tensor cores, against products in f32, of numbers for which both are exact
 *   halves     products of bf16 and f16 on tensor cores, against f32, and matrices brought in all ways
 *   programs   training steps of the built-in programs, against `native`; both fuse
 *   nccl       collectives through NCCL on one device: each against its reference, and training with parts of the state against steps
 *              without collectives
 *   budgets    gpt within five budgets, against the one without
 *   memory     the arena, against what the driver says was taken
 *   soak       ten thousand steps without growth
 */
import { compile } from "../../src/api/compile.ts";
import "../../src/api/methods.ts";
import { vjp } from "../../src/autodiff/vjp.ts";
import { grouped } from "../../src/base/errors.ts";
import { at } from "../../src/base/invariant.ts";
import type { AnyProgram } from "../../src/cli/programs/built-in.ts";
import { BUILT_IN } from "../../src/cli/programs/built-in.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import { isFloat, type TypedArray } from "../../src/kernel/dtype.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import { CudaContext } from "../../src/node/cuda/context.ts";
import { Driver } from "../../src/node/cuda/driver.ts";
import { ncclState } from "../../src/node/cuda/nccl.ts";
import { ncclFigures } from "../../src/node/cuda/nccl-groups.ts";
import { cudaTarget } from "../../src/node/cuda/target.ts";
import { nativeTarget } from "../../src/node/native/target.ts";
import type { Target } from "../../src/runtime/device.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import { storageOf, type Tensor } from "../../src/trace/tensor.ts";
import { flatten } from "../../src/trace/tree.ts";
import { collectives } from "../mpi/collectives.ts";
import { found, halfProducts, tensorProducts } from "./cuda-products.ts";
import { DeviceReport, difference, wrongSamples } from "./device-report.ts";
import { kernelOps, kernelSamples } from "./kernel-samples.ts";
import { trainedAlone } from "./nccl-checks.ts";
import { randomGraph, randomInputs, together } from "./random-graph.ts";
import { looped, randomCase } from "./random-loops.ts";
import { runGraph } from "./run-graph.ts";

const report = new DeviceReport();

// ---- samples ------------------------------------------------------------------------------------------------------

async function samples(): Promise<void> {
  const target = found(cudaTarget({ fma: false }));
  const all = kernelOps.flatMap((op) => kernelSamples(op, target.description));
  const wrong = await wrongSamples(target, all, ({ kernel, storage }) => {
    const operands = storage();
    interpretKernel(kernel, operands as never);
    return operands;
  });
  report.compared("samples", wrong, all.length);
}

// ---- graphs -------------------------------------------------------------------------------------------------------

const seeds = (count: number, from: number): readonly number[] => Array.from({ length: count }, (_, i) => from + i);

function compareGraphs(name: string, graphs: readonly Graph[], special: boolean): void {
  const all = together(graphs);
  const inputs = graphs.flatMap((graph, i) =>
    randomInputs(graph, i, { special }).map((data, p) =>
      graph.params[p]?.type.dtype === "f32" ? data.map(Math.fround) : data,
    ),
  );
  const input = (_: Value, i: number): ArrayLike<number> => at(inputs, i);
  const got = runGraph(found(cudaTarget({ fma: false })), all, input);
  const want = runGraph(wasmTarget(false), all, input);
  const wrong = want.flatMap((expected, i) => {
    const e = difference(at(got, i), expected);
    return e < 0 ? [] : [`result ${i}, element ${e}: ${at(got, i)[e]}, not ${expected[e]}`];
  });
  report.compared(name, wrong, want.length);
}

function graphs(): void {
  compareGraphs(
    "random graphs",
    seeds(30, 0).map((seed) => randomGraph(seed, { nodes: 5 + (seed % 30) })),
    true,
  );
  const gradients = seeds(16, 100).map((seed) => {
    const graph = randomGraph(seed, { nodes: 4 + (seed % 20), smooth: true, scalar: true, regions: false });
    return vjp(
      graph,
      graph.params.map((p) => isFloat(p.type.dtype)),
    );
  });
  compareGraphs("random gradients", gradients, false);
  compareGraphs(
    "random loops",
    seeds(12, 200).map((seed) => looped(randomCase(seed))),
    false,
  );
}

// ---- programs -----------------------------------------------------------------------------------------------------

const tensorsOf = (tree: unknown): readonly Tensor[] => flatten(tree, "state").leaves;

interface Trained {
  readonly losses: readonly number[];
  readonly state: readonly TypedArray[];
  readonly ms: number;
  readonly arenaBytes: number;
}

/** Steps of a program; the last `timed` of them are timed. */
function train(program: AnyProgram, target: Target, [steps, timed]: readonly [number, number]): Trained {
  const step = compile(program.step, { donate: [0], target, name: program.name });
  const batch = program.batch();
  let state = program.init();
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const [next, loss] = step(state, ...batch);
    state = next;
    losses.push(loss.item());
  }
  const after = tensorsOf(state).map((tensor) => storageOf(tensor).read().slice());
  const started = performance.now();
  for (let i = 0; i < timed; i++) {
    const [next, loss] = step(state, ...batch);
    state = next;
    if (i === timed - 1) loss.item();
  }
  const ms = (performance.now() - started) / Math.max(1, timed);
  const { arenaBytes } = step.program(state, ...batch);
  return { losses, state: after, ms, arenaBytes };
}

function programs(): void {
  const cuda = found(cudaTarget());
  const native = found(nativeTarget({ winograd: "never" }));
  for (const program of BUILT_IN) {
    const got = train(program, cuda, [3, 50]);
    const want = train(program, native, [3, 3]);
    const wrong = want.state.flatMap((expected, i) => {
      const e = difference(at(got.state, i), expected);
      return e < 0 ? [] : [`tensor ${i}, element ${e}: ${at(got.state, i)[e]}, not ${expected[e]}`];
    });
    report.compared(`${program.name} after 3 steps`, wrong, want.state.length);
    const same = got.losses.every((loss, i) => Object.is(loss, want.losses[i]));
    console.log(
      `  losses ${same ? "equal" : "DIFFER"} (${got.losses.join(", ")}), ${got.ms.toFixed(3)} ms a step on cuda, ${want.ms.toFixed(1)} on native, arena ${grouped(got.arenaBytes)} bytes`,
    );
  }
}

// ---- collectives ----------------------------------------------------------------------------------------------------

/** NCCL with one device, which no program needs: what is exchanged goes through it all the same. */
function nccl(): void {
  const { available, note } = ncclState();
  console.log(note);
  if (!available) {
    console.log("collectives through NCCL: not run");
    return;
  }
  const [plain, through] = [found(cudaTarget({ alone: false })), found(cudaTarget({ alone: true }))];
  const { cases } = collectives({ rank: 0, size: 1 }, () => through);
  console.log(`collectives: ${cases} of ${cases} equal`);
  for (const zero of [0, 1, 2, 3] as const) {
    const [got, want] = [trainedAlone(through, zero), trainedAlone(plain, zero)];
    const wrong = want.flatMap((x, i) => (Object.is(x, got[i]) ? [] : [`number ${i}: ${got[i]}, not ${x}`]));
    report.compared(`training with zero: ${zero}`, wrong, want.length);
  }
  const figures = ncclFigures();
  if (figures === null) throw new Error("nothing went through NCCL");
  console.log(`${figures.version} took ${grouped(figures.startBytes)} bytes of the device`);
}

// ---- budgets, memory, long runs -------------------------------------------------------------------------------------

const programNamed = (name: string): AnyProgram => BUILT_IN.find((program) => program.name === name) as AnyProgram;

/** A few steps under a budget, or without one. */
function stepped(program: AnyProgram, target: Target, options: { readonly memory?: number }, steps: number) {
  const step = compile(program.step, { donate: [0], target, name: program.name, ...options });
  const batch = program.batch();
  let state = program.init();
  const { arenaBytes } = step.program(state, ...batch);
  for (let i = 0; i < steps; i++) [state] = step(state, ...batch);
  return { arenaBytes, state: tensorsOf(state).map((tensor) => storageOf(tensor).read().slice()), step, batch };
}

function budgets(): void {
  const [target, program] = [found(cudaTarget()), programNamed("gpt")];
  const whole = stepped(program, target, {}, 2);
  for (const share of [0.9, 0.75, 0.6, 0.5, 0.4]) {
    const { arenaBytes, state } = stepped(program, target, { memory: Math.floor(share * whole.arenaBytes) }, 2);
    const wrong = state.flatMap((data, i) => (difference(data, at(whole.state, i)) < 0 ? [] : [`tensor ${i}`]));
    report.compared(`gpt at ${share}, ${grouped(arenaBytes)} bytes`, wrong, state.length);
  }
}

/** What the driver says is free, before and after. */
function memory(): void {
  const driver = Driver.open();
  if (typeof driver === "string") return void found(driver);
  const device = new CudaContext(driver);
  for (const name of ["gpt", "chain256"]) {
    const before = device.memory().free;
    const { arenaBytes, step } = stepped(programNamed(name), found(cudaTarget()), {}, 3);
    const taken = before - device.memory().free;
    console.log(
      `${name}: arena ${grouped(arenaBytes)}, the device gave ${grouped(taken)}, the rest ${grouped(taken - arenaBytes)}`,
    );
    if (taken < arenaBytes) report.failures += 1;
    step.dispose();
  }
}

/** Ten thousand steps: the device and the process hold what they held after the first hundred. */
function soak(): void {
  const driver = Driver.open();
  if (typeof driver === "string") return void found(driver);
  const device = new CudaContext(driver);
  const program = programNamed("mlp");
  const step = compile(program.step, { donate: [0], target: found(cudaTarget()), name: program.name });
  const batch = program.batch();
  let state = program.init();
  let held = { free: 0, rss: 0 };
  for (let i = 0; i < 10_000; i++) {
    const [next, loss] = step(state, ...batch);
    state = next;
    if (i % 100 === 99) loss.item();
    if (i === 999) held = { free: device.memory().free, rss: process.memoryUsage().rss };
  }
  const grown = { device: held.free - device.memory().free, process: process.memoryUsage().rss - held.rss };
  console.log(`10,000 steps of mlp: the device holds ${grown.device} bytes more, the process ${grown.process}`);
  if (grown.device !== 0 || grown.process > 32 * 2 ** 20) report.failures += 1;
}

const tensor = (): void => tensorProducts(report);
const halves = (): void => halfProducts(report);

const SECTIONS = { samples, graphs, tensor, halves, programs, nccl, budgets, memory, soak };

await report.run(SECTIONS, process.argv.slice(2));
