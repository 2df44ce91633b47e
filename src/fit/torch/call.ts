/** @file One call of an ATen operation in a modelled program: its arguments by name, and what its results are. */
import { TidemarkError } from "../../base/errors.ts";
import { type Pt2Argument, type Pt2Node, tensorName } from "../../formats/pt2-program.ts";
import type { Autograd, EagerTensor } from "./autograd.ts";
import type { Shape } from "./layout.ts";

/** The type of a value: its shape, the bytes of an element, and whether those are floats. */
export interface EagerType {
  readonly shape: Shape;
  readonly item: number;
  readonly isFloat: boolean;
}

/** What is known around a call. */
export interface CallContext {
  readonly autograd: Autograd;
  tensor(name: string): EagerTensor | undefined;
  /** A size that an earlier node computed. */
  number(name: string): number | undefined;
  type(name: string): EagerType | undefined;
}

/** Results of an operation, each with a reference of its own. */
export type Rule = (call: Call) => readonly (EagerTensor | null)[];

type Json = Readonly<Record<string, unknown>>;

/** Names that the outputs of a node define; a list of tensors is one output. */
export function outputNames(outputs: readonly Pt2Argument[]): readonly (string | null)[] {
  return outputs.flatMap((output) => {
    if (Array.isArray(output.as_tensors)) return (output.as_tensors as readonly unknown[]).map(tensorName);
    return [tensorName(output)];
  });
}

export class Call {
  readonly node: Pt2Node;
  readonly g: Autograd;
  readonly #around: CallContext;
  readonly #names: readonly (string | null)[];

  constructor(node: Pt2Node, around: CallContext) {
    this.node = node;
    this.g = around.autograd;
    this.#around = around;
    this.#names = outputNames(node.outputs);
  }

  get outputs(): number {
    return this.#names.length;
  }

  /** The type of a result. */
  type(i = 0): EagerType {
    const type = this.#around.type(this.#names[i] ?? "");
    return type ?? this.#fail(`the type of its result ${i} is not recorded`);
  }

  /** Whether anything can read a result. */
  isMade(i: number): boolean {
    return this.#names[i] != null;
  }

  /** A new tensor for a result. */
  out(i = 0, strides?: readonly number[]): EagerTensor {
    const type = this.type(i);
    return strides ? this.g.fresh(type.shape, type, strides) : this.g.fresh(type.shape, type);
  }

  #fail(summary: string): never {
    throw new TidemarkError("InvalidFile", `${this.node.target}: ${summary}`, { help: "export the model again" });
  }

  #argument(name: string): Pt2Argument | undefined {
    return this.node.inputs.find((input) => input.name === name)?.arg;
  }

  maybe(name: string): EagerTensor | null {
    const arg = this.#argument(name);
    const value = arg?.as_tensor === undefined ? null : tensorName(arg);
    return value === null ? null : (this.#around.tensor(value) ?? null);
  }

  t(name: string): EagerTensor {
    return this.maybe(name) ?? this.#fail(`its ${name} is no tensor`);
  }

  /** All tensors among the arguments, in order. */
  tensors(): readonly EagerTensor[] {
    return this.node.inputs.flatMap(({ name }) => [
      ...this.list(name),
      ...[this.maybe(name)].filter((t) => t !== null),
    ]);
  }

  list(name: string): readonly EagerTensor[] {
    const arg = this.#argument(name);
    const items = (arg?.as_tensors ?? arg?.as_optional_tensors) as readonly Json[] | undefined;
    return (items ?? []).flatMap((item) => {
      const found = tensorName(item);
      const tensor = found === null ? undefined : this.#around.tensor(found);
      return tensor ? [tensor] : [];
    });
  }

  /** A plain argument: a number, a flag, a text or a list. */
  get(name: string): unknown {
    const [entry] = Object.entries(this.#argument(name) ?? {});
    if (!entry || entry[0] === "as_none") return undefined;
    const [kind, value] = entry;
    if (kind === "as_sym_int" || kind === "as_sym_float") return this.#size(value);
    if (kind === "as_sym_ints") return (value as readonly unknown[]).map((one) => this.#size(one));
    return value;
  }

  #size(value: unknown): number | undefined {
    const { as_int: written, as_name: named, as_float: float } = value as Json;
    if (typeof named === "string") return this.#around.number(named);
    return typeof written === "number" ? written : (float as number | undefined);
  }

  n(name: string, usual: number): number {
    const value = this.get(name);
    return typeof value === "number" ? value : usual;
  }

  ns(name: string, usual: readonly number[]): readonly number[] {
    const value = this.get(name);
    if (typeof value === "number") return [value];
    return Array.isArray(value) ? (value as readonly number[]) : usual;
  }

  flag(name: string, usual = false): boolean {
    const value = this.get(name);
    return typeof value === "boolean" ? value : usual;
  }

  /** An axis counted from the front. */
  axis(name: string, usual: number, rank: number): number {
    const axis = this.n(name, usual);
    return axis < 0 ? axis + rank : axis;
  }
}
