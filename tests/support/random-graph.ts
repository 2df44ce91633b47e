/**
 * @file Random well-formed graphs and inputs for them, from a seed. A graph grows by moves: each picks values made so
 * far and applies an operation to them, so values are shared, some stay unused, and types vary. Magnitudes are kept
 * within bounds (every value carries an estimate of its largest element), so that results compare by tolerance too.
 *
 * `smooth` leaves out what has no derivative somewhere, for tests by differences.
 */
import { Build } from "../../src/ir/build.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import type { NoAttrs, OpDef, Reference } from "../../src/ir/op.ts";
import { elementsOf, type Shape, tensorType } from "../../src/ir/type.ts";
import { type DType, type FloatType, isFloat, typeOf } from "../../src/kernel/dtype.ts";
import { broadcast, sum } from "../../src/ops/broadcast.ts";
import { concat } from "../../src/ops/concat.ts";
import { call, customVjp } from "../../src/ops/control.ts";
import { full, iota } from "../../src/ops/create.ts";
import * as element from "../../src/ops/elementwise.ts";
import * as math from "../../src/ops/math.ts";
import { matmul } from "../../src/ops/matmul.ts";
import { flip, reshape, transpose } from "../../src/ops/movement.ts";
import { reduceMax, reduceMin } from "../../src/ops/reduce.ts";
import { cumsum } from "../../src/ops/scan.ts";
import { cast, where } from "../../src/ops/select.ts";
import { pad, slice } from "../../src/ops/slice.ts";
import { Random } from "./random.ts";

export interface RandomGraphOptions {
  /** Number of moves; most make one node, some a few. Default 12. */
  readonly nodes?: number;
  /** Element types of the parameters. Default f32 and f64. */
  readonly dtypes?: readonly FloatType[];
  /** Element types of conversions. Default all, with `smooth` f32 and f64. */
  readonly casts?: readonly DType[];
  /** Calls with regions. Default true. */
  readonly regions?: boolean;
  /** Mark later nodes as backward and update, and some as replayed. Default true. */
  readonly phases?: boolean;
  /** Only operations with derivatives everywhere. Default false. */
  readonly smooth?: boolean;
  /** Return one f32 or f64 scalar that depends on the last values. Default false. */
  readonly scalar?: boolean;
}

const SHAPES: readonly Shape[] = [[], [4], [3], [3, 4], [4, 3], [4, 4], [2, 3, 4], [1, 4], [5, 1], [17], [2, 33]];
const NAMES = [undefined, undefined, "x", "h", "w.0", "acc", "v1", "x_1", "return", "2nd", "θ"] as const;
/** Largest magnitude that a value may be estimated to have. */
const BOUND = 1e4;

class Growth {
  readonly r: Random;
  readonly b: Build;
  readonly options: RandomGraphOptions;
  readonly pool: Value[] = [];
  readonly #bounds = new Map<Value, number>();

  constructor(r: Random, name: string, options: RandomGraphOptions) {
    this.r = r;
    this.b = new Build(name);
    this.options = options;
  }

  param(dtype: DType, shape: Shape): Value {
    return this.add(this.b.param(tensorType(dtype, shape), this.name()), 2);
  }

  name(): string | undefined {
    return this.r.pick(NAMES);
  }

  add(value: Value, bound: number): Value {
    this.pool.push(value);
    this.#bounds.set(value, bound);
    return value;
  }

  bound(value: Value): number {
    return this.#bounds.get(value) ?? 2;
  }

  /** Applies an operation if the result stays within bounds. */
  apply<A>(op: OpDef<A>, inputs: readonly Value[], attrs: A, bound: number): Value | null {
    if (bound > BOUND) return null;
    return this.add(this.b.call(op, inputs, attrs, { name: this.name() }), bound);
  }

  /** A random value with the property, later ones more often. */
  find(test: (value: Value) => boolean): Value | null {
    const fitting = this.pool.filter(test);
    if (fitting.length === 0) return null;
    return fitting[Math.floor(Math.sqrt(this.r.next()) * fitting.length)] ?? null;
  }

  float(): Value | null {
    return this.find((v) => isFloat(v.type.dtype));
  }

  /** A value of the same type as another, broadcast from a smaller one if need be. */
  partner(x: Value): Value {
    const { dtype, shape } = x.type;
    const { r } = this;
    const fits = (v: Value): boolean =>
      v.type.dtype === dtype && v.type.shape.length === 1 && v.type.shape[0] === shape[shape.length - 1];
    if (r.chance(0.3)) {
      const vector =
        shape.length > 1 ? this.find(fits) : this.find((v) => v.type.dtype === dtype && v.type.shape.length === 0);
      const axes = shape.length > 1 ? [shape.length - 1] : [];
      if (vector) return this.apply(broadcast, [vector], { shape, axes }, this.bound(vector)) ?? x;
    }
    if (r.chance(0.25)) {
      const value = r.pick([0, -0, 1, -1, 2, 0.5, 3.25]);
      return this.apply(full, [], { dtype, shape, value: isFloat(dtype) ? value : Math.trunc(value) + 0 }, 4) ?? x;
    }
    return this.find((v) => v.type.dtype === dtype && sameExtents(v.type.shape, shape)) ?? x;
  }
}

