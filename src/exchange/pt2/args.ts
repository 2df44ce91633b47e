/** @file The arguments of a node of an exported program, by name, with the defaults that PyTorch leaves out. */
import { TidemarkError } from "../../base/errors.ts";
import { dtypeInMemory } from "../../formats/elements.ts";
import { torchType } from "../../formats/pt2-archive.ts";
import {
  type Pt2Argument,
  type Pt2Node,
  type Pt2Region,
  type Pt2TensorType,
  regionOf,
  tensorName,
} from "../../formats/pt2-program.ts";
import type { DType } from "../../kernel/dtype.ts";
import { sourceLocation } from "../../trace/source-location.ts";
import { Tensor } from "../../trace/tensor.ts";

/** A value of the program: a tensor, or a number that is known since all sizes are. */
export type Value = Tensor | number | boolean | readonly (Tensor | number)[];

/** What the interpreter knows around a node. */
export interface Surroundings {
  lookup(name: string): Value | undefined;
  /** A key for random numbers that no other node gets. */
  key(): Tensor;
  /** The recorded type of a value. */
  type(name: string): Pt2TensorType | undefined;
  /** Whether something reads a result of the node, by its position. */
  isUsed(result: number): boolean;
  /** The results of a graph inside of the node. */
  follow(region: Pt2Region, inputs: readonly Value[]): readonly Value[];
}

type Json = Readonly<Record<string, unknown>>;

/** The element type of tensors for a number in a program. */
export const dtypeOfCode = (code: unknown): DType =>
  dtypeInMemory({ name: "a value", type: torchType(code), shape: [], begin: 0, end: 0 });

export class Args {
  readonly node: Pt2Node;
  readonly #named: ReadonlyMap<string, Pt2Argument>;
  readonly #around: Surroundings;

  constructor(node: Pt2Node, around: Surroundings) {
    this.node = node;
    this.#around = around;
    this.#named = new Map(node.inputs.map(({ name, arg }) => [name, arg]));
  }

  key(): Tensor {
    return this.#around.key();
  }

  isUsed(result: number): boolean {
    return this.#around.isUsed(result);
  }

