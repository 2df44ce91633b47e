/**
 * @file Attention in plain operations, all scores in one tensor: what `attend` and its derivative are differentiated through
 * where their own rule does not serve (forward mode, derivatives of derivatives).
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { INDEX_TYPE, isBool } from "../kernel/dtype.ts";
import { type AttendAttrs, type AttendShape, attendShape, isBias, moreInputs, seenKeys } from "./attend-shape.ts";
import { broadcast, broadcastAlong, sum } from "./broadcast.ts";
import { type FullAttrs, full, fullLike, iota } from "./create.ts";
import { apply } from "./define.ts";
import { add, and, div, eq, ge, le, lt, max, min, mul, sub } from "./elementwise.ts";
import { exp, log } from "./math.ts";
import { matmul } from "./matmul.ts";
import { reshape } from "./movement.ts";
import { randomBernoulli } from "./random.ts";
import { reduceMax } from "./reduce.ts";
import { stopGradient, where } from "./select.ts";

/** Attention under construction. */
class Composed {
  readonly b: Build;
  readonly shape: AttendShape;
  readonly attrs: AttendAttrs;

  constructor(b: Build, inputs: readonly Value[], attrs: AttendAttrs) {
    this.b = b;
    this.attrs = attrs;
    this.shape = attendShape(inputs.map(({ type }) => type));
  }

  /** Rows of all query heads that share keys, as one matrix. */
  grouped(x: Value): Value {
    const { lead, heads, group } = this.shape;
    const [rows, width] = [at(x.type.shape, x.type.shape.length - 2), at(x.type.shape, x.type.shape.length - 1)];
    return this.b.call(reshape, [x], { shape: [...lead, heads, group * rows, width] });
  }

  ungrouped(x: Value): Value {
    const { lead, heads, group } = this.shape;
    const [rows, width] = [at(x.type.shape, x.type.shape.length - 2), at(x.type.shape, x.type.shape.length - 1)];
    return this.b.call(reshape, [x], { shape: [...lead, heads * group, rows / group, width] });
  }

  scaled(q: Value): Value {
    return apply(this.b, mul, q, fullLike(this.b, q, this.attrs.scale));
  }

  /** x·wᵀ, or x·w, for x of query heads and w of key heads. */
  times(x: Value, w: Value, tb: boolean): Value {
    return this.ungrouped(this.b.call(matmul, [this.grouped(x), w], { ta: false, tb }));
  }

  /** xᵀ·y over the queries of all heads that share keys. */
  across(x: Value, y: Value): Value {
    return this.b.call(matmul, [this.grouped(x), this.grouped(y)], { ta: true, tb: false });
  }

  /** Scores after masks. */
  scores(q: Value, k: Value, { mask, length }: AttendMasks): Value {
    const { b } = this;
    const plain = this.times(this.scaled(q), k, true);
    const { shape } = plain.type;
    const hidden = fullLike(b, plain, Number.NEGATIVE_INFINITY);
    let made = plain;
    if (mask) {
      const all = b.call(broadcast, [mask], { shape, axes: shape.map((_, axis) => axis) });
      made = isBool(mask.type.dtype) ? apply(b, where, all, made, hidden) : apply(b, add, made, all);
    }
    const seen = this.#seen(shape, length);
    return seen ? apply(b, where, seen, made, hidden) : made;
  }

  #seen(shape: readonly number[], length: Value | undefined): Value | null {
    const { b } = this;
    const { queries, keys } = this.shape;
    const [least, most] = seenKeys(this.attrs);
    if (least === null && most === null && !length) return null;
    const [i, j] = [shape.length - 2, shape.length - 1].map((axis) => b.call(iota, [], { shape, axis })) as [
      Value,
      Value,
    ];
    const to = (n: number): Value => b.call<FullAttrs>(full, [], { dtype: INDEX_TYPE, shape, value: n });
    const all = length && this.#ofBatches(length, shape);
    // the position of query 0 among the keys
    const later = all && apply(b, max, apply(b, sub, apply(b, min, all, to(keys)), to(queries)), to(0));
    const first = all ? 0 : Math.max(0, keys - queries);
    const apart = apply(b, sub, j, i);
    const distance = later ? apply(b, sub, apart, later) : apart;
    const conditions = [
      ...(least === null ? [] : [apply(b, ge, distance, to(first + least))]),
      ...(most === null ? [] : [apply(b, le, distance, to(first + most))]),
      ...(all ? [apply(b, lt, j, all)] : []),
    ];
    return conditions.reduce<Value | null>((seen, one) => (seen ? apply(b, and, seen, one) : one), null);
  }

  /** A number for each batch, or one for all, for each pair. */
  #ofBatches(length: Value, shape: readonly number[]): Value {
    return this.b.call(broadcast, [length], { shape, axes: length.type.shape.map((_, axis) => axis) });
  }

  /** x of each pair, dropped or scaled up. */
  dropped(x: Value, { key }: AttendMasks): Value {
    const { b } = this;
    const { rate } = this.attrs;
    if (!key) return x;
    const kept = b.call(randomBernoulli, [key], { shape: x.type.shape, stream: 0, p: 1 - rate });
    const scaled = apply(b, mul, x, fullLike(b, x, 1 / (1 - rate)));
    return apply(b, where, kept, scaled, fullLike(b, x, 0));
  }

  /** x where it is not -∞, else 0. */
  finite(x: Value): Value {
    const { b } = this;
    const none = apply(b, eq, x, fullLike(b, x, Number.NEGATIVE_INFINITY));
    return apply(b, where, none, fullLike(b, x, 0), x);
  }

  /** Along the last axis of a shape. */
  along(x: Value, shape: readonly number[]): Value {
    return broadcastAlong(this.b, x, shape, [shape.length - 1]);
  }
}

