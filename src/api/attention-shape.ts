/**
 * @file Extents of attention from its operands: leading axes are broadcast against each other, heads of keys and values are
 * shared by neighbouring heads of queries. Whatever does not fit is refused here, in the words of the function that was called.
 */
import { at } from "../base/invariant.ts";
import { type Shape, sameShape, shapeText, typeText } from "../ir/type.ts";
import { isBool, isIndexType } from "../kernel/dtype.ts";
import { fail } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { isPlaced } from "./autocast-mode.ts";
import { requireFloat } from "./operands.ts";

/** q, k and v. */
export type Operands = readonly [q: Tensor, k: Tensor, v: Tensor];

export interface AttentionShape {
  /** Axes before that of heads. */
  readonly lead: Shape;
  /** Of queries, and of keys and values. */
  readonly heads: number;
  readonly keyHeads: number;
  readonly queries: number;
  readonly keys: number;
  readonly depth: number;
  readonly width: number;
  /** With no axis of heads where all operands are matrices. */
  readonly scores: Shape;
}

const textOf = ([q, k, v]: Operands): string => `q ${typeText(q)}, k ${typeText(k)}, v ${typeText(v)}`;

/** Broadcast of extents from the right; null where two differ. */
function broadcast(shapes: readonly Shape[]): Shape | null {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  const made: number[] = [];
  for (let axis = 1; axis <= rank; axis++) {
    const extents = new Set(shapes.map((shape) => shape.at(-axis) ?? 1).filter((n) => n !== 1));
    if (extents.size > 1) return null;
    made.unshift([...extents][0] ?? 1);
  }
  return made;
}

function requireTypes(all: Operands): void {
  const [q, k, v] = all;
  requireFloat("attention", q);
  if (k.dtype === q.dtype && v.dtype === q.dtype) return;
  fail("DtypeMismatch", `attention: element types differ: ${textOf(all)}`, `convert them: cast(k, "${q.dtype}")`);
}

/** Heads of queries and of keys; one head of queries may be there for all of keys. */
function headsOf(all: Operands): readonly [heads: number, keyHeads: number] {
  const [ofQ, ...others] = all.map(({ shape }) => shape.at(-3) ?? 1) as [number, number, number];
  const shared = broadcast(others.map((n) => [n]))?.[0];
  if (shared === undefined || !(ofQ === 1 || ofQ === shared || ofQ % shared === 0)) {
    const summary = `attention: ${ofQ} heads of q, ${others.join(" and ")} of k and v: ${textOf(all)}`;
    fail("ShapeMismatch", summary, "k and v have the same heads, and q a whole number for each");
  }
  return [ofQ === 1 ? shared : ofQ, shared];
}

/** Checks q, k and v. */
export function attentionShape(all: Operands): AttentionShape {
  const [q, k, v] = all;
  if (all.some(({ rank }) => rank < 2)) {
    const summary = `attention: takes [..., positions, depth], got ${typeText(q)}, ${typeText(k)}, ${typeText(v)}`;
    fail("ShapeMismatch", summary, "add axes with expandDims");
  }
  requireTypes(all);
  const [queries, depth] = [at(q.shape, q.rank - 2), at(q.shape, q.rank - 1)];
  const [keys, width] = [at(k.shape, k.rank - 2), at(v.shape, v.rank - 1)];
  if (k.shape.at(-1) !== depth) {
    const summary = `attention: queries have ${depth} elements, keys ${k.shape.at(-1)}: ${textOf(all)}`;
    fail("ShapeMismatch", summary, "q is [..., queries, depth], k is [..., keys, depth]");
  }
  if (v.shape.at(-2) !== keys) {
    const summary = `attention: ${keys} keys, ${v.shape.at(-2)} values: ${textOf(all)}`;
    fail("ShapeMismatch", summary, "k is [..., keys, depth], v is [..., keys, width]");
  }
  const lead = broadcast(all.map(({ shape }) => shape.slice(0, -3)));
  if (!lead) {
    fail("ShapeMismatch", `attention: leading axes differ: ${textOf(all)}`, "each is as long as the others', or 1");
  }
  const [heads, keyHeads] = headsOf(all);
  const isMatrix = all.every(({ rank }) => rank === 2);
  const scores = isMatrix ? [queries, keys] : [...lead, heads, queries, keys];
  return { lead, heads, keyHeads, queries, keys, depth, width, scores };
}

/** Checks that a mask fits the scores: it is repeated, they are not. */
export function requireMask(mask: Tensor, { scores }: AttentionShape, q: Tensor): void {
  if (!isBool(mask.dtype) && mask.dtype !== q.dtype && !isPlaced(mask, q.dtype)) {
    fail(
      "DtypeMismatch",
      `attention: the mask is ${typeText(mask)}, the scores are ${q.dtype}`,
      `give bool, true where a query may see a key, or ${q.dtype}, which is added to the scores`,
    );
  }
  const own = scores.slice(Math.max(0, scores.length - mask.rank));
  if (mask.rank <= scores.length && mask.shape.every((n, axis) => n === 1 || n === own[axis])) return;
  const summary = `attention: the mask is ${typeText(mask)}, the scores are ${shapeText(scores)}`;
  fail("ShapeMismatch", summary, "each of its axes, from the last, is as long as that of the scores, or 1");
}

/** Checks a number of keys for all batches, or for each. */
export function requireLength(length: Tensor, { lead }: AttentionShape): void {
  if (isIndexType(length.dtype) && (length.rank === 0 || sameShape(length.shape, lead))) return;
  const each = lead.length > 0 ? `, or one for each batch, i32${shapeText(lead)}` : "";
  fail("ShapeMismatch", `attention: the length is ${typeText(length)}`, `give one number, i32[]${each}`);
}

/** Checks a rate, and that there is a key to draw from. */
export function requireDropout({ dropout = 0, key }: { readonly dropout?: number; readonly key?: Tensor }): void {
  if (!(dropout >= 0 && dropout < 1)) {
    fail("InvalidArgument", `attention: dropout is ${dropout}`, "a rate is at least 0 and below 1");
  }
  if (dropout === 0 || (key && isIndexType(key.dtype) && sameShape(key.shape, [2]))) return;
  const got = key ? `its key is ${typeText(key)}` : "there is no key to draw from";
  fail("InvalidArgument", `attention: dropout of ${dropout}, and ${got}`, "give a key, i32[2]: random.key(seed)");
}