  /** The strides that a tensor has in PyTorch; null where they are not recorded. */
  strides(name: string): readonly number[] | null {
    const value = tensorName(this.#named.get(name));
    return value === null ? null : (this.#around.type(value)?.strides ?? null);
  }

  /** The results of the graph that is the argument at a position. */
  follow(i: number, inputs: readonly Value[]): readonly Value[] {
    return this.#around.follow(regionOf(this.at(i)), inputs);
  }

  fail(summary: string, help?: string): never {
    throw new TidemarkError("InvalidArgument", `${this.node.target}: ${summary}`, { where: sourceLocation(), help });
  }

  has(name: string): boolean {
    const arg = this.#named.get(name);
    return arg !== undefined && arg.as_none === undefined;
  }

  /** The argument at a position, for targets without names. */
  at(i: number): unknown {
    const entry = this.node.inputs[i];
    return entry ? this.#decode(entry.arg) : undefined;
  }

  #value(name: string): Value {
    return (
      this.#around.lookup(name) ??
      this.fail(`it needs ${name}, which nothing before it computes`, "the program is damaged")
    );
  }

  #decode(arg: Pt2Argument): unknown {
    const [entry] = Object.entries(arg);
    if (!entry) return null;
    const [kind, value] = entry;
    switch (kind) {
      case "as_none":
        return null;
      case "as_tensor":
        return this.#tensor(value);
      case "as_tensors":
        return this.#list(value).map((one) => this.#tensor(one));
      case "as_optional_tensors":
        return this.#list(value).map((one) =>
          (one as Json | null)?.as_tensor ? this.#tensor((one as Json).as_tensor) : null,
        );
      case "as_sym_int":
      case "as_sym_float":
      case "as_sym_bool":
        return this.#symbol(value);
      case "as_sym_ints":
      case "as_sym_floats":
        return this.#list(value).map((one) => this.#symbol(one));
      default:
        return value;
    }
  }

  #list(value: unknown): readonly unknown[] {
    return Array.isArray(value) ? value : this.fail(`it has ${JSON.stringify(value)} where a list is expected`);
  }

  #tensor(value: unknown): Value {
    const name = (value as Json | null)?.name;
    return typeof name === "string" ? this.#value(name) : this.fail(`it has the tensor ${JSON.stringify(value)}`);
  }

  /** A number that is written, or computed by an earlier node. */
  #symbol(value: unknown): unknown {
    const json = (value ?? {}) as Json;
    if (typeof json.as_name === "string") return this.#value(json.as_name);
    return json.as_int ?? json.as_float ?? json.as_bool ?? this.fail(`it has the number ${JSON.stringify(value)}`);
  }

  get(name: string): unknown {
    const arg = this.#named.get(name);
    return arg === undefined ? undefined : this.#decode(arg);
  }

  t(name: string): Tensor {
    const value = this.get(name);
    return value instanceof Tensor ? value : this.fail(`its ${name} is no tensor`, "the program is damaged");
  }

  maybe(name: string): Tensor | null {
    return this.has(name) ? this.t(name) : null;
  }

  tensors(name: string): readonly Tensor[] {
    const list = this.get(name);
    if (Array.isArray(list) && list.every((one) => one instanceof Tensor)) return list as readonly Tensor[];
    return this.fail(`its ${name} is no list of tensors`);
  }

  optionals(name: string): readonly (Tensor | null)[] {
    const list = this.get(name);
    return Array.isArray(list) ? (list as readonly (Tensor | null)[]) : this.fail(`its ${name} is no list`);
  }

  /** A tensor or a number. */
  either(name: string): Tensor | number {
    const value = this.get(name);
    return value instanceof Tensor ? value : this.n(name);
  }

  /** Whether a number was written as a float: it makes whole numbers floats. */
  isFloat(name: string): boolean {
    const arg = this.#named.get(name) ?? {};
    return arg.as_float !== undefined || arg.as_sym_float !== undefined;
  }

  n(name: string, usual?: number): number {
    const value = this.get(name) ?? usual;
    if (typeof value === "number") return value;
    if (typeof value === "boolean") return value ? 1 : 0;
    // PyTorch writes the numbers that JSON lacks as texts
    if (value === "Infinity") return Number.POSITIVE_INFINITY;
    if (value === "-Infinity") return Number.NEGATIVE_INFINITY;
    if (value === "NaN") return Number.NaN;
    return this.fail(`its ${name} is no number`);
  }

  maybeN(name: string): number | null {
    return this.has(name) ? this.n(name) : null;
  }

  flag(name: string, usual = false): boolean {
    const value = this.get(name);
    return value === undefined || value === null ? usual : Boolean(value);
  }

  text(name: string, usual: string): string {
    const value = this.get(name);
    return typeof value === "string" ? value : usual;
  }

  /** A list of numbers; a single one counts as a list of one. */
  ns(name: string, usual?: readonly number[]): readonly number[] {
    const value = this.has(name) ? this.get(name) : usual;
    if (typeof value === "number") return [value];
    if (Array.isArray(value) && value.every((one) => typeof one === "number")) return value as readonly number[];
    return this.fail(`its ${name} is no list of numbers`);
  }

  /** The same, repeated for each of some axes. */
  perAxis(name: string, axes: number, usual: number): readonly number[] {
    const list = this.ns(name, [usual]);
    return list.length === axes ? list : Array.from({ length: axes }, () => list[0] ?? usual);
  }

  /** The element type that is asked for. */
  dtype(name = "dtype"): DType | null {
    const arg = this.#named.get(name);
    return arg?.as_scalar_type === undefined ? null : dtypeOfCode(arg.as_scalar_type);
  }

  /** An axis counted from the front. */
  axis(axis: number, rank: number): number {
    const front = axis < 0 ? axis + Math.max(rank, 1) : axis;
    return front >= 0 && front < Math.max(rank, 1) ? front : this.fail(`axis ${axis} of a tensor of rank ${rank}`);
  }
}

export type Operator = (args: Args) => Value | null;
