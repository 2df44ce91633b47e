/** @file Tracing: parameters, captures, nesting, trees and source lines. */
import { describe, expect, test, vi } from "vitest";
import { full } from "../ops/create.ts";
import { add, mul } from "../ops/elementwise.ts";
import { type AnyFunction, argumentNames, flattenArguments, traceFunction } from "./function.ts";
import { tensor } from "./literal.ts";
import { locate, parseFrame, sourceLocation } from "./source-location.ts";
import type { Tensor } from "./tensor.ts";
import { currentTrace, traceGraph } from "./trace.ts";
import { flatten, flattenLike, treeKey, unflatten } from "./tree.ts";

const record = (op: typeof add, ...inputs: Tensor[]): Tensor => currentTrace()!.record(op, inputs, {})[0]!;
const type = { dtype: "f32", shape: [3] } as const;

describe("a trace", () => {
  test("turns arguments into named parameters and keeps the user's lines", () => {
    const traced = traceFunction(
      (params: { layers: { w: Tensor }[] }, x: Tensor) => record(mul, params.layers[0]!.w, x),
      [{ layers: [{ w: tensor([1, 2, 3]) }] }, tensor([4, 5, 6])],
    );
    expect(traced.graph.params.map((p) => p.name)).toEqual(["params_layers_0_w", "x"]);
    expect(traced.leaves.map((leaf) => leaf.path)).toEqual(["params.layers[0].w", "x"]);
    expect(traced.graph.nodes[0]!.where).toMatch(/^trace\.test\.ts:\d+:\d+/);
    expect(traced.resultTree.kind).toBe("tensor");
  });

  test("captures each concrete tensor once, and makes small uniform ones constants", () => {
    const k = tensor([1, 2, 3]);
    const ones = tensor([1, 1, 1]);
    const { graph, captures } = traceGraph("f", [{ type }], ([x]) => [
      record(add, record(mul, record(mul, x!, k), k), ones),
    ]);
    expect(captures.map((c) => c.tensor)).toEqual([k]);
    expect(graph.params[1]).toBe(captures[0]!.value);
    expect(graph.nodes.filter((n) => n.op === full).map((n) => n.attrs.value)).toEqual([1]);
  });

  test("inside another captures the outer one's tensors", () => {
    let inner: ReturnType<typeof traceGraph> | undefined;
    const outer = traceGraph("outer", [{ type, name: "a" }], ([a]) => {
      inner = traceGraph("inner", [{ type, name: "b" }], ([b]) => [record(mul, b!, a!)]);
      return currentTrace()!.inline(inner.graph, [a!, ...inner.captures.map((c) => c.tensor)]);
    });
    expect(inner!.graph.params.map((p) => p.name)).toEqual(["b", "a"]);
    expect(outer.captures).toEqual([]);
    expect(outer.graph.nodes[0]!.inputs).toEqual([outer.graph.params[0], outer.graph.params[0]]);
  });

  test("ends when the function throws", () => {
    expect(() => traceGraph("f", [], () => [record(add)])).toThrow();
    expect(currentTrace()).toBeNull();
  });

  test("takes numbers and concrete tensors as results", () => {
    const { graph, captures } = traceFunction(() => ({ a: 3, b: tensor([1, 2]), c: true }), []);
    expect(graph.results.map((v) => v.type.dtype)).toEqual(["f32", "f32", "bool"]);
    expect(captures).toHaveLength(1);
  });

  test("numbers inlined replays apart from those it has", () => {
    const body = traceGraph("f", [{ type }], ([x]) => currentTrace()!.record(add, [x!, x!], {}, { replay: 1 }));
    const { graph } = traceGraph("g", [{ type }], ([x]) => {
      const [y] = currentTrace()!.inline(body.graph, [x!]);
      return currentTrace()!.inline(body.graph, [y!]);
    });
    expect(graph.nodes.map((n) => n.replay)).toEqual([1, 2]);
  });
});

