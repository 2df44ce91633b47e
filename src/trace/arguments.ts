/**
 * @file Checks of users' arguments: JavaScript passes anything, and a mistake that is not caught here would fail somewhere
 * inside with a message unrelated to the user's code, or not fail at all. Every check throws at the user's line, names the
 * function and the argument, shows what it got and says what to pass.
 *
 * Options are declared once as data beside their interface, `{ keepDims: "a boolean" }`; the compiler checks that
 * both have the same names, and an unknown name is refused with a suggestion.
 */
import { type ErrorCode, grouped, TidemarkError } from "../base/errors.ts";
import { guess } from "../base/suggest.ts";
import { elementsOf, MOST_ELEMENTS, type Shape, shapeText, typeText } from "../ir/type.ts";
import { DTYPES, type DType, FLOAT_TYPES, typeOf } from "../kernel/dtype.ts";
import { sourceLocation } from "./source-location.ts";
import { numberOf, Tensor } from "./tensor.ts";

/** Throws a user's error at the user's line. */
export function fail(code: ErrorCode, summary: string, help?: string): never {
  throw new TidemarkError(code, summary, { where: sourceLocation(), help });
}

/** Describes a value, for messages. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (numberOf(value)) return String(value);
  if (value instanceof Tensor) return `the tensor ${typeText(value)}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object")
    return value.constructor === Object ? "an object" : `an object of class ${classOf(value)}`;
  if (typeof value === "function") return value.name ? `the function ${value.name}` : "a function";
  return typeof value === "string" ? `the string ${JSON.stringify(value)}` : String(value);
}

const classOf = (value: object): string => value.constructor?.name ?? "?";

/** A number that may be written for an element of a type: of an integer type a whole one that fits. */
export function requireLiteral(name: string, value: number, dtype: DType): void {
  const { accepts, literals } = typeOf(dtype);
  if (accepts(value)) return;
  const help = `${dtype} holds ${literals}; others need ${anyOf(FLOAT_TYPES)}`;
  fail("DtypeMismatch", `${name}: ${value} is not a whole number that fits ${dtype}`, help);
}

/** `"f32" or "f64"`. */
function anyOf(dtypes: readonly DType[]): string {
  const quoted = dtypes.map((dtype) => `"${dtype}"`);
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

export function requireTensor(name: string, what: string, value: unknown, help?: string): asserts value is Tensor {
  if (value instanceof Tensor) return;
  fail(
    "InvalidArgument",
    `${name}: ${what} must be a tensor, got ${describe(value)}`,
    help ?? "make one: tensor(data)",
  );
}

export function requireFunction(name: string, what: string, value: unknown, example?: string): void {
  if (typeof value === "function") return;
  fail(
    "InvalidArgument",
    `${name}: ${what} must be a function, got ${describe(value)}`,
    example ?? `${name}((x) => x.square().sum())`,
  );
}

/** The path of a file. */
export function requirePath(name: string, path: unknown): void {
  if (typeof path === "string") return;
  fail(
    "InvalidArgument",
    `${name}: the path must be a string, got ${describe(path)}`,
    `${name}("model.safetensors", ...)`,
  );
}

/** A list, and not the single item or the items one by one; `example` shows how to pass it. */
export function requireArray(name: string, what: string, value: unknown, example: string): void {
  if (Array.isArray(value)) return;
  fail("InvalidArgument", `${name}: ${what} must be a list, got ${describe(value)}`, `pass a list: ${example}`);
}

export function requireDType(name: string, dtype: unknown): asserts dtype is DType {
  if (DTYPES.some((known) => known === dtype)) return;
  fail("InvalidArgument", `${name}: the element type is ${describe(dtype)}`, `element types are ${DTYPES.join(", ")}`);
}

/** How functions that make tensors are told the element type: by its name, or among options. */
export type TypeOption<D extends DType = DType> = D | { readonly dtype?: D | undefined };

const TYPE_OPTION: OptionKinds<{ dtype?: DType }> = { dtype: "an element type" };

/** The element type of a tensor that a function makes. */
export function requireTypeOption<D extends DType>(name: string, option: TypeOption<D> | undefined, fallback: D): D {
  if (typeof option === "object" && option !== null) {
    requireOptions(name, option as { dtype?: DType }, TYPE_OPTION);
    return option.dtype ?? fallback;
  }
  const dtype = option ?? fallback;
  requireDType(name, dtype);
  return dtype;
}

const isExtent = (extent: unknown): boolean => Number.isInteger(extent) && (extent as number) >= 0;

/** A list of whole numbers ≥ 0. */
export function requireExtents(name: string, shape: Shape): void {
  requireArray(name, "the shape", shape, `${name}([2, 3])`);
  if (!shape.every(isExtent))
    fail("InvalidArgument", `${name}: shape ${shapeText(shape)}`, "extents are whole numbers ≥ 0");
}

/** The same, of a tensor that is to be stored. */
export function requireShape(name: string, shape: Shape): void {
  requireExtents(name, shape);
  const elements = elementsOf(shape);
  if (elements <= MOST_ELEMENTS) return;
  const help = `a tensor has at most ${grouped(MOST_ELEMENTS)}; work on parts of it`;
  fail("ShapeMismatch", `${name}: ${shapeText(shape)} would have ${grouped(elements)} elements`, help);
}

const isNumber = (value: unknown): boolean => typeof value === "number";

/** The kinds of options, as messages name them. */
const KINDS = {
  "a boolean": (value) => typeof value === "boolean",
  "a number": isNumber,
  "a number or a function": (value) => typeof value === "function" || isNumber(value) || numberOf(value) !== null,
  "a function": (value) => typeof value === "function",
  "a tensor": (value) => value instanceof Tensor,
  "a text": (value) => typeof value === "string",
  "a float type": (value) => FLOAT_TYPES.some((known) => known === value),
  "an element type": (value) => DTYPES.some((known) => known === value),
  /** Several kinds; checked by the function that uses it. */
  anything: () => true,
} as const satisfies Record<string, (value: unknown) => boolean>;

/** How messages say a kind, where its name is not it. */
const WORDS: Partial<Record<keyof typeof KINDS, string>> = {
  "a float type": anyOf(FLOAT_TYPES),
  "an element type": anyOf(DTYPES),
};

/** The kind of every option of an interface. */
export type OptionKinds<T> = { readonly [K in keyof Required<T>]: keyof typeof KINDS };

/** Throws unless `options` is an object with no other names than those of `kinds`, and values of those kinds. */
export function requireOptions<T extends object>(name: string, options: T, kinds: OptionKinds<T>): void {
  const known = Object.keys(kinds);
  const list = `options are { ${known.join(", ")} }`;
  if (typeof options !== "object" || options === null || Array.isArray(options) || options instanceof Tensor) {
    fail("InvalidArgument", `${name}: options must be an object, got ${describe(options)}`, list);
  }
  for (const [option, value] of Object.entries(options)) {
    const kind = (kinds as Readonly<Record<string, keyof typeof KINDS>>)[option];
    if (!known.includes(option) || !kind)
      fail("InvalidArgument", `${name}: there is no option ${option}`, `${guess(option, known)}${list}`);
    if (value === undefined || KINDS[kind](value)) continue;
    const wanted = WORDS[kind] ?? kind;
    fail(
      "InvalidArgument",
      `${name}: ${option} must be ${wanted}, got ${describe(value)}`,
      `leave it out, or give ${wanted}`,
    );
  }
}