function sameExtents(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((extent, axis) => extent === b[axis]);
}

type Move = (g: Growth) => Value | null;

/** Estimate of |f| from that of |x|. */
const UNARY: readonly (readonly [OpDef<NoAttrs>, (x: number) => number, "smooth" | "rough"])[] = [
  [element.neg, (x) => x, "smooth"],
  [element.square, (x) => x * x, "smooth"],
  [math.tanh, () => 1, "smooth"],
  [math.sigmoid, () => 1, "smooth"],
  [math.sin, () => 1, "smooth"],
  [math.cos, () => 1, "smooth"],
  [math.erf, () => 1, "smooth"],
  [math.gelu, (x) => x, "smooth"],
  [math.silu, (x) => x, "smooth"],
  [math.softplus, (x) => x + 1, "smooth"],
  [math.exp, (x) => Math.exp(x), "smooth"],
  [element.abs, (x) => x, "rough"],
  [element.relu, (x) => x, "rough"],
  [element.sign, () => 1, "rough"],
  [element.floor, (x) => x + 1, "rough"],
  [element.ceil, (x) => x + 1, "rough"],
  [element.round, (x) => x + 1, "rough"],
];

const unary: Move = (g) => {
  const x = g.float();
  const usable = UNARY.filter(([, , kind]) => !g.options.smooth || kind === "smooth");
  const [op, bound] = g.r.pick(usable);
  return x && g.apply(op, [x], {}, bound(g.bound(x)));
};

const binary: Move = (g) => {
  const x = g.options.smooth ? g.float() : g.find((v) => v.type.dtype !== "bool");
  if (!x) return null;
  const pair = g.r.shuffled([x, g.partner(x)]);
  const [p, q] = [g.bound(pair[0] as Value), g.bound(pair[1] as Value)];
  const rough = g.options.smooth
    ? []
    : ([
        [element.min, Math.max(p, q)],
        [element.max, Math.max(p, q)],
      ] as const);
  const [op, bound] = g.r.pick([[element.add, p + q], [element.sub, p + q], [element.mul, p * q], ...rough] as const);
  return g.apply(op, pair, {}, bound);
};

/** x / (1 + y²), x / c: never near a zero. */
const quotient: Move = (g) => {
  const x = g.float();
  if (!x) return null;
  if (g.r.chance(0.5)) {
    const c = g.apply(full, [], { ...x.type, value: g.r.pick([1, -1, 2, -0.25, 3]) }, 4);
    return c && g.apply(element.div, [x, c], {}, g.bound(x) * 4);
  }
  const y = g.partner(x);
  const one = g.apply(full, [], { ...x.type, value: 1 }, 1);
  const square = g.apply(element.square, [y], {}, g.bound(y) ** 2);
  const below = one && square && g.apply(element.add, [one, square], {}, g.bound(square) + 1);
  return below && g.apply(element.div, [x, below], {}, g.bound(x));
};

const choice: Move = (g) => {
  const x = g.float();
  if (!x || g.options.smooth) return null;
  const y = g.partner(x);
  const op = g.r.pick([element.lt, element.le, element.gt, element.ge, element.eq, element.ne]);
  let condition = g.apply(op, [x, y], {}, 1);
  const other = g.find((v) => v.type.dtype === "bool" && sameExtents(v.type.shape, x.type.shape));
  if (condition && other && g.r.chance(0.4)) {
    condition = g.apply(g.r.pick([element.and, element.or, element.xor]), [condition, other], {}, 1);
  }
  if (condition && g.r.chance(0.3)) condition = g.apply(element.not, [condition], {}, 1);
  return condition && g.apply(where, [condition, x, y], {}, Math.max(g.bound(x), g.bound(y)));
};

const convert: Move = (g) => {
  const x = g.options.smooth ? g.float() : g.find(() => true);
  const floats: readonly DType[] = ["f32", "f64"];
  const dtype: DType = g.r.pick(g.options.casts ?? (g.options.smooth ? floats : [...floats, "i32", "bool"]));
  return x && g.apply(cast, [x], { dtype }, Math.max(1, g.bound(x)));
};

