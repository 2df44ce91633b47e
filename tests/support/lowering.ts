/**
 * @file Runs one operation's lowering by itself, with stored inputs and nothing fused, through the interpreter: what an
 * operation says in `lower` is compared with what it says in `evaluate`.
 */

import { at, invariant } from "../../src/base/invariant.ts";
import type { ContractPart, LowerContext, OpDef, Reference } from "../../src/ir/op.ts";
import { elementsOf, type TensorType } from "../../src/ir/type.ts";
import {
  type Accumulator,
  type DType,
  elementReader,
  elementWriter,
  isBig,
  isComputed,
  newElements,
  productType,
  typeOf,
} from "../../src/kernel/dtype.ts";
import { type LoopVar, load } from "../../src/kernel/expr.ts";
import { linearIndex, offsetIndex, scaleIndex, varIndex } from "../../src/kernel/index-math.ts";
import { interpretKernel, type TypedArray } from "../../src/kernel/interpret.ts";
import type { Kernel, Nest } from "../../src/kernel/loops.ts";
import { Position } from "../../src/kernel/position.ts";

export function typedArray(dtype: DType, values: ArrayLike<number>): TypedArray {
  const elements = newElements(dtype, values.length);
  elements.set(Array.from(values, elementWriter(dtype)));
  return elements;
}

const loop = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

/** The kernel of one operation: inputs are operands 0 …, the result comes next, then scratch. */
export function kernelOf<A>(op: OpDef<A>, inTypes: readonly TensorType[], attrs: A): Kernel {
  const outType = at(op.infer(inTypes, attrs, []), 0);
  const inputs = inTypes.map((type, i) => (place: Position) => load(type.dtype, i, place.linear));
  const nests = nestsOf(op, { inputs, inTypes, outType, attrs });
  return {
    operands: [
      ...inTypes.map(({ dtype, shape }) => ({ dtype, elements: elementsOf(shape), role: "in" as const })),
      { dtype: outType.dtype, elements: elementsOf(outType.shape), role: "out" },
      { dtype: outType.dtype, elements: 0, role: "scratch" },
    ],
    nests,
  };
}

/** One product of an operation: elements at `place`, or all. */
function productNest<A>(c: LowerContext<A>, part: ContractPart<A>): Nest {
  const { shape } = c.outType;
  const dtype = productType(c.outType.dtype);
  const operand = c.inTypes.length;
  const { batch, m, n, k } = part;
  const loops = batch.map((extent, axis) => loop(`b${axis}`, extent));
  const [rows, cols, depth] = [loop("i", m), loop("j", n), loop("k", k)];
  const outer = loops.map(varIndex);
  const [i, j, r] = [varIndex(rows), varIndex(cols), varIndex(depth)];
  const place = part.place?.(outer, i, j);
  const index = place ? linearIndex(place, shape) : linearIndex([...outer, i, j], [...batch, m, n]);
  const [a, b] = [part.a(c, outer, i, r), part.b(c, outer, r, j)];
  const stores = [{ operand, index, value: { kind: "acc", dtype } as const }];
  return { kind: "contract", batch: loops, rows, cols, depth, split: null, dtype, a, b, stores, scratch: operand + 1 };
}

function nestsOf<A>(op: OpDef<A>, c: LowerContext<A>): readonly Nest[] {
  const { lower } = op;
  if (lower.kind !== "contract") return [nestOf(op, c)];
  return lower.parts(c.inTypes, c.attrs).map((part) => productNest(c, part));
}

function nestOf<A>(op: OpDef<A>, c: LowerContext<A>): Nest {
  const { lower } = op;
  const shape = c.outType.shape;
  const dtype = c.outType.dtype as Accumulator;
  const operand = c.inTypes.length;
  const acc = { kind: "acc", dtype } as const;
  switch (lower.kind) {
    case "map": {
      const loops = shape.map((extent, axis) => loop(`i${axis}`, extent));
      const place = Position.at(shape, loops.map(varIndex));
      return { kind: "map", loops, stores: [{ operand, index: place.linear, value: lower.value(c, place) }] };
    }
    case "scan": {
      const axis = lower.axis(c.inTypes, c.attrs);
      const counters = shape.map((extent, i) => loop(`i${i}`, extent));
      const idx = counters.map(varIndex);
      // From the other end: element n - 1 - i.
      if (lower.reverse(c.attrs)) idx[axis] = offsetIndex(scaleIndex(at(idx, axis), -1), at(shape, axis) - 1);
      const place = Position.at(shape, idx);
      const loops = counters.filter((_, i) => i !== axis);
      const stores = [{ operand, index: place.linear, value: acc }];
      const scale = lower.scale === null ? null : at(c.inputs, lower.scale)(place);
      const body = at(c.inputs, lower.body)(place);
      const combine = lower.combine ?? "add";
      return { kind: "scan", loops, along: at(counters, axis), combine, dtype, scale, body, stores };
    }
    case "shuffle": {
      const along = loop("i", at(shape, 0));
      return { kind: "shuffle", along, bits: at(c.inputs, 0)(Position.at(shape, [varIndex(along)])), operand };
    }
    default:
      invariant(false, () => `${op.name}: lowering ${lower.kind} is not run by itself here`);
  }
}

/** The result of a lowering, computed in the element type. */
export function runLowering<A>(
  op: OpDef<A>,
  inTypes: readonly TensorType[],
  attrs: A,
  inputs: readonly ArrayLike<number>[],
): TypedArray {
  const kernel = kernelOf(op, inTypes, attrs);
  const result = at(kernel.operands, inTypes.length);
  const out = typedArray(result.dtype as DType, new Float64Array(result.elements).fill(Number.NaN));
  const given = inTypes.map((type, i) => typedArray(type.dtype, at(inputs, i)));
  interpretKernel(kernel, [...given, out, new Float64Array(0)]);
  const numberOf = elementReader(result.dtype);
  if (isBig(typeOf(result.dtype).compute)) return Float64Array.from(out as ArrayLike<number>, Number);
  return isComputed(result.dtype) ? out : Float64Array.from(out, numberOf);
}

/** What an operation means, in doubles. */
export function runReference<A>(
  op: OpDef<A>,
  inTypes: readonly TensorType[],
  attrs: A,
  inputs: readonly ArrayLike<number>[],
): Reference {
  const outTypes = op.infer(inTypes, attrs, []);
  const run = (): never => invariant(false, () => `${op.name} has no regions`) as never;
  const given = inputs.map((values) => Float64Array.from(values));
  return at(op.evaluate({ inputs: given, inTypes, outTypes, attrs, regions: [], run }), 0);
}
