/**
 * @file A graph as plain data, for caches: all its content, metadata included, independent of the process that built
 * it. Unlike the text (print.ts) it is not for people and keeps what the text leaves out: parts, source lines,
 * which values came first, and which nodes have the same region object.
 *
 *   values   numbered by their ids, so that ties broken by ids are broken alike in the copy
 *   graphs   the outermost one last; a region that several nodes share is there once
 *   nodes    [op, attrs, inputs, outputs, regions, phase, replay, where, scope, within], words by their number
 *
 * `graphKey` is the same as a text that need not be read back: equal for graphs that say the same, in any process.
 */
import { at, invariant } from "../base/invariant.ts";
import { DTYPES } from "../kernel/dtype.ts";
import { attrsKey, numberText } from "./attrs.ts";
import { type Graph, type Node, newValue, type Phase, type Value } from "./graph.ts";
import type { AnyOp, Attr, Attrs } from "./op.ts";
import { type TensorType, tensorType, typeText } from "./type.ts";

/** A number that JSON has no text for is a list with its name; a list is a list of lists, so that the two differ. */
type PackedAttr = number | string | boolean | readonly [string] | readonly [readonly PackedAttr[]];

type PackedNode = readonly [
  op: number,
  attrs: readonly (number | PackedAttr)[],
  inputs: readonly number[],
  outputs: readonly number[],
  regions: readonly number[],
  phase: number,
  replay: number,
  where: number,
  scope: number,
  within: number,
];

interface PackedBody {
  readonly name: number;
  readonly params: readonly number[];
  readonly nodes: readonly PackedNode[];
  readonly results: readonly number[];
}

export interface PackedGraph {
  readonly words: readonly string[];
  /** Element type by its number, then extents. */
  readonly types: readonly (readonly number[])[];
  /** Type and name of each value. */
  readonly values: readonly (readonly [type: number, name: number])[];
  readonly graphs: readonly PackedBody[];
}

const PHASES: readonly Phase[] = ["forward", "backward", "update"];
/** In place of a word that is not there. */
const NONE = -1;

/** Numbers things in the order in which they come, equal ones alike. */
class Table<T> {
  readonly items: T[] = [];
  readonly #numbers = new Map<unknown, number>();