const reduction: Move = (g) => {
  const x = g.options.smooth ? g.float() : g.find((v) => v.type.dtype !== "bool");
  if (!x || x.type.shape.includes(0)) return null;
  const axes = x.type.shape.map((_, axis) => axis).filter(() => g.r.chance(0.5));
  const op = g.options.smooth ? sum : g.r.pick([sum, sum, reduceMax, reduceMin]);
  const extent = elementsOf(axes.map((axis) => x.type.shape[axis] ?? 1));
  return g.apply(op, [x], { axes }, g.bound(x) * (op === sum ? extent : 1));
};

const movement: Move = (g) => {
  const x = g.find(() => true);
  if (!x) return null;
  const { shape } = x.type;
  const axes = shape.map((_, axis) => axis);
  const n = elementsOf(shape);
  switch (g.r.int(6)) {
    case 0:
      return g.apply(transpose, [x], { perm: g.r.shuffled(axes) }, g.bound(x));
    case 1:
      return g.apply(flip, [x], { axes: axes.filter(() => g.r.chance(0.5)) }, g.bound(x));
    case 2:
      return g.apply(reshape, [x], { shape: n % 2 === 0 && g.r.chance(0.5) ? [2, n / 2] : [n] }, g.bound(x));
    case 3:
      return n * 3 > 500
        ? null
        : g.apply(broadcast, [x], { shape: [3, ...shape], axes: axes.map((a) => a + 1) }, g.bound(x));
    case 4: {
      const start = shape.map((extent) => g.r.int(Math.min(2, extent)));
      return g.apply(slice, [x], { start, limit: shape, stride: shape.map(() => 1 + g.r.int(2)) }, g.bound(x));
    }
    default: {
      const edge = (): number[] => shape.map(() => g.r.int(2));
      return n > 200 ? null : g.apply(pad, [x], { lo: edge(), hi: edge(), interior: edge(), value: 0 }, g.bound(x));
    }
  }
};

const join: Move = (g) => {
  const x = g.find((v) => v.type.shape.length > 0 && elementsOf(v.type.shape) <= 200);
  return x && g.apply(concat, [x, g.partner(x)], { axis: g.r.int(x.type.shape.length) }, Math.max(4, g.bound(x)));
};

const product: Move = (g) => {
  const x = g.find((v) => isFloat(v.type.dtype) && v.type.shape.length === 2);
  if (!x) return null;
  const [m = 1, k = 1] = x.type.shape;
  const w = g.find((v) => v.type.dtype === x.type.dtype && v.type.shape.length === 2 && v.type.shape[0] === k);
  if (w) return g.apply(matmul, [x, w], { ta: false, tb: false }, k * g.bound(x) * g.bound(w));
  const ta = g.r.chance(0.5);
  return g.apply(matmul, [x, x], { ta, tb: !ta }, (ta ? m : k) * g.bound(x) ** 2);
};

const running: Move = (g) => {
  const x = g.find((v) => v.type.dtype !== "bool" && v.type.shape.length > 0);
  if (!x || (g.options.smooth && !isFloat(x.type.dtype))) return null;
  const axis = g.r.int(x.type.shape.length);
  return g.apply(cumsum, [x], { axis, reverse: g.r.chance(0.5) }, g.bound(x) * (x.type.shape[axis] ?? 1));
};

const counter: Move = (g) => {
  const shape = g.r.pick(SHAPES.filter((s) => s.length > 0));
  const made = g.apply(iota, [], { shape, axis: g.r.int(shape.length) }, 33);
  return made && g.apply(cast, [made], { dtype: g.r.pick(g.options.dtypes ?? (["f32", "f64"] as const)) }, 33);
};

/** A copy of an earlier node: a common subexpression, or a recomputation when it has a replay number. */
const again: Move = (g) => {
  if (g.b.nodes.length === 0) return null;
  const node = g.r.pick(g.b.nodes);
  const replay = g.options.phases !== false && g.r.chance(0.4) ? 1 + g.r.int(2) : node.replay;
  const made = g.b.callAll(node.op, node.inputs, node.attrs, { regions: node.regions, replay, name: g.name() });
  for (const [i, value] of made.entries()) g.add(value, g.bound(node.outputs[i] as Value));
  return made[0] ?? null;
};

/** A region over a few values; its inside is grown the same way. */
function region(g: Growth, name: string, inputs: readonly Value[], nodes: number): { graph: Graph; bounds: number[] } {
  const inner = new Growth(g.r, name, { ...g.options, regions: g.r.chance(0.3), phases: false });
  for (const input of inputs) inner.add(inner.b.param(input.type, g.name()), g.bound(input));
  grow(inner, nodes);
  const results = chooseResults(inner, 1 + g.r.int(2));
  return { graph: inner.b.finish(results), bounds: results.map((result) => inner.bound(result)) };
}

