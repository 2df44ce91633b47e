/**
 * @file Values of a program on the host: a tensor is given as a typed array of its elements, row-major, or as nested arrays of
 * numbers, and is handed out as a typed array. Trees of them have the structure of the function's arguments and results.
 */
import { type ErrorCode, grouped, TidemarkError } from "../../base/errors.ts";
import { guess } from "../../base/suggest.ts";
import { elementsOf, type TensorType, typeText } from "../../ir/type.ts";
import { elementWriter, isBool, newElements, type TypedArray, typeOf } from "../../kernel/dtype.ts";
import type { ProgramTree } from "./format.ts";

function refused(code: ErrorCode, summary: string, help: string): TidemarkError {
  return new TidemarkError(code, summary, { help });
}

/** A value in words. */
function described(value: unknown): string {
  if (ArrayBuffer.isView(value)) {
    return `a ${value.constructor.name} of ${grouped((value as TypedArray).length ?? value.byteLength)}`;
  }
  if (Array.isArray(value)) return `an array of ${grouped(value.length)}`;
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** How the elements of a type are given. */
function wanted(type: TensorType): string {
  const { array } = typeOf(type.dtype) as { readonly array: { readonly name?: string } };
  return `${typeText(type)} is a ${array.name} of ${grouped(elementsOf(type.shape))}, or nested arrays of that shape`;
}

/** The elements of a value for a tensor of some type; typed arrays are not copied. */
export function elementsFrom(path: string, type: TensorType, value: unknown): TypedArray {
  if (value === undefined) throw refused("InvalidTree", `${path} is missing`, wanted(type));
  const { array } = typeOf(type.dtype);
  if (!ArrayBuffer.isView(value)) return fromNested(path, type, value);
  if (!(value instanceof array)) throw refused("DtypeMismatch", `${path} is ${described(value)}`, wanted(type));
  if (value.length !== elementsOf(type.shape)) {
    throw refused("ShapeMismatch", `${path} is ${described(value)}`, wanted(type));
  }
  if (isBool(type.dtype)) {
    const wrong = value.findIndex((element) => element > 1);
    if (wrong >= 0) throw refused("DtypeMismatch", `${path}: element ${wrong} is ${value[wrong]}`, "bools are 0 and 1");
  }
  return value;
}

function fromNested(path: string, type: TensorType, value: unknown): TypedArray {
  const { dtype, shape } = type;
  const [{ accepts, literals }, write] = [typeOf(dtype), elementWriter(dtype)];
  const elements = newElements(dtype, elementsOf(shape));
  let next = 0;
  const fill = (item: unknown, axis: number, place: string): void => {
    const extent = shape[axis];
    if (extent !== undefined) {
      if (!Array.isArray(item) || item.length !== extent) {
        throw refused("ShapeMismatch", `${place} is ${described(item)}, not an array of ${extent}`, wanted(type));
      }
      item.forEach((inner, i) => {
        fill(inner, axis + 1, `${place}[${i}]`);
      });
      return;
    }
    const number = typeof item === "boolean" && isBool(dtype) ? Number(item) : item;
    if (typeof number !== "number" || !accepts(number)) {
      throw refused("DtypeMismatch", `${place} is ${described(item)}`, `${dtype} takes ${literals}`);
    }
    elements[next++] = write(number);
  };
  fill(value, 0, path);
  return elements;
}

/** The text of a constant: equal texts mean equal values. */
export const constantText = (value: unknown): string => (Object.is(value, -0) ? "-0" : String(value));

/** Elements for a parameter. */
export interface Given {
  readonly param: number;
  readonly elements: TypedArray;
}

/** Takes values apart; nothing is written yet. */
export class ValueReader {
  readonly #types: readonly TensorType[];
  readonly #isOptional: (param: number) => boolean;
  readonly given: Given[] = [];

  /** `isOptional` are parameters that may be left out. */
  constructor(types: readonly TensorType[], isOptional: (param: number) => boolean) {
    this.#types = types;
    this.#isOptional = isOptional;
  }

  #tensor(param: number, path: string, value: unknown): void {
    if (value === undefined && this.#isOptional(param)) return;
    const elements = elementsFrom(path, this.#types[param] as TensorType, value);
    this.given.push({ param, elements });
  }

  read(tree: ProgramTree, path: string, value: unknown): void {
    if ("tensor" in tree) this.#tensor(tree.tensor, path, value);
    else if ("number" in tree) for (const param of tree.number) this.#tensor(param, path, value);
    else if ("constant" in tree) requireConstant(tree.constant, path, value);
    else if (value === undefined && paramsOf(tree).every(this.#isOptional)) return;
    else if ("list" in tree) {
      if (!Array.isArray(value) || value.length !== tree.list.length) {
        throw refused("InvalidTree", `${path} is ${described(value)}`, `it is an array of ${tree.list.length}`);
      }
      for (const [i, item] of tree.list.entries()) this.read(item, `${path}.${i}`, value[i]);
    } else this.#object(tree.object, path, value);
  }

  #object(members: Readonly<Record<string, ProgramTree>>, path: string, value: unknown): void {
    const keys = Object.keys(members);
    if (typeof value !== "object" || value === null || Array.isArray(value) || ArrayBuffer.isView(value)) {
      throw refused("InvalidTree", `${path} is ${described(value)}`, `it is an object with ${keys.join(", ")}`);
    }
    const unknown = Object.keys(value).find((key) => !Object.hasOwn(members, key));
    if (unknown !== undefined) {
      throw refused("InvalidTree", `${path} has no ${unknown}`, `${guess(unknown, keys)}it has ${keys.join(", ")}`);
    }
    for (const key of keys) {
      this.read(members[key] as ProgramTree, `${path}.${key}`, (value as Readonly<Record<string, unknown>>)[key]);
    }
  }
}

function requireConstant(constant: string, path: string, value: unknown): void {
  if (value === undefined || constantText(value) === constant) return;
  const help = "build the program for the other value, or with the number as an argument that may differ";
  throw refused("InvalidArgument", `${path} is ${described(value)}; the program was built for ${constant}`, help);
}

/** Parameters (or results) of a tree, in order. */
export function paramsOf(tree: ProgramTree): readonly number[] {
  if ("tensor" in tree) return [tree.tensor];
  if ("number" in tree) return tree.number;
  if ("list" in tree) return tree.list.flatMap(paramsOf);
  return "object" in tree ? Object.values(tree.object).flatMap(paramsOf) : [];
}

/** Whether a tree has tensors and all of them are absent. */
export function isAbsent(tree: ProgramTree, absent: (tensor: number) => boolean): boolean {
  const tensors = paramsOf(tree);
  return tensors.length > 0 && tensors.every(absent);
}

/** A tree without its absent tensors: a part that has no others is a constant. */
export function without(tree: ProgramTree, absent: (tensor: number) => boolean): ProgramTree {
  if (isAbsent(tree, absent)) return { constant: "undefined" };
  if ("list" in tree) return { list: tree.list.map((item) => without(item, absent)) };
  if (!("object" in tree)) return tree;
  return { object: Object.fromEntries(Object.entries(tree.object).map(([key, item]) => [key, without(item, absent)])) };
}

/** A tree with something in the places of its tensors; constants are undefined. */
export function filled(tree: ProgramTree, leaf: (tensor: number) => unknown): unknown {
  if ("tensor" in tree) return leaf(tree.tensor);
  if ("list" in tree) return tree.list.map((item) => filled(item, leaf));
  if (!("object" in tree)) return undefined;
  return Object.fromEntries(Object.entries(tree.object).map(([key, item]) => [key, filled(item, leaf)]));
}

/** The part of a tree at a path of keys and positions; null if there is none. */
export function partAt(tree: ProgramTree, keys: readonly string[]): ProgramTree | null {
  const [key, ...rest] = keys;
  if (key === undefined) return tree;
  if ("list" in tree && /^\d+$/.test(key) && Number(key) < tree.list.length) {
    return partAt(tree.list[Number(key)] as ProgramTree, rest);
  }
  if (!("object" in tree)) return null;
  // a key may have dots in it
  for (const [name, item] of Object.entries(tree.object)) {
    const own = name.split(".");
    const part = own.every((word, i) => word === keys[i]) ? partAt(item, keys.slice(own.length)) : null;
    if (part) return part;
  }
  return null;
}
