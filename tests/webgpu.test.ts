/**
 * @file The target `webgpu` on a driver without a GPU (support/webgpu-here.ts): the bits of the interpreter and of WebAssembly, memory that
 * does not grow, and what happens where a device is lost, too small or missing. WEBGPU_ALL=1 (`npm run test:webgpu`) runs every sample.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  compile,
  cond,
  forLoop,
  scan,
  type Target,
  type Tensor,
  tensor,
  tree,
  valueAndGrad,
  where,
  whileLoop,
} from "../src/api/index.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import { blockProgram } from "../src/codegen/block/schedule.ts";
import type { PlacedKernel } from "../src/codegen/placed.ts";
import { deviceClass, type WebgpuOptions } from "../src/codegen/wgsl/description.ts";
import { printWgsl, separateLayout } from "../src/codegen/wgsl/launch.ts";
import type { Graph } from "../src/ir/graph.ts";
import { bytesOf, isFloat } from "../src/kernel/dtype.ts";
import { longRun } from "../src/node/long-run.ts";
import { simulate } from "../src/node/simulate.ts";
import { train } from "../src/node/train.ts";
import { nodeGpu } from "../src/node/webgpu.ts";
import { adam } from "../src/optim/adam.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import type { Gpu, GpuAdapter, GpuDevice } from "../src/runtime/webgpu/gpu.ts";
import { type WebgpuAnswer, type WebgpuLimits, webgpuTarget } from "../src/runtime/webgpu/target.ts";
import { pageGpu, WebgpuTargets } from "../src/runtime/webgpu/targets.ts";
import { check } from "./support/kernel-check.ts";
import { bufferOf, type KernelSample, kernelOps, kernelSamples } from "./support/kernel-samples.ts";
import { randomGraph, randomInputs } from "./support/random-graph.ts";
import { looped, randomCase } from "./support/random-loops.ts";
import { runGraph } from "./support/run-graph.ts";
import { runGraphLater } from "./support/run-graph-later.ts";
import { type SmallModel, smallModels } from "./support/small-models.ts";
import { loadSteps } from "./support/targets.ts";
import { adapterHere, gpuHere, missingGpu, packageFile } from "./support/webgpu-here.ts";

const everything = process.env.WEBGPU_ALL === "1";

const opened: GpuDevice[] = [];
/** The interpreter and WebAssembly here do not fuse multiplications with additions. */
async function onGpu(less: WebgpuLimits = {}, adapter?: GpuAdapter): Promise<WebgpuAnswer> {
  const answer = await webgpuTarget(adapter ?? (await adapterHere()), { fma: false, ...less });
  opened.push(answer.device);
  return answer;
}

/** Numbers between -1 and 1. */
function numbers(shape: readonly number[], seed: number): Tensor {
  const next = hostRandom(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Float32Array.from({ length: count }, () => next.next() * 2 - 1)).reshape(shape);
}

const dataOf = (tensors: readonly Tensor[]): Promise<readonly (readonly number[])[]> =>
  Promise.all(tensors.map(async (t) => [...(await t.dataAsync())]));

