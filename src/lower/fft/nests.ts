/** @file A Fourier transform as the nests of a kernel: reads of its inputs along the axis, and the places of its result. */
import { at, invariant } from "../../base/invariant.ts";
import type { Node } from "../../ir/graph.ts";
import type { LowerContext, Lowering } from "../../ir/op.ts";
import { type Accumulator, isFloatScalar, typeOf } from "../../kernel/dtype.ts";
import type { Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { constIndex, linearIndex, varIndex } from "../../kernel/index-math.ts";
import type { MapNest, Operand, Store } from "../../kernel/loops.ts";
import { Position } from "../../kernel/position.ts";
import { inType, mul } from "../../kernel/scalar-ops.ts";
import { type Sink, type Source, Transforms } from "./transforms.ts";

/** The part of a kernel under construction that this needs. */
interface Composing {
  readonly operands: readonly Operand[];
  context(node: Node): LowerContext<never>;
  outputOperand(i: number): number;
  scratch(dtype: Accumulator, elements: number): number;
}

export function fftNests(
  c: Composing,
  node: Node,
  lower: Extract<Lowering<never>, { kind: "fft" }>,
): readonly MapNest[] {
  const { inputs, inTypes, outType, attrs } = c.context(node);
  const { form, axis, n, scale, inverse, ends } = lower.part(inTypes, attrs);
  const dtype = typeOf(outType.dtype).accumulate;
  invariant(isFloatScalar(dtype), () => `${node.op.name} of ${outType.dtype}`);
  const { shape } = at(inTypes, 0);
  const counters = shape.map((extent, a): LoopVar => ({ kind: "var", name: `i${a}`, extent }));
  const [outer, inner] = [counters.slice(0, axis), counters.slice(axis + 1)];
  const indices = (place: Index): readonly Index[] => [...outer.map(varIndex), place, ...inner.map(varIndex)];
  const part = (input: number, place: Index): Expr =>
    inType(at(inputs, input)(Position.at(at(inTypes, input).shape, indices(place))), dtype);
  const operand = c.outputOperand(0);
  const scaled = (value: Expr): Expr => (scale === 1 ? value : mul(value, scale));
  const store = (index: readonly Index[], value: Expr): Store => ({
    operand,
    index: linearIndex(index, outType.shape),
    value: inType(scaled(value), typeOf(outType.dtype).compute),
  });
  const pairs: Source = (place) => ({ re: part(0, place), im: part(1, place) });
  const zero: Expr = { kind: "const", dtype, value: 0 };
  const planes: Sink = (place, { re, im }) =>
    [re, im].map((value, plane) => store([constIndex(plane), ...indices(place)], value ?? zero));
  const transforms = new Transforms(dtype, { outer, inner }, (elements) => c.scratch(dtype, elements));
  // as workspace where it has elements of the type that is computed in
  const spare = outType.dtype === dtype ? operand : undefined;
  if (form === "complex") transforms.transform(n, inverse ? 1 : -1, pairs, planes, { other: spare });
  else if (form === "real") transforms.ofReal(n, (place) => part(0, place), planes, { ends, spare });
  else transforms.toReal(n, pairs, (place, value) => [store(indices(place), value)], { ends, spare });
  return transforms.nests;
}
