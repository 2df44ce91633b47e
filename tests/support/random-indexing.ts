/**
 * @file Small random programs full of index arithmetic, from a seed: look-ups at positions that are known only at run time
 * (in range and out of it), look-ups of look-ups, padding with and without gaps, slices with steps, windows, reshapes of
 * transposes, and transcendental functions in between, which are long runs of scalar code. All element types occur.
 */
import { at } from "../../src/base/invariant.ts";
import { Build } from "../../src/ir/build.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import type { NoAttrs, OpDef } from "../../src/ir/op.ts";
import { elementsOf, type Shape, tensorType } from "../../src/ir/type.ts";
import { isFloat } from "../../src/kernel/dtype.ts";
import { sum } from "../../src/ops/broadcast.ts";
import { concat } from "../../src/ops/concat.ts";
import { iota } from "../../src/ops/create.ts";
import { dynamicSlice } from "../../src/ops/dynamic.ts";
import * as element from "../../src/ops/elementwise.ts";
import { gather, type ReadAttrs, scatterAdd, take } from "../../src/ops/indexing.ts";
import * as math from "../../src/ops/math.ts";
import { flip, reshape, transpose } from "../../src/ops/movement.ts";
import { type CastAttrs, cast, where } from "../../src/ops/select.ts";
import { pad, slice } from "../../src/ops/slice.ts";
import { unfold } from "../../src/ops/window.ts";
import { Random } from "./random.ts";

const EXTENTS = [1, 2, 3, 4, 5, 7, 8, 16, 17, 24] as const;
const MOST_ELEMENTS = 4096;
const FUNCTIONS: readonly OpDef<NoAttrs>[] = [
  ...[math.sin, math.cos, math.tanh, math.sigmoid, math.erf, math.exp, math.softplus],
  ...[element.neg, element.abs, element.square, element.relu],
];

class Program {
  readonly r: Random;
  readonly b: Build;
  readonly pool: Value[] = [];

  constructor(seed: number) {
    this.r = new Random(seed);
    this.b = new Build(`indexing_${seed}`);
  }

  shape(): Shape {
    return Array.from({ length: 1 + this.r.int(3) }, () => this.r.pick(EXTENTS));
  }

  /** A value with the property; of the last ones more often than not. */
  find(test: (value: Value) => boolean): Value | null {
    const fitting = this.pool.filter(test);
    return (this.r.chance(0.6) ? fitting.at(-1) : undefined) ?? fitting[this.r.int(fitting.length)] ?? null;
  }

  float(): Value | null {
    return this.find((v) => isFloat(v.type.dtype));
  }

  /** Whatever has elements and an axis. */
  any(): Value | null {
    return this.find((v) => v.type.shape.length > 0 && elementsOf(v.type.shape) > 0);
  }

  add(value: Value): void {
    if (elementsOf(value.type.shape) <= MOST_ELEMENTS) this.pool.push(value);
  }

  axis(value: Value): number {
    return this.r.int(value.type.shape.length);
  }

  /** Indices of a shape: a parameter, counted, or the whole part of something computed. */
  indices(shape: Shape): Value {
    const computed = this.find((v) => isFloat(v.type.dtype) && String(v.type.shape) === String(shape));
    if (computed && this.r.chance(0.6)) return this.b.call<CastAttrs>(cast, [computed], { dtype: "i32" });
    if (this.r.chance(0.3)) return this.b.call(iota, [], { shape, axis: this.r.int(shape.length) });
    return this.b.param(tensorType("i32", shape));
  }
}

type Move = (p: Program) => Value | null;

const apply: Move = (p) => {
  const x = p.float();
  return x && p.b.call(p.r.pick(FUNCTIONS), [x], {});
};

const combine: Move = (p) => {
  const x = p.find((v) => v.type.dtype !== "bool");
  const y = x && p.find((v) => v.type.dtype === x.type.dtype && String(v.type.shape) === String(x.type.shape));
  return x && y && p.b.call(p.r.pick([element.add, element.sub, element.mul, element.max]), [x, y], {});
};

const choose: Move = (p) => {
  const x = p.float();
  if (!x) return null;
  const turned = p.b.call(element.neg, [x], {});
  const mask = p.b.call(element.gt, [x, turned], {});
  if (p.r.chance(0.5)) p.add(mask);
  return p.b.call(where, [mask, x, p.b.call(math.sin, [x], {})], {});
};

const convert: Move = (p) => {
  const x = p.any();
  return x && p.b.call<CastAttrs>(cast, [x], { dtype: p.r.pick(["f32", "f64", "i32", "bool"] as const) });
};

const lookUp: Move = (p) => {
  const x = p.any();
  if (!x) return null;
  const axis = p.axis(x);
  const outside = p.r.pick(["nan", "zero"] as const);
  if (p.r.chance(0.5)) return p.b.call<ReadAttrs>(take, [x, p.indices([p.r.pick(EXTENTS)])], { axis, outside });
  const shape = x.type.shape.with(axis, p.r.pick(EXTENTS));
  return p.b.call(gather, [x, p.indices(shape)], { axis, outside });
};

const addInto: Move = (p) => {
  const x = p.float();
  if (!x || x.type.shape.length === 0) return null;
  const [axis, indices] = [p.axis(x), p.indices([p.r.pick(EXTENTS)])];
  const updates = p.b.call<ReadAttrs>(take, [x, indices], { axis, outside: "zero" });
  return p.b.call(scatterAdd, [x, indices, updates], { axis });
};

