/**
 * @file A graph under construction as one of ONNX. Operators there repeat operands of extent 1 by themselves, so a value may be stored
 * narrower than it is (`Stored`): constants are scalars and broadcasts are reshapes, until something needs all elements.
 */
import { at, invariant } from "../../base/invariant.ts";
import { codeOf } from "../../formats/onnx-tensor.ts";
import type { ElementCode, OutAttribute, OutGraph, OutNode, OutTensor, OutValue } from "../../formats/onnx-write.ts";
import type { Value } from "../../ir/graph.ts";
import { elementsOf, type Shape, sameShape, type TensorType } from "../../ir/type.ts";
import { type DType, elementWriter, newElements } from "../../kernel/dtype.ts";
import { elementFor } from "./value.ts";

/** The number of an element type in files. */
export const codeFor = (dtype: DType): ElementCode => codeOf(elementFor(dtype, "int32"));
export const INT64: ElementCode = codeOf("int64");
/** What conversions to numbers of positions and truths give. */
export const [INT32, BOOL]: readonly [ElementCode, ElementCode] = [codeOf("int32"), codeOf("bool")];

/** A name, and the shape that it has: that of the value, or one that broadcasts to it. */
export interface Stored {
  readonly name: string;
  readonly shape: Shape;
}

/** What all graphs of a model share. */
export class ModelParts {
  readonly initializers: OutTensor[] = [];
  readonly #names = new Set<string>();
  readonly #constants = new Map<string, string>();
  #next = 0;

  /** A name that nothing has yet. */
  fresh(like: string): string {
    let name = like;
    while (name === "" || this.#names.has(name)) name = `${like === "" ? "v" : `${like}_`}${this.#next++}`;
    this.#names.add(name);
    return name;
  }

  initializer(tensor: OutTensor): string {
    this.initializers.push(tensor);
    return tensor.name;
  }

  /** Whole numbers that operators take as inputs: shapes, axes, positions. */
  int64(values: readonly number[], shape: Shape = [values.length]): string {
    const key = `int64:${shape.join()}:${values.join()}`;
    return this.#constant(key, INT64, shape, () => {
      return new Uint8Array(BigInt64Array.from(values, (value) => BigInt(value)).buffer);
    });
  }

  /** Numbers of an element type. */
  numbers(dtype: DType, values: readonly number[], shape: Shape): string {
    const key = `${dtype}:${shape.join()}:${values.map((value) => (Object.is(value, -0) ? "-0" : value)).join()}`;
    return this.#constant(key, codeFor(dtype), shape, () => {
      const elements = newElements(dtype, values.length);
      elements.set(values.map(elementWriter(dtype)));
      return new Uint8Array(elements.buffer);
    });
  }

  #constant(key: string, type: ElementCode, shape: Shape, bytes: () => Uint8Array): string {
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const name = this.initializer({ name: this.fresh("const"), type, shape, bytes: bytes() });
    this.#constants.set(key, name);
    return name;
  }
}

export type OutAttributes = Readonly<Record<string, OutAttribute>>;

export class GraphWriter {
  readonly nodes: OutNode[] = [];
  readonly parts: ModelParts;
  readonly #stored = new Map<Value, Stored>();
  readonly #outer: GraphWriter | null;

  constructor(parts: ModelParts, outer: GraphWriter | null = null) {
    this.parts = parts;
    this.#outer = outer;
  }

  /** Appends a node with one result. */
  emit(kind: string, inputs: readonly string[], attributes: OutAttributes = {}): string {
    return at(this.emitAll(kind, inputs, 1, attributes), 0);
  }

  emitAll(kind: string, inputs: readonly string[], results: number, attributes: OutAttributes = {}): readonly string[] {
    const outputs = Array.from({ length: results }, () => this.parts.fresh(""));
    this.nodes.push({ kind, inputs, outputs, attributes });
    return outputs;
  }

  set(value: Value, stored: Stored): void {
    this.#stored.set(value, stored);
  }

  setAll(values: readonly Value[], stored: (i: number) => Stored): void {
    values.forEach((value, i) => {
      this.#stored.set(value, stored(i));
    });
  }

  /** Values with all of their elements, under these names. */
  nameAll(values: readonly Value[], names: readonly string[]): void {
    this.setAll(values, (i) => ({ name: at(names, i), shape: at(values, i).type.shape }));
  }

  /** As it is stored, perhaps narrower; inner graphs see the names of outer ones. */
  loose(value: Value): Stored {
    const found = this.#stored.get(value) ?? this.#outer?.loose(value);
    invariant(found, () => `value ${value.name ?? value.id} has no name`);
    return found;
  }

  /** The name of the value with all of its elements. */
  whole(value: Value): string {
    const { name, shape } = this.loose(value);
    const wanted = value.type.shape;
    if (sameShape(shape, wanted)) return name;
    const wide = this.emit("Expand", [name, this.parts.int64(wanted)]);
    this.#stored.set(value, { name: wide, shape: wanted });
    return wide;
  }

  reshape(name: string, shape: Shape): string {
    return this.emit(
      "Reshape",
      [name, this.parts.int64(shape)],
      elementsOf(shape) === 0 ? { allowzero: { int: 1 } } : {},
    );
  }

  scalar(type: TensorType, value: number): string {
    return this.parts.numbers(type.dtype, [value], []);
  }

  finish(name: string, inputs: readonly OutValue[], outputs: readonly OutValue[]): OutGraph {
    const { initializers } = this.parts;
    return { name, nodes: this.nodes, initializers: this.#outer ? [] : initializers, inputs, outputs };
  }
}

/** The shape that operands of these shapes have together. */
export function commonShape(shapes: readonly Shape[]): Shape {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, i) => {
    const extents = shapes.map((shape) => shape[i - rank + shape.length] ?? 1);
    return extents.find((extent) => extent !== 1) ?? 1;
  });
}

/** A value as graphs declare it. */
export const declared = (name: string, { dtype, shape }: TensorType): OutValue => ({
  name,
  type: codeFor(dtype),
  shape,
});
