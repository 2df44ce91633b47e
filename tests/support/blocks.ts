/** @file Device classes for tests of block programs, and kernels that are large enough for every way of scheduling them. */
import type { DeviceClass } from "../../src/codegen/block/program.ts";
import { blockWorkspace } from "../../src/codegen/block/schedule.ts";
import type { AnyOp, Sample } from "../../src/ir/op.ts";
import { tensorType } from "../../src/ir/type.ts";
import { DTYPES, type DType, isBig, typeOf } from "../../src/kernel/dtype.ts";
import { allOps } from "../../src/ops/all.ts";
import type { LoweringTarget, TargetDescription } from "../../src/target/description.ts";
import { PLAIN_LOWERING } from "../../src/target/plain.ts";
import { type KernelSample, kernelSample } from "./kernel-samples.ts";

/** Of which even small kernels need several blocks, and long sums are cut. */
export const SMALL_DEVICE: DeviceClass = {
  threads: 64,
  lanes: 8,
  sharedBytes: 32 * 1024,
  multiprocessors: 4,
  fma: false,
};

/** With the numbers of a data center's. */
export const LARGE_DEVICE: DeviceClass = {
  threads: 256,
  lanes: 32,
  sharedBytes: 48 * 1024,
  multiprocessors: 132,
  fma: false,
};

/** Block programs have no integers of 64 bits. */
const storageTypes = DTYPES.filter((dtype) => !isBig(typeOf(dtype).compute));

export const loweringFor = (device: DeviceClass): LoweringTarget & Pick<TargetDescription, "storageTypes"> => ({
  ...PLAIN_LOWERING,
  storageTypes,
  workspace: (nest) => blockWorkspace(nest, device),
});

function opNamed(name: string): AnyOp {
  const found = allOps.find((op) => op.name === name);
  if (!found) throw new Error(`there is no operation ${name}`);
  return found;
}

type Case = readonly [
  name: string,
  inputs: readonly (readonly [DType, ...number[]])[],
  attrs: object,
  range?: Sample<unknown>["range"],
];

const REDUCTIONS: readonly Case[] = [
  // one run and several; 300 passes of the counters around, whose runs fill more than one block sum
  ["sum", [["f32", 3, 9001]], { axes: [1] }],
  ["sum", [["f32", 4096]], { axes: [0] }],
  ["sum", [["f32", 8192]], { axes: [0] }],
  ["sum", [["f32", 300, 2, 27]], { axes: [0, 2] }],
  ["sum", [["f32", 260, 1, 130]], { axes: [0, 2] }],
  ["sum", [["f64", 2, 5003]], { axes: [1] }],
  ["sum", [["i32", 9001]], { axes: [0] }],
  ["reduce_prod", [["f32", 2, 4500]], { axes: [1] }, [0.99, 1.01]],
  ["reduce_max", [["f32", 9001]], { axes: [0] }],
  ["any", [["bool", 5000]], { axes: [0] }, [0, 1.001]],
  // down columns
  ["sum", [["f32", 700, 5]], { axes: [0] }],
  ["sum", [["f32", 512, 90]], { axes: [0] }],
  ["sum", [["f32", 300, 3, 7]], { axes: [0, 1] }],
  ["sum", [["f32", 300, 2, 9, 3]], { axes: [0, 2] }],
  ["sum", [["f64", 1000, 3]], { axes: [0] }],
  ["reduce_min", [["f64", 1000, 3]], { axes: [0] }],
];

const NONE = { ta: false, tb: false };
const PRODUCTS: readonly Case[] = [
  // runs apart, runs in one block, depths that are not whole tiles, tiles of every size
  [
    "matmul",
    [
      ["f32", 9, 1100],
      ["f32", 1100, 7],
    ],
    NONE,
  ],
  [
    "matmul",
    [
      ["f64", 5, 1024],
      ["f64", 1024, 6],
    ],
    NONE,
  ],
  [
    "matmul",
    [
      ["f32", 4, 4, 1030],
      ["f32", 4, 1030, 6],
    ],
    NONE,
  ],
  [
    "matmul",
    [
      ["i32", 4, 3, 1040],
      ["i32", 4, 1040, 4],
    ],
    NONE,
    [-9, 9],
  ],
  [
    "matmul",
    [
      ["f32", 130, 20],
      ["f32", 20, 70],
    ],
    NONE,
  ],
  [
    "matmul",
    [
      ["f32", 33, 70],
      ["f32", 33, 130],
    ],
    { ta: true, tb: false },
  ],
  [
    "matmul",
    [
      ["f32", 70, 33],
      ["f32", 70, 33],
    ],
    { ta: false, tb: true },
  ],
];

const OTHERS: readonly Case[] = [
  [
    "scatter_max",
    [
      ["f32", 10, 6],
      ["i32", 80],
      ["f32", 80, 6],
    ],
    { axis: 0 },
    [
      [-2, 2],
      [-2, 12],
      [-2, 2],
    ],
  ],
  [
    "scatter_add",
    [
      ["f32", 10, 6],
      ["i32", 80],
      ["f32", 80, 6],
    ],
    { axis: 0 },
    [
      [-2, 2],
      [-2, 12],
      [-2, 2],
    ],
  ],
  [
    "scatter_add",
    [
      ["i32", 7],
      ["i32", 100],
      ["i32", 100],
    ],
    { axis: 0 },
    [
      [-2, 2],
      [0, 7],
      [-9, 9],
    ],
  ],
  [
    "scatter_add",
    [
      ["f64", 3, 5, 2],
      ["i32", 40],
      ["f64", 3, 40, 2],
    ],
    { axis: 1 },
    [
      [-2, 2],
      [-1, 6],
      [-2, 2],
    ],
  ],
  // more than are compared with each other: by digits, one and several
  [
    "scatter_add",
    [
      ["f32", 12],
      ["i32", 2100],
      ["f32", 2100],
    ],
    { axis: 0 },
    [
      [-2, 2],
      [-1, 13],
      [-2, 2],
    ],
  ],
  [
    "scatter_add",
    [
      ["f32", 300, 2],
      ["i32", 2100],
      ["f32", 2100, 2],
    ],
    { axis: 0 },
    [
      [-2, 2],
      [-1, 301],
      [-2, 2],
    ],
  ],
  [
    "scatter_add_along",
    [
      ["f32", 6, 4],
      ["i32", 30, 4],
      ["f32", 30, 4],
    ],
    { axis: 0 },
    [
      [-2, 2],
      [-1, 7],
      [-2, 2],
    ],
  ],
  ["shuffle", [["i32", 300]], {}, [-0x80000000, 0x80000000]],
  // through tiles, those of a device too
  ["transpose", [["f32", 40, 70]], { perm: [1, 0] }],
  ["transpose", [["i32", 3, 33, 2, 65]], { perm: [3, 0, 2, 1] }],
  ["transpose", [["bool", 70, 520]], { perm: [1, 0] }, [0, 1.001]],
];

/** Kernels of sizes that samples of operations do not have. */
export function largeSamples(traits: LoweringTarget): readonly KernelSample[] {
  return [...REDUCTIONS, ...PRODUCTS, ...OTHERS].map(([name, types, attrs, range]) => {
    const inputs = types.map(([dtype, ...shape]) => tensorType(dtype, shape));
    return kernelSample(opNamed(name), { inputs, attrs, ...(range ? { range } : {}) }, traits);
  });
}
