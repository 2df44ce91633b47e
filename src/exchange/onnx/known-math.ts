/** @file Arithmetic on known numbers, as the element type of ONNX computes it: 64-bit integers exactly, floats rounded to their type. */
import type { OnnxElement, OnnxValues } from "../../formats/onnx-tensor.ts";
import { elementsOf, type Shape } from "../../ir/type.ts";
import type { Call } from "./call.ts";
import { isBoolElement, isFloatElement, isWide, type Known } from "./value.ts";

type Whole = bigint;

/** Bits of whole numbers; negative for those with a sign. */
const BITS: Readonly<Partial<Record<OnnxElement, number>>> = {
  ...{ int8: -8, int16: -16, int32: -32, int64: -64 },
  ...{ uint8: 8, uint16: 16, uint32: 32, uint64: 64 },
};

/** A result as a number of a type. */
export function rounded(type: OnnxElement, value: number | bigint): number | bigint {
  if (isBoolElement(type)) return Number(value) === 0 ? 0 : 1;
  if (isFloatElement(type)) return type === "double" ? Number(value) : Math.fround(Number(value));
  const bits = BITS[type] ?? -64;
  const whole = typeof value === "bigint" ? value : wholeOf(value);
  const wrapped = bits < 0 ? BigInt.asIntN(-bits, whole) : BigInt.asUintN(bits, whole);
  return isWide(type) ? wrapped : Number(wrapped);
}

/** Truncated; what is no number becomes 0, what is too large the largest. */
function wholeOf(x: number): bigint {
  if (Number.isNaN(x)) return 0n;
  const most = 2 ** 63;
  return BigInt(Math.trunc(Math.min(Math.max(x, -most), most)));
}

export const itemsOf = (values: OnnxValues): (number | bigint)[] => Array.from(values as ArrayLike<number | bigint>);

export const knownOf = (type: OnnxElement, shape: Shape, items: readonly (number | bigint)[]): Known => ({
  type,
  shape,
  values: items.map((item) => rounded(type, item)) as unknown as OnnxValues,
});

export function stridesOf(shape: Shape): readonly number[] {
  return shape.map((_, axis) => elementsOf(shape.slice(axis + 1)));
}

/** Positions of a shape, row by row. */
export function* positions(shape: Shape): Generator<readonly number[]> {
  const count = elementsOf(shape);
  const strides = stridesOf(shape);
  for (let i = 0; i < count; i++) yield shape.map((extent, a) => Math.floor(i / (strides[a] as number)) % extent);
}

/** The shape that several broadcast to. */
export function broadcastKnown(call: Call, shapes: readonly Shape[]): Shape {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    const extents = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1).filter((extent) => extent !== 1);
    const [first = 1] = extents;
    if (extents.every((extent) => extent === first)) return first;
    return call.fail(`shapes ${shapes.map((shape) => `[${shape.join(",")}]`).join(", ")} do not broadcast`);
  });
}

/** Elements repeated to a shape. */
export function expanded({ shape, values }: Known, to: Shape): (number | bigint)[] {
  const strides = stridesOf(shape);
  const lead = to.length - shape.length;
  const items = itemsOf(values);
  return [...positions(to)].map((position) => {
    const at = shape.reduce(
      (sum, extent, a) => sum + (extent === 1 ? 0 : (position[a + lead] as number) * (strides[a] as number)),
      0,
    );
    return items[at] as number | bigint;
  });
}

/** How a function is computed: on whole numbers, and on floats. Without the first it is for floats. */
export interface Arithmetic {
  readonly whole?: (...x: Whole[]) => Whole;
  readonly float: (...x: number[]) => number;
}

/** Larger results than this are data, whatever they are made from. */
export const MOST_RESULTS = 1 << 20;

/** A function of elements, broadcast; null where the result would be large; `result` is the type of the result where it is not that of the first operand. */
export function eachKnown(call: Call, inputs: readonly Known[], by: Arithmetic, result?: OnnxElement): Known | null {
  const shape = broadcastKnown(
    call,
    inputs.map((known) => known.shape),
  );
  if (elementsOf(shape) > MOST_RESULTS) return null;
  const type = inputs.at(-1)?.type ?? "int64";
  const columns = inputs.map((known) => expanded(known, shape));
  const { whole } = by;
  const isWhole = whole !== undefined && !isFloatElement(type);
  const items = Array.from({ length: elementsOf(shape) }, (_, i) => {
    const x = columns.map((column) => column[i] as number | bigint);
    return isWhole ? whole(...x.map(BigInt)) : by.float(...x.map(Number));
  });
  return knownOf(result ?? type, shape, items);
}

/** Of elements along axes, which stay with extent 1 or go. */
export function reduceKnown(
  known: Known,
  axes: readonly number[],
  keep: boolean,
  combine: (a: number | bigint, b: number | bigint) => number | bigint,
): Known {
  const kept = known.shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent));
  const strides = stridesOf(kept);
  const results: (number | bigint | undefined)[] = new Array(elementsOf(kept)).fill(undefined);
  const items = itemsOf(known.values);
  let i = 0;
  for (const position of positions(known.shape)) {
    const at = position.reduce((sum, p, a) => sum + (axes.includes(a) ? 0 : p * (strides[a] as number)), 0);
    const [before, item] = [results[at], items[i++] as number | bigint];
    results[at] = before === undefined ? item : combine(before, item);
  }
  const shape = keep ? kept : kept.filter((_, axis) => !axes.includes(axis));
  return knownOf(
    known.type,
    shape,
    results.map((item) => item ?? 0),
  );
}
