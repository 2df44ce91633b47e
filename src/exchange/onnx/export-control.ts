/**
 * @file Calls, loops and branches as ONNX has them. Calls and functions with derivatives of their own are written out. A loop becomes a `Loop`:
 * inner graphs see the values of outer ones, rows of stacks are looked up by the number of the iteration, and rows that it makes are
 * stacked by the operator. A branch becomes an `If`.
 */
import { at } from "../../base/invariant.ts";
import type { OutGraph, OutValue } from "../../formats/onnx-write.ts";
import { type Loop, loopOf } from "../../ir/control.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { tensorType } from "../../ir/type.ts";
import { isBool } from "../../kernel/dtype.ts";
import { BOOL, declared, GraphWriter, INT32, INT64, type ModelParts } from "./export-graph.ts";

/** Writes the nodes of a graph whose parameters have names already. */
export type WriteNodes = (w: GraphWriter, graph: Graph) => void;

/** The graph that computes the same as a node, where it is defined by one. */
export function bodyOf(node: Node): Graph | null {
  const { op, regions } = node;
  if (op.inlines !== undefined) return at(regions, op.inlines);
  if (op.derivative.kind !== "region") return null;
  const rule = op.derivative.rule?.(node);
  if (rule?.kind === "custom_vjp") return rule.expansion ?? null;
  return rule && "body" in rule ? rule.body : null;
}

/** The nodes of a body in the place of the node that it belongs to. */
export function writeOut(w: GraphWriter, node: Node, body: Graph, write: WriteNodes): void {
  w.setAll(body.params, (i) => w.loose(at(node.inputs, i)));
  write(w, body);
  w.setAll(node.outputs, (i) => w.loose(at(body.results, i)));
}

const TRUTH = tensorType("bool", []);
const INDEX = tensorType("i32", []);

/** Outputs of an inner graph must be made by it: a value from outside is passed on by a node. */
const passed = (w: GraphWriter, value: Value): string => w.emit("Identity", [w.whole(value)]);

function bodyGraph(parts: ModelParts, outer: GraphWriter, loop: Loop, write: WriteNodes): OutGraph {
  const w = new GraphWriter(parts, outer);
  const { body, carries, xs, consts, test } = loop;
  const [index, ...rest] = body.params;
  const [iteration, going] = [parts.fresh("iteration"), parts.fresh("going")];
  const number = w.emit("Cast", [iteration], { to: { int: INT32 } });
  const last = loop.reverse ? w.emit("Sub", [w.scalar(INDEX, loop.length - 1), number]) : number;
  w.set(index as Value, { name: last, shape: [] });
  const states = carries.map((_, i) => {
    const param = at(rest, i);
    const name = parts.fresh("state");
    w.set(param, { name, shape: param.type.shape });
    return declared(name, param.type);
  });
  xs.forEach((stack, i) => {
    const row = at(rest, carries.length + i);
    const name = w.emit("Gather", [outer.whole(stack), last], { axis: { int: 0 } });
    w.set(row, { name, shape: row.type.shape });
  });
  w.setAll(rest.slice(carries.length + xs.length), (i) => outer.loose(at(consts, i)));
  write(w, body);
  const results = body.results.map((value) => ({ name: passed(w, value), type: value.type }));
  let next = w.emit("Identity", [w.scalar(TRUTH, 1)]);
  if (test) {
    test.params.forEach((param, i) => {
      const state = results[i];
      if (i < carries.length && state) w.set(param, { name: state.name, shape: state.type.shape });
      else w.set(param, outer.loose(at(consts, i - carries.length)));
    });
    write(w, test);
    next = passed(w, at(test.results, 0));
  }
  // how many iterations there were, as one more state
  const count = { name: parts.fresh("count"), type: INT32, shape: [] };
  const counted = declared(w.emit("Add", [number, w.scalar(INDEX, 1)]), INDEX);
  const counters: readonly OutValue[] = [
    { name: iteration, type: INT64, shape: [] },
    { name: going, type: BOOL, shape: [] },
  ];
  const made = results.map(({ name, type }) => declared(name, type));
  const outputs = [declared(next, TRUTH), ...made.slice(0, carries.length), counted, ...made.slice(carries.length)];
  return w.finish("body", [...counters, ...states, count], outputs);
}

/** The test on the first state. */
function firstTest(w: GraphWriter, { test, carries, consts }: Loop, write: WriteNodes): string {
  if (!test) return w.scalar(TRUTH, 1);
  w.setAll(test.params, (i) => w.loose(at([...carries, ...consts], i)));
  write(w, test);
  return w.whole(at(test.results, 0));
}

function writeLoop(w: GraphWriter, loop: Loop, write: WriteNodes): string | undefined {
  if (loop.recording || loop.strip > 0) return "a loop that the planner made";
  if ((loop.test || loop.count) && loop.ys.length > 0) return "rows of a loop whose length depends on data";
  if (loop.count && loop.reverse) return "a reversed loop whose length depends on data";
  const count = ((): string => {
    if (loop.count) return w.emit("Cast", [w.whole(loop.count)], { to: { int: INT64 } });
    return loop.test && !loop.isBounded ? "" : w.parts.int64([loop.length], []);
  })();
  for (const stack of loop.xs) w.whole(stack);
  const states = loop.carries.map((value) => w.whole(value));
  const start = firstTest(w, loop, write);
  const body = bodyGraph(w.parts, w, loop, write);
  const [last, ys] = [loop.last.length, loop.ys.length];
  const inputs = [count, start, ...states, w.scalar(INDEX, 0)];
  const made = w.emitAll("Loop", inputs, last + 1 + ys, { body: { graph: body } });
  if (loop.iterations) w.set(loop.iterations, { name: at(made, last), shape: [] });
  w.nameAll(loop.last, made);
  loop.ys.forEach((value, i) => {
    const stack = at(made, last + 1 + i);
    const list = [[-1], [-loop.length - 1], [0], [-1]].map((one) => w.parts.int64(one));
    w.set(value, { name: loop.reverse ? w.emit("Slice", [stack, ...list]) : stack, shape: value.type.shape });
  });
  return undefined;
}

function branchGraph(w: GraphWriter, node: Node, region: Graph, write: WriteNodes): OutGraph {
  const inner = new GraphWriter(w.parts, w);
  inner.setAll(region.params, (i) => w.loose(at(node.inputs, i + 1)));
  write(inner, region);
  return inner.finish(
    "branch",
    [],
    region.results.map((value) => declared(passed(inner, value), value.type)),
  );
}

function writeBranch(w: GraphWriter, node: Node, write: WriteNodes): string | undefined {
  if (node.regions.length !== 2) return `a choice between ${node.regions.length} branches`;
  const index = at(node.inputs, 0);
  const name = w.whole(index);
  const isSecond = isBool(index.type.dtype) ? name : w.emit("Greater", [name, w.scalar(index.type, 0)]);
  const branches = node.regions.map((region) => branchGraph(w, node, region, write));
  const made = w.emitAll("If", [isSecond], node.outputs.length, {
    then_branch: { graph: at(branches, 1) },
    else_branch: { graph: at(branches, 0) },
  });
  w.nameAll(node.outputs, made);
  return undefined;
}

/** Writes a loop or a branch; a text says why that is not possible, null that it is neither. */
export function writeControl(w: GraphWriter, node: Node, write: WriteNodes): string | undefined | null {
  const loop = loopOf(node);
  if (loop) return writeLoop(w, loop, write);
  const { lower } = node.op;
  if (lower.kind !== "control" || lower.control(node).kind !== "branch") return null;
  return writeBranch(w, node, write);
}
