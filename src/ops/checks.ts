/**
 * @file Checks that shape rules share. Every check names the operation, shows the types that it got and says which would
 * be right; attributes may come from parsed text, so their form is checked as well.
 */
import { TidemarkError } from "../base/errors.ts";
import { shapeText, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { type DType, isIndexType, productType, typeOf } from "../kernel/dtype.ts";
import { requireAxis } from "./define.ts";

const typesText = (types: readonly TensorType[]): string => types.map(typeText).join(", ");

/** The inputs, as many as `roles` names. */
export function requireInputs(name: string, roles: readonly string[], inputs: readonly TensorType[]): void {
  if (inputs.length === roles.length) return;
  const got = inputs.length === 0 ? "none" : `${inputs.length}: ${typesText(inputs)}`;
  throw new TidemarkError("InvalidArgument", `${name}: takes ${roles.length} inputs, got ${got}`, {
    help: `call ${name}(${roles.join(", ")})`,
  });
}

/** The only input. */
export function requireOne(name: string, inputs: readonly TensorType[]): TensorType {
  requireInputs(name, ["x"], inputs);
  return inputs[0] ?? tensorType("f32", []);
}

/** A list of whole numbers ≥ `least`, one for each of `count` axes. */
export function requireList(
  name: string,
  attr: string,
  list: readonly number[],
  { count, least, of }: { readonly count: number; readonly least: number; readonly of: string },
): void {
  if (!Array.isArray(list) || list.length !== count) {
    const got = Array.isArray(list) ? shapeText(list) : String(list);
    throw new TidemarkError("InvalidArgument", `${name}: ${attr} is ${got}, but ${of} needs ${count} numbers`, {
      help: `give one number for each axis: ${shapeText(new Array(count).fill(least))}`,
    });
  }
  if (list.every((n: number) => Number.isInteger(n) && n >= least)) return;
  throw new TidemarkError("InvalidArgument", `${name}: ${attr} ${shapeText(list)} must be whole numbers ≥ ${least}`, {
    help: attr === "lo" || attr === "hi" ? "to cut elements off, use slice" : `raise each of them to ${least} or more`,
  });
}

/** Axes of a tensor, increasing, each at most once. */
export function requireAxes(name: string, axes: readonly number[], type: TensorType): void {
  for (const axis of axes) requireAxis(name, axis, type.shape.length);
  for (let i = 1; i < axes.length; i++) {
    if (Number(axes[i - 1]) < Number(axes[i])) continue;
    const sorted = [...new Set(axes)].sort((a, b) => a - b);
    throw new TidemarkError("InvalidAxis", `${name}: axes ${shapeText(axes)} of ${typeText(type)} are not increasing`, {
      help: `name each axis once, in order: ${shapeText(sorted)}`,
    });
  }
}

/** A constant that the element type can hold. */
export function requireFill(name: string, value: number, dtype: DType): void {
  const { accepts, literals } = typeOf(dtype);
  if (accepts(value)) return;
  throw new TidemarkError("InvalidArgument", `${name}: value ${value} cannot be stored as ${dtype}`, {
    help: `${dtype} holds ${literals}`,
  });
}

/** Positions are i32. */
export function requireIndices(name: string, role: string, type: TensorType): void {
  if (isIndexType(type.dtype)) return;
  throw new TidemarkError("DtypeMismatch", `${name}: ${role} must be i32, got ${typeText(type)}`, {
    help: `convert them: cast(${role}, "i32")`,
  });
}

/** Both have one element type. */
export function requireSameDtype(name: string, roles: readonly [string, string], a: TensorType, b: TensorType): void {
  if (a.dtype === b.dtype) return;
  const summary = `${name}: element types differ: ${roles[0]} ${typeText(a)}, ${roles[1]} ${typeText(b)}`;
  throw new TidemarkError("DtypeMismatch", summary, { help: `convert one side: cast(${roles[1]}, "${a.dtype}")` });
}

/** The element type of a product's result: that of its operands, or where it is `wide` the one that they are added up in. */
export function resultType(dtype: DType, wide: boolean | undefined): DType {
  return wide ? productType(dtype) : dtype;
}

/** See OpFacts. */
export function wideResult<A>(attrs: A & { readonly wide?: boolean }, from: DType, to: DType): A | null {
  return from !== to && productType(from) === to ? { ...attrs, wide: true } : null;
}
