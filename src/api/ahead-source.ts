/**
 * @file A function or a graph as a program that runs without the compiler sees it: arguments and results as trees of numbered
 * tensors, each parameter with a name, and the values of those that stay in the arena.
 */
import { at } from "../base/invariant.ts";
import type { SourceProgram } from "../compiler/request.ts";
import type { Graph } from "../ir/graph.ts";
import type { TensorType } from "../ir/type.ts";
import type { ParamKind, ProgramFile, ProgramTree } from "../runtime/ahead/format.ts";
import { constantText } from "../runtime/ahead/values.ts";
import { fail } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { TreeDef } from "../trace/tree.ts";
import type { CompileRequest } from "./request.ts";
import { CallReader, type TracedProgram } from "./traced-program.ts";
import { visitLeaves } from "./tree.ts";

/** A parameter before it has an address. */
export interface AheadParam {
  readonly name: string;
  readonly type: TensorType;
  readonly kind: ParamKind;
  /** Its first value, if it stays and there is one. */
  readonly value: Tensor | null;
}

export interface AheadSource extends Required<SourceProgram> {
  readonly params: readonly AheadParam[];
  /** Names of results. */
  readonly results: readonly string[];
  readonly arguments: ProgramFile["arguments"];
  readonly result: ProgramTree;
}

/** Numbers the leaves of a structure; `number` gives the parameters of each plain number. */
function treeOf(def: TreeDef, tensor: () => number, number: () => readonly number[]): ProgramTree {
  const inner = (item: TreeDef): ProgramTree => treeOf(item, tensor, number);
  switch (def.kind) {
    case "tensor":
      return { tensor: tensor() };
    case "number":
      return { number: number() };
    case "static":
      return { constant: constantText(def.value) };
    case "array":
      return { list: def.items.map(inner) };
    case "object":
      return { object: Object.fromEntries(def.entries.map(([key, item]) => [key, inner(item)])) };
  }
}

const counter = (): (() => number) => {
  let next = 0;
  return () => next++;
};

/** Names of a structure's tensors as files have them: keys and positions joined by dots. */
function namesOf(def: TreeDef, root: string): readonly string[] {
  const names: string[] = [];
  visitLeaves(def, (leaf, path) => {
    if (leaf.kind === "tensor") names.push(path === "" ? root : `${root}.${path}`);
  });
  return names;
}

const knownValue = (tensor: Tensor): Tensor | null => (tensor.storage?.abstract ? null : tensor);

function requireNames(params: readonly AheadParam[]): void {
  const seen = new Set<string>();
  for (const { name } of params) {
    if (seen.has(name)) {
      fail("InvalidTree", `build: two tensors have the name ${name}`, "a key with a dot reads like two; rename it");
    }
    seen.add(name);
  }
}

/** Parameters of arguments that stay because they were asked to. */
function residentParams({ traced }: TracedProgram, resident: readonly number[]): ReadonlySet<number> {
  return new Set(traced.leaves.flatMap(({ argument }, i) => (resident.includes(argument) ? [i] : [])));
}

function paramsOf(source: TracedProgram, resident: ReadonlySet<number>): readonly AheadParam[] {
  const { traced, flat, donated } = source;
  const roots = flat.trees.map(({ path }) => path);
  const names = flat.trees.flatMap((tree, i) => namesOf(tree, at(roots, i)));
  const leaves = traced.leaves.map(({ type }, i): AheadParam => {
    const kept = resident.has(i) ? "constant" : "input";
    const kind = (donated.get(i) ?? -1) >= 0 ? "state" : kept;
    return { name: at(names, i), type, kind, value: kind === "input" ? null : knownValue(at(flat.tensors, i)) };
  });
  const numbers = traced.numbers.map(({ path, type }): AheadParam => {
    return { name: `${path} (${type.dtype})`, type, kind: "input", value: null };
  });
  const captures = traced.captures.map(({ tensor }, i): AheadParam => {
    const { dtype, shape } = tensor;
    return { name: `captured.${i}`, type: { dtype, shape }, kind: "constant", value: knownValue(tensor) };
  });
  return [...leaves, ...numbers, ...captures];
}

/** A function, traced on arguments like those of its calls. */
export function sourceOfFunction(
  fn: AnyFunction,
  args: readonly unknown[],
  request: CompileRequest,
  resident: readonly number[],
): AheadSource {
  const source = new CallReader(fn, request).trace(args);
  const { traced, flat, graph, donated } = source;
  const stays = residentParams(source, resident);
  const params = paramsOf(source, stays);
  requireNames(params);
  const [nextTensor, nextNumber, nextResult] = [counter(), counter(), counter()];
  const numberParams = (): readonly number[] => {
    const index = nextNumber();
    return traced.numbers.flatMap((number, i) => (number.index === index ? [traced.leaves.length + i] : []));
  };
  const { resultTree } = traced;
  return {
    ...{ graph, donated, params },
    persistent: new Set([...source.persistent, ...stays]),
    results: namesOf(resultTree, "result"),
    arguments: flat.trees.map((tree) => ({ name: tree.path, tree: treeOf(tree, nextTensor, numberParams) })),
    result: treeOf(resultTree, nextResult, () => []),
  };
}

/** A graph: every parameter is an argument, and the results are a list. */
export function sourceOfGraph(graph: Graph): AheadSource {
  const params = graph.params.map(
    ({ name, type }, i): AheadParam => ({ name: name ?? `arg${i}`, type, kind: "input", value: null }),
  );
  const results = graph.results.map((_, i): ProgramTree => ({ tensor: i }));
  return {
    ...{ graph, params },
    donated: new Map(),
    persistent: new Set(),
    results: results.map((_, i) => `result.${i}`),
    arguments: params.map(({ name }, i) => ({ name, tree: { tensor: i } })),
    result: { list: results },
  };
}
