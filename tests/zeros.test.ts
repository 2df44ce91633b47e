/**
 * @file Products with a side that is zero beyond a line: what is left out of them changes no bit. Each is computed twice, with
 * a mask that the compiler knows (a comparison of positions) and with the same mask as data, which it does not; sizes around
 * tiles, blocks and runs of the depth, lines in all directions, either side, on every target. Attention, whose derivative
 * makes most of them, is compared with softmax and products. What the pass works out in doubles, and a target in its own
 * numbers, must agree wherever it is zero: rounding, signs of zeros, NaN and the ends of i32.
 */
import { describe, expect, it } from "vitest";
import {
  arange,
  attention,
  cast,
  where as choose,
  clamp,
  compile,
  exp,
  expandDims,
  full as fullOf,
  grad,
  greater,
  greaterEqual,
  lessEqual,
  log,
  logicalNot,
  pow,
  matmul as product,
  rsqrt,
  sign,
  softmax,
  sub,
  type Tensor,
  tanh,
  tensor,
} from "../src/api/index.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import { Build } from "../src/ir/build.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import { tensorType } from "../src/ir/type.ts";
import { allNodes } from "../src/ir/walk.ts";
import { broadcast } from "../src/ops/broadcast.ts";
import { type FullAttrs, full, iota } from "../src/ops/create.ts";
import { add, ge, mul, neg } from "../src/ops/elementwise.ts";
import { type MatmulAttrs, matmul } from "../src/ops/matmul.ts";
import { where } from "../src/ops/select.ts";
import { pipeline, runPasses } from "../src/passes/pipeline.ts";
import type { Target } from "../src/runtime/device.ts";
import type { Elements } from "../src/runtime/executable.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { runGraph } from "./support/run-graph.ts";
import { plainTargets } from "./support/targets.ts";

type Type = "f32" | "f64" | "i32";

interface Case {
  readonly dtype: Type;
  readonly sizes: readonly [batch: number, m: number, n: number, k: number];
  readonly ta: boolean;
  readonly tb: boolean;
  /** The masked side, and where it is kept: down · row + offset ≥ right · column, in its own order of axes. */
  readonly side: 0 | 1;
  readonly line: readonly [down: number, right: number, offset: number];
  /** The masked side is a result too, so that it is stored instead of being computed in front of the product. */
  readonly stored: boolean;
  /** The other side is computed in front of the product, so that it is packed. */
  readonly fused?: true;
}

function cases(): readonly Case[] {
  const random = hostRandom(11);
  const pick = <T>(list: readonly T[]): T => at(list, Math.floor(random.next() * list.length));
  const extents = [1, 2, 7, 14, 15, 29, 33, 64, 70];
  const made: Case[] = [];
  for (let i = 0; i < 48; i++) {
    made.push({
      dtype: pick<Type>(["f32", "f32", "f32", "f64", "i32"]),
      sizes: [pick([1, 2, 3]), pick(extents), pick(extents), pick([0, 1, 5, 16, 33, 65, 130])],
      ...{ ta: random.next() < 0.5, tb: random.next() < 0.5, side: pick([0, 1] as const) },
      line: [pick([1, 1, -1]), pick([1, 1, -1, 2]), pick([0, 0, 1, -1, -9, 20, -200, 200])],
      stored: random.next() < 0.7,
    });
  }
  // several runs of the depth, rows that collide in the cache, blocks that are packed
  for (const ta of [false, true]) {
    made.push({ dtype: "f32", sizes: [1, 60, 33, 1100], ta, tb: false, side: 0, line: [1, 1, 0], stored: true });
    made.push({ dtype: "f32", sizes: [2, 1024, 32, 1024], ta, tb: false, side: 0, line: [1, 1, 0], stored: true });
    made.push({
      dtype: "f32",
      sizes: [1, 20, 40, 1030],
      ta: false,
      tb: ta,
      side: 1,
      line: [-1, -1, 700],
      stored: true,
    });
  }
  return made;
}

/** The mask of a case for a matrix: known to the compiler, or a parameter. */
function maskOf(b: Build, { line: [down, right, offset] }: Case, shape: readonly number[], known: boolean): Value {
  if (!known) return b.param(tensorType("bool", shape));
  const whole = (value: number): FullAttrs => ({ dtype: "i32", shape, value });
  const scaled = (axis: number, by: number): Value => {
    const position = b.call(iota, [], { shape, axis });
    return b.call(mul, [position, b.call(full, [], whole(by))], {});
  };
  const moved = b.call(add, [scaled(0, down), b.call(full, [], whole(offset))], {});
  return b.call(ge, [moved, scaled(1, right)], {});
}