  number(item: T, key: unknown = item): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    this.#numbers.set(key, this.items.length);
    return this.items.push(item) - 1;
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

/** Graphs inside before those around them, each once. */
function graphsWithin(graph: Graph, found: Set<Graph> = new Set()): Set<Graph> {
  if (found.has(graph)) return found;
  for (const node of graph.nodes) for (const region of node.regions) graphsWithin(region, found);
  return found.add(graph);
}

export function packGraph(graph: Graph): PackedGraph {
  const [words, types] = [new Table<string>(), new Table<readonly number[]>()];
  const word = (text: string | undefined): number => (text === undefined ? NONE : words.number(text));
  const graphs = [...graphsWithin(graph)];
  const body = new Map(graphs.map((g, i) => [g, i]));
  const made = graphs.flatMap(({ params, nodes }) => [...params, ...nodes.flatMap(({ outputs }) => outputs)]);
  const values = [...new Set(made)].sort((a, b) => a.id - b.id);
  const number = new Map(values.map((value, i) => [value, i]));
  const numbers = (list: readonly Value[]): readonly number[] => list.map((value) => number.get(value) ?? NONE);
  const packAttrs = (attrs: Attrs) => Object.entries(attrs).flatMap(([key, value]) => [word(key), packAttr(value)]);
  const packNode = (node: Node): PackedNode => [
    word(node.op.name),
    packAttrs(node.attrs),
    numbers(node.inputs),
    numbers(node.outputs),
    node.regions.map((region) => body.get(region) ?? NONE),
    PHASES.indexOf(node.phase),
    node.replay,
    word(node.where),
    word(node.scope),
    word(node.within),
  ];
  return {
    graphs: graphs.map(({ name, params, nodes, results }) => {
      return { name: word(name), params: numbers(params), nodes: nodes.map(packNode), results: numbers(results) };
    }),
    values: values.map(({ type, name }) => {
      const packed = [DTYPES.indexOf(type.dtype), ...type.shape];
      return [types.number(packed, packed.join()), word(name)];
    }),
    types: types.items,
    words: words.items,
  };
}

/**
 * Equal for graphs that were made alike and say the same, metadata included. Unlike `structuralKey` it is about everything
 * that may show in a plan; values go by their ids, counted from the graph's first.
 */
export function graphKey(graph: Graph): string {
  const [words, known] = [new Table<string>(), new Map<Graph, number>()];
  const first = (graph.params[0] ?? graph.nodes[0]?.outputs[0])?.id ?? 0;
  const word = (text: string | undefined): number => (text === undefined ? NONE : words.number(text));
  const used = (values: readonly Value[]): string => {
    let text = "";
    for (const { id } of values) text += `${id - first},`;
    return text;
  };
  const defined = (values: readonly Value[]): string => {
    let text = "";
    for (const { id, type, name } of values) text += `${id - first} ${word(typeText(type))} ${word(name)},`;
    return text;
  };
  const bodyKey = (body: Graph): string => {
    const before = known.get(body);
    if (before !== undefined) return `#${before}`;
    let text = `${word(body.name)}(${defined(body.params)})`;
    for (const { op, attrs, inputs, outputs, phase, replay, ...node } of body.nodes) {
      const about = `${word(op.name)} ${word(attrsKey(op, attrs))} ${word(phase)} ${replay}`;
      const place = `${word(node.where)} ${word(node.scope)} ${word(node.within)}`;
      text += `\n${defined(outputs)}=${about} ${place}(${used(inputs)})`;
      for (const region of node.regions) text += `[${bodyKey(region)}]`;
    }
    known.set(body, known.size);
    return `${text}>${used(body.results)}`;
  };
  return `${bodyKey(graph)}\n${JSON.stringify(words.items)}`;
}

/** Whether all operations of a graph are those that its copy would have. */
export function isPackable(graph: Graph, ops: ReadonlyMap<string, AnyOp>): boolean {
  return [...graphsWithin(graph)].every(({ nodes }) => nodes.every(({ op }) => ops.get(op.name) === op));
}

/** The graph, of new values. Throws where the data is not that of a graph. */
export function unpackGraph(packed: PackedGraph, ops: ReadonlyMap<string, AnyOp>): Graph {
  const { words } = packed;
  const word = (i: number): string | undefined => (i === NONE ? undefined : at(words, i));
  const types = packed.types.map(([dtype, ...shape]): TensorType => tensorType(at(DTYPES, dtype ?? NONE), shape));
  const values = packed.values.map(([type, name]) => newValue(at(types, type), word(name)));
  const listed = (list: readonly number[]): readonly Value[] => list.map((i) => at(values, i));
  const graphs: Graph[] = [];
  const unpackAttrs = (list: readonly PackedAttr[]): Attrs => {
    const attrs: Record<string, Attr> = {};
    for (let i = 0; i < list.length; i += 2) attrs[at(words, at(list, i) as number)] = unpackAttr(at(list, i + 1));
    return attrs;
  };
  const unpackNode = ([op, attrs, inputs, outputs, regions, phase, replay, ...place]: PackedNode): Node => {
    const [where, scope, within] = place;
    const found = ops.get(at(words, op));
    invariant(found, () => `there is no operation ${words[op]}`);
    return {
      op: found,
      inputs: listed(inputs),
      attrs: unpackAttrs(attrs),
      outputs: listed(outputs),
      regions: regions.map((i) => at(graphs, i)),
      phase: at(PHASES, phase),
      where: word(where),
      replay,
      ...(scope === NONE ? {} : { scope: word(scope) }),
      ...(within === NONE ? {} : { within: word(within) }),
    };
  };
  for (const { name, params, nodes, results } of packed.graphs) {
    const unpacked = nodes.map(unpackNode);
    graphs.push({ name: at(words, name), params: listed(params), nodes: unpacked, results: listed(results) });
  }
  return at(graphs, graphs.length - 1);
}