const padding: Move = (p) => {
  const x = p.any();
  if (!x || x.type.dtype === "bool") return null;
  // Along one axis, or all.
  const only = p.r.chance(0.6) ? p.axis(x) : null;
  const some = (most: number): number[] =>
    x.type.shape.map((_, axis) => (only === null || axis === only ? p.r.int(most) : 0));
  return p.b.call(pad, [x], { lo: some(3), hi: some(3), interior: some(2), value: p.r.int(2) });
};

const cut: Move = (p) => {
  const x = p.any();
  if (!x) return null;
  const start = x.type.shape.map((n) => p.r.int(n));
  const stride = x.type.shape.map(() => 1 + p.r.int(3));
  return p.b.call(slice, [x], { start, limit: x.type.shape, stride });
};

const movingCut: Move = (p) => {
  const x = p.any();
  if (!x) return null;
  const sizes = x.type.shape.map((n) => 1 + p.r.int(n));
  return p.b.call(dynamicSlice, [x, p.indices([sizes.length])], { sizes });
};

const windows: Move = (p) => {
  const x = p.any();
  if (!x || x.type.dtype === "bool" || at(x.type.shape, x.type.shape.length - 1) < 3) return null;
  const one = (n: number): readonly number[] => [n];
  const attrs = { window: one(3), stride: one(1 + p.r.int(2)), lo: one(p.r.int(2)), hi: one(1), dilation: one(1) };
  return p.b.call(unfold, [x], { ...attrs, value: p.r.int(2) });
};

/** A value of the same shape whose elements come from elsewhere along an axis. */
function moved(p: Program, x: Value): Value {
  const { shape } = x.type;
  const axis = p.axis(x);
  const extent = at(shape, axis);
  if (p.r.chance(0.5)) return p.b.call<ReadAttrs>(take, [x, p.indices([extent])], { axis, outside: "zero" });
  const by = p.r.int(Math.min(3, extent));
  const along = (n: number): number[] => shape.map((_, a) => (a === axis ? n : 0));
  const limit = shape.map((n, a) => (a === axis ? n - by : n));
  const rest = p.b.call(slice, [x], { start: along(0), limit, stride: shape.map(() => 1) });
  return p.b.call(pad, [rest], { lo: along(by), hi: along(0), interior: along(0), value: 0 });
}

/** A function of a value, moved several times over: guard within guard, the function innermost. */
const chain: Move = (p) => {
  const x = p.find((v) => isFloat(v.type.dtype) && v.type.shape.length > 0);
  if (!x) return null;
  let made = p.b.call(p.r.pick([math.sin, math.cos, math.exp]), [x], {});
  for (let i = p.r.int(9); i >= 0; i--) made = moved(p, made);
  return made;
};

/** Functions of neighbours added up: scalar code and index arithmetic take turns within one kernel. */
const neighbours: Move = (p) => {
  const x = p.find((v) => isFloat(v.type.dtype) && v.type.shape.length > 0);
  if (!x) return null;
  const term = (value: Value): Value => p.b.call(p.r.pick(FUNCTIONS), [value], {});
  return p.b.call(element.add, [term(x), term(moved(p, x))], {});
};

const rearrange: Move = (p) => {
  const x = p.any();
  if (!x) return null;
  const { shape } = x.type;
  if (p.r.chance(0.4)) return p.b.call(flip, [x], { axes: [p.axis(x)] });
  if (p.r.chance(0.4)) return p.b.call(transpose, [x], { perm: p.r.shuffled(shape.map((_, axis) => axis)) });
  const elements = elementsOf(shape);
  const rows = p.r.pick(EXTENTS.filter((n) => elements % n === 0));
  return p.b.call(reshape, [x], { shape: [rows, elements / rows] });
};

const total: Move = (p) => {
  const x = p.float();
  return x && x.type.shape.length > 0 ? p.b.call(sum, [x], { axes: [p.axis(x)] }) : null;
};

const join: Move = (p) => {
  const x = p.any();
  return x && p.b.call(concat, [x, x], { axis: p.axis(x) });
};

const MOVES: readonly Move[] = [
  ...[apply, apply, apply, apply, combine, combine, choose, convert, lookUp, lookUp, lookUp, addInto, padding, padding],
  ...[cut, movingCut, windows, neighbours, chain, chain, rearrange, rearrange, total, join],
];

/** A well-formed graph of some `moves` operations; equal seeds give equal graphs. */
export function randomIndexing(seed: number, moves: number): Graph {
  const p = new Program(seed);
  for (let i = 0; i < 2; i++) p.add(p.b.param(tensorType(p.r.pick(["f32", "f32", "f64"] as const), p.shape())));
  for (let made = 0, tries = 0; made < moves && tries < 20 * moves; tries++) {
    const value = p.r.pick(MOVES)(p);
    if (!value) continue;
    p.add(value);
    made++;
    // Scalar code behind index arithmetic: both number their values.
    if (isFloat(value.type.dtype) && p.r.chance(0.4)) p.add(p.b.call(p.r.pick(FUNCTIONS), [value], {}));
  }
  return p.b.finish([at(p.pool, p.pool.length - 1), p.r.pick(p.pool)]);
}