/** All cases as one program; with masks as data these are its parameters that hold bools. */
function graphOf(all: readonly Case[], known: boolean): Graph {
  const b = new Build("products");
  const results: Value[] = [];
  for (const one of all) {
    const { dtype, sizes, ta, tb, side } = one;
    const [batch, m, n, k] = sizes;
    const shapes = [
      [batch, ...(ta ? [k, m] : [m, k])],
      [batch, ...(tb ? [n, k] : [k, n])],
    ];
    const sides = shapes.map((shape) => b.param(tensorType(dtype, shape)));
    const shape = at(shapes, side);
    const mask = b.call(broadcast, [maskOf(b, one, shape.slice(1), known)], { axes: [1, 2], shape });
    const masked = b.call(where, [mask, at(sides, side), b.call(full, [], { dtype, shape, value: 0 })], {});
    const other = one.fused ? b.call(neg, [at(sides, 1 - side)], {}) : at(sides, 1 - side);
    const inputs = side === 0 ? [masked, other] : [other, masked];
    results.push(b.call(matmul, inputs, { ta, tb }));
    if (one.stored) results.push(masked);
  }
  return b.finish(results);
}

/** Whole numbers of floats and integers, the same for each program; masks of the cases in order. */
function inputsFor(all: readonly Case[]): (param: Value) => readonly number[] {
  const random = hostRandom(3);
  let masks = 0;
  return ({ type: { dtype, shape } }) => {
    const count = shape.reduce((a, e) => a * e, 1);
    if (dtype !== "bool") {
      return Array.from({ length: count }, () => (random.next() - 0.5) * (dtype === "i32" ? 100 : 4));
    }
    const { line } = at(all, masks++);
    const columns = at(shape, 1);
    return Array.from({ length: count }, (_, e) => {
      const [row, column] = [Math.floor(e / columns), e % columns];
      return Number(line[0] * row + line[2] >= line[1] * column);
    });
  };
}

const sameBits = (a: Elements, b: Elements): boolean =>
  Buffer.compare(
    new Uint8Array(a.buffer, a.byteOffset, a.byteLength),
    new Uint8Array(b.buffer, b.byteOffset, b.byteLength),
  ) === 0;

const lines = (graph: Graph): number =>
  [...allNodes(graph)].filter(({ op, attrs }) => {
    const { xNonzero = [], wNonzero = [] } = attrs as MatmulAttrs;
    return op === matmul && xNonzero.length + wNonzero.length > 0;
  }).length;

describe("a product with a side that is zero beyond a line", () => {
  const all = cases();
  const [known, unknown] = [graphOf(all, true), graphOf(all, false)];

  it("is told so, where the mask is a comparison of positions", () => {
    expect(lines(runPasses(unknown, pipeline))).toBe(0);
    const told = lines(runPasses(known, pipeline));
    expect(told).toBeGreaterThan(0.8 * all.length);
  });

  for (const { name, missing, target } of plainTargets) {
    it.skipIf(missing !== null)(`has the bits of the whole product on ${name}`, () => {
      const want = runGraph(target(), unknown, inputsFor(all));
      const got = runGraph(target(), known, inputsFor(all));
      const differ = got.flatMap((bits, i) => (sameBits(bits, at(want, i)) ? [] : [i]));
      expect(differ, "results that differ").toEqual([]);
    });
  }
});

/**
 * Tiles at the edges of a product reach beyond it, and so does the part of the depth that they sum up: all of it has to be
 * packed. One program each, so that no other product has filled the workspace with numbers.
 */
describe("a product whose workspace is full of NaN", () => {
  const differing = (all: readonly Case[], target: Target): readonly Case[] =>
    all.filter((one) => {
      const [want] = runGraph(target, graphOf([one], false), inputsFor([one]));
      const [got] = runGraph(target, graphOf([one], true), inputsFor([one]));
      return !(want && got && sameBits(got, want));
    });

  it("reads nothing that was not packed, where zeros are left out, on wasm", () => {
    expect(differing(cases().slice(0, 48), wasmTarget(false))).toEqual([]);
  });

  for (const { name, missing, target } of plainTargets.filter((one) => one.name === "native")) {
    it.skipIf(missing !== null)(`reads nothing that was not packed, where zeros are left out, on ${name}`, () => {
      const deep = { dtype: "f32", sizes: [1, 70, 33, 300], tb: false, stored: true, fused: true } as const;
      const all: readonly Case[] = [
        { ...deep, ta: true, side: 0, line: [-1, -1, 0] },
        { ...deep, ta: false, side: 1, line: [-1, -1, 0] },
      ];
      expect(differing(all, target())).toEqual([]);
    });
  }
});

