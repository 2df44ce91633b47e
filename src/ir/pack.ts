/**
 * @file A graph as plain data, for caches: all its content, metadata included, independent of the process that built
 * it. Unlike the text (print.ts) it is not for people and keeps what the text leaves out: parts, source lines,
 * which values came first, and which nodes have the same region object.
 *
 *   values   numbered by their ids, so that ties broken by ids are broken alike in the copy: type and name of each
 *   graphs   the outermost one last; a region that several nodes share is there once
 *   nodes    one after the other, each as numbers: operation, attributes, phase, replay, where, scope, within;
 *            then how many inputs, and which; the same for outputs and regions
 *   tables   words, types and attributes are there once, and go by their numbers
 *
 * A program of ten thousand nodes is packed, and its key made, before each of its first steps: so all is numbers in few lists.
 */
import { at, invariant } from "../base/invariant.ts";
import { DTYPES } from "../kernel/dtype.ts";
import { numberText } from "./attrs.ts";
import { type Graph, type Node, newValue, type Phase, type Value } from "./graph.ts";
import type { AnyOp, Attr, Attrs } from "./op.ts";
import { type TensorType, tensorType, typeText } from "./type.ts";

/** A number that JSON has no text for is a list with its name; a list is a list of lists, so that the two differ. */
type PackedAttr = number | string | boolean | readonly [string] | readonly [readonly PackedAttr[]];

interface PackedBody {
  readonly name: number;
  readonly params: readonly number[];
  readonly nodes: readonly number[];
  readonly results: readonly number[];
}

export interface PackedGraph {
  readonly words: readonly string[];
  /** Element type by its number, then extents. */
  readonly types: readonly (readonly number[])[];
  /** Keys and what they are, in turn. */
  readonly attrs: readonly (readonly PackedAttr[])[];
  /** Type and name of each value. */
  readonly values: readonly number[];
  readonly graphs: readonly PackedBody[];
}

const PHASES: readonly Phase[] = ["forward", "backward", "update"];
/** In place of a word that is not there. */
const NONE = -1;

/** Numbers things in the order in which they come, equal ones alike; one object is looked at once. */
class Table<T, Packed> {
  readonly items: Packed[] = [];
  readonly #pack: (item: T) => readonly [key: string, packed: Packed];
  readonly #byKey = new Map<string, number>();
  readonly #numbers = new Map<T, number>();

  /** `pack` gives a thing's data, and a text that is equal for equal data. */
  constructor(pack: (item: T) => readonly [key: string, packed: Packed]) {
    this.#pack = pack;
  }

  number(item: T): number {
    let number = this.#numbers.get(item);
    if (number !== undefined) return number;
    const [key, packed] = this.#pack(item);
    number = this.#byKey.get(key);
    if (number === undefined) {
      number = this.items.push(packed) - 1;
      this.#byKey.set(key, number);
    }
    this.#numbers.set(item, number);
    return number;
  }
}

class Words {
  readonly items: string[] = [];
  readonly #numbers = new Map<string, number>();

  number(word: string | undefined): number {
    if (word === undefined) return NONE;
    const known = this.#numbers.get(word);
    if (known !== undefined) return known;
    this.#numbers.set(word, this.items.length);
    return this.items.push(word) - 1;
  }
}

/** How many times as many ids as values there may be for a list of all ids to be the quickest way to find a value's number. */
const SPARSE = 16;

/** The values that graphs define, by the order of their ids. */
class Numbers {
  readonly count: number;
  readonly #first: number;
  /** Numbers of the ids from the first one on, or of ids; NONE where there is none. */
  readonly #dense: Int32Array | null;
  readonly #sparse = new Map<number, number>();

  constructor(graphs: readonly Graph[]) {
    const found: number[] = [];
    eachValue(graphs, ({ id }) => found.push(id));
    const ids = Float64Array.from(found).sort();
    const first = ids[0] ?? 0;
    const span = (ids[ids.length - 1] ?? -1) - first + 1;
    this.#first = first;
    this.#dense = span <= SPARSE * ids.length ? new Int32Array(span).fill(NONE) : null;
    let count = 0;
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i] as number;
      if (i > 0 && id === ids[i - 1]) continue;
      if (this.#dense) this.#dense[id - first] = count;
      else this.#sparse.set(id, count);
      count += 1;
    }
    this.count = count;
  }

  of({ id }: Value): number {
    return (this.#dense ? this.#dense[id - this.#first] : this.#sparse.get(id)) ?? NONE;
  }
}

/** Every value that graphs define. */
function eachValue(graphs: readonly Graph[], visit: (value: Value) => void): void {
  for (const { params, nodes } of graphs) {
    params.forEach(visit);
    for (let i = 0; i < nodes.length; i++) (nodes[i] as Node).outputs.forEach(visit);
  }
}

function packAttr(attr: Attr): PackedAttr {
  if (typeof attr === "object") return [attr.map(packAttr)];
  if (typeof attr === "number" && !(Number.isFinite(attr) && !Object.is(attr, -0))) return [numberText(attr)];
  return attr;
}

function unpackAttr(attr: PackedAttr): Attr {
  if (typeof attr !== "object") return attr;
  const [item] = attr;
  if (typeof item !== "string") return item.map(unpackAttr);
  return item === "nan" ? Number.NaN : Number(item.replace("inf", "Infinity"));
}

function packAttrs(attrs: Attrs): readonly [string, readonly PackedAttr[]] {
  const packed = Object.entries(attrs).flatMap(([key, value]) => [key, packAttr(value)]);
  return [packed.length === 0 ? "" : JSON.stringify(packed), packed];
}

