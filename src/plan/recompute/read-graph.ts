/**
 * @file Readers of graphs from files: networkx node-link JSON as the Checkmate and Moccasin projects publish it, and the
 * plain form of profiled traces (`size`, `const`, `outputs`, `ops` with several outputs, views and constants).
 *
 * A view has no storage of its own: it reads what it views, and later readers name the storage.
 */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { checkProblem, type RecomputeOp, type RecomputeProblem } from "./problem.ts";

type Json = Readonly<Record<string, unknown>>;

function refuse(summary: string): never {
  throw new TidemarkError("ParseError", `graph: ${summary}`, {
    help: "give node-link JSON (nodes: id, cost_cpu, cost_ram; links: source, target) or a trace (size, const, outputs, ops)",
  });
}

const isObject = (x: unknown): x is Json => typeof x === "object" && x !== null && !Array.isArray(x);

function list(object: Json, key: string): readonly unknown[] {
  const value = object[key];
  return Array.isArray(value) ? value : refuse(`${key} is not a list`);
}

function objects(items: readonly unknown[], what: string): readonly Json[] {
  return items.map((item, i) => (isObject(item) ? item : refuse(`${what} ${i} is not an object`)));
}

function numbers(items: readonly unknown[], what: string): readonly number[] {
  return items.map((item, i) => (typeof item === "number" ? item : refuse(`${what} ${i} is not a number`)));
}

/** The first of `keys` that `object` has. */
function either(object: Json, keys: readonly string[], what: string): number | string {
  const value = keys.map((key) => object[key]).find((x) => typeof x === "number" || typeof x === "string");
  return value === undefined ? refuse(`${what} has none of ${keys.join(", ")}`) : (value as number | string);
}

function amount(object: Json, keys: readonly string[], what: string): number {
  const value = either(object, keys, what);
  return typeof value === "number" ? value : refuse(`${what}: ${keys.join(" or ")} is not a number`);
}

/** Topological, and as near to the order of the file as that allows: the ready node that is listed first runs next. */
function topological(count: number, edges: readonly (readonly [number, number])[], order: readonly number[]): number[] {
  const waiting = new Int32Array(count);
  const after: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    at(after, from).push(to);
    waiting[to] = at(waiting, to) + 1;
  }
  const inOrder = (sequence: readonly number[]): boolean => {
    const rank = new Int32Array(count);
    sequence.forEach((node, i) => {
      rank[node] = i;
    });
    return edges.every(([from, to]) => at(rank, from) < at(rank, to));
  };
  if (inOrder(order)) return [...order];
  const rank = new Map(order.map((node, i) => [node, i]));
  const ready = order.filter((node) => waiting[node] === 0);
  const sorted: number[] = [];
  while (ready.length > 0) {
    ready.sort((a, b) => (rank.get(b) ?? 0) - (rank.get(a) ?? 0));
    const node = ready.pop() as number;
    sorted.push(node);
    for (const next of at(after, node)) {
      waiting[next] = at(waiting, next) - 1;
      if (waiting[next] === 0) ready.push(next);
    }
  }
  return sorted.length === count ? sorted : refuse("the links form a cycle");
}

function fileOrder(graph: unknown, ids: ReadonlyMap<string, number>): readonly number[] {
  const given = isObject(graph) ? graph.order : undefined;
  if (!Array.isArray(given)) return [...ids.values()];
  if (given.length !== ids.size) refuse(`graph.order lists ${given.length} of ${ids.size} nodes`);
  return given.map((id) => ids.get(String(id)) ?? refuse(`graph.order names ${String(id)}, which is no node`));
}

/** Node-link JSON: one value per node. */
function fromNodeLink(json: Json): RecomputeProblem {
  const nodes = objects(list(json, "nodes"), "node");
  const named = nodes.map((node, i) => either(node, ["id", "name"], `node ${i}`));
  const index = new Map(named.map((id, i) => [String(id), i]));
  if (index.size !== nodes.length) refuse("two nodes have the same id");
  const end = (link: Json, keys: readonly string[], i: number): number => {
    const id = either(link, keys, `link ${i}`);
    return index.get(String(id)) ?? refuse(`link ${i} names ${id}, which is no node`);
  };
  const edges = objects(list(json, "links"), "link").map(
    (link, i) => [end(link, ["source", "0"], i), end(link, ["target", "1"], i)] as const,
  );
  const order = topological(nodes.length, edges, fileOrder(json.graph, index));
  const reads: Set<number>[] = nodes.map(() => new Set());
  for (const [from, to] of edges) at(reads, to).add(from);
  // values are numbered like nodes
  const ops = order.map((i): RecomputeOp => {
    const node = at(nodes, i);
    return {
      id: at(named, i),
      name: String(node.name ?? at(named, i)),
      cost: amount(node, ["cost_cpu", "duration"], `node ${i}`),
      inputs: [...at(reads, i)],
      outputs: [i],
      backward: node.backward === true,
    };
  });
  const bytes = nodes.map((node, i) => amount(node, ["cost_ram", "out_cost"], `node ${i}`));
  const name = isObject(json.graph) && typeof json.graph.name === "string" ? json.graph.name : "graph";
  return { name, ops, bytes, results: [], pinnedBytes: new Array<number>(ops.length + 1).fill(0) };
}

/** A profiled trace: storages with bytes, constants that appear before an operation and stay. */
function fromTrace(json: Json): RecomputeProblem {
  const bytes = numbers(list(json, "size"), "size");
  const traced = objects(list(json, "ops"), "op");
  const pinnedBytes = new Array<number>(traced.length + 1).fill(0);
  const constants = new Set<number>();
  for (const entry of list(json, "const")) {
    const [value, before] = numbers(Array.isArray(entry) ? entry : refuse("const holds pairs"), "const");
    if (value === undefined || before === undefined) refuse("const holds pairs");
    constants.add(value);
    const from = Math.min(before, traced.length);
    pinnedBytes[from] = at(pinnedBytes, from) + at(bytes, value);
  }
  for (let k = 1; k < pinnedBytes.length; k++) pinnedBytes[k] = at(pinnedBytes, k) + at(pinnedBytes, k - 1);
  const stored = (value: number): boolean => !constants.has(value);
  const ops = traced.map((op, index): RecomputeOp => {
    const views = numbers(list(op, "a"), "a");
    const inputs = new Set([...numbers(list(op, "i"), "i"), ...views].filter(stored));
    return {
      id: index,
      name: String(op.n ?? index),
      cost: amount(op, ["c"], `op ${index}`),
      inputs: [...inputs],
      outputs: [...new Set(numbers(list(op, "o"), "o"))],
    };
  });
  const results = [...new Set(numbers(list(json, "outputs"), "outputs"))].filter(stored);
  return { name: String(json.name ?? "trace"), ops, bytes, results, pinnedBytes };
}

/**
 * Reads either kind; the order of first executions is `graph.order`, else the file's, made topological.
 *
 * @throws ParseError for text that is neither
 *
 * @example
 * import { readGraph } from "tidemark/plan";
 *
 * console.log(readGraph(JSON.stringify({ graph: {}, nodes: [{ id: 0, cost_cpu: 1, cost_ram: 1 }], links: [] })).ops.length); // → 1
 */
export function readGraph(text: string): RecomputeProblem {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    refuse(error instanceof Error ? error.message : "not JSON");
  }
  if (!isObject(json)) refuse("not an object");
  return checkProblem("ops" in json ? fromTrace(json) : fromNodeLink(json));
}