const named = (name: string, types: readonly TensorType[]): { b: Build; inputs: readonly Value[] } => {
  const b = new Build(name);
  return { b, inputs: types.map((type) => b.param(type)) };
};

/** What hides keys, and what dropout draws from. */
export interface AttendMasks {
  readonly mask: Value | undefined;
  readonly length: Value | undefined;
  readonly key: Value | undefined;
}

/** Masks among inputs, from one of them on. */
export function masksOf(inputs: readonly Value[], from: number, attrs: AttendAttrs): AttendMasks {
  const types = inputs.map(({ type }) => type);
  const numbers = moreInputs(types, from, attrs);
  const [mask, length, key] = [numbers.mask, numbers.length, numbers.key].map((n) => {
    return n === null ? undefined : inputs[n];
  });
  return { mask, length, key };
}

/** q, k, v, mask, length → result, logsum. */
export function composedAttend(types: readonly TensorType[], attrs: AttendAttrs): Graph {
  const { b, inputs } = named("attention", types);
  const c = new Composed(b, inputs, attrs);
  const [q, k, v] = inputs as [Value, Value, Value];
  const { dtype } = q.type;
  const rows = q.type.shape.slice(0, -1);
  const out = [...rows, c.shape.width];
  if (c.shape.keys === 0 || elementsOf(rows) === 0) {
    const zeros = b.call(full, [], { dtype, shape: out, value: 0 });
    return b.finish([zeros, b.call(full, [], { dtype, shape: rows, value: Number.NEGATIVE_INFINITY })]);
  }
  const masks = masksOf(inputs, 3, attrs);
  const scores = c.scores(q, k, masks);
  const axes = [scores.type.shape.length - 1];
  const shift = b.call(stopGradient, [c.finite(b.call(reduceMax, [scores], { axes }))], {});
  const e = apply(b, exp, apply(b, sub, scores, c.along(shift, scores.type.shape)));
  const total = b.call(sum, [e], { axes });
  const empty = apply(b, eq, total, fullLike(b, total, 0));
  const divisor = apply(b, where, empty, fullLike(b, total, 1), total);
  const mean = apply(b, div, c.times(c.dropped(e, masks), v, false), c.along(divisor, out));
  const logsum = apply(b, add, shift, apply(b, log, divisor));
  const none = fullLike(b, logsum, Number.NEGATIVE_INFINITY);
  return b.finish([mean, apply(b, where, empty, none, logsum)]);
}

/** Weights and the derivatives of scores from logsum and delta. */
function derivatives(c: Composed, inputs: AttendBackwardInputs): { readonly p: Value; readonly d: Value } {
  const { b } = c;
  const scores = c.scores(inputs.q, inputs.k, inputs);
  const { shape } = scores.type;
  const p = apply(b, exp, apply(b, sub, scores, c.along(c.finite(inputs.logsum), shape)));
  const slopes = apply(b, sub, c.dropped(c.times(inputs.g, inputs.v, true), inputs), c.along(inputs.delta, shape));
  return { p, d: apply(b, mul, p, slopes) };
}

/** The inputs of the derivative of attention. */
export interface AttendBackwardInputs extends AttendMasks {
  readonly q: Value;
  readonly k: Value;
  readonly v: Value;
  readonly logsum: Value;
  readonly delta: Value;
  readonly g: Value;
}

/** q, k, v, logsum, delta, g, mask, length → dq, dk, dv. */
export function composedBackward(types: readonly TensorType[], attrs: AttendAttrs): Graph {
  const { b, inputs } = named("attention_backward", types);
  const c = new Composed(b, inputs, attrs);
  const [q, k, v, logsum, delta, g] = inputs as [Value, Value, Value, Value, Value, Value];
  const masks = masksOf(inputs, 6, attrs);
  const { p, d } = derivatives(c, { q, k, v, logsum, delta, g, ...masks });
  return b.finish([c.scaled(c.times(d, k, false)), c.across(d, c.scaled(q)), c.across(c.dropped(p, masks), g)]);
}

/** The cotangent of a mask that is added to the scores. */
export function biasCotangent(b: Build, inputs: AttendBackwardInputs, attrs: AttendAttrs): Value {
  const { q, k, v, mask } = inputs;
  const c = new Composed(b, [q, k, v], attrs);
  const { d } = derivatives(c, inputs);
  const shape = mask && isBias(mask.type) ? mask.type.shape : [];
  const axes = d.type.shape.flatMap((n, axis) => (shape[axis] === n ? [] : [axis]));
  return b.call(reshape, [axes.length > 0 ? b.call(sum, [d], { axes }) : d], { shape });
}
