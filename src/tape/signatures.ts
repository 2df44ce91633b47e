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

/** What a parameter of a reverse stands for: an input of the entry, an output, the cotangent of one, or the sum so far of that of an input. */
export interface Read {
  readonly kind: "input" | "output" | "cotangent" | "sum";
  readonly index: number;
}

/** What the reverse of an operation with regions continues. */
export interface Continued {
  /** For each input, the first that is the same value. */
  readonly sameAs: readonly number[];
  /** Inputs whose cotangents have a sum, which results include then. */
  readonly sums: readonly number[];
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
  /** Its reverse is made of the nodes in its regions, which contribute to cotangents one by one. */
  readonly hasRegions: boolean;
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
    this.hasRegions = op.derivative.kind === "region";
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

  /**
   * The reverse for the inputs in `active`, in order; null where no gradient flows through it.
   * @param continued of an operation with regions, the sums that its reverse adds to
   */
  reverse(active: readonly number[], continued: Continued | null = null): ReverseRule | null {
    const key = continued ? `${active}+${continued.sums}=${continued.sameAs}` : active.join();
    const known = this.#reverses.get(key);
    if (known !== undefined) return known;
    const made = reverseOf(this, active, continued);
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
function reverseOf(signature: Signature, active: readonly number[], continued: Continued | null): ReverseRule | null {
  const { op, inputTypes, hasRegions } = signature;
  if (active.length === 0 || op.derivative.kind === "none") return null;
  const sameAs = continued?.sameAs ?? inputTypes.map((_, i) => i);
  const request = { active, sameAs, sums: continued?.sums ?? [] };
  // An operation without regions is one node of the joint graph: its results are read. One with regions runs again.
  if (hasRegions) return reversed(signature, { ...request, readsResults: false });
  const reading = reversed(signature, { ...request, readsResults: true });
  const readsAll = inputTypes.every((_, i) =>
    reading?.reads.some(({ kind, index }) => kind === "input" && index === i),
  );
  const readsResult = reading?.reads.some(({ kind }) => kind === "output");
  // What all inputs are kept for is recomputed from them, where that is one more operation on elements.
  const runsAgain = op.lower.kind === "map" && readsAll && readsResult;
  return runsAgain ? reversed(signature, { ...request, readsResults: false }) : reading;
}

interface ReverseRequest extends Continued {
  readonly active: readonly number[];
  /** Results are read and not recomputed. */
  readonly readsResults: boolean;
}

function reversed(
  { op, attrs, regions, inputTypes }: Signature,
  { active, sameAs, sums, readsResults }: ReverseRequest,
): ReverseRule | null {
  const b = new Build(op.name);
  /** Inputs that are parameters; the others are values of these. */
  const own = inputTypes.flatMap((_, i) => (sameAs[i] === i ? [i] : []));
  const params = own.map((i) => b.param(at(inputTypes, i)));
  const values = sameAs.map((first) => at(params, own.indexOf(first)));
  const outputs = b.callAll(op, values, attrs, { regions });
  const joint = jointOf(b.finish(outputs), {
    active: own.map((i) => active.includes(i)),
    seeds: [],
    sums: own.map((i) => sums.includes(i)),
  });
  const reached = [...own.keys()].filter((p) => joint.cotangents[p]);
  if (reached.length === 0) return null;
  const results = reached.map((p) => joint.cotangents[p] as Value);
  const made: readonly Value[] = readsResults ? joint.results : [];
  const nodes = joint.b.nodes.filter((node) => !node.outputs.some((value) => made.includes(value)));
  const reads = new Map<Value, Read>();
  joint.params.forEach((param, p) => {
    reads.set(param, { kind: "input", index: at(own, p) });
  });
  made.forEach((value, index) => {
    reads.set(value, { kind: "output", index });
  });
  joint.seedParams.forEach((param, index) => {
    if (param) reads.set(param, { kind: "cotangent", index });
  });
  joint.sumParams.forEach((param, p) => {
    if (param) reads.set(param, { kind: "sum", index: at(own, p) });
  });
  const live = nodesFor({ name: op.name, params: [...reads.keys()], nodes, results });
  const kept = nodes.filter((node) => live.has(node));
  const read = new Set([...results, ...kept.flatMap((node) => node.inputs)]);
  const used = [...reads].filter(([value]) => read.has(value));
  const graph = { name: joint.b.name, params: used.map(([value]) => value), nodes: kept, results };
  return { graph, reads: used.map(([, what]) => what), inputs: reached.map((p) => at(own, p)) };
}
