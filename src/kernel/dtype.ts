/**
 * @file Element types, one row each. A tensor's elements have a *storage type* (`DType`), used in memory. Expressions
 * are computed in a *compute type* (`ScalarType`), used in registers. A load converts the first to the second, a store
 * back. Sums and products of a storage type are added up in its *accumulation type*.
 *
 *   memory      f16 bf16 f32  f64  i8 u8 i32  i64  bool (a byte, 0 or 1)
 *   registers            f32  f64        i32  i64  bool (a mask)
 *
 * The set of storage types grows by a row; that of compute types is closed. What a layer needs to know of a type is a
 * fact of its row or a table over all types, never a comparison with a name: a row without its place in every table is
 * a type error (docs/adding-a-type.md).
 */
import { TidemarkError } from "../base/errors.ts";
import { InternalError } from "../base/invariant.ts";
import { brainToNumber, halfToNumber, numberToBrain, numberToHalf } from "./half.ts";

export type Kind = "float" | "integer" | "bool";

/** Types that expressions are computed in. */
export type ScalarType = "f32" | "f64" | "i32" | "i64" | "bool";

/** The floats among them, for which mathematical functions have coefficients. */
export type FloatScalar = "f32" | "f64";

/** Those that sums are added up in; memory holds all of them. */
export type Accumulator = ScalarType;

/** Types in which products are multiplied and added. */
export type ProductType = Exclude<ScalarType, "bool">;

/** Elements on the host, as they are in memory. */
export type TypedArray = Float32Array | Float64Array | Int32Array | Int8Array | Uint8Array | Uint16Array;

interface ArrayMaker {
  readonly BYTES_PER_ELEMENT: number;
  new (elements: number): TypedArray;
  new (buffer: ArrayBuffer, start: number, elements: number): TypedArray;
}

/** How a number is an element of a typed array where it is not that element itself. */
interface Encoding {
  read(element: number): number;
  /** The nearest one. */
  write(number: number): number;
}

export interface ElementType {
  readonly kind: Kind;
  /** Of one element in memory. */
  readonly bytes: number;
  readonly compute: ScalarType;
  /** Of sums and products of elements. */
  readonly accumulate: Accumulator;
  /** Whether memory holds the very bits that registers of the compute type hold. */
  readonly plain: boolean;
  /** The number of this type that a number converts to. */
  round(x: number): number;
  /** Wraps an exact sum or difference of whole numbers: integers wrap around, others are unchanged. */
  wrap(x: number): number;
  readonly array: ArrayMaker;
  readonly encoding: Encoding | null;
  /** Nothing is below or above these: where maxima and minima start. */
  readonly lowest: number;
  readonly highest: number;
  /** Whether a number may be written for an element; floats take all and round them. */
  accepts(x: number): boolean;
  /** Those numbers in words. */
  readonly literals: string;
  /** An element as users see it. */
  shown(x: number): number | boolean;
  /** Where tests draw elements from: [from, to). */
  readonly samples: readonly [number, number];
}

const same = (x: number): number => x;

const FLOAT = {
  kind: "float",
  plain: true,
  wrap: same,
  encoding: null,
  lowest: Number.NEGATIVE_INFINITY,
  highest: Number.POSITIVE_INFINITY,
  accepts: () => true,
  literals: "numbers",
  shown: same,
  samples: [-2, 2],
} as const;

/** The nearest i64; 0 for NaN. */
export function longOf(x: number | bigint): bigint {
  if (typeof x === "bigint") return x;
  if (Number.isNaN(x)) return 0n;
  if (x >= 2 ** 63) return 2n ** 63n - 1n;
  return BigInt(Math.trunc(Math.max(x, -(2 ** 63))));
}

/** An i64 as a number, where a number holds it. */
function exactNumber(element: number | bigint): number {
  const number = Number(element);
  if (Number.isSafeInteger(number)) return number;
  throw new TidemarkError("InvalidArgument", `the i64 ${element} is beyond 2^53: a number does not hold it exactly`, {
    help: "read bigints: new BigInt64Array(x.data().buffer)",
  });
}

/** A float of sixteen bits, which is computed in f32. */
const HALF = { ...FLOAT, bytes: 2, compute: "f32", accumulate: "f32", plain: false, array: Uint16Array } as const;

