/**
 * @file Operations with their attributes, regions and types of operands, each once for all tapes, and the reverse of each: traced from the
 * operation's own declaration once for every set of inputs that need gradients.
 */
import { jointOf } from "../autodiff/vjp.ts";
import { at } from "../base/invariant.ts";
import { attrsKey } from "../ir/attrs.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { structuralKey } from "../ir/hash.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import { byteLength, type TensorType, typeText } from "../ir/type.ts";
import { nodesFor } from "../ir/walk.ts";
import { isFloat } from "../kernel/dtype.ts";

/** What a parameter of a reverse stands for: an input of the entry, an output, or the cotangent of one. */
export interface Read {
  readonly kind: "input" | "output" | "cotangent";
  readonly index: number;
}

/** The reverse of an entry: a graph from what it reads to the cotangents of some inputs. */
export interface ReverseRule {
  readonly graph: Graph;
  /** One for each parameter. */
  readonly reads: readonly Read[];
  /** The input that each result is the cotangent of. */
  readonly inputs: readonly number[];
}

export class Signature {
  readonly number: number;
  readonly op: AnyOp;
  readonly attrs: Attrs;
  readonly regions: readonly Graph[];
  readonly inputTypes: readonly TensorType[];
  readonly outputTypes: readonly TensorType[];
  /** It costs next to nothing and makes nothing smaller: its result is recomputed where it would have to be kept. */
  readonly isCheap: boolean;
  readonly #reverses = new Map<string, ReverseRule | null>();
  readonly #saved = new Map<number, Saved>();

  constructor(number: number, { op, attrs, regions, inputs, outputs }: Node) {
    this.number = number;
    this.op = op;
    this.attrs = attrs;
    this.regions = regions;
    this.inputTypes = inputs.map(({ type }) => type);
    this.outputTypes = outputs.map(({ type }) => type);
    this.isCheap = isCheap({ op, inputs, outputs });
  }

  /** What its reverse reads where the inputs whose bits are in `mask` need gradients; the 31st stands for all further ones. */
  saved(mask: number): Saved {
    const known = this.#saved.get(mask);
    if (known) return known;
    const active = this.inputTypes.flatMap(({ dtype }, i) => (isFloat(dtype) && mask & inputBit(i) ? [i] : []));
    const reads = this.reverse(active)?.reads ?? [];
    const of = (kind: Read["kind"]): readonly number[] =>
      reads.filter((read) => read.kind === kind).map(({ index }) => index);
    const made = { inputs: of("input"), outputs: of("output") };
    this.#saved.set(mask, made);
    return made;
  }

  /** The reverse for the inputs in `active`, in order; null where no gradient flows through it. */
  reverse(active: readonly number[]): ReverseRule | null {
    const key = active.join();
    const known = this.#reverses.get(key);
    if (known !== undefined) return known;
    const made = reverseOf(this, active);
    this.#reverses.set(key, made);
    return made;
  }
}

/** Whether a node costs next to nothing and makes nothing smaller: a broadcast, a constant, a transpose. */
export function isCheap({ op, inputs, outputs }: Pick<Node, "op" | "inputs" | "outputs">): boolean {
  const bytes = (values: readonly Value[]): number => values.reduce((sum, { type }) => sum + byteLength(type), 0);
  return op.lower.kind === "map" && op.lower.fusion === "always" && bytes(inputs) <= bytes(outputs);
}

/** Inputs and outputs of an entry. */
export interface Saved {
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
}

export const inputBit = (input: number): number => 1 << Math.min(input, 30);

/** All signatures of a process. */
export class Signatures {
  readonly #all: Signature[] = [];
  readonly #numbers = new WeakMap<AnyOp, Map<string, number>>();
  readonly #types = new Map<string, number>();
  readonly #seen = new WeakMap<TensorType, number>();

  get count(): number {
    return this.#all.length;
  }

  at(number: number): Signature {
    return at(this.#all, number);
  }

  of(node: Node): number {
    const { op } = node;
    let known = this.#numbers.get(op);
    if (!known) {
      known = new Map();
      this.#numbers.set(op, known);
    }
    const key = this.#keyOf(node);
    const number = known.get(key);
    if (number !== undefined) return number;
    this.#all.push(new Signature(this.#all.length, node));
    known.set(key, this.#all.length - 1);
    return this.#all.length - 1;
  }

  #keyOf({ op, attrs, inputs, regions }: Node): string {
    let key = "";
    for (const { type } of inputs) key += `${this.#typeNumber(type)},`;
    for (const _ in attrs) {
      key += `{${attrsKey(op, attrs)}}`;
      break;
    }
    for (const region of regions) key += `[${structuralKey(region)}]`;
    return key;
  }

  /** Operations on elements give the type that they were given: most are known as objects. */
  #typeNumber(type: TensorType): number {
    const seen = this.#seen.get(type);
    if (seen !== undefined) return seen;
    const text = typeText(type);
    const number = this.#types.get(text) ?? this.#types.size;
    this.#types.set(text, number);
    this.#seen.set(type, number);
    return number;
  }
}

/** Traced from the declaration: the joint graph of one node, without what computes the node itself where that can be read instead. */
function reverseOf(signature: Signature, active: readonly number[]): ReverseRule | null {
  const { op, inputTypes } = signature;
  if (active.length === 0 || op.derivative.kind === "none") return null;
  // An operation without regions is one node of the joint graph: its results are read. One with regions runs again.
  if (op.derivative.kind === "region") return reversed(signature, active, false);
  const reading = reversed(signature, active, true);
  const readsAll = inputTypes.every((_, i) =>
    reading?.reads.some(({ kind, index }) => kind === "input" && index === i),
  );
  const readsResult = reading?.reads.some(({ kind }) => kind === "output");
  // What all inputs are kept for is recomputed from them, where that is one more operation on elements.
  return op.lower.kind === "map" && readsAll && readsResult ? reversed(signature, active, false) : reading;
}

/** `readsResults`: results are read and not recomputed. */
function reversed(
  { op, attrs, regions, inputTypes }: Signature,
  active: readonly number[],
  readsResults: boolean,
): ReverseRule | null {
  const b = new Build(op.name);
  const params = inputTypes.map((type) => b.param(type));
  const outputs = b.callAll(op, params, attrs, { regions });
  const isActive = inputTypes.map((_, i) => active.includes(i));
  const joint = jointOf(b.finish(outputs), { active: isActive, seeds: [] });
  const inputs = [...joint.cotangents.keys()].filter((i) => joint.cotangents[i]);
  if (inputs.length === 0) return null;
  const results = inputs.map((i) => joint.cotangents[i] as Value);
  const made: readonly Value[] = readsResults ? joint.results : [];
  const nodes = joint.b.nodes.filter((node) => !node.outputs.some((value) => made.includes(value)));
  const reads = new Map<Value, Read>();
  joint.params.forEach((param, index) => {
    reads.set(param, { kind: "input", index });
  });
  made.forEach((value, index) => {
    reads.set(value, { kind: "output", index });
  });
  joint.seedParams.forEach((param, index) => {
    if (param) reads.set(param, { kind: "cotangent", index });
  });
  const live = nodesFor({ name: op.name, params: [...reads.keys()], nodes, results });
  const kept = nodes.filter((node) => live.has(node));
  const read = new Set([...results, ...kept.flatMap((node) => node.inputs)]);
  const used = [...reads].filter(([value]) => read.has(value));
  const graph = { name: joint.b.name, params: used.map(([value]) => value), nodes: kept, results };
  return { graph, reads: used.map(([, what]) => what), inputs };
}
