/**
 * @file A model of another framework as a function of this library: parameters are a tree of tensors by the names of the file, and `apply` is an
 * ordinary function of them and of the inputs, to be compiled, differentiated and planned like any other.
 */
import * as t from "../../api/functions.ts";
import { TidemarkError } from "../../base/errors.ts";
import { shapeText, typeText } from "../../ir/type.ts";
import type { DType } from "../../kernel/dtype.ts";
import { describe, fail } from "../../trace/arguments.ts";
import { Tensor } from "../../trace/tensor.ts";

/** An extent: a number, a name that stands for one, or open. */
export type Extent = number | string | null;

/** An input that a model declares. */
export interface ModelInput {
  readonly name: string;
  readonly dtype: DType;
  /** Null where even the rank is open. */
  readonly shape: readonly Extent[] | null;
}

/** By name, or in the order of the model's inputs. */
export type ModelInputs = Readonly<Record<string, Tensor>> | readonly Tensor[];

/** Options of a model's `apply`. */
export interface ApplyModelOptions {
  /** For random numbers; the same key gives the same numbers. Default: `random.key(0)`. */
  readonly key?: Tensor;
}

/** A model of another framework, as a function with its parameters as a tree. */
export interface ImportedModel {
  /** What can be trained, by the names of the file. */
  readonly params: Record<string, Tensor>;
  readonly inputs: readonly ModelInput[];
  /** Names of the results, in order. */
  readonly outputs: readonly string[];
  /** Results by name. */
  apply(
    params: Readonly<Record<string, Tensor>>,
    inputs: ModelInputs,
    options?: ApplyModelOptions,
  ): Record<string, Tensor>;
  /** Tensors without elements, to plan with; open extents by their names, or `NAME.AXIS` where they have none. */
  specs(sizes?: Readonly<Record<string, number>>): Record<string, Tensor>;
}

/** The given inputs by name, checked: all there, of the right types, equal extents where names are equal. */
export function boundInputs(inputs: readonly ModelInput[], given: ModelInputs): ReadonlyMap<string, Tensor> {
  const byName = new Map<string, Tensor>();
  const list = Array.isArray(given) ? (given as readonly Tensor[]) : null;
  if (list && list.length !== inputs.length) {
    fail(
      "InvalidArgument",
      `the model takes ${inputs.length} inputs, got ${list.length}`,
      `they are ${namesOf(inputs)}`,
    );
  }
  const sizes = new Map<string, number>();
  inputs.forEach((input, i) => {
    const value = list ? list[i] : (given as Readonly<Record<string, Tensor>>)[input.name];
    if (!(value instanceof Tensor)) {
      fail("InvalidArgument", `the input ${input.name} is ${describe(value)}`, `inputs are ${namesOf(inputs)}`);
    }
    requireType(input, value, sizes);
    byName.set(input.name, value);
  });
  const extra = list ? undefined : Object.keys(given).find((name) => !byName.has(name));
  if (extra !== undefined) fail("InvalidArgument", `the model has no input ${extra}`, `inputs are ${namesOf(inputs)}`);
  return byName;
}

const namesOf = (inputs: readonly ModelInput[]): string => inputs.map(({ name }) => name).join(", ") || "none";

const inputText = ({ dtype, shape }: ModelInput): string =>
  `${dtype}${shape ? `[${shape.map((extent) => extent ?? "?").join(",")}]` : " of any shape"}`;

function requireType(input: ModelInput, value: Tensor, sizes: Map<string, number>): void {
  const { name, dtype, shape } = input;
  const mismatch = (): never =>
    fail(
      "ShapeMismatch",
      `the input ${name} is ${typeText(value)}, the model takes ${inputText(input)}`,
      "reshape or cast it",
    );
  if (value.dtype !== dtype) mismatch();
  if (!shape) return;
  if (shape.length !== value.rank) mismatch();
  shape.forEach((extent, axis) => {
    const own = value.shape[axis] as number;
    if (typeof extent === "number" && extent !== own) mismatch();
    if (typeof extent !== "string") return;
    const before = sizes.get(extent);
    if (before !== undefined && before !== own) {
      const summary = `${extent} is ${before} in one input and ${own} in ${name}`;
      fail("ShapeMismatch", summary, "extents of one name are equal");
    }
    sizes.set(extent, own);
  });
}

const openName = ({ name }: ModelInput, extent: string | null, axis: number): string => extent ?? `${name}.${axis}`;

/** The names that open extents are given by. */
export const openSizes = (inputs: readonly ModelInput[]): readonly string[] =>
  inputs.flatMap((input) =>
    (input.shape ?? []).flatMap((extent, axis) => (typeof extent === "number" ? [] : [openName(input, extent, axis)])),
  );

/** Specs of all inputs, with open extents given by name. */
export function specsFor(
  inputs: readonly ModelInput[],
  sizes: Readonly<Record<string, number>>,
): Record<string, Tensor> {
  const missing: string[] = [];
  const specs = inputs.map((input) => {
    const { name, dtype, shape } = input;
    const extents = (shape ?? []).map((extent, axis) => {
      if (typeof extent === "number") return extent;
      const key = openName(input, extent, axis);
      const size = sizes[key];
      if (size === undefined) missing.push(key);
      return size ?? 1;
    });
    return [name, t.spec(extents, dtype)] as const;
  });
  if (missing.length > 0) {
    const names = [...new Set(missing)];
    const object = names.map((key) => `${JSON.stringify(key)}: 8`).join(", ");
    throw new TidemarkError("InvalidArgument", `open sizes of the model: ${names.join(", ")}`, {
      help: `give them: { ${object} }, on the command line --size ${names.map((key) => `${key}=8`).join(",")}`,
    });
  }
  return Object.fromEntries(specs);
}

/** Parameters as they are given to a model: all that it has, of their shapes. */
export function requireParams(own: Readonly<Record<string, Tensor>>, given: Readonly<Record<string, Tensor>>): void {
  const missing = Object.keys(own).filter((name) => !(given[name] instanceof Tensor));
  if (missing.length > 0) {
    const shown = missing.slice(0, 5).join(", ");
    const more = missing.length > 5 ? ` and ${missing.length - 5} more` : "";
    fail(
      "InvalidTree",
      `parameters are missing: ${shown}${more}`,
      "pass model.params, or { ...model.params, ...yours }",
    );
  }
  for (const [name, value] of Object.entries(own)) {
    const other = given[name] as Tensor;
    if (shapeText(other.shape) === shapeText(value.shape)) continue;
    fail(
      "ShapeMismatch",
      `the parameter ${name} is ${typeText(other)}, the model has ${typeText(value)}`,
      "reshape it",
    );
  }
}