/** Whole numbers of a byte, which are computed in i32: sums wrap around, conversions saturate. */
const byteType = (lowest: number, highest: number, array: ArrayMaker) =>
  ({
    kind: "integer",
    bytes: 1,
    compute: "i32",
    accumulate: "i32",
    plain: false,
    round: (x: number) => Math.trunc(Math.min(Math.max(x, lowest), highest)) | 0,
    wrap: (x: number) => ((((x | 0) - lowest) & 255) + lowest) | 0,
    array,
    encoding: null,
    lowest,
    highest,
    accepts: (x: number) => (x | 0) === x && x >= lowest && x <= highest,
    literals: `whole numbers from ${lowest} to ${highest}`,
    shown: same,
    samples: [lowest < 0 ? -2 : 0, 3],
  }) as const;

const TYPES = {
  f32: { ...FLOAT, bytes: 4, compute: "f32", accumulate: "f32", round: Math.fround, array: Float32Array },
  f64: { ...FLOAT, bytes: 8, compute: "f64", accumulate: "f64", round: same, array: Float64Array },
  bf16: {
    ...HALF,
    round: (x) => brainToNumber(numberToBrain(x)),
    encoding: { read: brainToNumber, write: numberToBrain },
  },
  f16: {
    ...HALF,
    round: (x) => halfToNumber(numberToHalf(x)),
    encoding: { read: halfToNumber, write: numberToHalf },
  },
  i32: {
    kind: "integer",
    bytes: 4,
    compute: "i32",
    accumulate: "i32",
    plain: true,
    // Truncates and saturates; NaN becomes 0, and there is one zero.
    round: (x) => Math.trunc(Math.min(Math.max(x, -0x80000000), 0x7fffffff)) | 0,
    wrap: (x) => x | 0,
    array: Int32Array,
    encoding: null,
    lowest: -0x80000000,
    highest: 0x7fffffff,
    accepts: (x) => (x | 0) === x,
    literals: "whole numbers from -2,147,483,648 to 2,147,483,647",
    shown: same,
    samples: [-2, 2],
  },
  i64: {
    kind: "integer",
    bytes: 8,
    compute: "i64",
    accumulate: "i64",
    plain: true,
    round: (x) => Number(longOf(x)),
    wrap: (x) => (Number.isFinite(x) ? Number(BigInt.asIntN(64, BigInt(Math.trunc(x)))) : 0),
    // Elements are bigints, which nothing sees but the encoding and the interpreter.
    array: BigInt64Array as unknown as ArrayMaker,
    encoding: { read: exactNumber, write: (x) => longOf(x) as unknown as number },
    lowest: -(2 ** 63),
    // A constant is the nearest i64, here 2^63 - 1.
    highest: 2 ** 63,
    accepts: Number.isSafeInteger,
    literals: "whole numbers from -(2^53 - 1) to 2^53 - 1; larger ones are given in a BigInt64Array",
    shown: same,
    samples: [-2, 2],
  },
  i8: byteType(-128, 127, Int8Array),
  u8: byteType(0, 255, Uint8Array),
  bool: {
    kind: "bool",
    bytes: 1,
    compute: "bool",
    accumulate: "bool",
    plain: false,
    round: (x) => (x !== 0 ? 1 : 0),
    wrap: same,
    array: Uint8Array,
    encoding: null,
    lowest: 0,
    highest: 1,
    accepts: (x) => x === 0 || x === 1,
    literals: "0 and 1",
    shown: (x) => x !== 0,
    samples: [0, 2],
  },
} as const satisfies Readonly<Record<string, ElementType>> & Readonly<Record<ScalarType, ElementType>>;

/** Element types. */
export type DType = keyof typeof TYPES;

type OfKind<K extends Kind> = { [D in DType]: (typeof TYPES)[D]["kind"] extends K ? D : never }[DType];

/** Storage types that are floats, and those that are numbers. */
export type FloatType = OfKind<"float">;
export type NumberType = OfKind<"float" | "integer">;

export const DTYPES: readonly DType[] = Object.keys(TYPES) as readonly DType[];
export const FLOAT_TYPES: readonly FloatType[] = DTYPES.filter(isFloat);
export const NUMBER_TYPES: readonly NumberType[] = DTYPES.filter((dtype): dtype is NumberType => !isBool(dtype));

/** The row of a type. */
export function typeOf(dtype: DType): ElementType {
  const type: ElementType | undefined = TYPES[dtype];
  if (!type) throw new InternalError(`there is no element type ${dtype}`);
  return type;
}

/** Bytes of one element in memory. */
export function bytesOf(dtype: DType): number {
  return typeOf(dtype).bytes;
}

/** Has derivatives; is rounded. */
export function isFloat(dtype: DType): dtype is FloatType {
  return typeOf(dtype).kind === "float";
}

/** Is a type of registers too: what is computed on it is computed in it. */
export function isComputed(dtype: DType): dtype is ScalarType {
  return typeOf(dtype).compute === dtype;
}