describe("keys", () => {
  const f = (_tree: unknown, _number: unknown): Tensor => tensor(0);
  const keyOf = (...args: unknown[]): string => flattenArguments(f, args).key;

  test("tell structures, types and constants apart, and nothing else", () => {
    const a = tensor([1, 2]);
    expect(keyOf({ w: a }, 1)).toBe(keyOf({ w: tensor([3, 4]) }, 1));
    const different = [
      keyOf({ w: a }, 1),
      keyOf({ w: a }, 2),
      keyOf({ w: a }, true),
      keyOf([a], 1),
      keyOf({ v: a }, 1),
      keyOf({ w: tensor([1]) }, 1),
      keyOf({ w: tensor([1, 2], { dtype: "f64" }) }, 1),
      keyOf({ w: a }),
      keyOf({ w: a }, -0),
      keyOf({ w: a }, 0),
    ];
    expect(new Set(different).size).toBe(different.length);
    // a number without a parameter is not seen
    expect(keyOf({ w: a }, 1, 2)).toBe(keyOf({ w: a }, 1, 3));
  });

  test("see numbers however a function is written", () => {
    const [computed, said] = ["b", (x: number, n: number): number => x * n];
    said.toString = () => "(x) => x";
    // written as plain JavaScript: other tools take comments out
    const written = (text: string): AnyFunction => new Function(`"use strict"; return ${text};`)() as AnyFunction;
    const functions = [
      written("function (x, // the base\n n) { return x * n; }"),
      written("(\n  x, // )\n  n, /* = 3 ) */\n) => x * n"),
      written("function (x) { const u = 'a // b'; return x * arguments[1]; }"),
      written("({ ['a' + String(1)](x, n) { return x * n; } }).a1"),
      written("({ 'q(r'(x, n) { return x * n; } })['q(r']"),
      { [`a${computed}`]: (x: number, n: number) => x * n }.ab as never,
      said as never,
    ];
    for (const fn of functions) {
      expect(flattenArguments(fn, [1, 2]).key).not.toBe(flattenArguments(fn, [1, 3]).key);
    }
    const greek = written("λ => String().length + λ");
    expect(flattenArguments(greek, [2]).key).not.toBe(flattenArguments(greek, [3]).key);
    expect(argumentNames(greek, 1)).toEqual(["λ"]);
  });
});

describe("trees", () => {
  test("come back from their leaves, constants included", () => {
    const [a, b] = [tensor(1), tensor(2)];
    const tree = { a, list: [b, 3, { deep: true }] };
    const flat = flatten(tree, "tree");
    expect(flat.leaves).toEqual([a, b]);
    expect(flat.paths).toEqual(["tree.a", "tree.list[0]"]);
    expect(unflatten(flat.def, flat.leaves)).toEqual(tree);
    expect(treeKey(flat.def)).toBe('{"a":*,"list":[*,3,{"deep":true}]}');
  });

  test("match others of their structure whatever the order of keys", () => {
    const [a, b] = [tensor(1), tensor(2)];
    const { def } = flatten({ x: a, y: b }, "t");
    expect(flattenLike(def, { y: b, x: a }, "u")).toEqual([a, b]);
    expect(flattenLike(def, { x: a, y: null }, "u", new Set(["t.y"]))).toEqual([a]);
  });

  test("that contain themselves are refused", () => {
    const loop: { self?: unknown } = {};
    loop.self = loop;
    expect(() => flatten(loop, "loop")).toThrow("InvalidTree");
  });
});

describe("names of arguments", () => {
  test("are read off the function's text", () => {
    const arrow = (params: Tensor, { b }: { b: Tensor }, [c]: Tensor[], d = 1, ...rest: Tensor[]) => [
      params,
      b,
      c,
      d,
      rest,
    ];
    expect(argumentNames(arrow, 6)).toEqual(["params", "arg1", "arg2", "d", "arg4", "arg5"]);
    function plain(a: Tensor, b: Tensor): Tensor[] {
      return [a, b];
    }
    expect(argumentNames(plain, 2)).toEqual(["a", "b"]);
    expect(argumentNames((x: Tensor) => x, 1)).toEqual(["x"]);
    expect(argumentNames(Math.max as never, 2)).toEqual(["arg0", "arg1"]);
  });
});

