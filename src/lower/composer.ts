/**
 * @file What the nests of a kernel read and store, composed by calling: an operation's `lower` asks a reader for its inputs at a
 * position; the reader of a stored value answers with a load, that of an inner value by asking that value's operation.
 */
import { invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { LowerContext, Lowering, Reader } from "../ir/op.ts";
import { storedElements, type TensorType } from "../ir/type.ts";
import { type Accumulator, typeOf } from "../kernel/dtype.ts";
import { type Expr, type Index, load } from "../kernel/expr.ts";
import { linearIndex } from "../kernel/index-math.ts";
import type { Operand, Store } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { inType } from "../kernel/scalar-ops.ts";
import { asStored } from "../kernel/stored.ts";

export type AnyLowering = Lowering<never>;

export class Composer {
  readonly operands: Operand[] = [];
  readonly values: (Value | null)[] = [];
  readonly #region: Graph;
  readonly #producer = new Map<Value, Node>();
  readonly #paramOperand = new Map<Value, number>();
  /** Of each operand: the type of the value that is stored there. */
  readonly #types: TensorType[] = [];
  readonly #memo = new Map<Value, Map<string, Expr>>();
  readonly #anchor: Node | null;
  /** Where the anchor's result is known: the element being stored. */
  #accKey: string | null = null;

  constructor(region: Graph, inputs: readonly Value[], outputs: readonly Value[]) {
    this.#region = region;
    let anchor: Node | null = null;
    for (const node of region.nodes) {
      for (const out of node.outputs) this.#producer.set(out, node);
      if (node.op.lower.kind !== "map") {
        invariant(!anchor, () => `${region.name} has two anchors: ${anchor?.op.name} and ${node.op.name}`);
        anchor = node;
      }
    }
    this.#anchor = anchor;
    region.params.forEach((param, i) => {
      this.#paramOperand.set(param, this.#operand(inputs[i]?.type ?? param.type, "in", inputs[i] ?? null));
    });
    for (const out of outputs) this.#operand(out.type, "out", out);
  }

  #operand(type: TensorType, role: Operand["role"], value: Value | null): number {
    this.values.push(value);
    this.#types.push(type);
    return this.operands.push({ dtype: type.dtype, elements: storedElements(type), role }) - 1;
  }

  /** The number of an element of an operand in memory. */
  #index(operand: number, at: Position): Index {
    const { shape, pitch } = this.#types[operand] as TensorType;
    if (pitch === undefined) return at.linear;
    const { idx } = sameExtents(shape, at.shape) ? at : at.reshaped(shape);
    return linearIndex(idx, [...shape.slice(0, -1), pitch]);
  }

  scratch(dtype: Accumulator, elements: number): number {
    this.values.push(null);
    return this.operands.push({ dtype, elements, role: "scratch" }) - 1;
  }

  outputOperand(i: number): number {
    return this.#region.params.length + i;
  }

  reader(value: Value): Reader {
    const operand = this.#paramOperand.get(value);
    if (operand !== undefined) return (at) => load(value.type.dtype, operand, this.#index(operand, at));
    const node = this.#producer.get(value);
    invariant(node, () => `${value.name ?? value.id} is not defined in ${this.#region.name}`);
    if (node === this.#anchor) {
      return (at) => {
        invariant(at.key === this.#accKey, () => `${node.op.name} is read away from the element being stored`);
        const { accumulate, compute } = typeOf(value.type.dtype);
        return asStored(value.type.dtype, inType({ kind: "acc", dtype: accumulate }, compute));
      };
    }
    return (at) => {
      const memo = this.#memo.get(value) ?? new Map<string, Expr>();
      this.#memo.set(value, memo);
      let expr = memo.get(at.key);
      if (!expr) {
        const lower = node.op.lower as AnyLowering;
        invariant(lower.kind === "map", () => `${node.op.name} cannot be computed in place`);
        expr = asStored(value.type.dtype, lower.value(this.context(node), at));
        memo.set(at.key, expr);
      }
      return expr;
    };
  }

  context(node: Node): LowerContext<never> {
    const [out] = node.outputs;
    invariant(out, () => `${node.op.name} has no result`);
    return {
      inputs: node.inputs.map((v) => this.reader(v)),
      inTypes: node.inputs.map((v) => v.type),
      outType: out.type,
      attrs: node.attrs as never,
    };
  }

  /** Stores of all results at the element with this number. */
  stores(linear: Index): readonly Store[] {
    this.#accKey = Position.linear([], linear).key;
    return this.#region.results.map((value, i) => {
      const [operand, at] = [this.outputOperand(i), Position.linear(value.type.shape, linear)];
      return { operand, index: this.#index(operand, at), value: this.reader(value)(at) };
    });
  }

  /** Stores at a position known by its multi-index in the shape of the (first) result. */
  storesAt(at: Position): readonly Store[] {
    this.#accKey = at.key;
    return this.#region.results.map((value, i) => {
      const own = sameExtents(value.type.shape, at.shape) ? at : at.reshaped(value.type.shape);
      const operand = this.outputOperand(i);
      return { operand, index: this.#index(operand, own), value: this.reader(value)(own) };
    });
  }

  get anchor(): Node | null {
    return this.#anchor;
  }

  get firstResult(): Value {
    const [first] = this.#region.results;
    invariant(first, () => `${this.#region.name} has no result`);
    return first;
  }
}

const sameExtents = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((n, i) => n === b[i]);