describe("what is taken for zero beyond a line", () => {
  const N = 24;
  const made = (shape: readonly number[], seed: number): Tensor => {
    const random = hostRandom(seed);
    return tensor(Array.from({ length: shape.reduce((a, e) => a * e, 1) }, () => random.next() * 2 - 1)).reshape(shape);
  };
  const [row, column] = [() => expandDims(arange(N), 1), () => expandDims(arange(N), 0)];
  const past = (): Tensor => greaterEqual(row(), column());
  const [LIMIT, MINUS, MOST] = [2 ** 31 - 1, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];

  type Program = (mask: Tensor, s: Tensor, y: Tensor, v: Tensor) => Tensor;
  const programs: readonly (readonly [string, () => Tensor, Program])[] = [
    [
      "a number that f32 rounds",
      past,
      (m, s, _, v) => product(cast(choose(m, s, 0.1), "f64").sub(0.1), cast(v, "f64")),
    ],
    [
      "a number that f32 has as 0",
      past,
      (m, s, _, v) => product(cast(logicalNot(greater(choose(m, s, 1e-50), 0)), "f32"), v),
    ],
    ["a function and its inverse", past, (m, s, _, v) => product(log(exp(choose(m, s, 0.75))).sub(0.75), v)],
    [
      "the sign of a zero, by a root",
      past,
      (m, s, y, v) => product(tanh(rsqrt(choose(m, s.mul(s), 0).mul(sign(y)))).sub(1), v),
    ],
    [
      "the sign of a zero, by a power",
      past,
      (m, s, y, v) => product(clamp(pow(choose(m, s, 0).mul(y), fullOf([N, N], -1)), -1, 1).sub(1), v),
    ],
    ["∞ - ∞", past, (m, s, y, v) => product(exp(choose(m, s, MINUS).add(choose(m, y, MOST))), v)],
    ["0 · log 0", past, (m, s, _, v) => product(choose(m, s.abs(), 0).mul(log(choose(m, s.abs(), 0))), v)],
    ["0 / 0", past, (m, s, y, v) => product(choose(m, s, 0).div(choose(m, y, 0)), v)],
    [
      "a distance without limit",
      () => lessEqual(sub(column(), row()), LIMIT),
      (m, s, _, v) => product(choose(m, s, 0), v),
    ],
    ["one on the right", () => lessEqual(sub(row(), column()), LIMIT - 9), (m, s, y) => product(y, choose(m, s, 0))],
    [
      "positions from both ends of i32",
      () => lessEqual(row().sub(LIMIT - 47), column().add(LIMIT - 47)),
      (m, s, y) => product(choose(m, s, 0), y),
    ],
  ];
  const inputs = [made([N, N], 1), made([N, N], 2), made([N, 5], 3)] as const;

  for (const [name, mask, program] of programs) {
    it(`is what the target computes: ${name}`, () => {
      const known = compile((s: Tensor, y: Tensor, v: Tensor) => program(mask(), s, y, v))(...inputs);
      const unknown = compile(program)(mask(), ...inputs);
      expect(known.toArray()).toEqual(unknown.toArray());
    });
  }
});

describe("causal attention", () => {
  const random = hostRandom(5);
  const made = (shape: readonly number[]): Tensor =>
    tensor(
      Array.from({ length: shape.reduce((a, e) => a * e, 1) }, () => random.next() * 2 - 1),
      { dtype: "f64" },
    ).reshape(shape);

  it("has the value and the gradients of softmax and products", () => {
    const [q, k, v, weight] = [made([2, 37, 5]), made([2, 41, 5]), made([2, 41, 3]), made([2, 37, 3])];
    const past = (i: number, j: number): number => (j <= i + 4 ? 0 : Number.NEGATIVE_INFINITY);
    const bias = tensor(
      Array.from({ length: 37 * 41 }, (_, e) => past(Math.floor(e / 41), e % 41)),
      { dtype: "f64" },
    ).reshape([37, 41]);
    const plain = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
      product(
        softmax(
          product(q, k, { tb: true })
            .mul(1 / Math.sqrt(5))
            .add(bias),
        ),
        v,
      )
        .mul(weight)
        .sum();
    const ours = (q: Tensor, k: Tensor, v: Tensor): Tensor => attention(q, k, v, { causal: true }).mul(weight).sum();
    for (const wrt of [0, 1, 2]) {
      const [want, got] = [plain, ours].map((f) => compile(grad(f, { argnums: wrt }))(q, k, v).data());
      got!.forEach((x, i) => {
        expect(x).toBeCloseTo(want![i]!, 12);
      });
    }
  });

  it("is zero where there are no keys, as the sum that it stands for", () => {
    const value = attention(made([2, 3, 4]), made([2, 0, 4]), made([2, 0, 5]), { causal: true });
    expect(value.shape).toEqual([2, 3, 5]);
    expect([...value.data()]).toEqual(new Array(30).fill(0));
  });
});
