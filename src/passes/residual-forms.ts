/**
 * @file The forms in which a value that the backward pass reads may be kept, each made of ordinary nodes: those that make what is kept,
 * behind the node that makes the value, and those that compute the value from it where it is read.
 *
 *   4, say           x → group_min, group_max, pack_groups     → unpack_groups          bits for each element (ops/rounding.ts)
 *   "bf16"           x → keep_short                            → widen                  rounded to the nearest bf16
 *   { sparse: 0.1 }  x → |x| → argsort → gather, pack_codes    → scatter_add_along      the largest of every 256 and their places
 *   { rank: 16 }     x → x·q, q = qr(xᵀ·(x·random)).q          → (x·q)·qᵀ               projected to 16 dimensions
 *
 * A value with few numbers that are not zero is whole in the sparse form, and one of low rank nearly so. Neither is unbiased, so
 * only values that all gradients are linear in have them.
 */
import { erfinv } from "../base/special.ts";
import type { Node, Value } from "../ir/graph.ts";
import { newValue, resultOf } from "../ir/graph.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { byteLength, elementsOf, type TensorType, tensorType } from "../ir/type.ts";
import { bytesOf, type DType, INDEX_TYPE, isComputed } from "../kernel/dtype.ts";
import { packCodes, unpackCodes, wordsType } from "../ops/codes.ts";
import { full, iota } from "../ops/create.ts";
import { abs, add } from "../ops/elementwise.ts";
import { gather, scatterAddAlong } from "../ops/indexing.ts";
import { keepShort, keptIn } from "../ops/keep.ts";
import { qr } from "../ops/linalg/qr.ts";
import { matmul } from "../ops/matmul.ts";
import { reshape } from "../ops/movement.ts";
import { randomNormal } from "../ops/random.ts";
import { GROUP, groupMax, groupMin, packGroups, roundedBytes, unpackGroups } from "../ops/rounding.ts";
import { castTo } from "../ops/select.ts";
import { slice } from "../ops/slice.ts";
import { argsort } from "../ops/sort.ts";
import type { Place } from "./packing.ts";

/** Bits of an element, or the name of a form, or what it keeps: a share of the elements, dimensions. */
export type ResidualForm = number | "bf16" | { readonly sparse: number } | { readonly rank: number };

/** What is known of a value whose form is made. */
export interface Keeping {
  readonly value: Value;
  /** For reports. */
  readonly name: string;
  readonly linear: boolean;
  /** Of the value, for rounding at random. */
  readonly key: number;
  /** Where the nodes belong. */
  readonly place: Place;
}

export interface KeptNodes {
  /** Behind the node that makes the value. */
  readonly behind: readonly Node[];
  /** Where it is read; the last one gives the value. */
  readonly back: readonly Node[];
}

interface FormRules {
  /** Bytes of what is kept of a value; null where it has no such form. */
  bytes(type: TensorType): number | null;
  make(keeping: Keeping): KeptNodes;
}

