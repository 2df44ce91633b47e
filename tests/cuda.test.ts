/**
 * @file The target `cuda` as far as it can be tested without a device: text of kernels, that nvcc compiles it and needs no
 * memory for registers, the rows of commands of a program, and what is said where driver, device or compiler are missing.
 * What runs on a device is compared there with the other targets (bench/cuda.ts).
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { at } from "../src/base/invariant.ts";
import { copiedPlan } from "../src/codegen/cuda/copied-plan.ts";
import { cudaDescription } from "../src/codegen/cuda/description.ts";
import { CudaLibrary } from "../src/codegen/cuda/library.ts";
import { emitCudaProgram } from "../src/codegen/cuda/program.ts";
import { tensorPlan } from "../src/codegen/cuda/tensor-plan.ts";
import type { PlacedProgram } from "../src/codegen/placed.ts";
import {
  choose,
  copy,
  int,
  intOp,
  loadAt,
  plus,
  read,
  repeatWhile,
  type Statement,
  set,
  times,
} from "../src/codegen/script.ts";
import { Build } from "../src/ir/build.ts";
import { tensorType } from "../src/ir/type.ts";
import type { ContractNest, Kernel } from "../src/kernel/loops.ts";
import { lowerNode } from "../src/lower/lower.ts";
import { cudaCompiler } from "../src/node/cuda/compiler.ts";
import { CudaContext } from "../src/node/cuda/context.ts";
import { Driver } from "../src/node/cuda/driver.ts";
import { cuda } from "../src/node/cuda/public.ts";
import { cudaTarget } from "../src/node/cuda/target.ts";
import { sum } from "../src/ops/broadcast.ts";
import { add } from "../src/ops/elementwise.ts";
import { exp, gelu, sigmoid, silu, tanh } from "../src/ops/math.ts";
import { matmul } from "../src/ops/matmul.ts";
import type { Target } from "../src/runtime/device.ts";
import { fakeDriver } from "./support/fake-cuda.ts";
import { kernelOps, kernelSample, kernelSamples } from "./support/kernel-samples.ts";
import { hasNvcc, spillsOf } from "./support/nvcc.ts";
import { patience } from "./support/patience.ts";

const OPTIONS = { multiprocessors: 132, bytes: 2 ** 37, fma: true, products: "f32" } as const;
const description = cudaDescription(OPTIONS);
const f32 = (...shape: number[]) => tensorType("f32", shape);

const addKernel = kernelSample(add, { inputs: [f32(1000), f32(1000)], attrs: {} }, description).kernel;

/** The functions of kernels, without what all files begin with. */
function functionsOf(kernel: Kernel): string {
  const library = new CudaLibrary(OPTIONS);
  library.launches(kernel, true);
  return library.text.slice(library.text.indexOf('extern "C"'));
}

describe("kernels as CUDA", () => {
  it.each([
    ["add", addKernel],
    ["sum", kernelSample(sum, { inputs: [f32(100, 700)], attrs: { axes: [1] } }, description).kernel],
    [
      "matmul",
      kernelSample(matmul, { inputs: [f32(300, 200), f32(200, 400)], attrs: { ta: false, tb: false } }, description)
        .kernel,
    ],
  ])("%s", async (name, kernel) => {
    await expect(functionsOf(kernel)).toMatchFileSnapshot(`goldens/cuda/${name}.cu`);
  });
});

describe.skipIf(!hasNvcc)("CUDA text compiles, and keeps its registers", { timeout: patience(120_000) }, () => {
  it("of every operation", () => {
    const library = new CudaLibrary(OPTIONS);
    for (const op of kernelOps)
      for (const { kernel } of kernelSamples(op, description).slice(-2)) library.launches(kernel, true);
    const spills = spillsOf(library.text);
    expect(spills).toHaveLength(library.count);
    expect(spills.filter((bytes) => bytes > 0)).toEqual([]);
  });

  it("of products on tensor cores", () => {
    for (const tileCols of [64, 128, 192, 256] as const) {
      const options = { ...OPTIONS, products: "tf32", tileCols } as const;
      const library = new CudaLibrary(options);
      for (const [ta, tb] of [
        [false, false],
        [false, true],
        [true, false],
      ] as const) {
        const inputs = [ta ? f32(768, 512) : f32(512, 768), tb ? f32(384, 768) : f32(768, 384)];
        library.launches(kernelSample(matmul, { inputs, attrs: { ta, tb } }, cudaDescription(options)).kernel, true);
      }
      expect(spillsOf(library.text).filter((bytes) => bytes > 0)).toEqual([]);
    }
  });
});

