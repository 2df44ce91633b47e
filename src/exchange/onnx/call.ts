/**
 * @file One node of an ONNX graph as its operator sees it: inputs by position, attributes by name with their defaults, the version of the
 * set of operators, and errors that name the node.
 */
import { TidemarkError } from "../../base/errors.ts";
import type { OnnxAttribute, OnnxGraph, OnnxNode } from "../../formats/onnx-file.ts";
import type { OnnxElement } from "../../formats/onnx-tensor.ts";
import { sourceLocation } from "../../trace/source-location.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { type FloatChoice, type Known, Value } from "./value.ts";

/** What operators may ask of the interpreter. */
export interface Surroundings {
  readonly floats: FloatChoice;
  /** A key for random numbers that no other node gets. */
  key(): Tensor;
  /** How often the node itself is followed, in loops that are followed iteration by iteration. */
  readonly times: number;
  /** Follows a graph in an attribute, which sees the values around it; `times`: of how many iterations this is one. */
  follow(graph: OnnxGraph, inputs: readonly Value[], times?: number): readonly Value[];
  /** Elements of a tensor in an attribute. */
  decode(attribute: OnnxAttribute): Known;
}

/** A node with its operands and results. */
export interface Followed {
  readonly node: OnnxNode;
  readonly inputs: readonly (Value | null)[];
  readonly results: readonly (Value | null)[];
}

export type Result = Tensor | Value | null;
export type Operator = (call: Call) => Result | readonly Result[];

export class Call {
  readonly node: OnnxNode;
  readonly opset: number;
  readonly around: Surroundings;
  readonly #inputs: readonly (Value | null)[];

  constructor(node: OnnxNode, opset: number, inputs: readonly (Value | null)[], around: Surroundings) {
    this.node = node;
    this.opset = opset;
    this.around = around;
    this.#inputs = inputs;
  }

  get inputs(): readonly (Value | null)[] {
    return this.#inputs;
  }

  /** Names the node in messages. */
  get title(): string {
    const { kind, name, outputs } = this.node;
    return `${kind} ${name || outputs.find((output) => output !== "") || "without a name"}`;
  }

  fail(summary: string, help?: string): never {
    throw new TidemarkError("InvalidArgument", `${this.title}: ${summary}`, { where: sourceLocation(), help });
  }

  has(i: number): boolean {
    return (this.#inputs[i] ?? null) !== null;
  }

  /** An input that must be there. */
  value(i: number): Value {
    return this.#inputs[i] ?? this.fail(`input ${i} is missing`, "the model is damaged; export it again");
  }

  maybe(i: number): Value | null {
    return this.#inputs[i] ?? null;
  }

  x(i: number): Tensor {
    return this.value(i).tensor;
  }

  /** All inputs as tensors. */
  all(): readonly Tensor[] {
    return this.#inputs.map((_, i) => this.x(i));
  }

  /** Numbers of an input that must be known before the program runs. */
  numbers(i: number, what: string): readonly number[] {
    const { known } = this.value(i);
    if (known) return Array.from(known.values as ArrayLike<number>, Number);
    return this.fail(
      `its ${what} (input ${i}, ${this.node.inputs[i]}) must be known when the model is read`,
      `bind the inputs that it is computed from: readOnnx(file, { constants: { NAME: tensor } })`,
    );
  }

  /** The same for an input that may be missing. */
  maybeNumbers(i: number, what: string): readonly number[] | null {
    return this.has(i) ? this.numbers(i, what) : null;
  }

  attribute(name: string): OnnxAttribute | undefined {
    return this.node.attributes.get(name);
  }

  int(name: string, usual: number): number {
    const attribute = this.attribute(name);
    return attribute ? Number(attribute.int) : usual;
  }

  flag(name: string, usual = false): boolean {
    return this.int(name, usual ? 1 : 0) !== 0;
  }

  ints(name: string): readonly number[] | null {
    return this.attribute(name)?.ints.map(Number) ?? null;
  }

  float(name: string, usual: number): number {
    return this.attribute(name)?.float ?? usual;
  }

  floats(name: string): readonly number[] | null {
    return this.attribute(name)?.floats ?? null;
  }

  text(name: string, usual: string): string {
    const bytes = this.attribute(name)?.text;
    return bytes ? new TextDecoder("utf-8", { fatal: false }).decode(bytes) : usual;
  }

  graph(name: string): OnnxGraph {
    return this.attribute(name)?.graph ?? this.fail(`it has no graph ${name}`, "the model is damaged; export it again");
  }

  /** An axis counted from the front. */
  axis(axis: number, rank: number): number {
    if (Number.isInteger(axis) && axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
    return this.fail(`axis ${axis} of a tensor of rank ${rank}`, "the model is damaged; export it again");
  }

  axes(axes: readonly number[], rank: number): readonly number[] {
    return axes.map((axis) => this.axis(axis, rank));
  }

  /** Axes that newer versions give as an input, older ones as an attribute. */
  axesFrom(i: number): readonly number[] | null {
    return this.has(i) ? this.numbers(i, "axes") : this.ints("axes");
  }

  /** Known numbers as a value. */
  make(type: OnnxElement, shape: readonly number[], values: Known["values"]): Value {
    return Value.known(this.node.outputs[0] ?? "", { type, shape, values }, this.around.floats);
  }

  /** Whole numbers as a value of one axis. */
  wholes(values: readonly number[], shape: readonly number[] = [values.length]): Value {
    return this.make("int64", shape, BigInt64Array.from(values, BigInt));
  }
}
