/**
 * @file Attention without its matrix of scores: for q [..., heads, queries, d], k [..., heads', keys, d], v [..., heads', keys, w]
 *
 *   attend             softmax(scale · q·kᵀ + mask) · v, and the logarithm of each query's sum of exponentials
 *   attend_backward    from that logarithm and the cotangent g of the result, the cotangents of q, k and v
 *
 * A mask is added to the scores (floats), or hides keys (bools); it has the rank of the scores, with extents of 1 where it
 * repeats. A length (integers, behind the mask) is the number of keys that there are, of all batches or of each: the result is
 * that of the first so many keys and values. Heads of q are a multiple of those of k: neighbours share one. A query that sees no key has zeros and a logarithm of
 * -∞. With a rate, weights are dropped as a key (the last input) draws them. kernel/attend.ts has the order of arithmetic; docs/decisions/0038-attend.md says why.
 *
 * With s the scores and L the logarithms, p = exp(s - L), and for cotangents g of the result y and h of L:
 *
 *   delta = Σ g∘y - h        ds = p∘(g·vᵀ - delta)        dq = scale · ds·k        dk = scale · dsᵀ·q        dv = pᵀ·g
 */
import { at } from "../base/invariant.ts";
import type { Words } from "../base/random.ts";
import type { BatchSite } from "../ir/batch.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { AttendPart, EvaluateContext, LowerContext, OpDef, Reference, Sample } from "../ir/op.ts";
import { type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { INDEX_TYPE, isBool } from "../kernel/dtype.ts";
import { constant, type Expr, type Index } from "../kernel/expr.ts";
import { addIndex, constIndex, offsetIndex, scaleIndex, valueIndex, ZERO } from "../kernel/index-math.ts";
import { asExpr } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { add, clamp, le, lt, max, mul, pick, sub } from "../kernel/scalar-ops.ts";
import { biasCotangent, composedAttend, composedBackward, masksOf } from "./attend-composed.ts";
import { dropoutFactor, factorOf } from "./attend-dropout.ts";
import {
  type AttendAttrs,
  type AttendShape,
  allPairs,
  attendShape,
  isBias,
  moreInputs,
  requireAttend,
  seenKeys,
} from "./attend-shape.ts";
import { reshaped, withAxis } from "./batch.ts";
import { broadcast, sum } from "./broadcast.ts";
import { requireInputs } from "./checks.ts";
import { apply, defineOp, requireSame } from "./define.ts";
import { sub as difference, mul as multiply } from "./elementwise.ts";
import { THREEFRY_FLOPS } from "./random.ts";

export type { AttendAttrs };

const DEFAULTS: Partial<AttendAttrs> = { causal: false, window: 0, rate: 0 };

/** Of one pair: a product, and its exponential. */
const EXP_FLOPS = 16;

const pairFlops = ({ rate }: AttendAttrs): number => EXP_FLOPS + (rate > 0 ? THREEFRY_FLOPS : 0);

const typesOf = (values: readonly Value[]): readonly TensorType[] => values.map(({ type }) => type);

// ---- lowering -------------------------------------------------------------------------------------------------------

/** Number of a query head from its number among those that share keys. */
function headOf(batch: readonly Index[], group: Index, shape: AttendShape): Index {
  return addIndex(scaleIndex(batch[batch.length - 1] ?? ZERO, shape.group), group);
}

/** Reads of an operand of query heads, [..., heads, queries], or with one more axis. */
function ofQueries(c: LowerContext<AttendAttrs>, input: number, shape: AttendShape) {
  return (batch: readonly Index[], group: Index, last: readonly Index[]): Expr => {
    const head = headOf(batch, group, shape);
    return at(c.inputs, input)(Position.at(at(c.inTypes, input).shape, [...batch.slice(0, -1), head, ...last]));
  };
}

/** Reads of an operand of key heads. */
function ofKeys(c: LowerContext<AttendAttrs>, input: number) {
  return (batch: readonly Index[], j: Index, l: Index): Expr =>
    at(c.inputs, input)(Position.at(at(c.inTypes, input).shape, [...batch, j, l]));
}

/** Keys that there are, and the number of the key that query 0 is at. */
function lengthOf(c: LowerContext<AttendAttrs>, { queries, keys }: AttendShape, input: number | null) {
  return (batch: readonly Index[]): { readonly length: Index | null; readonly first: Index } => {
    if (input === null) return { length: null, first: constIndex(Math.max(0, keys - queries)) };
    const { shape } = at(c.inTypes, input);
    const read = at(c.inputs, input)(Position.at(shape, shape.length === 0 ? [] : batch.slice(0, -1)));
    const given = clamp(read, 0, keys);
    const later = keys - queries;
    const first = later <= 0 ? ZERO : valueIndex(max(sub(given, queries), 0), 0, later);
    return { length: valueIndex(given, 0, keys), first };
  };
}

type Lengths = ReturnType<typeof lengthOf>;

/** By how much the number of a key differs from that of a query that sees it. */
const seenFrom = (attrs: AttendAttrs, first: Index): readonly [Index | null, Index | null] => {
  const [least, most] = seenKeys(attrs);
  return [least === null ? null : offsetIndex(first, least), most === null ? null : offsetIndex(first, most)];
};

/** The score of a pair from the product of its query and key. */
function scoreOf(
  c: LowerContext<AttendAttrs>,
  shape: AttendShape,
  maskInput: number | null,
  lengths: Lengths,
): AttendPart["score"] {
  return (batch, group, [i, j], product) => {
    const hidden = constant(product.dtype, Number.NEGATIVE_INFINITY);
    let score = mul(product, c.attrs.scale);
    if (maskInput !== null) {
      const mask = at(c.inTypes, maskInput);
      const place = [...batch.slice(0, -1), headOf(batch, group, shape), i, j];
      const own = place.map((index, axis) => (mask.shape[axis] === 1 ? ZERO : index));
      const read = at(c.inputs, maskInput)(Position.at(mask.shape, own));
      score = isBool(mask.dtype) ? pick(read, score, hidden) : add(score, read);
    }
    const { length, first } = lengths(batch);
    const [least, most] = seenFrom(c.attrs, first);
    const distance = asExpr(addIndex(j, scaleIndex(i, -1)));
    if (most) score = pick(le(distance, asValue(most)), score, hidden);
    if (least) score = pick(le(asValue(least), distance), score, hidden);
    if (length) score = pick(lt(asExpr(j), asValue(length)), score, hidden);
    return score;
  };
}

/** An index as a value. */
const asValue = (index: Index): Expr => (index.terms.length === 0 ? constant(INDEX_TYPE, index.offset) : asExpr(index));

/** `from`: the input where a mask or a length would be. */
function partOf(c: LowerContext<AttendAttrs>, from: number): AttendPart {
  const shape = attendShape(c.inTypes);
  const more = moreInputs(c.inTypes, from, c.attrs);
  const factor = more.key === null ? null : dropoutFactor(c, shape, more.key);
  const lengths = lengthOf(c, shape, more.length);
  const q = ofQueries(c, 0, shape);
  return {
    batch: [...shape.lead, shape.heads],
    group: shape.group,
    rows: shape.queries,
    cols: shape.keys,
    depth: shape.depth,
    width: shape.width,
    length: (batch) => lengths(batch).length,
    sees: (batch) => seenFrom(c.attrs, lengths(batch).first),
    q: (batch, group, i, l) => q(batch, group, [i, l]),
    k: ofKeys(c, 1),
    v: ofKeys(c, 2),
    score: scoreOf(c, shape, more.mask, lengths),
    weight: (batch, group, [i, j], dtype) =>
      factor?.([...batch.slice(0, -1), headOf(batch, group, shape), i], j, dtype) ?? null,
    head: (batch, group) => headOf(batch, group, shape),
    backward: null,
  };
}

// ---- reference ------------------------------------------------------------------------------------------------------

/** Of one query: scores of all keys, and factors of their weights. */
interface Pairs {
  readonly scores: Float64Array;
  readonly factors: Float64Array;
}

/** Calls `visit` for every query head and query with the scores of all keys, and where its elements begin. */
function forEachQuery(
  { inputs, inTypes, attrs }: EvaluateContext<AttendAttrs>,
  from: number,
  visit: (row: number, head: number, pairs: Pairs) => void,
): void {
  const shape = attendShape(inTypes);
  const { lead, heads, group, queries, keys, depth } = shape;
  const more = moreInputs(inTypes, from, attrs);
  const drawn = more.key === null ? () => 1 : factorOf([...at(inputs, more.key)] as unknown as Words, attrs.rate);
  const [q, k] = [at(inputs, 0), at(inputs, 1)];
  const [mask, maskType] = more.mask === null ? [] : [inputs[more.mask], inTypes[more.mask]];
  const lengths = more.length === null ? [keys] : at(inputs, more.length);
  const [scores, factors] = [new Float64Array(keys), new Float64Array(keys)];
  const outer = [...lead, heads * group];
  for (let h = 0; h < elementsOf(outer); h++) {
    const given = lengths[lengths.length === 1 ? 0 : Math.floor(h / (heads * group))] ?? keys;
    const length = Math.min(Math.max(0, given), keys);
    const [least, most] = seenKeys(attrs).map((by) => (by === null ? null : by + Math.max(0, length - queries)));
    for (let i = 0; i < queries; i++) {
      const [row, keyHead] = [h * queries + i, Math.floor(h / group)];
      for (let j = 0; j < keys; j++) {
        let score = 0;
        for (let l = 0; l < depth; l++) {
          score += at(q, row * depth + l) * at(k, (keyHead * keys + j) * depth + l);
        }
        score *= attrs.scale;
        if (mask && maskType) {
          const m = at(mask, maskElement(maskType, outer, [h, i, j]));
          if (isBool(maskType.dtype)) score = m === 0 ? Number.NEGATIVE_INFINITY : score;
          else score += m;
        }
        const isSeen = j - i >= (least ?? Number.NEGATIVE_INFINITY) && j - i <= (most ?? Number.POSITIVE_INFINITY);
        scores[j] = isSeen && j < length ? score : Number.NEGATIVE_INFINITY;
        factors[j] = drawn(row * keys + j);
      }
      visit(row, keyHead, { scores, factors });
    }
  }
}

/** Number of a mask's element for a head (among all), a query and a key. */
function maskElement({ shape }: TensorType, outer: readonly number[], [h, i, j]: readonly number[]): number {
  const place: number[] = [i ?? 0, j ?? 0];
  let rest = h ?? 0;
  for (const extent of [...outer].reverse()) {
    place.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return place.reduce((n, p, axis) => n * (shape[axis] ?? 1) + (shape[axis] === 1 ? 0 : p), 0);
}

function evaluateAttend(c: EvaluateContext<AttendAttrs>): readonly Reference[] {
  const { keys, width } = attendShape(c.inTypes);
  const [out, logsum] = c.outTypes.map((type) => new Float64Array(elementsOf(type.shape))) as [Reference, Reference];
  const v = at(c.inputs, 2);
  forEachQuery(c, 3, (row, head, { scores, factors }) => {
    const most = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    const e = scores.map((s) => (most === Number.NEGATIVE_INFINITY ? 0 : Math.exp(s - most)));
    const total = e.reduce((a, b) => a + b, 0);
    logsum[row] = most + Math.log(total);
    for (let w = 0; w < width; w++) {
      let mean = 0;
      for (let j = 0; j < keys; j++) mean += at(e, j) * at(factors, j) * at(v, (head * keys + j) * width + w);
      out[row * width + w] = total === 0 ? 0 : mean / total;
    }
  });
  return [out, logsum];
}

function evaluateBackward(c: EvaluateContext<AttendAttrs>): readonly Reference[] {
  const { keys, width, depth } = attendShape(c.inTypes);
  const [dq, dk, dv] = c.outTypes.map((type) => new Float64Array(elementsOf(type.shape))) as Reference[];
  const [q, k, v, logsum, delta, g] = c.inputs as Reference[];
  const plus = (to: Reference | undefined, e: number, by: number): void => {
    if (to) to[e] = (to[e] ?? 0) + by;
  };
  forEachQuery(c, 6, (row, head, { scores, factors }) => {
    const shift = logsum?.[row] ?? 0;
    for (let j = 0; j < keys; j++) {
      const p = Math.exp(at(scores, j) - (shift === Number.NEGATIVE_INFINITY ? 0 : shift));
      const key = head * keys + j;
      let slope = -(delta?.[row] ?? 0);
      for (let w = 0; w < width; w++) {
        slope += at(factors, j) * (g?.[row * width + w] ?? 0) * (v?.[key * width + w] ?? 0);
        plus(dv, key * width + w, p * at(factors, j) * (g?.[row * width + w] ?? 0));
      }
      for (let l = 0; l < depth; l++) {
        plus(dq, row * depth + l, p * slope * c.attrs.scale * (k?.[key * depth + l] ?? 0));
        plus(dk, key * depth + l, p * slope * c.attrs.scale * (q?.[row * depth + l] ?? 0));
      }
    }
  });
  return [dq, dk, dv] as Reference[];
}

// ---- samples --------------------------------------------------------------------------------------------------------

/** Batches, heads of q and of k; queries, keys, depth and width. */
type Case = readonly [batch: number, heads: number, keyHeads: number, ...extents: readonly number[]];

interface SampleCase {
  readonly of: Case;
  readonly attrs?: Partial<AttendAttrs>;
  readonly mask?: TensorType;
  readonly length?: TensorType;
  readonly dtype?: "f32" | "f64";
  readonly smooth?: false;
}

/** Blocks of 64 and their ends, limits on both sides, shared keys, masks of both kinds, lengths, empty extents. */
const CASES: readonly SampleCase[] = [
  { of: [2, 2, 1, 3, 4, 5, 2], attrs: { causal: true } },
  { of: [1, 1, 1, 5, 4, 3, 3], attrs: { window: 2 }, dtype: "f64" },
  { of: [1, 2, 2, 3, 3, 2, 2], mask: tensorType("f32", [1, 2, 3, 3]) },
  { of: [2, 2, 2, 4, 3, 2, 2], mask: tensorType("bool", [2, 1, 1, 3]), smooth: false },
  { of: [1, 2, 1, 66, 130, 16, 5], attrs: { causal: true, window: 40 }, smooth: false },
  { of: [2, 2, 1, 3, 5, 2, 2], attrs: { causal: true }, length: tensorType("i32", [2]) },
  {
    ...{ of: [1, 2, 1, 70, 140, 2, 2], attrs: { causal: true, window: 50 }, smooth: false },
    ...{ mask: tensorType("bool", [1, 1, 1, 140]), length: tensorType("i32", []) },
  },
  { of: [2, 2, 1, 3, 4, 2, 2], attrs: { causal: true, rate: 0.4 }, length: tensorType("i32", [2]) },
  { of: [1, 2, 1, 70, 80, 2, 2], attrs: { rate: 0.3 }, smooth: false },
  { of: [1, 1, 1, 2, 3, 520, 1], smooth: false },
  { of: [1, 1, 1, 3, 0, 2, 2], smooth: false },
  { of: [1, 1, 1, 0, 3, 2, 2] },
  { of: [1, 1, 1, 2, 3, 0, 2] },
];

function samplesOf(more: (q: TensorType, v: TensorType) => readonly TensorType[]): readonly Sample<AttendAttrs>[] {
  return CASES.map(
    ({ of: [batch, heads, keyHeads, ...extents], attrs, mask, length, dtype = "f32", smooth = true }) => {
      const [queries = 0, keys = 0, depth = 0, width = 0] = extents;
      const q = tensorType(dtype, [batch, heads, queries, depth]);
      const v = tensorType(dtype, [batch, keyHeads, keys, width]);
      const key = attrs?.rate ? tensorType("i32", [2]) : undefined;
      const last = [mask, length, key].filter((type) => type !== undefined);
      const inputs = [q, tensorType(dtype, [batch, keyHeads, keys, depth]), v, ...more(q, v), ...last];
      const ranges = inputs.map((type): readonly [number, number] => {
        if (type === length) return [-1, keys + 2];
        if (type === key) return [-1000, 1000];
        return type === mask && isBool(type.dtype) ? [0, 2] : [-1, 1];
      });
      return { inputs, attrs: { scale: 0.5, causal: false, window: 0, rate: 0, ...attrs }, range: ranges, smooth };
    },
  );
}

// ---- operations -----------------------------------------------------------------------------------------------------

/** q, k, v, mask, length → result, logsum, then all that the backward graph reads. */
function forwardGraph(types: readonly TensorType[], attrs: AttendAttrs): Graph {
  const b = new Build("attend_forward");
  const inputs = types.map((type) => b.param(type));
  const made = b.callAll(attend, inputs, attrs);
  return b.finish([...made, ...inputs, ...made]);
}

function backwardGraph(types: readonly TensorType[], attrs: AttendAttrs): Graph {
  const b = new Build("attend_cotangents");
  b.phase = "backward";
  const inputs = types.map((type) => b.param(type));
  const [q, k, v, ...more] = inputs as [Value, Value, Value, ...Value[]];
  const [outType, sumType] = attend.infer(types, attrs, []) as [TensorType, TensorType];
  const [out, logsum] = [b.param(outType), b.param(sumType)];
  const [g, h] = [b.param(outType), b.param(sumType)];
  const dots = b.call(sum, [apply(b, multiply, g, out)], { axes: [outType.shape.length - 1] });
  const delta = apply(b, difference, dots, h);
  const made = b.callAll(attendBackward, [q, k, v, logsum, delta, g, ...more], attrs);
  const { mask, ...others } = masksOf(inputs, 3, attrs);
  if (!isBias(mask?.type)) return b.finish(made);
  return b.finish([...made, biasCotangent(b, { q, k, v, mask, ...others, logsum, delta, g }, attrs)]);
}

/** Whether inputs are those that are needed, and no more than a mask, a length and a key besides. */
const isNumber = (inputs: readonly TensorType[], needed: number, attrs: AttendAttrs): boolean =>
  inputs.length >= needed && moreInputs(inputs, needed, attrs).end === inputs.length;

/**
 * Cut along a batch axis, or along heads that do not share keys; a mask is whole where it repeats. With dropout there is no cut:
 * pairs draw by their number among all scores.
 */
const attendStrips: StripForms<AttendAttrs> = (inputs, outputs, attrs) => {
  if (attrs.rate > 0) return [];
  const rank = at(inputs, 0).shape.length;
  const batches = Array.from({ length: attendShape(inputs).group === 1 ? rank - 2 : rank - 3 }, (_, axis) => axis);
  const cut = ({ shape }: TensorType, axis: number): number | null =>
    shape[axis] === at(inputs, 0).shape[axis] ? axis : null;
  return batches.map((axis) =>
    sameAttrs(
      inputs.map((type) => cut(type, axis)),
      outputs.map(() => axis),
      attrs,
    ),
  );
};

/**
 * A batch is a leading axis more; a mask that does not vary repeats, a length is one for each batch. With dropout there is no rule:
 * pairs draw by their number among all scores.
 */
const attendOfBatch =
  (from: number, applied: (b: Build, x: readonly Value[], attrs: AttendAttrs) => readonly Value[]) =>
  (b: Build, site: BatchSite<AttendAttrs>): readonly Value[] | null => {
    const { x, batched, size, attrs } = site;
    if (attrs.rate > 0) return null;
    const { mask, length } = moreInputs(typesOf(x), from, attrs);
    const lead = at(x, 0).type.shape.slice(batched[0] ? 1 : 0, -3);
    const operands = x.map((value, i) => {
      const { shape } = value.type;
      if (i === mask && !batched[i]) return reshaped(b, value, [1, ...shape]);
      if (i !== length || shape.length === (batched[i] ? 1 + lead.length : lead.length)) return withAxis(b, site, i);
      // one number for all batches
      return batched[i] ? b.call(broadcast, [value], { shape: [size, ...lead], axes: [0] }) : value;
    });
    return applied(b, operands, attrs);
  };

export const attend: OpDef<AttendAttrs> = defineOp<AttendAttrs>({
  name: "attend",
  defaults: DEFAULTS,
  batch: { kind: "general", apply: attendOfBatch(3, (b, x, attrs) => b.callAll(attend, x, attrs)) },
  facts: { strips: attendStrips },
  infer(inputs, attrs) {
    if (!isNumber(inputs, 3, attrs)) requireInputs("attend", ["q", "k", "v"], inputs);
    const { width } = requireAttend("attend", inputs, attrs);
    const { dtype, shape } = at(inputs, 0);
    return [tensorType(dtype, [...shape.slice(0, -1), width]), tensorType(dtype, shape.slice(0, -1))];
  },
  derivative: {
    kind: "region",
    rule({ inputs, attrs }: Node) {
      const [types, own] = [typesOf(inputs), attrs as AttendAttrs];
      return {
        kind: "custom_vjp",
        maker: "attend",
        results: 2,
        forward: forwardGraph(types, own),
        backward: backwardGraph(types, own),
        // only where it is asked for: it has all scores, which may be more elements than a tensor can have
        get expansion() {
          return composedAttend(types, own);
        },
      };
    },
  },
  cost(inputs, _, attrs) {
    const shape = attendShape(inputs);
    return { flops: allPairs(shape, attrs) * (2 * shape.depth + 2 * shape.width + pairFlops(attrs)) };
  },
  lower: { kind: "attend", part: (c) => partOf(c, 3) },
  evaluate: evaluateAttend,
  samples: () => samplesOf(() => []),
});

export const attendBackward: OpDef<AttendAttrs> = defineOp<AttendAttrs>({
  name: "attend_backward",
  defaults: DEFAULTS,
  batch: { kind: "general", apply: attendOfBatch(6, (b, x, attrs) => b.callAll(attendBackward, x, attrs)) },
  // dv = Pᵀ·g, and dq, dk from P∘(g·vᵀ - delta): in the cotangent and its dot product with the result, together
  facts: { strips: attendStrips, linearIn: [4, 5] },
  infer(inputs, attrs) {
    const roles = ["q", "k", "v", "logsum", "delta", "g"];
    if (!isNumber(inputs, 6, attrs)) requireInputs("attend_backward", roles, inputs);
    const [q, k, v, logsum, delta, g] = inputs as [
      TensorType,
      TensorType,
      TensorType,
      TensorType,
      TensorType,
      TensorType,
    ];
    const { width } = requireAttend("attend_backward", [q, k, v, ...inputs.slice(6)], attrs);
    requireSame("attend_backward", [logsum, delta, tensorType(q.dtype, q.shape.slice(0, -1))]);
    requireSame("attend_backward", [g, tensorType(q.dtype, [...q.shape.slice(0, -1), width])]);
    return [q, k, v];
  },
  derivative: {
    kind: "region",
    rule: ({ inputs, attrs }) => ({ kind: "replay", body: composedBackward(typesOf(inputs), attrs as AttendAttrs) }),
  },
  cost(inputs, _, attrs) {
    const shape = attendShape(inputs);
    return { flops: allPairs(shape, attrs) * (6 * shape.depth + 4 * shape.width + pairFlops(attrs)) };
  },
  lower: {
    kind: "attend",
    part(c) {
      const shape = attendShape(c.inTypes);
      const [logsum, delta, g] = [ofQueries(c, 3, shape), ofQueries(c, 4, shape), ofQueries(c, 5, shape)];
      return {
        ...partOf(c, 6),
        backward: {
          scale: c.attrs.scale,
          logsum: (batch, group, i) => logsum(batch, group, [i]),
          delta: (batch, group, i) => delta(batch, group, [i]),
          g: (batch, group, i, l) => g(batch, group, [i, l]),
        },
      };
    },
  },
  evaluate: evaluateBackward,
  samples: () =>
    samplesOf((q, v) => {
      const rows = q.shape.slice(0, -1);
      const row = tensorType(q.dtype, rows);
      return [row, row, tensorType(q.dtype, [...rows, v.shape.at(-1) ?? 0])];
    }),
});