/** Holds truth values, which are neither added nor multiplied. */
export function isBool(dtype: DType | ScalarType): dtype is "bool" {
  return dtype === "bool";
}

/** The type of positions, counts, class numbers, and the words of random keys. */
export const INDEX_TYPE = "i32";

export function isIndexType(dtype: DType | ScalarType): dtype is typeof INDEX_TYPE {
  return dtype === INDEX_TYPE;
}

/** The stored number for an exact result: integers wrapped, rounded to the compute type, then to the storage type. */
export function storedNumber(dtype: DType, exact: number): number {
  const { compute, round, wrap } = typeOf(dtype);
  return round(typeOf(compute).round(wrap(exact)));
}

/** The compute type of a float. */
export function computeFloat(dtype: FloatType): FloatScalar {
  const { compute } = typeOf(dtype);
  if (!isFloatScalar(compute)) throw new InternalError(`${dtype} is a float that is computed in ${compute}`);
  return compute;
}

/** Significant bits of the numbers that random draws for a type are multiples of: those of its compute type. */
export function significandBits(dtype: FloatType): 24 | 53 {
  return laneBytes(computeFloat(dtype)) === 8 ? 53 : 24;
}

/** The float in which numbers of all these types can be added up. */
export function widestFloat(dtypes: readonly DType[]): FloatScalar {
  return dtypes.some((dtype) => typeOf(dtype).accumulate === "f64") ? "f64" : "f32";
}

// ---- compute types ------------------------------------------------------------------------------------------------

interface ScalarFacts {
  readonly kind: Kind;
  /** Of one lane of a register: a mask has 32 bits. */
  readonly laneBytes: 4 | 8;
  /** The type with the same bits. */
  readonly twin: ScalarType;
}

const SCALARS: Readonly<Record<ScalarType, ScalarFacts>> = {
  f32: { kind: "float", laneBytes: 4, twin: "i32" },
  f64: { kind: "float", laneBytes: 8, twin: "i64" },
  i32: { kind: "integer", laneBytes: 4, twin: "f32" },
  i64: { kind: "integer", laneBytes: 8, twin: "f64" },
  bool: { kind: "bool", laneBytes: 4, twin: "bool" },
};

export const SCALAR_TYPES: readonly ScalarType[] = Object.keys(SCALARS) as ScalarType[];

/** Bytes of one lane of a register. */
export function laneBytes(scalar: ScalarType): 4 | 8 {
  return SCALARS[scalar].laneBytes;
}

/** The type whose values are the bits of another's: f32 and i32, f64 and i64. */
export function twinOf(scalar: ScalarType): ScalarType {
  return SCALARS[scalar].twin;
}

export function kindOf(scalar: ScalarType): Kind {
  return SCALARS[scalar].kind;
}

export function isFloatScalar(scalar: ScalarType): scalar is FloatScalar {
  return SCALARS[scalar].kind === "float";
}

/** Whether values are bigints on the host, being too wide for a number. */
export function isBig(scalar: ScalarType): scalar is "i64" {
  return scalar === "i64";
}

/** The type in which products of elements are added up. */
export function productType(dtype: DType): ProductType {
  const { accumulate } = typeOf(dtype);
  if (isBool(accumulate)) throw new InternalError(`no products of ${dtype}`);
  return accumulate;
}

// ---- elements on the host -----------------------------------------------------------------------------------------

/** Zeroed elements. */
export function newElements(dtype: DType, count: number): TypedArray {
  return new (typeOf(dtype).array)(count);
}

/** The elements that start at a byte of a memory. */
export function elementsIn(dtype: DType, buffer: ArrayBuffer, start: number, count: number): TypedArray {
  return new (typeOf(dtype).array)(buffer, start, count);
}

/** How the elements of a type are read as numbers. */
export function elementReader(dtype: DType): (element: number) => number {
  return typeOf(dtype).encoding?.read ?? same;
}

/** How numbers are written as elements. */
export function elementWriter(dtype: DType): (number: number) => number {
  return typeOf(dtype).encoding?.write ?? same;
}

/** Lets `fill` write numbers, and makes elements of them. */
export function fillNumbers(dtype: DType, into: TypedArray, fill: (numbers: TypedArray) => void): void {
  const { encoding } = typeOf(dtype);
  if (!encoding) {
    fill(into);
    return;
  }
  const numbers = new Float64Array(into.length);
  fill(numbers);
  for (let i = 0; i < into.length; i++) into[i] = encoding.write(numbers[i] as number);
}