/** Graphs inside before those around them, each once. */
function graphsWithin(graph: Graph, found: Set<Graph> = new Set()): Set<Graph> {
  if (found.has(graph)) return found;
  for (const { regions } of graph.nodes) {
    for (let i = 0; i < regions.length; i++) graphsWithin(regions[i] as Graph, found);
  }
  return found.add(graph);
}

/** What is packed of a type: all that programs keep of it, or in a key, its text. */
const packType = ({ dtype, shape }: TensorType): readonly [string, readonly number[]] => {
  const packed = [DTYPES.indexOf(dtype), ...shape];
  return [packed.join(), packed];
};

const typeKey = (type: TensorType): readonly [string, string] => [typeText(type), typeText(type)];

type Packed<T> = Omit<PackedGraph, "types"> & { readonly types: readonly T[] };

function packWith<T>(graph: Graph, pack: (type: TensorType) => readonly [string, T]): Packed<T> {
  const words = new Words();
  const types = new Table(pack);
  const attrs = new Table(packAttrs);
  const graphs = [...graphsWithin(graph)];
  const body = new Map(graphs.map((g, i) => [g, i]));
  const numbers = new Numbers(graphs);
  const list = (values: readonly Value[]): number[] => values.map((value) => numbers.of(value));
  const packNode = (node: Node, into: number[]): void => {
    const { inputs, outputs, regions } = node;
    into.push(words.number(node.op.name), attrs.number(node.attrs), PHASES.indexOf(node.phase), node.replay);
    into.push(words.number(node.where), words.number(node.scope), words.number(node.within), inputs.length);
    for (let i = 0; i < inputs.length; i++) into.push(numbers.of(inputs[i] as Value));
    into.push(outputs.length);
    for (let i = 0; i < outputs.length; i++) into.push(numbers.of(outputs[i] as Value));
    into.push(regions.length);
    for (let i = 0; i < regions.length; i++) into.push(body.get(regions[i] as Graph) ?? NONE);
  };
  const bodies = graphs.map(({ name, params, nodes, results }): PackedBody => {
    const packed: number[] = [];
    for (let i = 0; i < nodes.length; i++) packNode(nodes[i] as Node, packed);
    return { name: words.number(name), params: list(params), nodes: packed, results: list(results) };
  });
  const values: number[] = new Array(2 * numbers.count);
  eachValue(graphs, (value) => {
    const number = numbers.of(value);
    values[2 * number] = types.number(value.type);
    values[2 * number + 1] = words.number(value.name);
  });
  return { graphs: bodies, values, types: types.items, attrs: attrs.items, words: words.items };
}

export const packGraph = (graph: Graph): PackedGraph => packWith(graph, packType);

/**
 * Equal for graphs that were made alike and say the same, metadata included, in any process. Unlike `structuralKey` it is about
 * everything that may show in a plan, the order in which values were made too.
 */
export const graphKey = (graph: Graph): string => JSON.stringify(packWith(graph, typeKey));

/** Whether all operations of a graph are those that its copy would have. */
export function isPackable(graph: Graph, ops: ReadonlyMap<string, AnyOp>): boolean {
  return [...graphsWithin(graph)].every(({ nodes }) => nodes.every(({ op }) => ops.get(op.name) === op));
}

/** The numbers of nodes, one after the other. */
class Reader {
  readonly #numbers: readonly number[];
  #next = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  get isDone(): boolean {
    return this.#next === this.#numbers.length;
  }

  number(): number {
    return at(this.#numbers, this.#next++);
  }

  /** As many as the next number says. */
  list<T>(items: readonly T[]): readonly T[] {
    const count = this.number();
    const listed: T[] = [];
    for (let i = 0; i < count; i++) listed.push(at(items, this.number()));
    return listed;
  }
}

/** The graph, of new values. Throws where the data is not that of a graph. */
export function unpackGraph(packed: PackedGraph, ops: ReadonlyMap<string, AnyOp>): Graph {
  const { words } = packed;
  const word = (i: number): string | undefined => (i === NONE ? undefined : at(words, i));
  const types = packed.types.map(([dtype, ...shape]): TensorType => tensorType(at(DTYPES, dtype ?? NONE), shape));
  const attrs = packed.attrs.map(unpackAttrs);
  const values: Value[] = [];
  for (let i = 0; i < packed.values.length; i += 2) {
    values.push(newValue(at(types, at(packed.values, i)), word(at(packed.values, i + 1))));
  }
  const listed = (list: readonly number[]): readonly Value[] => list.map((i) => at(values, i));
  const graphs: Graph[] = [];
  const unpackNode = (reader: Reader): Node => {
    const name = at(words, reader.number());
    const op = ops.get(name);
    invariant(op, () => `there is no operation ${name}`);
    const own = at(attrs, reader.number());
    const phase = at(PHASES, reader.number());
    const replay = reader.number();
    const where = word(reader.number());
    const scope = word(reader.number());
    const within = word(reader.number());
    const inputs = reader.list(values);
    const outputs = reader.list(values);
    return { op, inputs, attrs: own, outputs, regions: reader.list(graphs), phase, where, replay, scope, within };
  };
  for (const { name, params, nodes, results } of packed.graphs) {
    const unpacked: Node[] = [];
    for (const reader = new Reader(nodes); !reader.isDone; ) unpacked.push(unpackNode(reader));
    graphs.push({ name: at(words, name), params: listed(params), nodes: unpacked, results: listed(results) });
  }
  return at(graphs, graphs.length - 1);
}

function unpackAttrs(list: readonly PackedAttr[]): Attrs {
  const attrs: Record<string, Attr> = {};
  for (let i = 0; i < list.length; i += 2) attrs[at(list, i) as string] = unpackAttr(at(list, i + 1));
  return attrs;
}
