/** @file What `attend` and its derivative have in common: operands, which keys a query sees, and the checks of both. */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { elementsOf, sameShape, shapeText, type TensorType, typeText } from "../ir/type.ts";
import { isBool, isFloat, isIndexType } from "../kernel/dtype.ts";
import { requireSameDtype } from "./checks.ts";
import { requireDomain } from "./define.ts";

export type AttendAttrs = {
  /** Factor of the queries. */
  readonly scale: number;
  /** Query i sees keys up to its own position: i, or, where there are more keys than queries, counted from the ends. */
  readonly causal: boolean;
  /** Query i sees keys less than so far away, counted in the same way; 0: all. */
  readonly window: number;
  /** Part of the weights that is dropped after the softmax; where it is not 0, there is a key to draw from. */
  readonly rate: number;
};

/** The extents of attention: queries of `heads`, in groups that share keys and values. */
export interface AttendShape {
  readonly lead: readonly number[];
  /** Heads of keys, and query heads for each. */
  readonly heads: number;
  readonly group: number;
  readonly queries: number;
  readonly keys: number;
  readonly depth: number;
  readonly width: number;
}

export function attendShape([q, k, v]: readonly TensorType[]): AttendShape {
  const [ofQ, ofK, ofV] = [q?.shape ?? [], k?.shape ?? [], v?.shape ?? []];
  const heads = ofK.at(-3) ?? 1;
  return {
    lead: ofQ.slice(0, -3),
    heads,
    group: heads === 0 ? 1 : (ofQ.at(-3) ?? 1) / heads,
    queries: ofQ.at(-2) ?? 1,
    keys: ofK.at(-2) ?? 1,
    depth: ofQ.at(-1) ?? 1,
    width: ofV.at(-1) ?? 1,
  };
}

/** A query sees no key that is not between these, counted from its own position; null: no limit. */
export function seenKeys({ causal, window }: AttendAttrs): readonly [least: number | null, most: number | null] {
  const near = window > 0 ? window - 1 : null;
  return [near === null ? null : -near, causal ? 0 : near];
}

/** Numbers of the inputs from one on: a mask is not of integers, a length is, a key is the last. */
export interface MoreInputs {
  readonly mask: number | null;
  readonly length: number | null;
  readonly key: number | null;
  /** The first that is none of them. */
  readonly end: number;
}

export function moreInputs(types: readonly TensorType[], from: number, { rate }: AttendAttrs): MoreInputs {
  const isWhole = (type: TensorType | undefined): boolean => type !== undefined && isIndexType(type.dtype);
  const last = rate > 0 && types.length > from ? types.length - 1 : types.length;
  const mask = from < last && !isWhole(types[from]) ? from : null;
  const next = mask === null ? from : from + 1;
  const length = next < last && isWhole(types[next]) ? next : null;
  const end = length === null ? next : next + 1;
  return { mask, length, key: last < types.length ? last : null, end: end === last ? types.length : end };
}

/** Pairs of a query and a key that it sees, of one head. */
export function seenPairs(shape: AttendShape, attrs: AttendAttrs): number {
  const { queries, keys } = shape;
  const first = Math.max(0, keys - queries);
  const [least, most] = seenKeys(attrs).map((by) => (by === null ? null : by + first)) as [
    number | null,
    number | null,
  ];
  if (least === null && most === null) return queries * keys;
  let pairs = 0;
  for (let i = 0; i < queries; i++) {
    const from = Math.max(0, i + (least ?? -i));
    const to = Math.min(keys - 1, i + (most ?? keys));
    pairs += Math.max(0, to - from + 1);
  }
  return pairs;
}

/** Pairs of all heads. */
export const allPairs = (shape: AttendShape, attrs: AttendAttrs): number =>
  elementsOf(shape.lead) * shape.heads * shape.group * seenPairs(shape, attrs);

const wrong = (summary: string, help: string): TidemarkError => new TidemarkError("ShapeMismatch", summary, { help });