const application: Move = (g) => {
  if (g.options.regions === false || g.pool.length === 0) return null;
  const inputs = Array.from({ length: 1 + g.r.int(2) }, () => g.r.pick(g.pool));
  const { graph, bounds } = region(g, "body", inputs, 3);
  const attrs = { checkpoint: g.r.chance(0.5), name: g.r.pick(["", "block", "two words"]) };
  const made = g.b.callAll(call, inputs, attrs, { regions: [graph], name: g.name() });
  for (const [i, value] of made.entries()) g.add(value, bounds[i] ?? 2);
  return made[0] ?? null;
};

/** y = tanh(x) with the derivative ct · (1 - y²) by hand; y is saved. */
const ownDerivative: Move = (g) => {
  const x = g.options.regions === false ? null : g.float();
  if (!x) return null;
  const forward = new Build("forward");
  const y = forward.call(math.tanh, [forward.param(x.type, "x")], {});
  const backward = new Build("backward");
  const [saved, ct] = [backward.param(x.type, "y"), backward.param(x.type, "ct")];
  const square = backward.call(element.square, [saved], {});
  const one = backward.call(full, [], { ...x.type, value: 1 });
  const slope = backward.call(element.sub, [one, square], {});
  const regions = [forward.finish([y, y]), backward.finish([backward.call(element.mul, [ct, slope], {})])];
  const made = g.b.callAll(customVjp, [x], { results: 1 }, { regions, name: g.name() });
  for (const value of made) g.add(value, 1);
  return made[0] ?? null;
};

const MOVES: readonly Move[] = [
  ...[unary, unary, unary, binary, binary, binary, quotient, choice, convert, reduction, reduction, movement, movement],
  ...[join, product, running, counter, again, application, ownDerivative],
];

function grow(g: Growth, nodes: number): void {
  for (let made = 0, tries = 0; made < nodes && tries < 20 * nodes; tries++) {
    if (g.options.phases !== false) {
      if (made > 0.8 * nodes) g.b.phase = "update";
      else if (made > 0.5 * nodes) g.b.phase = "backward";
      g.b.where = g.r.chance(0.5) ? `model.ts:${1 + g.r.int(90)}:${1 + g.r.int(40)}` : undefined;
    }
    if (g.r.pick(MOVES)(g)) made++;
  }
}

/** The last value and some others. */
function chooseResults(g: Growth, count: number): Value[] {
  return Array.from({ length: count }, (_, i) => (i === 0 ? (g.pool[g.pool.length - 1] as Value) : g.r.pick(g.pool)));
}

/** Σ over everything of the last few float values, in the element type of the first. */
function scalarResult(g: Growth): Value {
  const dtype = g.r.pick(g.options.dtypes ?? (["f32", "f64"] as const));
  const last = g.pool.filter((v) => isFloat(v.type.dtype)).slice(-4);
  let total = g.b.call(full, [], { dtype, shape: [], value: 0 });
  for (const value of last) {
    const whole = g.b.call(sum, [value], { axes: value.type.shape.map((_, axis) => axis) });
    const same = whole.type.dtype === dtype ? whole : g.b.call(cast, [whole], { dtype });
    total = g.b.call(element.add, [total, same], {});
  }
  return total;
}

/** A well-formed graph; equal seeds and options give equal graphs. */
export function randomGraph(seed: number, options: RandomGraphOptions = {}): Graph {
  const r = new Random(seed);
  const g = new Growth(r, `random_${seed}`, options);
  const dtypes = options.dtypes ?? (["f32", "f64"] as const);
  for (let i = 0, n = 1 + r.int(4); i < n; i++) g.param(r.pick(dtypes), r.pick(SHAPES));
  grow(g, options.nodes ?? 12);
  return g.b.finish(options.scalar ? [scalarResult(g)] : chooseResults(g, 1 + r.int(3)));
}

const SPECIAL = [0, -0, 1, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 1e-40, 3e38];

/** Inputs in [-2, 2), f32 rounded, integers whole; with `special` also signed zeros, infinities, NaN and extremes. */
export function randomInputs(graph: Graph, seed: number, options: { readonly special?: boolean } = {}): Reference[] {
  const r = new Random(seed ^ 0x5bd1e995);
  const draw = (dtype: DType): number => {
    if (dtype === "bool") return r.int(2);
    if (dtype === "i32") return r.int(9) - 4;
    const x = options.special && r.chance(0.2) ? r.pick(SPECIAL) : r.next() * 4 - 2;
    return typeOf(dtype).round(x);
  };
  return graph.params.map(({ type }) => Float64Array.from({ length: elementsOf(type.shape) }, () => draw(type.dtype)));
}

/** Several graphs as one, side by side. */
export function together(graphs: readonly Graph[]): Graph {
  const b = new Build("together");
  const results = graphs.flatMap((graph) =>
    b.inline(
      graph,
      graph.params.map((param) => b.param(param.type)),
    ),
  );
  return b.finish(results);
}