describe.skipIf(missingGpu !== null)("webgpu", () => {
  let target: Target;

  beforeAll(async () => {
    ({ target } = await onGpu());
  });

  afterAll(() => {
    for (const device of opened) device.destroy();
  });

  // ---- kernels ----------------------------------------------------------------------------------------------------

  async function expectSamples(on: Target, some: (samples: readonly KernelSample[]) => readonly KernelSample[]) {
    const own = new Set(on.description.storageTypes);
    const all = kernelOps.flatMap((op) =>
      some(kernelSamples(op, on.description).filter(({ kernel }) => kernel.operands.every((o) => own.has(o.dtype)))),
    );
    let top = 0;
    const steps = all.map(({ kernel }): PlacedKernel => {
      const addresses = kernel.operands.map(({ elements, dtype }) => {
        const address = top;
        top += Math.ceil((elements * bytesOf(dtype) + 1) / 256) * 256;
        return address;
      });
      return { kernel, addresses };
    });
    const machine = loadSteps(on, steps, top);
    machine.memory.fill(0, top, 0xa5);
    all.forEach(({ kernel, storage }, s) => {
      storage().forEach((source, i) => {
        if (kernel.operands[i]?.role !== "in") return;
        const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
        machine.memory.write(at(at(steps, s).addresses, i), bytes.length, (into) => into.set(bytes));
      });
    });
    machine.run();
    for (const [s, sample] of all.entries()) {
      const got = sample.outputs.map(async (i) => {
        const { elements, dtype } = at(sample.kernel.operands, i);
        const bytes = await machine.memory.read(at(at(steps, s).addresses, i), elements * bytesOf(dtype));
        return bufferOf(dtype, elements, bytes.slice().buffer);
      });
      check(sample, await Promise.all(got));
    }
    return all.length;
  }

  it("has the interpreter's bits for every operation", async () => {
    // of each the last one, and those of attention whose loops end where memory says; of routines, whose modules are long, the
    // shortest: all of them by npm run test:webgpu
    const isTried = ({ name, kernel }: KernelSample, i: number, all: readonly KernelSample[]): boolean => {
      if (everything || /^attend.*i32\[2\]/.test(name)) return true;
      const isLong = kernel.nests.some(({ kind }) => kind === "routine") && !name.startsWith("triangular_solve");
      return i === all.length - 1 && !isLong;
    };
    const tried = await expectSamples(target, (samples) => samples.filter(isTried));
    expect(tried).toBeGreaterThan(everything ? 800 : 80);
  });

  it("has valid modules for every sample", async () => {
    const { target: on, device } = await onGpu();
    const options = JSON.parse((on.description.key ?? "").replace(/^[^{]*/, "")) as WebgpuOptions;
    const own = new Set(on.description.storageTypes);
    const modules = new Map<string, string>();
    for (const { name, kernel } of kernelOps.flatMap((op) => kernelSamples(op, on.description))) {
      if (!kernel.operands.every(({ dtype }) => own.has(dtype))) continue;
      for (const launch of blockProgram(kernel, deviceClass(options)).launches) {
        modules.set(printWgsl(launch, separateLayout(launch), false).text, name);
      }
    }
    device.pushErrorScope("validation");
    for (const code of modules.keys()) device.createShaderModule({ code });
    expect(await device.popErrorScope()).toBeNull();
    expect(modules.size).toBeGreaterThan(600);
  });

  it.runIf(everything)("has them also with quotients and roots by bits", async () => {
    expect(await expectSamples((await onGpu({ exactly: true })).target, (samples) => samples)).toBeGreaterThan(800);
  });

  it("has quotients and roots that are the nearest numbers where the adapter's are not", async () => {
    const { target: exact } = await onGpu({ exactly: true });
    const random = hostRandom(3);
    const special = [0, -0, 1, -1, 3, 1e-45, 1.1754944e-38, 1e-39, 3.4028235e38, Infinity, -Infinity, Number.NaN];
    const any = (): number => new Float32Array(Uint32Array.of(random.next() * 2 ** 32).buffer)[0] ?? 0;
    const pairs = [
      ...special.flatMap((a) => special.map((b) => [a, b] as const)),
      ...Array.from({ length: 4000 }, () => [any(), any()] as const),
      // quotients around the least numbers
      ...Array.from({ length: 1000 }, () => [(1 + random.next()) * 2 ** -120, (1 + random.next()) * 2 ** 20] as const),
    ];
    const [a, b] = [0, 1].map((i) => Float32Array.from(pairs, (pair) => at(pair, i))) as [Float32Array, Float32Array];
    const divide = compile((x: Tensor, y: Tensor) => [x.div(y), x.sqrt()] as const, { target: exact });
    const [quotients, roots] = divide(tensor(a), tensor(b));
    expect(await quotients.dataAsync()).toEqual(a.map((x, i) => x / at(b, i)));
    expect(await roots.dataAsync()).toEqual(a.map((x) => Math.sqrt(x)));
  });

  // ---- programs ---------------------------------------------------------------------------------------------------

  async function expectBitsOfWasm(on: Target, graph: Graph, seed: number): Promise<void> {
    const inputs = randomInputs(graph, seed);
    const want = runGraph(wasmTarget(false), graph, (_, i) => at(inputs, i));
    expect(await runGraphLater(on, graph, seed)).toEqual(want);
  }

  const OWN = { dtypes: ["f32"], casts: ["f32", "i32", "bool"] } as const;
  const SMOOTH = { dtypes: ["f32"], casts: ["f32"] } as const;
  const seeds = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

  it("has the bits of WebAssembly for random programs in memory full of other bits", async () => {
    for (const seed of seeds(everything ? 25 : 2)) {
      await expectBitsOfWasm(target, randomGraph(seed, { nodes: 5 + (seed % 25), ...OWN }), seed);
      const smooth = randomGraph(seed, { nodes: 4 + (seed % 16), smooth: true, scalar: true, ...SMOOTH });
      const active = smooth.params.map(({ type }) => isFloat(type.dtype));
      await expectBitsOfWasm(target, vjp(smooth, active), seed);
      await expectBitsOfWasm(target, looped(randomCase(seed, OWN)), seed);
    }
  });

  it("has them where few parts of the arena can be bound, so that operands share them", async () => {
    const { target: narrow } = await onGpu({ storageBuffers: 2 });
    for (const seed of seeds(2)) {
      await expectBitsOfWasm(narrow, randomGraph(seed, { nodes: 12, ...OWN }), seed);
      await expectBitsOfWasm(narrow, looped(randomCase(seed + 10, OWN)), seed);
    }
  });

  it("has them where operands are larger than a binding, so that they are cut into pieces", async () => {
    const { target: cut } = await onGpu({ bindingBytes: 1024 });
    // numbers in six pieces, bools in two, and a result over its operand
    const steps = (x: Tensor, w: Tensor) => {
      const mask = x.greater(0.25);
      const h = where(mask, x.matmul(w), x.mul(2)).tanh();
      return [h, mask, h.sum(0), h.cumsum(0), mask.cast("f32").sum()] as const;
    };
    const args = [numbers([96, 16], 3), numbers([16, 16], 4)] as const;
    const [got, want] = [cut, wasmTarget(false)].map((on) => dataOf(compile(steps, { target: on })(...args)));
    expect(await got).toEqual(await want);
  });

  /** Losses and state after two steps. */
  async function trained({ step, init }: SmallModel, on: Target) {
    const run = compile(step, { donate: [0], target: on });
    const [first, one] = run(init());
    const [state, two] = run(first);
    return dataOf([one, two, ...tree.flatten(state).leaves]);
  }

  for (const model of smallModels) {
    it(`trains ${model.name} with the bits of WebAssembly`, async () => {
      expect(await trained(model, target)).toEqual(await trained(model, wasmTarget(false)));
    });
  }

  it("has the same bits at every budget", async () => {
    const step = (w: Tensor, x: Tensor) =>
      valueAndGrad((v: Tensor) => {
        let h = x;
        for (let i = 0; i < 5; i++) h = h.matmul(v).tanh();
        return h.sum();
      })(w);
    const args = [numbers([8, 8], 1), numbers([16, 8], 2)] as const;
    const results: unknown[] = [];
    const arenas = new Set<number>();
    for (const options of [{}, { memory: "3KiB" }, { memory: "min" }]) {
      const run = compile(step, { target, ...options });
      results.push(await dataOf(run(...args)));
      arenas.add(run.program(...args).arenaBytes);
    }
    expect(arenas.size).toBeGreaterThan(2);
    for (const result of results) expect(result).toEqual(results[0]);
  });

  it("runs loops and branches that depend on data, and loops that are too long to be written out", async () => {
    const collatz = (n: Tensor) =>
      whileLoop(
        ([m]: readonly [Tensor, Tensor]) => m.greater(1),
        ([m, count]: readonly [Tensor, Tensor]) =>
          [
            cond(
              m.div(2).mul(2).equal(m),
              (v: Tensor) => v.div(2),
              (v: Tensor) => v.mul(3).add(1),
              m,
            ),
            count.add(1),
          ] as const,
        [n, tensor(0, { dtype: "i32" })] as const,
      )[1];
    const length = compile(collatz, { target });
    expect(await length(tensor(27, { dtype: "i32" })).dataAsync()).toEqual(Int32Array.of(111));
    const long = (x: Tensor) => forLoop(5000, x, (_, v) => v.mul(0.999).add(1));
    const x = numbers([3], 4);
    const [got, want] = [target, wasmTarget(false)].map((on) => compile(long, { target: on })(x).dataAsync());
    expect(await got).toEqual(await want);
  });

  it("writes rows of a stack that start anywhere", async () => {
    const rows = (x: Tensor, h: Tensor) =>
      scan((carry: Tensor, row: Tensor) => [carry.add(row).tanh(), carry.greater(row)] as const, h, x);
    const args = [numbers([9, 5], 1), numbers([5], 2)] as const;
    const [got, want] = [target, wasmTarget(false)].map((on) => dataOf(compile(rows, { target: on })(...args)));
    expect(await got).toEqual(await want);
  });

  // ---- a device ---------------------------------------------------------------------------------------------------

  const optimizer = adam({ lr: 0.05 });
  type State = ReturnType<typeof optimizer.init<{ w: Tensor; b: Tensor }>>;
  const trainStep = (state: State, x: Tensor, y: Tensor): [State, Tensor] => {
    const lossOf = ({ w, b }: { w: Tensor; b: Tensor }) => x.matmul(w).add(b).tanh().sub(y).square().mean();
    const [loss, gradient] = valueAndGrad(lossOf)(state.params);
    return [optimizer.update(state, gradient), loss];
  };
  const initial = (): State => optimizer.init({ w: numbers([6, 4], 3), b: numbers([4], 5) });
  const batch = (i: number) => [numbers([8, 6], i), numbers([8, 4], 100 + i)] as const;

  it("says NotReady for what is on the device, and hands it out once it was waited for", async () => {
    const double = compile((x: Tensor) => x.mul(2), { target });
    const y = double(tensor([1, 2, 3]));
    expect(() => y.data()).toThrow("NotReady");
    expect([...(await y.dataAsync())]).toEqual([2, 4, 6]);
    expect(y.toArray()).toEqual([2, 4, 6]);
  });

  /** An adapter whose device counts its buffers, and how many runs it was given and has not done. */
  async function counting(): Promise<{ adapter: GpuAdapter; buffers: Set<object>; most: { runs: number } }> {
    const adapter = await adapterHere();
    const [buffers, most] = [new Set<object>(), { runs: 0 }];
    const requestDevice: GpuAdapter["requestDevice"] = async (asked) => {
      const device = await adapter.requestDevice(asked);
      const { createBuffer } = device;
      device.createBuffer = (description) => {
        const buffer = createBuffer.call(device, description);
        const { destroy } = buffer;
        buffers.add(buffer);
        buffer.destroy = () => {
          buffers.delete(buffer);
          destroy.call(buffer);
        };
        return buffer;
      };
      const { queue } = device;
      const { onSubmittedWorkDone } = queue;
      let runs = 0;
      queue.onSubmittedWorkDone = () => {
        runs += 1;
        most.runs = Math.max(most.runs, runs);
        return onSubmittedWorkDone.call(queue).finally(() => {
          runs -= 1;
        });
      };
      return device;
    };
    return { adapter: { info: adapter.info, limits: adapter.limits, requestDevice }, buffers, most };
  }

  it("trains a thousand steps with one buffer more than one, and two runs at a time", async () => {
    const { adapter, buffers, most } = await counting();
    const { target: counted } = await onGpu({}, adapter);
    const step = compile(trainStep, { target: counted, donate: [0] });
    let state = initial();
    const [x, y] = batch(1);
    const after: number[] = [];
    for (let i = 0; i < 1000; i++) {
      const [next, loss] = step(state, x, y);
      state = next;
      if (i % 100 === 9) {
        await loss.dataAsync();
        after.push(buffers.size);
      }
    }
    await state.params.w.dataAsync();
    // of two runs at a time each reads through a buffer of its own
    expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1);
    expect(most.runs).toBe(2);
  });

  it("tells of a lost device at every read, and a new one goes on from the last saved state", async () => {
    const { target: first, device } = await onGpu();
    const step = compile(trainStep, { target: first, donate: [0] });
    let [state] = step(initial(), ...batch(0));
    const saved = await dataOf(tree.flatten(state).leaves);
    const [after, loss] = step(state, ...batch(1));
    state = after;
    const reading = loss.dataAsync();
    device.destroy();
    await expect(reading).rejects.toThrow("DeviceLost");
    await device.lost;
    await expect(state.params.w.dataAsync()).rejects.toThrow(/^DeviceLost: the WebGPU device was lost: .*\n {2}help: /);
    expect(() => compile((x: Tensor) => x.mul(2), { target: first })(tensor([1]))).toThrow("DeviceLost");

    const { target: second } = await onGpu();
    const again = compile(trainStep, { target: second, donate: [0] });
    const { leaves, structure } = tree.flatten(initial());
    const restored = leaves.map((leaf, i) => tensor([...at(saved, i)], { dtype: leaf.dtype }).reshape(leaf.shape));
    const [resumed] = again(tree.unflatten(structure, restored) as State, ...batch(1));
    const plain = compile(trainStep, { target: wasmTarget(false) });
    const [want] = plain(plain(initial(), ...batch(0))[0], ...batch(1));
    expect(await dataOf(tree.flatten(resumed).leaves)).toEqual(await dataOf(tree.flatten(want).leaves));
  });

  it("trains in a folder that another device goes on from after the first was lost", async () => {
    const { target: first, device } = await onGpu();
    const options = { step: trainStep, state: initial(), batch: async (i: number) => batch(i), steps: 6, every: 2 };
    const root = mkdtempSync(join(tmpdir(), "tidemark-webgpu-"));
    try {
      const folder = (name: string): string => join(root, name);
      const onStep = (i: number): void => {
        if (i === 3) device.destroy();
      };
      const lost = train({ ...options, directory: folder("lost"), target: first, onStep });
      await expect(lost).rejects.toThrow("DeviceLost");
      const { target: second } = await onGpu();
      const resumed = await train({ ...options, directory: folder("lost"), target: second });
      expect([resumed.resumed, resumed.ran]).toEqual([true, 4]);
      const plain = await train({ ...options, directory: folder("plain"), target: wasmTarget(false) });
      expect(await dataOf(tree.flatten(resumed.state).leaves)).toEqual(await dataOf(tree.flatten(plain.state).leaves));
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  // ---- what is refused --------------------------------------------------------------------------------------------

  it("refuses long runs and simulations, which read states at once", async () => {
    const options = { step: (x: Tensor) => x.mul(2), state: tensor([1]), steps: 3, target };
    const refusal = /TargetUnsupported: \w+ cannot read states at once.*\n {2}help: give the target "wasm"/;
    await expect(simulate(options)).rejects.toThrow(refusal);
    await expect(longRun({ ...options, loss: (x: Tensor) => x.sum(), memory: "1MB" })).rejects.toThrow(refusal);
  });

  it("gives the memory back when a function is disposed of, after what was asked for before", async () => {
    const { target: own, device } = await onGpu();
    let [made, gone] = [0, 0];
    const create = device.createBuffer.bind(device);
    device.createBuffer = (given) => {
      const buffer = create(given);
      if ((given.usage & 0x80) === 0) return buffer; // only arenas are storage
      const destroy = buffer.destroy.bind(buffer);
      made++;
      buffer.destroy = () => {
        gone++;
        destroy();
      };
      return buffer;
    };
    const double = compile((x: Tensor) => x.mul(2), { target: own });
    const result = double(tensor([1, 2, 3]));
    double.dispose();
    expect([...(await result.dataAsync())]).toEqual([2, 4, 6]);
    expect([made > 0, gone]).toEqual([true, made]);
  });

  it("refuses what an adapter is too small for, with the numbers", async () => {
    const wide = (x: Tensor): Tensor => x.add(1);
    const { target: small } = await onGpu({ bindingBytes: 4096, storageBuffers: 2 });
    expect(() => compile(wide, { target: small })(numbers([2000], 1))).toThrow(
      /PlanInfeasible: .* has 8,000 bytes, a buffer of device at most 4,096/,
    );
    const { target: tiny } = await onGpu({ bufferBytes: 4096 });
    expect(() => compile(wide, { target: tiny })(numbers([2000], 1))).toThrow(/TargetUnsupported: .* 4,096 of webgpu/);
  });

  it("refuses types that WGSL lacks, by name, before anything is planned", () => {
    const norm = (x: Tensor): Tensor => x.cast("f64").exp().sum().cast("f32");
    expect(() => compile(norm, { target, name: "norm" })(tensor([1, 2]))).toThrow(
      /TargetUnsupported: norm needs types that webgpu lacks\n {2}f64 in memory: cast at .*\n {2}f64 in kernels: cast at /,
    );
  });

  it("is there under its name once it has been waited for, the same for all", async () => {
    const gpu = await gpuHere();
    let asked = 0;
    const targets = new WebgpuTargets(async () => {
      asked += 1;
      return gpu;
    });
    expect(targets.now()).toMatch("write `await webgpu()` once");
    const [first, second] = await Promise.all([targets.target(), targets.target()]);
    expect(second).toBe(first);
    expect([targets.now(), asked]).toEqual([first, 1]);
    expect(targets.now({ threads: 4 })).toBe("webgpu runs on all of the GPU: leave threads out, which is 4");
    expect((await targets.target(await adapterHere())) === first).toBe(false);
  });

  it("is found in Node by the package's name, and says how to get it", async () => {
    expect(typeof (await nodeGpu(packageFile))).toBe("object");
    expect(await nodeGpu("/nowhere/webgpu.js")).toMatch(
      /^the package webgpu cannot be loaded \(.*\): npm install webgpu$/,
    );
  });

  it("is the one that is there already, where nothing else is asked for", async () => {
    const own: Gpu = { requestAdapter: async () => null };
    const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    Object.defineProperty(globalThis, "navigator", { value: { gpu: own }, configurable: true });
    try {
      expect(await nodeGpu()).toBe(own);
      expect(await nodeGpu(packageFile)).not.toBe(own);
    } finally {
      if (before) Object.defineProperty(globalThis, "navigator", before);
      else Reflect.deleteProperty(globalThis, "navigator");
    }
  });
});

describe("a machine without WebGPU is told so in one line", () => {
  it("without an adapter", async () => {
    const none: Gpu = { requestAdapter: async () => null };
    const targets = new WebgpuTargets(async () => none);
    await expect(targets.target()).rejects.toThrow("TargetUnsupported: webgpu: no adapter");
    await expect(new WebgpuTargets(pageGpu).target()).rejects.toThrow("TargetUnsupported: webgpu: no WebGPU here");
    expect(() => compile((x: Tensor) => x, { target: "webgpu" })(tensor([1]))).toThrow("write `await webgpu()` once");
  });
});
