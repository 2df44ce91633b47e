/**
 * @file A target is data and a device is asynchronous: the generic suites on a target that nothing in src knows
 * (support/fake-target.ts), with results read by waiting, compared with WebAssembly bit for bit.
 */
import { beforeAll, describe, expect, it, test } from "vitest";
import { compile, grad, plan, scan, type Target, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { plansOf } from "../src/api/plan.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { hostRandom } from "../src/base/random.ts";
import type { PlacedKernel } from "../src/codegen/placed.ts";
import type { Graph } from "../src/ir/graph.ts";
import { print } from "../src/ir/print.ts";
import { byteLength, type TensorType } from "../src/ir/type.ts";
import { bytesOf, DTYPES, isFloat, SCALAR_TYPES } from "../src/kernel/dtype.ts";
import { adam } from "../src/optim/adam.ts";
import { printPlan } from "../src/plan/print.ts";
import { validate } from "../src/plan/validate.ts";
import type { DeviceMemory } from "../src/runtime/device.ts";
import { Executable, elementsAt } from "../src/runtime/executable.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { memorySpace } from "../src/target/space.ts";
import { type FakeOptions, fakeDescription, fakeTarget } from "./support/fake-target.ts";
import { check } from "./support/kernel-check.ts";
import { bufferOf, type KernelSample, kernelOps, kernelSamples } from "./support/kernel-samples.ts";
import { randomGraph, randomInputs } from "./support/random-graph.ts";
import { looped, randomCase } from "./support/random-loops.ts";
import { runGraph } from "./support/run-graph.ts";
import { loadSteps } from "./support/targets.ts";

async function read(memory: DeviceMemory, type: TensorType, address: number) {
  const bytes = await memory.read(address, byteLength(type));
  return elementsAt(bytes.slice().buffer, type, 0);
}

/** Everything that does not survive a run overwritten, arguments written, one run, results. */
async function runOn(target: Target, graph: Graph, seed: number) {
  const executable = loadGraph(graph, { target });
  const { memory, placed } = executable;
  expect(validate(placed.plan.program, placed.plan), print(graph)).toEqual([]);
  memory.fill(0, placed.plan.height, 0xff);
  randomInputs(graph, seed).forEach((data, i) => {
    executable.write(graph.params[i]!.type, placed.params[i]!, data);
  });
  executable.run();
  return Promise.all(graph.results.map(({ type }, i) => read(memory, type, placed.results[i]!)));
}

/** The same bits as WebAssembly, fused otherwise and on other alignments. */
async function expectAlike(graph: Graph, seed: number): Promise<void> {
  const inputs = randomInputs(graph, seed);
  const expected = runGraph(wasmTarget(false), graph, (_, i) => inputs[i]!);
  expect(await runOn(fakeTarget(), graph, seed), print(graph)).toEqual(expected);
}

const OWN_TYPES = new Set(fakeDescription().storageTypes);
const isSupported = ({ kernel }: KernelSample): boolean => kernel.operands.every(({ dtype }) => OWN_TYPES.has(dtype));

describe("every operation on the fake target", () => {
  const samples = kernelOps.map((op) => ({ op, own: kernelSamples(op, fakeDescription()).filter(isSupported) }));
  const results = new Map<KernelSample, Promise<Uint8Array>[]>();

  beforeAll(() => {
    let top = 0;
    const all = samples.flatMap(({ own }) => own);
    const steps = all.map(({ kernel }): PlacedKernel => {
      const addresses = kernel.operands.map(({ elements, dtype }) => {
        const address = top;
        top += Math.ceil((elements * bytesOf(dtype) + 1) / 256) * 256;
        return address;
      });
      return { kernel, addresses };
    });
    const machine = loadSteps(fakeTarget({ largestArena: Number.POSITIVE_INFINITY }), steps, top);
    all.forEach(({ kernel, storage }, s) => {
      storage().forEach((source, i) => {
        if (kernel.operands[i]?.role !== "in") return;
        const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
        machine.memory.write(steps[s]!.addresses[i]!, bytes.length, (into) => into.set(bytes));
      });
    });
    machine.run();
    all.forEach((sample, s) => {
      const outputs = sample.outputs.map((i) => {
        const { elements, dtype } = sample.kernel.operands[i]!;
        return machine.memory.read(steps[s]!.addresses[i]!, elements * bytesOf(dtype));
      });
      results.set(sample, outputs);
    });
  });

  for (const { op, own } of samples) {
    test(`equals the interpreter bit for bit and its reference meaning: ${op.name}`, async () => {
      for (const sample of own) {
        const bytes = await Promise.all(results.get(sample)!);
        const got = sample.outputs.map((i, n) => {
          const { dtype, elements } = sample.kernel.operands[i]!;
          return bufferOf(dtype, elements, bytes[n]!.slice().buffer);
        });
        check(sample, got);
      }
    });
  }

  it("has samples of its types for most operations, and workspace for its reductions", () => {
    const some = samples.filter(({ own }) => own.length > 0);
    expect(some.length).toBeGreaterThan(0.9 * samples.length);
    const sum = samples.find(({ op }) => op.name === "sum")!.own[0]!;
    expect(sum.kernel.operands.map(({ role }) => role)).toContain("scratch");
  });
});

const SMOOTH = { dtypes: ["f32"], casts: ["f32"] } as const;
const OWN = { dtypes: ["f32"], casts: ["f32", "i32", "bool"] } as const;

describe("random programs on the fake target", () => {
  it("have the bits that they have on WebAssembly", async () => {
    for (let seed = 0; seed < 40; seed++)
      await expectAlike(randomGraph(seed, { nodes: 5 + (seed % 25), ...OWN }), seed);
  });

  it("have gradients with the same bits", async () => {
    for (let seed = 0; seed < 25; seed++) {
      const graph = randomGraph(seed, { nodes: 4 + (seed % 16), smooth: true, scalar: true, ...SMOOTH });
      const active = graph.params.map(({ type }) => isFloat(type.dtype));
      await expectAlike(vjp(graph, active), seed);
    }
  });

  it("have loops, with workspace and rows of stacks where the plan says", async () => {
    for (let seed = 0; seed < 40; seed++) await expectAlike(looped(randomCase(seed, OWN)), seed);
  });
});

const target = (): Target => fakeTarget();

/** A step of training: the state is donated and stays on the device. */
const optimizer = adam({ lr: 0.05 });
type State = ReturnType<typeof optimizer.init<{ w: Tensor; b: Tensor }>>;

function lossOf({ w, b }: { w: Tensor; b: Tensor }, x: Tensor, y: Tensor): Tensor {
  return x.matmul(w).add(b).tanh().sub(y).square().mean();
}

function trainStep(state: State, x: Tensor, y: Tensor): [State, Tensor] {
  const [loss, gradient] = valueAndGrad(lossOf)(state.params, x, y);
  return [optimizer.update(state, gradient), loss];
}

const initial = (): State => optimizer.init({ w: numbers([6, 4], 3), b: numbers([4], 5) });

/** Numbers between -1 and 1. */
function numbers(shape: readonly number[], seed: number): Tensor {
  const next = hostRandom(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Float32Array.from({ length: count }, () => next.next() * 2 - 1)).reshape(shape);
}

async function trained(on: Target, steps: number, batches: readonly number[] = [8]) {
  const step = compile(trainStep, { target: on, donate: [0] });
  let state = initial();
  const losses: Tensor[] = [];
  for (let i = 0; i < steps; i++) {
    const rows = batches[i % batches.length]!;
    const [next, loss] = step(state, numbers([rows, 6], i), numbers([rows, 4], 100 + i));
    state = next;
    losses.push(loss);
  }
  const data = await Promise.all([...losses, state.params.w, state.params.b].map((t) => t.dataAsync()));
  return { data: data.map((d) => [...d]), step, state, losses };
}

describe("compile on the fake target", () => {
  it("keeps donated state on the device, and results are read by waiting", async () => {
    const [fake, wasm] = [await trained(target(), 5), await trained(wasmTarget(false), 5)];
    expect(fake.data).toEqual(wasm.data);
    expect(fake.step.usage().programs).toBe(1);
    expect(fake.losses[0]!.item()).toBe(wasm.losses[0]!.item());
  });

  it("runs programs of several shapes in turn in one arena", async () => {
    const [fake, wasm] = [await trained(target(), 6, [8, 3, 17]), await trained(wasmTarget(false), 6, [8, 3, 17])];
    expect(fake.data).toEqual(wasm.data);
    const { programs, arenaBytes } = fake.step.usage();
    expect(programs).toBe(3);
    expect(arenaBytes).toBe(fake.step.program(fake.state, numbers([17, 6], 1), numbers([17, 4], 1)).arenaBytes);
  });

  it("says NotReady for what is on its way, and hands it out once it is there", async () => {
    const double = compile((x: Tensor) => x.mul(2), { target: target() });
    const y = double(tensor([1, 2, 3]));
    expect(() => y.data()).toThrow("NotReady");
    expect(() => double(y)).toThrow("NotReady");
    expect([...(await y.dataAsync())]).toEqual([2, 4, 6]);
    expect([...(await double(y).dataAsync())]).toEqual([4, 8, 12]);
    expect(y.toArray()).toEqual([2, 4, 6]);
  });

  it("keeps results that are on their way through the next run, and after it is disposed of", async () => {
    const on = target();
    const double = compile((x: Tensor) => x.mul(2), { target: on });
    const results = [1, 2, 3, 4].map((n) => double(tensor([n, -n])));
    const { state, step } = await trained(on, 2);
    step.dispose();
    double.dispose();
    expect(await Promise.all(results.map(async (r) => [...(await r.dataAsync())]))).toEqual([
      [2, -2],
      [4, -4],
      [6, -6],
      [8, -8],
    ]);
    expect((await state.params.w.dataAsync()).length).toBe(24);
    expect(() => double(tensor([1]))).toThrow("Disposed");
  });

  it("refuses what was donated, and tells of it at once", async () => {
    const step = compile(trainStep, { target: target(), donate: [0] });
    const [first] = step(initial(), numbers([8, 6], 1), numbers([8, 4], 2));
    step(first, numbers([8, 6], 1), numbers([8, 4], 2));
    await expect(first.params.w.dataAsync()).rejects.toThrow("DonatedTensor");
  });

  it("gives elements of its state to other functions once they were waited for, and loses nothing before", async () => {
    const on = target();
    const [x, y] = [numbers([8, 6], 1), numbers([8, 4], 2)];
    const step = compile(trainStep, { target: on, donate: [0] });
    const [state] = step(initial(), x, y);
    const [other] = compile(trainStep, { target: on, donate: [0] })(initial(), x, y);
    const { w } = state.params;
    const apply = compile((rows: Tensor) => rows.matmul(w), { target: on });
    expect(() => w.data()).toThrow("NotReady");
    expect(() => apply(x)).toThrow("NotReady");
    // of another arena: nothing is donated before it is known that all can be written
    const mixed = { ...other, params: { w, b: other.params.b } };
    const again = compile(trainStep, { target: on, donate: [0] });
    expect(() => again(mixed, x, y)).toThrow("NotReady");
    const elements = await w.dataAsync();
    expect(w.data()).toEqual(elements);
    expect(await other.params.b.dataAsync()).toEqual(await state.params.b.dataAsync());
    const wanted = x.matmul(tensor(elements).reshape([6, 4])).data();
    const products = [apply(x), apply(numbers([3, 6], 2)), apply(x)];
    expect(await products[0]!.dataAsync()).toEqual(await products[2]!.dataAsync());
    const got = await products[0]!.dataAsync();
    expect(got.every((v, i) => Math.abs(v - wanted[i]!) < 1e-5)).toBe(true);
    step(state, x, y);
    expect(() => w.data()).toThrow("DonatedTensor");
  });

  it("has loops and their reverses", async () => {
    const loss = (w: Tensor): Tensor =>
      scan(
        (h: Tensor, x: Tensor) => [h.mul(w).add(x).tanh(), h.sum()] as const,
        numbers([5], 1),
        numbers([7, 5], 2),
      )[0].sum();
    const [fake, wasm] = [target(), wasmTarget(false)].map((on) =>
      compile((w: Tensor) => grad(loss)(w), { target: on }),
    );
    const w = numbers([5], 9);
    expect(await fake!(w).dataAsync()).toEqual(await wasm!(w).dataAsync());
  });

  it("is planned for by its own description", () => {
    const info = plan(trainStep, { target: target(), donate: [0], validate: true })(
      initial(),
      numbers([8, 6], 1),
      numbers([8, 4], 2),
    );
    expect([info.target, info.plan.program.spaces.map(({ name }) => name)]).toEqual(["fake", ["device", "host"]]);
    expect(info.plan.offsets.every((offset) => offset % 256 === 0)).toBe(true);
  });

  it("is refused where threads are asked of it, and so is what is no target", () => {
    const double = (x: Tensor): Tensor => x.mul(2);
    expect(() => compile(double, { target: target(), threads: 2 })).toThrow("threads is 2, fake has 1");
    expect(() => compile(double, { target: {} as Target })).toThrow("target is an object");
    const checked = compile(double, { target: target(), checkNaN: true });
    expect(() => checked(tensor([1]))).toThrow("TargetUnsupported: checkNaN: fake");
  });
});

describe("types that the fake target lacks", () => {
  it("are all named at once, each with an operation, when a program is compiled", () => {
    const norm = (x: Tensor): Tensor => x.cast("f64").exp().sum().cast("f32");
    const asked = compile(norm, { target: target(), name: "norm" });
    expect(() => asked(tensor([1, 2]))).toThrow(
      /TargetUnsupported: norm needs types that fake lacks\n {2}f64 in memory: cast at .*\n {2}f64 in kernels: cast at .*\n {2}i64 in kernels: exp at /,
    );
    expect(() => plan(norm, { target: target() })(tensor([1, 2]))).toThrow("TargetUnsupported");
    expect(() => compile((x: Tensor) => x, { target: target() })(tensor([1], { dtype: "f64" }))).toThrow(
      "f64 in memory: argument x",
    );
    expect(compile(norm)(tensor([0])).item()).toBe(1);
  });
});

/** A chain of layers whose activations wait for the backward pass. */
function chain(layers: number): (w: Tensor, x: Tensor) => readonly [Tensor, Tensor] {
  const forward = (w: Tensor, x: Tensor): Tensor => {
    let h = x;
    for (let i = 0; i < layers; i++) h = h.matmul(w).tanh();
    return h.sum();
  };
  return (w, x) => valueAndGrad(forward)(w, x);
}

describe("copies between the two memories", () => {
  const args = [numbers([16, 16], 1), numbers([32, 16], 2)] as const;
  const step = chain(6);
  const free = plan(step, { target: target() })(...args);
  const capacity = Math.floor((0.6 * free.arenaBytes) / 256) * 256;

  it.each(["at start", "at wait"] as const)(
    "give the same bits where the device is small, copies done %s",
    async (copies) => {
      const small = compile(step, { target: fakeTarget({ capacity, copies }), validate: true });
      const [loss, gradient] = small(...args);
      const [wantedLoss, wanted] = compile(step, { target: target() })(...args);
      expect(await gradient.dataAsync()).toEqual(await wanted.dataAsync());
      expect(await loss.dataAsync()).toEqual(await wantedLoss.dataAsync());
    },
  );

  it("are in the plan, which is valid, within the capacity, and says where everything is", () => {
    const moved = plan(step, { target: fakeTarget({ capacity }) })(...args);
    expect(moved.arenaBytes).toBeLessThanOrEqual(capacity);
    expect(free.arenaBytes).toBeGreaterThan(capacity);
    expect(validate(moved.plan.program, moved.plan)).toEqual([]);
    expect(moved.plan.others[0]!.height).toBeGreaterThan(0);
    const text = printPlan(moved.plan);
    expect(text).toMatch(/^\/\/ \d+ buffers, device [\d,]+ bytes, bound [\d,]+; host [\d,]+ bytes/);
    expect(text).toMatch(/= copy\(\w+\) +@ host:b\d+\[\d+:\d+\] queue 1\n/);
    expect(text).toMatch(/wait\(/);
    expect([moved.strategy, moved.kernelCalls]).toEqual(["store-all, moved", free.kernelCalls]);
    expect(moved.predictedMs).toBeGreaterThan(free.predictedMs);
  });

  it("are as few as make it fit", () => {
    const copiesOf = (at: number): number => {
      const { plan: made } = plan(step, { target: fakeTarget({ capacity: at }) })(...args);
      return made.program.steps.filter(({ copy }) => copy?.kind === "start").length;
    };
    const counts = [1, 0.9, 0.7, 0.6].map((share) => copiesOf(Math.floor((share * free.arenaBytes) / 256) * 256));
    expect(counts[0]).toBe(0);
    expect(counts.every((count, i) => i === 0 || count >= counts[i - 1]!)).toBe(true);
    expect(counts.at(-1)).toBeGreaterThan(counts[1]!);
  });

  it("leave a user's budget to recomputation where that is enough", () => {
    const made = plan(chain(3), { target: target(), memory: 20000 })(...args);
    expect(made.arenaBytes).toBeLessThanOrEqual(20000);
    expect(made.plan.others[0]!.height).toBe(0);
  });

  it("refuse, with the name of the memory, what no copies make fit", () => {
    expect(() => plan(chain(2), { target: fakeTarget({ capacity: 4096 }) })(...args)).toThrow(
      /PlanInfeasible: .* bytes of device, which has 4,096/,
    );
  });

  it("are brought back for a loop that reads them", async () => {
    const given = [...args, numbers([16, 128], 3), numbers([128, 16], 4)] as const;
    const around = (w: Tensor, x: Tensor, a: Tensor, b: Tensor): Tensor => {
      const narrow = (h: Tensor): Tensor => h.matmul(w).tanh().matmul(w).tanh().matmul(w).tanh();
      const start = narrow(narrow(x).matmul(a).tanh().matmul(b));
      return scan((h: Tensor) => [h.matmul(w).add(x).tanh(), h.sum()] as const, start, null, { length: 3 })[0];
    };
    const needed = plan(around, { target: target() })(...given).arenaBytes;
    const small = compile(around, { target: fakeTarget({ capacity: needed - 1024 }), validate: true });
    const { plan: made, strategy } = small.program(...given);
    expect(strategy).toBe("store-all, moved");
    const read = made.program.steps.find(({ bodies }) => bodies)!.reads.find(({ name }) => name === "x")!;
    const placeOf = (value: typeof read): number => made.offsets[made.bufferOf.get(value)!]!;
    expect(placeOf(read)).not.toBe(placeOf(made.program.params[1]!));
    const wanted = compile(around, { target: wasmTarget(false) })(...given);
    expect(await small(...given).dataAsync()).toEqual(await wanted.dataAsync());
  });

  it("are refused by targets with one memory", () => {
    const { plans } = plansOf(step as never, args, { target: fakeTarget({ capacity }) });
    const placed = plans.placed(plans.choose(), 0);
    expect(() => new Executable(placed, wasmTarget(false))).toThrow("TargetUnsupported: wasm has one memory");
  });
});

describe("a target that lies", () => {
  const x = numbers([16, 16], 1);
  const loads = (options: FakeOptions, fn: (x: Tensor) => Tensor = (a) => a.matmul(a).sum()): string => {
    try {
      compile(fn, { target: fakeTarget(options) })(x);
    } catch (error) {
      return String(error);
    }
    return "nothing";
  };

  it("about its alignment is refused with the operands that are not aligned", () => {
    const spaces = [memorySpace(64, { name: "device" }), memorySpace(64, { name: "host" })] as const;
    const odd = (a: Tensor): Tensor => a.sum(0).add(1).mul(a.mean(1)).cumsum().sum();
    expect(loads({ lies: { spaces } }, odd)).toMatch(/operand \d+ is at \d+, not a multiple of 256/);
  });

  it("about its types is refused by the device with the kernel and the type", () => {
    const lies = { storageTypes: DTYPES, computeTypes: SCALAR_TYPES };
    expect(loads({ lies }, (a) => a.cast("f64").sum().cast("f32"))).toMatch(/operand \d+ is f64/);
  });

  it("about its workspace is refused with what the nest needs", () => {
    expect(loads({ lies: { workspace: () => 0 } })).toMatch(/reduce has 0 elements of workspace, it needs 48/);
    expect(loads({ lies: { workspace: () => 40 } })).toMatch(/reduce has 40 elements of workspace, it needs 48/);
  });

  it("about its largest arena is refused by the device", () => {
    const largest = loads({ largestArena: 1024 });
    expect(largest).toMatch(/TargetUnsupported: the arena of [\d,]+ bytes is beyond the 1,024 of fake/);
    const spaces = [memorySpace(256, { name: "device" }), memorySpace(64, { name: "host" })] as const;
    expect(loads({ largestArena: 1024, lies: { spaces } })).toMatch(/TargetUnsupported: fake: .* the device has 1,024/);
  });

  it("with operands beyond the arena is told of the kernel when it loads, and of reads beyond an operand when it is read", async () => {
    const { kernel } = kernelSamples(kernelOps.find(({ name }) => name === "sum")!, fakeDescription())[0]!;
    const far = { kernel, addresses: kernel.operands.map(() => 4096) };
    expect(() => loadSteps(fakeTarget(), [far], 4096)).toThrow(/kernel 0: operand 0 \(in\) ends at \d+ of 4096 bytes/);
    const short = { ...kernel, operands: kernel.operands.map((o) => (o.role === "in" ? { ...o, elements: 1 } : o)) };
    const machine = loadSteps(
      fakeTarget(),
      [{ kernel: short, addresses: kernel.operands.map((_, i) => 1024 * i) }],
      8192,
    );
    machine.run();
    await expect(machine.memory.read(0, 4)).rejects.toThrow(/fake: kernel 0: .*load of element \d+ of operand 0/s);
  });
});
