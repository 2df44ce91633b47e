/**
 * @file The forms in which a value that the backward pass reads may be kept, each made of ordinary nodes: those that make what is kept,
 * behind the node that makes the value, and those that compute the value from it where it is read.
 *
 *   4, say    x → group_min, group_max, pack_groups            → unpack_groups      bits for each element (ops/rounding.ts)
 *   "bf16"    x → keep_short                                   → widen              rounded to the nearest bf16
 */
import type { Node, Value } from "../ir/graph.ts";
import { newValue, resultOf } from "../ir/graph.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { byteLength, type TensorType, tensorType } from "../ir/type.ts";
import { bytesOf } from "../kernel/dtype.ts";
import { keepShort } from "../ops/keep.ts";
import { groupMax, groupMin, packGroups, roundedBytes, unpackGroups } from "../ops/rounding.ts";
import { castTo } from "../ops/select.ts";
import type { Place } from "./packing.ts";

/** Bits of an element, or the name of a form. */
export type ResidualForm = number | "bf16";

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

function newNode(op: AnyOp, inputs: readonly Value[], attrs: Attrs, place: Place): Node {
  const types = inputs.map(({ type }) => type);
  const outputs = op.infer(types, attrs, []).map((type) => newValue(type));
  return { ...place, op, inputs, attrs, outputs, regions: [] };
}

const inBits = (bits: number): FormRules => ({
  bytes: (type) => roundedBytes(type, bits, bytesOf(type.dtype)),
  make({ value, name, linear, key, place }) {
    const [least, largest] = [groupMin, groupMax].map((op) => newNode(op, [value], {}, place)) as [Node, Node];
    const ends = [resultOf(least), resultOf(largest)];
    const packed = newNode(packGroups, [value, ...ends], { bits, key, value: name, linear }, place);
    const { shape } = value.type;
    const back = newNode(unpackGroups, [resultOf(packed), ...ends], { bits, shape }, place);
    return { behind: [least, largest, packed], back: [back] };
  },
});

const SHORT: FormRules = {
  bytes: ({ shape }) => byteLength(tensorType("bf16", shape)),
  make({ value, name, linear, key, place }) {
    const kept = newNode(keepShort, [value], { key, value: name, linear }, place);
    const { dtype } = value.type;
    return { behind: [kept], back: [newNode(castTo("bf16", dtype), [resultOf(kept)], { dtype }, place)] };
  },
};

/** Forms that are called by a name. */
const NAMED: Readonly<Record<Exclude<ResidualForm, number>, FormRules>> = { bf16: SHORT };

const rulesOf = (form: ResidualForm): FormRules => (typeof form === "number" ? inBits(form) : NAMED[form]);

/** Bytes of what is kept of a value in a form; null where it has no such form, or that saves nothing. */
export function bytesInForm(type: TensorType, form: ResidualForm): number | null {
  const bytes = rulesOf(form).bytes(type);
  return bytes !== null && bytes < byteLength(type) ? bytes : null;
}

export const keptNodes = (form: ResidualForm, keeping: Keeping): KeptNodes => rulesOf(form).make(keeping);