/** Nodes one after the other. */
class Chain {
  readonly nodes: Node[] = [];
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  call(op: AnyOp, inputs: readonly Value[], given: Attrs = {}): Value {
    const attrs = { ...op.defaults, ...given } as Attrs;
    const types = inputs.map(({ type }) => type);
    const outputs = op.infer(types, attrs as never, []).map((type) => newValue(type));
    const node: Node = { ...this.#place, op, inputs, attrs, outputs, regions: [] };
    this.nodes.push(node);
    return resultOf(node);
  }
}

/** Two chains: what keeps a value, and what computes it from what was kept. */
function chains(place: Place, make: (forth: Chain, back: Chain) => void): KeptNodes {
  const [forth, back] = [new Chain(place), new Chain(place)];
  make(forth, back);
  return { behind: forth.nodes, back: back.nodes };
}

const inBits = (bits: number): FormRules => ({
  bytes: (type) => roundedBytes(type, bits, bytesOf(type.dtype)),
  make: ({ value, name, linear, key, place }) =>
    chains(place, (forth, back) => {
      const ends = [groupMin, groupMax].map((op) => forth.call(op, [value]));
      const packed = forth.call(packGroups, [value, ...ends], { bits, key, value: name, linear });
      back.call(unpackGroups, [packed, ...ends], { bits, shape: value.type.shape });
    }),
});

const SHORT: FormRules = {
  bytes: ({ shape }) => byteLength(tensorType("bf16", shape)),
  make: ({ value, name, linear, key, place }) =>
    chains(place, (forth, back) => {
      const kept = forth.call(keepShort, [value], { key, value: name, linear });
      const { dtype } = value.type;
      back.call(castTo("bf16", dtype), [kept], { dtype });
    }),
};

/** Places in a group are codes of eight bits. */
const PLACE_BITS = 8;

/** Of normally distributed numbers without their largest ones: √(1 - 2·(t·φ(t) + Q(t))), where a share lies beyond ±t. */
function errorWithout(share: number): number {
  const t = Math.SQRT2 * erfinv(1 - share);
  const beyond = (t * Math.exp((-t * t) / 2)) / Math.sqrt(2 * Math.PI);
  return Math.sqrt(Math.max(0, 1 - 2 * beyond - share));
}

/** The numbers of largest magnitude of each group, exactly, with their places; all others are zero. */
function sparse(share: number): FormRules {
  const count = Math.max(1, Math.round(share * GROUP));
  const typesOf = ({ dtype, shape }: TensorType): readonly [TensorType, TensorType] => {
    const groups = elementsOf(shape) / GROUP;
    return [tensorType(dtype, [groups, count]), wordsType(groups * count, PLACE_BITS)];
  };
  const bytes = (type: TensorType): number | null => {
    if (elementsOf(type.shape) % GROUP !== 0 || !isComputed(type.dtype)) return null;
    return typesOf(type).reduce((sum, kept) => sum + byteLength(kept), 0);
  };
  return {
    bytes,
    make: ({ value, name, linear, key, place }) =>
      chains(place, (forth, back) => {
        const { type } = value;
        const [{ shape }] = typesOf(type);
        const groups: TensorType = tensorType(type.dtype, [elementsOf(type.shape) / GROUP, GROUP]);
        const grouped = forth.call(reshape, [value], { shape: groups.shape });
        const order = forth.call(argsort, [forth.call(abs, [grouped])], { axis: 1, descending: true, count });
        const words = forth.call(packCodes, [order], { bits: PLACE_BITS });
        const kept = forth.call(gather, [grouped, order], { axis: 1, outside: "zero" });
        const places = back.call(unpackCodes, [words], { bits: PLACE_BITS, shape });
        const zeros = back.call(full, [], { dtype: type.dtype, shape: groups.shape, value: 0 });
        const spread = back.call(scatterAddAlong, [zeros, places, kept], { axis: 1 });
        const report = { form: `${count} of ${GROUP}`, bytes: bytes(type) ?? 0, error: errorWithout(share) };
        const whole = back.call(reshape, [spread], { shape: type.shape });
        back.call(keptIn, [whole], { ...report, key, value: name, linear });
      }),
  };
}

/** Projected to the directions in which its rows are largest: one step of subspace iteration from directions drawn with a fixed key. */
function lowRank(rank: number): FormRules {
  const sides = ({ shape }: TensorType): readonly [rows: number, columns: number] => {
    const columns = shape.at(-1) ?? 1;
    return [elementsOf(shape) / columns, columns];
  };
  const bytes = (type: TensorType): number | null => {
    const [rows, columns] = sides(type);
    return rank < Math.min(rows, columns) && isComputed(type.dtype)
      ? rank * (rows + columns) * bytesOf(type.dtype)
      : null;
  };
  return {
    bytes,
    make: ({ value, name, linear, key, place }) =>
      chains(place, (forth, back) => {
        const { type } = value;
        const [rows, columns] = sides(type);
        const x = forth.call(reshape, [value], { shape: [rows, columns] });
        const words = forth.call(add, [
          forth.call(iota, [], { shape: [2], axis: 0 }),
          forth.call(full, [], { dtype: INDEX_TYPE as DType, shape: [2], value: key }),
        ]);
        const drawn = forth.call(randomNormal, [words], { dtype: type.dtype, shape: [columns, rank], stream: 0 });
        const along = forth.call(matmul, [x, forth.call(matmul, [x, drawn])], { ta: true });
        const q = forth.call(slice, [forth.call(qr, [along])], {
          ...{ start: [0, 0], limit: [columns, rank], stride: [1, 1] },
        });
        const projected = forth.call(matmul, [x, q]);
        const product = back.call(matmul, [projected, q], { tb: true });
        const report = { form: `rank ${rank}`, bytes: bytes(type) ?? 0, error: Math.sqrt(1 - rank / columns) };
        const whole = back.call(reshape, [product], { shape: type.shape });
        back.call(keptIn, [whole], { ...report, key, value: name, linear });
      }),
  };
}

/** Forms that are called by a name. */
const NAMED: Readonly<Record<"bf16", FormRules>> = { bf16: SHORT };

function rulesOf(form: ResidualForm): FormRules {
  if (typeof form === "number") return inBits(form);
  if (typeof form === "string") return NAMED[form];
  return "sparse" in form ? sparse(form.sparse) : lowRank(form.rank);
}

/** Bytes of what is kept of a value in a form; null where it has no such form, or that saves nothing. */
export function bytesInForm(type: TensorType, form: ResidualForm): number | null {
  const bytes = rulesOf(form).bytes(type);
  return bytes !== null && bytes < byteLength(type) ? bytes : null;
}

export const keptNodes = (form: ResidualForm, keeping: Keeping): KeptNodes => rulesOf(form).make(keeping);
