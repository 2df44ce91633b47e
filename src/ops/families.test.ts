/**
 * @file Mathematics, movement, reductions and indexing, each operation checked on its own samples: its types against its
 * reference, its kernels (run by the interpreter) against its reference, its rewrites bit by bit, and its derivative by
 * differences and by the adjoint identity ⟨ct, J t⟩ = ⟨Jᵀ ct, t⟩. Then cases computed by hand, and messages.
 */
import { describe, expect, test } from "vitest";
import { ownSamples } from "../../tests/support/own-samples.ts";
import { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { AnyOp, LowerContext, Reference, Sample } from "../ir/op.ts";
import { elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { type DType, elementReader, elementWriter, isFloat, newElements, type ScalarType } from "../kernel/dtype.ts";
import { type Index, type LoopVar, load } from "../kernel/expr.ts";
import { offsetIndex, varIndex } from "../kernel/index-math.ts";
import { interpretKernel, type TypedArray } from "../kernel/interpret.ts";
import type { Kernel, Nest } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { broadcast, sum } from "./broadcast.ts";
import { concat } from "./concat.ts";
import { type FullAttrs, full } from "./create.ts";
import { dynamicSlice, dynamicUpdate } from "./dynamic.ts";
import { mul } from "./elementwise.ts";
import { gather, scatterAdd, scatterAddAlong, take } from "./indexing.ts";
import * as math from "./math.ts";
import { flip, reshape, transpose } from "./movement.ts";
import { all, any, reduceMax, reduceMin, reduceProd } from "./reduce.ts";
import { pad, slice, sliceAdd, sliceUpdate } from "./slice.ts";
import { fold, unfold } from "./window.ts";

const OPS: readonly AnyOp[] = [
  ...[math.exp, math.expm1, math.log, math.log1p, math.sin, math.cos, math.tan, math.tanh, math.sigmoid, math.erf],
  ...[math.rsqrt, math.pow, math.gelu, math.silu, math.softplus],
  ...[broadcast, sum, reduceMax, reduceMin, reduceProd, any, all],
  ...[reshape, transpose, flip, slice, sliceUpdate, sliceAdd, pad, concat, unfold, fold],
  ...[take, scatterAdd, gather, scatterAddAlong, dynamicSlice, dynamicUpdate],
];

/** Numbers as elements. */
function asElements(dtype: DType, numbers: Float64Array): TypedArray {
  const [elements, write] = [newElements(dtype, numbers.length), elementWriter(dtype)];
  for (const [i, x] of numbers.entries()) elements[i] = write(x);
  return elements;
}

/** Numbers in [0, 1), the same on every run. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 0x100000000;
  };
}

function draw(types: readonly TensorType[], range: Sample<unknown>["range"], seed: number): Reference[] {
  const random = randomFrom(seed);
  return types.map(({ dtype, shape }, i) => {
    const own = Array.isArray(range?.[0]) ? range[i] : (range ?? [-2, 2]);
    const [lo, hi] = own as readonly [number, number];
    const number = (): number => lo + (hi - lo) * random();
    const kinds: Record<ScalarType, () => number> = {
      f32: () => Math.fround(number()),
      f64: number,
      i32: () => Math.floor(number()),
      i64: () => Math.floor(number()),
      bool: () => Math.floor(number()),
    };
    return Float64Array.from({ length: elementsOf(shape) }, kinds[dtype as ScalarType]);
  });
}

function evaluateOp(
  op: AnyOp,
  inTypes: readonly TensorType[],
  attrs: unknown,
  inputs: readonly Reference[],
): Reference {
  const outTypes = op.infer(inTypes, attrs, []);
  const run = () => expect.fail("no regions here");
  return op.evaluate({ inputs, inTypes, outTypes, attrs, regions: [], run })[0]!;
}

/** Evaluates what was built, given data for the parameters. */
function evaluateBuilt(b: Build, data: ReadonlyMap<Value, Reference>, results: readonly Value[]): Reference[] {
  const known = new Map(data);
  for (const { op, inputs, attrs, outputs } of b.nodes) {
    known.set(
      outputs[0]!,
      evaluateOp(
        op,
        inputs.map((v) => v.type),
        attrs,
        inputs.map((v) => known.get(v)!),
      ),
    );
  }
  return results.map((value) => known.get(value)!);
}

/** The kernel of one operation over plain arrays, with one loop for each axis or a single one over all elements. */
function kernelOf(op: AnyOp, inTypes: readonly TensorType[], attrs: unknown, flat: boolean): Kernel {
  const outType = op.infer(inTypes, attrs, [])[0]!;
  const inputs = inTypes.map(
    ({ dtype }, i) =>
      (at: Position) =>
        load(dtype, i, at.linear),
  );
  const c: LowerContext<unknown> = { inputs, inTypes, outType, attrs };
  const over = (shape: readonly number[], prefix: string): { loops: LoopVar[]; at: Position } => {
    const extents = flat ? [elementsOf(shape)] : shape;
    const loops = extents.map((extent, i): LoopVar => ({ kind: "var", name: `${prefix}${i}`, extent }));
    const idx = loops.map(varIndex);
    return { loops, at: flat ? Position.linear(shape, idx[0] as Index) : Position.at(shape, idx) };
  };
  const out = inTypes.length;
  const { loops, at } = over(outType.shape, "i");
  const nests: Nest[] = [];
  const { lower } = op;
  if (lower.kind === "map") {
    nests.push({ kind: "map", loops, stores: [{ operand: out, index: at.linear, value: lower.value(c, at) }] });
  } else if (lower.kind === "reduce") {
    const { extents, order } = lower.counters(inTypes, attrs);
    const reduce = extents.map((extent, i): LoopVar => ({ kind: "var", name: `r${i}`, extent }));
    const dtype = outType.dtype as ScalarType;
    const stores = [{ operand: out, index: at.linear, value: { kind: "acc", dtype } as const }];
    const body = lower.body(c, at, reduce.map(varIndex));
    nests.push({ kind: "reduce", loops, reduce, order, combine: lower.combine, dtype, body, stores });
  } else if (lower.kind === "scatter") {
    const u = over(lower.updates(inTypes, attrs), "u");
    nests.push({ kind: "map", loops, stores: [{ operand: out, index: at.linear, value: inputs[0]!(at) }] });
    const value = lower.value(c, u.at);
    const { combine = "add" } = lower;
    nests.push({ kind: "scatter", loops: u.loops, combine, ...lower.target(c, u.at), operand: out, value });
  } else if (lower.kind === "update") {
    const u = over(lower.updates(inTypes, attrs), "u");
    nests.push({ kind: "map", loops, stores: [{ operand: out, index: at.linear, value: inputs[0]!(at) }] });
    const store = { operand: out, index: lower.target(c, u.at), value: lower.value(c, u.at) };
    nests.push({ kind: "map", loops: u.loops, stores: [store] });
  } else if (lower.kind === "concat") {
    const axis = lower.axis(attrs);
    let from = 0;
    for (const [i, { shape }] of inTypes.entries()) {
      const part = over(shape, `p${i}_`);
      const to = part.at.idx.map((index, a) => (a === axis ? offsetIndex(index, from) : index));
      const index = Position.at(outType.shape, to).linear;
      nests.push({ kind: "map", loops: part.loops, stores: [{ operand: out, index, value: inputs[i]!(part.at) }] });
      from += shape[axis]!;
    }
  } else return expect.fail(`${op.name} is lowered to ${lower.kind}`);
  const operands = [...inTypes, outType].map(({ dtype, shape }, i) => {
    return { dtype, elements: elementsOf(shape), role: i === out ? ("out" as const) : ("in" as const) };
  });
  return { operands, nests };
}

/** Relative to the magnitudes at hand; integers and bools exactly. */
function expectClose(actual: ArrayLike<number>, wanted: ArrayLike<number>, tolerance: number, what: string): void {
  expect(actual.length, what).toBe(wanted.length);
  for (let e = 0; e < wanted.length; e++) {
    const [a, w] = [actual[e]!, wanted[e]!];
    if (a === w || (Number.isNaN(a) && Number.isNaN(w))) continue;
    // Written so that NaN on one side alone fails.
    if (!(Math.abs(a - w) <= tolerance * Math.max(1, Math.abs(w))))
      expect.fail(`${what}: element ${e} is ${a}, not ${w}`);
  }
}

const TOLERANCE: Record<ScalarType, number> = { f32: 4e-6, f64: 4e-14, i32: 0, i64: 0, bool: 0 };

/** Over all elements. */
const dot = (a: Reference, b: Reference): number => a.reduce((s, x, i) => s + x * b[i]!, 0);

/** Inputs that the derivative covers. */
function activeInputs(op: AnyOp, types: readonly TensorType[]): number[] {
  const { derivative } = op;
  const linear = derivative.kind === "multilinear" ? derivative.linear : undefined;
  return types.flatMap((type, i) => (isFloat(type.dtype) && (linear?.includes(i) ?? true) ? [i] : []));
}

/** Builds the rule of one input in both modes: J t and Jᵀ ct, with every other tangent zero. */
function derivativeOf(op: AnyOp, types: readonly TensorType[], attrs: unknown, i: number) {
  const b = new Build("derivative");
  const x = types.map((type) => b.param(type));
  const [t, ct] = [b.param(x[i]!.type), b.param(op.infer(types, attrs, [])[0]!)];
  const y = b.call(op, x, attrs);
  const { derivative: rule } = op;
  const built = (jt: Value | null, jct: Value | null) => ({ b, x, t, ct, jt: jt!, jct: jct! });
  if (rule.kind === "general") {
    const tangents = x.map((_, j) => (j === i ? t : null));
    return built(rule.jvp(b, { x, y, tangents, attrs }), rule.vjp(b, { x, y, ct, input: i, attrs }));
  }
  if (rule.kind === "elementwise") {
    const partial = rule.partials[i]!;
    if (typeof partial === "string") return expect.fail("no operation here has a constant derivative");
    const slope = partial(b, x, y, attrs);
    return built(b.call(mul, [t, slope], {}), b.call(mul, [ct, slope], {}));
  }
  if (rule.kind !== "multilinear") return expect.fail(`${op.name} has no derivative`);
  const together = (j: number): boolean => (rule.jointly ?? false) && (rule.linear?.includes(j) ?? true);
  const tangents = x.map((v, j) => {
    if (j === i) return t;
    return together(j) ? b.call(full, [], { ...v.type, value: 0 }) : v;
  });
  return built(b.call(op, tangents, attrs), rule.transpose(b, { x, ct, input: i, attrs }));
}

/** (f(x + h t) - f(x - h t)) / 2h in input i. */
function differences(op: AnyOp, sample: Sample<unknown>, x: readonly Reference[], i: number, t: Reference): Reference {
  const h = 1e-6;
  const at = (step: number): Reference => {
    const moved = x.map((data, j) => (j === i ? data.map((v, e) => v + step * t[e]!) : data));
    return evaluateOp(op, sample.inputs, sample.attrs, moved);
  };
  const below = at(-h);
  return at(h).map((v, e) => (v - below[e]!) / (2 * h));
}

/** Whether the node is rewritten; if so, to a value of the same type and the same bits. */
function expectSameBits(b: Build, node: Node, data: ReadonlyMap<Value, Reference>): boolean {
  const simpler = node.op.simplify(b, node, node.attrs);
  if (!simpler) return false;
  expect(simpler.type).toEqual(node.outputs[0]!.type);
  const [before, after] = evaluateBuilt(b, data, [node.outputs[0]!, simpler]);
  expect(Array.from(after!)).toEqual(Array.from(before!));
  return true;
}

describe.each(OPS.map((op) => [op.name, op] as const))("%s", (name, op) => {
  const samples = ownSamples(op);
  const floats = samples.filter((s) => s.inputs[0]!.dtype === "f64" && s.smooth !== false);

  test("has samples with no elements, and its reference has as many elements as its type", () => {
    const types = samples.flatMap((s) => [...s.inputs, ...op.infer(s.inputs, s.attrs, [])]);
    expect(types.some((type) => elementsOf(type.shape) === 0)).toBe(true);
    samples.forEach((s, seed) => {
      const out = evaluateOp(op, s.inputs, s.attrs, draw(s.inputs, s.range, seed));
      expect(out.length).toBe(elementsOf(op.infer(s.inputs, s.attrs, [])[0]!.shape));
      const cost = op.cost(s.inputs, op.infer(s.inputs, s.attrs, []), s.attrs, []);
      expect(cost.flops).toBeGreaterThanOrEqual(0);
    });
  });

  test("computes in kernels what its reference says", () => {
    for (const [seed, s] of samples.entries()) {
      const data = draw(s.inputs, s.range, seed);
      const wanted = evaluateOp(op, s.inputs, s.attrs, data);
      const dtype = op.infer(s.inputs, s.attrs, [])[0]!.dtype as ScalarType;
      for (const flat of [false, true]) {
        const out = asElements(dtype, new Float64Array(wanted.length).fill(7));
        const buffers = [...s.inputs.map((type, i) => asElements(type.dtype, data[i]!)), out];
        interpretKernel(kernelOf(op, s.inputs, s.attrs, flat), buffers);
        expectClose(
          Float64Array.from(out, elementReader(dtype)),
          wanted,
          TOLERANCE[dtype],
          `${name} ${JSON.stringify(s)} flat=${flat}`,
        );
      }
    }
  });

  test("is rewritten without changing a bit", () => {
    samples.forEach((s, seed) => {
      const b = new Build("simplify");
      const x = s.inputs.map((type) => b.param(type));
      const data = draw(s.inputs, s.range, seed);
      b.call(op, x, s.attrs);
      expectSameBits(b, b.nodes[0]!, new Map(x.map((v, i) => [v, data[i]!])));
    });
  });

  if (op.derivative.kind === "none") return;

  test("has a derivative that agrees with differences, and modes that are each other's adjoint", () => {
    expect(floats.length).toBeGreaterThan(0);
    for (const [seed, s] of floats.entries()) {
      const data = draw(s.inputs, s.range, seed + 1);
      for (const i of activeInputs(op, s.inputs)) {
        const { b, x, t, ct, jt, jct } = derivativeOf(op, s.inputs, s.attrs, i);
        const [dt, dct] = draw([t.type, ct.type], [-1, 1], seed + 77) as [Reference, Reference];
        const known = new Map([...x.map((v, j) => [v, data[j]!] as const), [t, dt] as const, [ct, dct] as const]);
        const [forward, reverse] = evaluateBuilt(b, known, [jt, jct]) as [Reference, Reference];
        const what = `${name} ${JSON.stringify(s)} input ${i}`;
        expectClose([dot(dct, forward)], [dot(reverse, dt)], 1e-12, what);
        expectClose(forward, differences(op, s, data, i, dt), 2e-7, what);
      }
    }
  });
});

describe("rewrites of pairs", () => {
  const pairs: readonly (readonly [string, (b: Build, x: Value) => Value])[] = [
    ["reshape of reshape", (b, x) => b.call(reshape, [b.call(reshape, [x], { shape: [6, 4] })], { shape: [3, 8] })],
    [
      "transpose of transpose",
      (b, x) => b.call(transpose, [b.call(transpose, [x], { perm: [1, 2, 0] })], { perm: [1, 0, 2] }),
    ],
    ["flip of flip", (b, x) => b.call(flip, [b.call(flip, [x], { axes: [0, 2] })], { axes: [1, 2] })],
    [
      "broadcast of broadcast",
      (b, x) => {
        const inner = b.call(broadcast, [x], { shape: [2, 3, 5, 4], axes: [0, 1, 3] });
        return b.call(broadcast, [inner], { shape: [2, 3, 2, 5, 4], axes: [0, 1, 3, 4] });
      },
    ],
    [
      "pad of pad",
      (b, x) => {
        const [none, one] = [
          [0, 0, 0],
          [1, 0, 2],
        ];
        const inner = b.call(pad, [x], { lo: one!, hi: none!, interior: none!, value: 0.5 });
        return b.call(pad, [inner], { lo: none!, hi: one!, interior: none!, value: 0.5 });
      },
    ],
    ["broadcast of full", (b) => b.call(broadcast, [fullOf(b, [3])], { shape: [2, 3], axes: [1] })],
    ["reshape of full", (b) => b.call(reshape, [fullOf(b, [3, 2])], { shape: [6] })],
    ["transpose of full", (b) => b.call(transpose, [fullOf(b, [3, 2])], { perm: [1, 0] })],
    ["slice of full", (b) => b.call(slice, [fullOf(b, [5])], { start: [1], limit: [4], stride: [2] })],
    ["pad of full", (b) => b.call(pad, [fullOf(b, [5])], { lo: [1], hi: [4], interior: [2], value: 0.1 })],
    ["sum of one element", (b, x) => b.call(sum, [b.call(reshape, [x], { shape: [24, 1] })], { axes: [1] })],
    [
      "transpose of axes of extent 1",
      (b, x) => b.call(transpose, [b.call(reshape, [x], { shape: [1, 24] })], { perm: [1, 0] }),
    ],
  ];
  const fullOf = (b: Build, shape: readonly number[]): Value =>
    b.call<FullAttrs>(full, [], { dtype: "f32", shape, value: 0.1 });

  test.each(pairs)("%s becomes one operation with the same bits", (_, make) => {
    const b = new Build("pair");
    const x = b.param(tensorType("f32", [2, 3, 4]));
    make(b, x);
    const node = b.nodes[b.nodes.length - 1]!;
    expect(expectSameBits(b, node, new Map([[x, draw([x.type], [-2, 2], 5)[0]!]]))).toBe(true);
    const replacement = b.nodes[b.nodes.length - 1]!;
    expect(replacement.inputs.every((input) => input === x || b.producer(input)?.op === reshape)).toBe(true);
  });

  test("pad of pad with other values stays", () => {
    const b = new Build("stays");
    const x = b.param(tensorType("f32", [2]));
    const inner = b.call(pad, [x], { lo: [1], hi: [0], interior: [0], value: 1 });
    b.call(pad, [inner], { lo: [1], hi: [0], interior: [0], value: 2 });
    expect(pad.simplify(b, b.nodes[1]!, { lo: [1], hi: [0], interior: [0], value: 2 })).toBeNull();
  });
});