describe("source lines", () => {
  test("are read from the stacks of all engines", () => {
    expect(parseFrame("    at decoder (file:///app/model.ts:21:14)")).toEqual({
      fn: "decoder",
      file: "/app/model.ts",
      line: "21",
      column: "14",
    });
    expect(parseFrame("    at /app/model.ts:3:1")?.file).toBe("/app/model.ts");
    expect(parseFrame("decoder@http://localhost/model.js?v=1:21:14")?.file).toBe("http://localhost/model.js");
    expect(parseFrame("Error: message")).toBeNull();
  });

  test("skip the library, Node, and nothing of the user's", () => {
    const stack = [
      "Error",
      "    at Trace.record (/lib/src/trace/trace.ts:1:1)",
      "    at add (/lib/src/api/elementwise.ts:1:1)",
      "    at Array.map (<anonymous>)",
      "    at node:internal/process:1:1",
      "    at decoder (/app/model.ts:21:14)",
      "    at main (/app/main.ts:1:1)",
    ].join("\n");
    expect(locate(stack, "/lib/src/")).toBe("model.ts:21:14 in decoder");
    expect(locate("Error\n    at x (/lib/src/a.ts:1:1)", "/lib/src/")).toBeUndefined();
  });

  test("are those of this file here", () => {
    function here(): string | undefined {
      return sourceLocation();
    }
    expect(here()).toMatch(/^trace\.test\.ts:\d+:\d+ in here$/);
  });

  test("are found where captured stacks are text, as in Firefox", async () => {
    const capture = Error.captureStackTrace;
    vi.resetModules();
    const fresh = await import("./source-location.ts");
    Error.captureStackTrace = (holder) => Object.assign(holder, { stack: "f@http://localhost/model.js:1:2" });
    try {
      expect(fresh.sourceLocation()).toMatch(/^trace\.test\.ts:\d+:\d+/);
    } finally {
      Error.captureStackTrace = capture;
    }
  });

  test("are found again from the same line, and leave the engine's settings as they were", () => {
    const settings = () => [Error.stackTraceLimit, Error.prepareStackTrace];
    const before = settings();
    const found = Array.from({ length: 3 }, () => sourceLocation());
    expect(new Set(found).size).toBe(1);
    expect(sourceLocation()).not.toBe(found[0]);
    expect(settings()).toEqual(before);
  });
});

describe("tensors", () => {
  test("are copies of what they are made from, and hand out copies", () => {
    const source = new Float32Array([1, 2]);
    const x = tensor(source);
    source[0] = 9;
    x.data()[1] = 9;
    expect(x.toArray()).toEqual([1, 2]);
  });

  test("take their element type and shape from the data", () => {
    expect([tensor(1).shape, tensor([[1], [2]]).shape, tensor([[], []]).shape]).toEqual([[], [2, 1], [2, 0]]);
    expect([tensor([true]).dtype, tensor(new Int32Array(1)).dtype, tensor([1]).dtype]).toEqual(["bool", "i32", "f32"]);
    expect(tensor([1, 2, 3, 4], { shape: [2, 2], dtype: "i32" }).toArray()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(tensor([[1, 2]]).elements).toBe(2);
  });

  test("read as numbers and text when they are concrete", () => {
    expect(Number(tensor([[3]]))).toBe(3);
    expect(`${tensor([[1, 2]])}`).toBe("Tensor(f32[1,2] [[1, 2]])");
    expect(`${tensor([1, Number.NaN, Number.NEGATIVE_INFINITY])}`).toBe("Tensor(f32[3] [1, NaN, -Infinity])");
    expect(`${tensor([true, false])}`).toBe("Tensor(bool[2] [true, false])");
    expect(`${tensor(new Float32Array(100))}`).toBe("Tensor(f32[100])");
  });
});