function requireAttrs(name: string, { scale, window, rate }: AttendAttrs): void {
  if (!(rate >= 0 && rate < 1)) {
    throw new TidemarkError("InvalidArgument", `${name}: rate is ${rate}`, { help: "it is at least 0 and below 1" });
  }
  if (!Number.isFinite(scale)) {
    throw new TidemarkError("InvalidArgument", `${name}: scale is ${scale}`, { help: "give a finite number" });
  }
  if (Number.isSafeInteger(window) && window >= 0 && window < 2 ** 30) return;
  throw new TidemarkError("InvalidArgument", `${name}: window is ${window}`, {
    help: "give a whole number of keys, or 0 for all",
  });
}

/** A mask of the scores' rank: each extent that of the scores, or 1. */
function requireMask(name: string, mask: TensorType, q: TensorType, scores: readonly number[]): void {
  const fits = mask.shape.length === scores.length && mask.shape.every((n, i) => n === 1 || n === scores[i]);
  if (!fits) {
    const summary = `${name}: the mask is ${typeText(mask)}, the scores are ${shapeText(scores)}`;
    throw wrong(summary, "give it as many axes, each as long as that of the scores, or 1");
  }
  if (!isBool(mask.dtype)) requireSameDtype(name, ["q", "mask"], q, mask);
}

/** One number of keys, or one for each batch. */
function requireLength(name: string, length: TensorType, lead: readonly number[]): void {
  if (length.shape.length === 0 || sameShape(length.shape, lead)) return;
  const summary = `${name}: the length is ${typeText(length)}, batches are ${shapeText(lead)}`;
  throw wrong(summary, `give one number, i32[], or one for each batch, i32${shapeText(lead)}`);
}

/** Checks q, k, v, and a mask and a length where there are any; their extents. */
export function requireAttend(name: string, inputs: readonly TensorType[], attrs: AttendAttrs): AttendShape {
  requireAttrs(name, attrs);
  const [q, k, v] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
  requireDomain(name, "float", [q, k, v]);
  requireSameDtype(name, ["q", "k"], q, k);
  requireSameDtype(name, ["q", "v"], q, v);
  const all = `q ${typeText(q)}, k ${typeText(k)}, v ${typeText(v)}`;
  if (q.shape.length < 3 || k.shape.length !== q.shape.length || v.shape.length !== q.shape.length) {
    throw wrong(`${name}: takes tensors of one rank, 3 or more, got ${all}`, "they are [..., heads, positions, width]");
  }
  const shape = attendShape(inputs);
  const lead = (x: TensorType): readonly number[] => x.shape.slice(0, -3);
  if (!sameShape(lead(q), lead(k)) || !sameShape(k.shape.slice(0, -1), v.shape.slice(0, -1))) {
    throw wrong(
      `${name}: leading axes differ: ${all}`,
      "k and v have the same heads and positions, q the same batches",
    );
  }
  if (q.shape.at(-1) !== k.shape.at(-1)) {
    throw wrong(`${name}: the widths of q and k differ: ${all}`, "both are [..., positions, width]");
  }
  const ofQ = at(q.shape, q.shape.length - 3);
  if (!Number.isInteger(shape.group) || shape.heads * shape.group !== ofQ) {
    throw wrong(
      `${name}: ${ofQ} heads of q, ${shape.heads} of k: ${all}`,
      "q has a whole number of heads for each of k",
    );
  }
  const { mask, length, key } = moreInputs(inputs, 3, attrs);
  if (mask !== null) requireMask(name, at(inputs, mask), q, [...q.shape.slice(0, -1), shape.keys]);
  if (length !== null) requireLength(name, at(inputs, length), shape.lead);
  if (attrs.rate > 0) requireKey(name, key === null ? undefined : inputs[key]);
  return shape;
}

function requireKey(name: string, key: TensorType | undefined): void {
  if (key && isIndexType(key.dtype) && sameShape(key.shape, [2])) return;
  throw wrong(
    `${name}: dropout draws from a key, i32[2], got ${key ? typeText(key) : "none"}`,
    "give it as last input",
  );
}

/** Whether a mask is differentiated: floats are added to the scores. */
export const isBias = (mask: TensorType | undefined): mask is TensorType => mask !== undefined && isFloat(mask.dtype);