describe("products on tensor cores", () => {
  const products = { ...OPTIONS, products: "tf32" } as const;
  const nestOf = (m: number, n: number, k: number): ContractNest => {
    const b = new Build("product");
    b.call(matmul, [b.param(f32(m, k)), b.param(f32(k, n))], { ta: false, tb: false });
    const [nest] = lowerNode(at(b.nodes, 0), cudaDescription(products)).kernel.nests;
    if (nest?.kind !== "contract") throw new Error("no product");
    return nest;
  };

  it("are those that are large enough", () => {
    expect(tensorPlan(nestOf(64, 64, 32), products)).not.toBeNull();
    for (const [m, n, k] of [
      [63, 64, 32],
      [64, 63, 32],
      [64, 64, 31],
    ] as const) {
      expect(tensorPlan(nestOf(m, n, k), products)).toBeNull();
    }
  });

  it("cut their depth by extents alone: where tiles are few, into whole pieces of 512", () => {
    const partsOf = (m: number, n: number, k: number, multiprocessors: number) => {
      const { parts, partSteps, steps } = tensorPlan(nestOf(m, n, k), { multiprocessors }) ?? {};
      return [parts, partSteps, steps];
    };
    for (const multiprocessors of [20, 132]) {
      expect(partsOf(8192, 3072, 768, multiprocessors)).toEqual([1, 32, 24]);
      expect(partsOf(768, 3072, 8192, multiprocessors)).toEqual([4, 64, 256]);
      expect(partsOf(768, 768, 8192, multiprocessors)).toEqual([8, 32, 256]);
      expect(partsOf(128, 128, 1100, multiprocessors)).toEqual([3, 16, 35]);
    }
  });

  it("have workspace for the sums of parts", () => {
    const { workspace } = cudaDescription(products);
    expect(workspace(nestOf(8192, 50257, 768), [])).toBe(0);
    expect(workspace(nestOf(770, 770, 8192), [])).toBe(8 * 770 * 770);
  });

  /** Products of a matrix with another or its transpose, and how the copy engine would bring them. */
  const copiedOf = ([m, n, k]: readonly [number, number, number], ta: boolean, tb: boolean) => {
    const b = new Build("product");
    b.call(matmul, [b.param(ta ? f32(k, m) : f32(m, k)), b.param(tb ? f32(n, k) : f32(k, n))], { ta, tb });
    const { kernel } = lowerNode(at(b.nodes, 0), cudaDescription(products));
    const nest = kernel.nests[0] as ContractNest;
    const plan = tensorPlan(nest, products);
    return { kernel, plan: plan && copiedPlan(nest, kernel.operands, plan, products) };
  };

  it("have their sides brought by the copy engine, where rows start at multiples of 16 bytes", () => {
    expect(copiedOf([8192, 768, 3072], false, true).plan).toMatchObject({
      left: { pitch: 3072, rows: 8192, transposedAt: null },
      right: { pitch: 3072, rows: 768, transposedAt: null },
      workspace: 0,
    });
    expect(copiedOf([8192, 768, 3070], false, true).plan).toBeNull();
    expect(copiedOf([8192, 770, 3072], false, true).plan).toBeNull();
  });

  it("have a small side transposed behind the sums of parts first, and no large one", () => {
    expect(copiedOf([8192, 3072, 768], false, false).plan).toMatchObject({
      right: { transposedAt: 0 },
      pitch: 768,
      workspace: 3072 * 768,
    });
    const parts = copiedOf([3072, 768, 8192], true, false).plan;
    const sums = 4 * 3072 * 768;
    expect(parts).toMatchObject({ right: { transposedAt: sums }, workspace: sums + 768 * 8192, isChanged: false });
    expect(copiedOf([8192, 8192, 2048], false, false).plan).toBeNull();
  });

  it("have a left side across the depth as it is, and change sides where that saves a transpose", () => {
    const straight = copiedOf([3072, 768, 8192], true, false);
    expect(straight.plan?.left).toMatchObject({ isAcross: true, pitch: 3072, transposedAt: null });
    const changed = copiedOf([768, 3072, 8192], true, false);
    expect(changed.plan).toMatchObject({
      isChanged: true,
      left: { isAcross: true, pitch: 3072, rows: 3072 },
      right: { isAcross: false, pitch: 768, rows: 768, transposedAt: 4 * 768 * 3072 },
    });
    const [, product] = new CudaLibrary(products).launches(changed.kernel, true);
    expect(product?.maps).toMatchObject([
      { operand: 1, extents: [3072, 8192], box: [32, 32] },
      { operand: changed.kernel.operands.length - 1, extents: [8192, 768] },
    ]);
  });

  it("leave exp and sigmoid to the device, in all their forms", () => {
    const text = (op: typeof exp): string => {
      const library = new CudaLibrary(products);
      library.launches(kernelSample(op, { inputs: [f32(1000)], attrs: {} }, cudaDescription(products)).kernel, true);
      return library.text.slice(library.text.indexOf('extern "C"'));
    };
    for (const op of [exp, sigmoid, silu, gelu]) {
      expect(text(op)).toMatch(op === exp ? /exp_device\(/ : /sigmoid_device\(/);
      expect(text(op)).not.toMatch(/0\.00139/);
    }
    expect(text(tanh)).toMatch(/0\.00139/);
    expect(functionsOf(kernelSample(exp, { inputs: [f32(1000)], attrs: {} }, description).kernel)).toMatch(/0\.00139/);
  });

  it("have maps of what is copied, unless an operand starts elsewhere", () => {
    const { kernel } = copiedOf([8192, 3072, 768], false, false);
    const launches = new CudaLibrary(products).launches(kernel, true);
    expect(launches.map(({ maps }) => maps?.length ?? 0)).toEqual([0, 2]);
    expect(launches[1]?.maps).toMatchObject([
      { operand: 0, extents: [768, 8192], box: [32, 128] },
      { operand: kernel.operands.length - 1, extents: [768, 3072], box: [32, 256] },
    ]);
    expect(new CudaLibrary(products).launches(kernel, false).map(({ maps }) => maps)).toEqual([undefined]);
  });

  it("leave out steps in which a side is zero for the whole tile", () => {
    const textOf = (within: ContractNest["within"]): string => {
      const library = new CudaLibrary(products);
      const operands = [1024 * 1024, 1024 * 64, 1024 * 64].map((elements, i) => {
        return { dtype: "f32", elements, role: i === 2 ? "out" : "in" } as const;
      });
      const nest = { ...nestOf(1024, 64, 1024), ...(within ? { within } : {}) };
      library.launches(
        { operands: [...operands, { dtype: "f32", elements: 8 * 1024 * 64, role: "scratch" }], nests: [nest] },
        true,
      );
      return library.text;
    };
    expect(textOf(undefined)).not.toMatch(/end = min|first = max/);
    const below = textOf([{ rows: -1, cols: 0, depth: 1, constant: 0 }]);
    expect(below).toMatch(/end = min\(end, \(int\)\(\(-\(-128 \* row_tile_\d+ \+ -127\) >> 5\) - \(.*\)\) \+ 1\);/);
    const above = textOf([{ rows: 1, cols: 0, depth: -1, constant: 0 }]);
    expect(above).toMatch(/first = max\(first, \(int\)\(\(128 \* row_tile_\d+ >> 5\) - \(.*\)\)\);/);
  });

  it("read four elements at once where all operands lie so", () => {
    const { kernel } = kernelSample(
      matmul,
      { inputs: [f32(2, 8192, 768), f32(2, 8192, 3072)], attrs: { ta: true, tb: false } },
      cudaDescription(products),
    );
    const textOf = (aligned: boolean): string => {
      const library = new CudaLibrary(products);
      library.launches(kernel, aligned);
      return library.text;
    };
    expect(textOf(true)).toContain("const float4 v = *(const float4 *)&global_");
    expect(textOf(false)).not.toContain("const float4 v = *(const float4 *)&global_");
  });
});

describe("a program as commands", () => {
  const i = { name: "i" };
  const body: readonly Statement[] = [
    { kind: "kernel", kernel: addKernel, addresses: [int(0), times(read(i), 256), int(8192)] },
    set(i, plus(read(i), 1)),
  ];
  const loop = (most: number): readonly Statement[] => [
    set(i, int(0)),
    repeatWhile(intOp("lt", read(i), int(most)), body),
  ];
  const partsOf = (scripts: readonly (readonly Statement[])[], stepwise = false) =>
    emitCudaProgram(
      scripts.map((script) => ({ kernel: null, script })),
      [{ from: 0, to: 256, bytes: 4 }],
      { options: OPTIONS, stepwise },
    ).parts;

  it("is one row where everything is known: loops are written out", () => {
    const [row, ...more] = partsOf([loop(3), loop(2)]);
    expect(more).toEqual([]);
    const commands = row?.kind === "row" ? row.commands : [];
    expect(commands.map((c) => (c.kind === "launch" ? c.addresses[1] : c.kind))).toEqual([0, 256, 512, 0, 256, "copy"]);
  });

  it("keeps loops that are too long, and what depends on data", () => {
    const onData = [choose(loadAt(int(64)), copy(int(0), int(512), 16))];
    expect(partsOf([loop(3), loop(5000), onData]).map(({ kind }) => kind)).toEqual(["row", "script", "script", "row"]);
  });

  it("has a part for every step where steps are run one by one", () => {
    expect(partsOf([loop(3), loop(2)], true)).toHaveLength(3);
  });

  it("does not launch what would copy an operand onto itself", () => {
    const library = new CudaLibrary(OPTIONS);
    const skipping: Kernel = {
      ...addKernel,
      nests: addKernel.nests.map((nest) => (nest.kind === "map" ? { ...nest, skipIfAliased: [0, 2] as const } : nest)),
    };
    expect(library.launches(skipping, true).map((code) => code.skipIfAliased)).toEqual([[0, 2]]);
    const step = { kernel: skipping, addresses: [0, 4096, 0] };
    expect(emitCudaProgram([step], [], { options: OPTIONS, stepwise: false }).parts).toEqual([
      { kind: "row", commands: [] },
    ]);
  });
});

describe("a machine without CUDA is told so in one line", () => {
  it("without a driver", () => {
    const answer = cudaTarget({ driver: "/nowhere/libcuda.so.1" });
    expect(answer).toMatch(/^no CUDA driver: \/nowhere\/libcuda.so.1 cannot be loaded \(.*\)$/);
  });

  it("with a driver that is too old", () => {
    const version = "(int *v) { *v = 11040; return 0; }";
    expect(cudaTarget({ driver: fakeDriver({ cuDriverGetVersion: version }) })).toBe(
      "the NVIDIA driver is for CUDA 11.4 and 12.0 is needed: update the driver",
    );
    expect(cudaTarget({ driver: fakeDriver({ cuGraphInstantiateWithFlags: null, cuGraphLaunch: null }) })).toMatch(
      /is too old: it has no cuGraphInstantiateWithFlags, cuGraphLaunch$/,
    );
  });

  it("without a device", () => {
    const none = "no CUDA device: the driver sees no GPU";
    expect(cudaTarget({ driver: fakeDriver({ cuInit: "(unsigned f) { return 100; }" }) })).toBe(none);
    expect(cudaTarget({ driver: fakeDriver({ cuDeviceGetCount: "(int *n) { *n = 0; return 0; }" }) })).toBe(none);
    expect(cudaTarget({ driver: fakeDriver({ cuInit: "(unsigned f) { return 999; }" }) })).toBe(
      "the NVIDIA driver cannot be used: cuInit gave CUDA_ERROR_FAKE",
    );
  });

  it("without a compiler", () => {
    const answer = cudaCompiler({ nvrtc: ["/nowhere/libnvrtc.so"], nvcc: ["/nowhere"] });
    expect(answer).toBe(
      "no CUDA compiler: looked for /nowhere/libnvrtc.so, and for nvcc in PATH: install the CUDA toolkit",
    );
  });
});

describe.skipIf(!hasNvcc)("memory of a device", () => {
  const compilers = { nvrtc: [] };
  const found = (driver: string): Target => {
    const answer = cudaTarget({ driver, compilers });
    if (typeof answer === "string") throw new Error(answer);
    return answer;
  };

  it("is written, filled, copied and read in order, and keeps what is in it when it grows", async () => {
    const memory = found(fakeDriver()).allocate();
    memory.reserve(1024);
    memory.fill(0, 1024, 7);
    memory.write(8, 4, (into) => into.set([1, 2, 3, 4]));
    memory.copy(256, 8, 4);
    memory.reserve(4096);
    expect([memory.bytes, memory.allocatedBytes]).toEqual([4096, 4096]);
    const into = new Uint8Array(5);
    memory.readInto?.(256, into);
    expect([...into]).toEqual([1, 2, 3, 4, 7]);
    expect([...(await memory.read(8, 5))]).toEqual([1, 2, 3, 4, 7]);
  });

  it("is read by scripts that depend on it", () => {
    const script: readonly Statement[] = [choose(loadAt(int(64)), copy(int(0), int(512), 4))];
    const placed = { kernels: [{ kernel: null, script }], copies: [], base: 0, plan: { height: 1024 } };
    const machine = found(fakeDriver()).load(placed as unknown as PlacedProgram, { stepwise: false });
    const { memory } = machine;
    const first = (): number => {
      const word = new Uint8Array(4);
      memory.readInto?.(0, word);
      return word[0] ?? 0;
    };
    memory.fill(0, 1024, 0);
    memory.write(512, 4, (into) => into.fill(9));
    machine.run();
    expect(first()).toBe(0);
    memory.write(64, 4, (into) => into.set([1, 0, 0, 0]));
    machine.run();
    expect(first()).toBe(9);
  });

  it("is the device's again when nothing can reach it", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const driver = fakeDriver();
    const target = found(driver);
    const context = Driver.open(driver);
    if (typeof context === "string") throw new Error(context);
    const free = (): number => new CudaContext(context).memory().free;
    const before = free();
    (() => target.allocate().reserve(65_536))();
    expect(before - free()).toBeGreaterThanOrEqual(65_536);
    await expect
      .poll(() => {
        collect();
        return free();
      })
      .toBe(before);
  });

  it("is the device's again at once when it is closed", () => {
    const driver = fakeDriver();
    const context = Driver.open(driver);
    if (typeof context === "string") throw new Error(context);
    const free = (): number => new CudaContext(context).memory().free;
    const before = free();
    const memory = found(driver).allocate();
    memory.reserve(65_536);
    expect(before - free()).toBeGreaterThanOrEqual(65_536);
    memory.close?.();
    expect([free(), memory.allocatedBytes]).toEqual([before, 0]);
  });

  it("says what it has where there is not enough", () => {
    const memory = found(fakeDriver({ cuMemAlloc_v2: "(void **p, size_t n) { return 2; }" })).allocate();
    expect(() => memory.reserve(123_456_789)).toThrow(
      "an arena of 123,456,789 bytes cannot be had: Fake GPU has 1,048,576 of its 1,048,576 bytes free",
    );
  });

  it("gives the driver's word on anything else that fails", () => {
    const memory = found(fakeDriver({ cuMemsetD8Async: "() { return 700; }" })).allocate();
    memory.reserve(64);
    expect(() => memory.fill(0, 64, 1)).toThrow("the CUDA driver refused cuMemsetD8Async: CUDA_ERROR_FAKE");
  });
});

describe("cuda() of tidemark/node", () => {
  it("is a target, or says what is missing", () => {
    try {
      expect(cuda().description.name).toBe("cuda");
    } catch (error) {
      expect(String(error)).toMatch(/TargetUnsupported: cuda: .*help: /s);
    }
    expect(() => cuda({ products: "f16" as "f32" })).toThrow("cuda: products is f16");
  });
});
