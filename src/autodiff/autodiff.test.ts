/** @file Both modes against differences and against each other, calls, replays and custom rules. */
import { describe, expect, test } from "vitest";
import { Build } from "../ir/build.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { tensorType } from "../ir/type.ts";
import { sum } from "../ops/broadcast.ts";
import { call, customJvp, customVjp } from "../ops/control.ts";
import { apply } from "../ops/define.ts";
import { add, mul, relu, sub } from "../ops/elementwise.ts";
import { cos, exp, sin, tanh } from "../ops/math.ts";
import { matmul } from "../ops/matmul.ts";
import { cast, stopGradient } from "../ops/select.ts";
import { jvp } from "./jvp.ts";
import { vjp } from "./vjp.ts";

const vector = tensorType("f64", [3]);
const matrix = tensorType("f64", [3, 3]);

function graphOf(name: string, types: readonly (typeof vector)[], body: (b: Build, ...x: Value[]) => Value[]): Graph {
  const b = new Build(name);
  const params = types.map((type, i) => b.param(type, `x${i}`));
  return b.finish(body(b, ...params));
}

/** Deterministic data in (-1, 1). */
function data(elements: number, seed: number): Float64Array {
  return Float64Array.from({ length: elements }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed));
}

const inputsOf = (graph: Graph): Float64Array[] =>
  graph.params.map((p, i) =>
    data(
      p.type.shape.reduce((n, e) => n * e, 1),
      i + 1,
    ),
  );

const dot = (a: Float64Array, b: Float64Array): number => a.reduce((s, x, i) => s + x * b[i]!, 0);

/** Directional derivative of all results by central differences. */
function differences(graph: Graph, x: readonly Float64Array[], t: readonly (Float64Array | null)[]): Float64Array[] {
  const h = 1e-5;
  const shifted = (by: number) =>
    evaluate(
      graph,
      x.map((v, i) => v.map((e, k) => e + by * (t[i]?.[k] ?? 0))),
    );
  const [up, down] = [shifted(h), shifted(-h)];
  return up.map((u, i) => u.map((e, k) => (e - down[i]![k]!) / (2 * h)));
}

/** Checks both modes of a graph against differences and against each other. */
function check(graph: Graph, active: boolean[] = graph.params.map(() => true)): void {
  const x = inputsOf(graph);
  const t = x.map((v, i) => (active[i] ? data(v.length, 50 + i) : null));
  const plain = evaluate(graph, x);
  const forward = evaluate(jvp(graph, active), [...x, ...t.filter((v) => v !== null)]);
  const numeric = differences(graph, x, t);
  plain.forEach((y, i) => {
    expect(forward[i]).toEqual(y);
    const tangent = forward[plain.length + i]!;
    tangent.forEach((v, k) => {
      expect(v).toBeCloseTo(numeric[i]![k]!, 6);
    });
  });
  const ct = plain.map((y, i) => data(y.length, 90 + i));
  const backward = evaluate(vjp(graph, active), [...x, ...ct]);
  plain.forEach((y, i) => {
    expect(backward[i]).toEqual(y);
  });
  // ⟨ct, J t⟩ = ⟨Jᵀ ct, t⟩
  const left = ct.reduce((s, c, i) => s + dot(c, forward[plain.length + i]!), 0);
  const tangents = t.filter((v) => v !== null);
  const right = tangents.reduce((s, v, i) => s + dot(v, backward[plain.length + i]!), 0);
  expect(right).toBeCloseTo(left, 9);
}

const network = graphOf("network", [vector, matrix, matrix], (b, x, w1, w2) => {
  const row = b.call(matmul, [w1, w2], { ta: false, tb: true });
  const h = apply(b, tanh, row);
  const s = b.call(sum, [apply(b, mul, h, row)], { axes: [0] });
  return [apply(b, sub, apply(b, mul, s, x), apply(b, sin, x))];
});

describe("both modes", () => {
  test("agree with differences on a graph with fan-out and products", () => check(network));

  test("differentiate only the parameters that are active", () => {
    check(network, [false, true, false]);
    const joint = vjp(network, [false, true, false]);
    expect(joint.results.slice(1).map((v) => v.type)).toEqual([matrix]);
    // neither d_x nor d_w2 is ever built
    expect(joint.nodes.some((n) => n.op === matmul && n.phase === "backward" && n.attrs.ta === true)).toBe(false);
  });

  test("see zero through stop_gradient and integers, and give zeros for what does not depend", () => {
    const graph = graphOf("stopped", [vector, vector], (b, x, y) => {
      const z = b.call(cast, [b.call(cast, [y], { dtype: "i32" as const })], { dtype: "f64" as const });
      return [apply(b, mul, apply(b, stopGradient, x), z)];
    });
    const [, dx, dy] = evaluate(vjp(graph, [true, true]), [...inputsOf(graph), data(3, 1)]);
    expect([...dx!, ...dy!]).toEqual([0, 0, 0, 0, 0, 0]);
    const [, t] = evaluate(jvp(graph, [true, true]), [...inputsOf(graph), data(3, 1), data(3, 2)]);
    expect([...t!]).toEqual([0, 0, 0]);
  });

  test("keep results that are parameters and results that occur twice", () => {
    check(
      graphOf("same", [vector], (b, x) => {
        const y = apply(b, mul, x, x);
        return [x, y, y];
      }),
    );
  });

  test("compose to any order", () => {
    const f = graphOf("cube", [vector], (b, x) => [
      b.call(sum, [apply(b, mul, x, apply(b, mul, x, x))], { axes: [0] }),
    ]);
    const gradient = vjp(f, [true], ["one"]);
    check(gradient);
    const second = vjp(gradient, [true]);
    check(second, [true, false, false]);
    check(jvp(gradient, [true]), [true, true]);
    check(vjp(jvp(f, [true]), [true, false]), [true, true, true, true]);
  });
});

describe("the joint graph", () => {
  test("has the forward nodes first and marks the others as backward", () => {
    const joint = vjp(network, [true, true, true]);
    const phases = joint.nodes.map((n) => n.phase);
    expect(phases.slice(0, network.nodes.length).every((p) => p === "forward")).toBe(true);
    expect(phases.slice(network.nodes.length).every((p) => p === "backward")).toBe(true);
  });

  test("sums cotangents of a fan-out one add at a time, last use first", () => {
    const graph = graphOf("fan", [vector], (b, x) => {
      const uses = [apply(b, sin, x), apply(b, exp, x), apply(b, tanh, x)];
      return [apply(b, add, apply(b, add, uses[0]!, uses[1]!), uses[2]!)];
    });
    check(graph);
    const adds = vjp(graph, [true]).nodes.filter((n) => n.op === add && n.phase === "backward");
    expect(adds.map((n) => n.outputs[0]!.name)).toEqual(["d_x0", "d_x0"]);
  });

  test("carries the user's lines over to backward nodes", () => {
    const b = new Build("lines");
    const x = b.param(vector, "x");
    const y = b.call(exp, [x], {}, { where: "model.ts:1:2" });
    const joint = vjp(b.finish([y]), [true]);
    expect(joint.nodes.map((n) => n.where)).toEqual(["model.ts:1:2", "model.ts:1:2"]);
  });
});

/** sin(tanh(x)·x), and a call of it. */
const inner = graphOf("inner", [vector], (b, x) => [apply(b, sin, apply(b, mul, apply(b, tanh, x), x))]);
const called = (body: Graph, checkpoint: boolean): Graph =>
  graphOf("outer", [vector], (b, x) => {
    const y = b.call(call, [apply(b, exp, x)], { checkpoint, name: "inner" }, { regions: [body] });
    return [apply(b, relu, apply(b, mul, y, x))];
  });

describe("calls", () => {
  test("are differentiated in both modes, to second order", () => {
    for (const checkpoint of [false, true]) {
      const graph = called(inner, checkpoint);
      check(graph);
      check(vjp(graph, [true]));
      check(vjp(jvp(graph, [true]), [true, true]));
    }
  });

  test("that take one value twice count its cotangent once for each place", () => {
    const product = graphOf("product", [vector, vector], (b, x, y) => [apply(b, mul, x, apply(b, sin, y))]);
    for (const checkpoint of [false, true]) {
      check(
        graphOf("outer", [vector], (b, x) => {
          return [b.call(call, [x, x], { checkpoint, name: "product" }, { regions: [product] })];
        }),
      );
    }
  });

  test("with a checkpoint are replayed, so only their inputs cross into the backward part", () => {
    const joint = vjp(called(inner, true), [true]);
    const forward = joint.nodes.filter((n) => n.phase === "forward");
    const replayed = joint.nodes.filter((n) => n.replay > 0);
    expect(forward.filter((n) => n.op === call)).toHaveLength(1);
    expect(new Set(replayed.map((n) => n.replay))).toEqual(new Set([1]));
    expect(replayed.map((n) => n.op)).toEqual([tanh, mul, sin]);
    expect(replayed.every((n) => n.phase === "backward")).toBe(true);
  });

  test("without a checkpoint are inlined", () => {
    const joint = vjp(called(inner, false), [true]);
    expect(joint.nodes.some((n) => n.op === call || n.replay > 0)).toBe(false);
  });

  test("nest their checkpoints, each replay under its own number", () => {
    const middle = called(inner, true);
    const graph = called(middle, true);
    check(graph);
    const replays = vjp(graph, [true]).nodes.filter((n) => n.replay > 0 && n.op === tanh);
    expect(replays.map((n) => n.replay)).toEqual([2]);
    check(vjp(graph, [true]));
  });
});

describe("custom derivatives", () => {
  // forward: y = x², saved x; backward: 3·ct·x in place of 2·ct·x
  const square = graphOf("square", [vector], (b, x) => [apply(b, mul, x, x), x]);
  const thrice = graphOf("thrice", [vector, vector], (b, saved, ct) => {
    const v = apply(b, mul, saved, ct);
    return [apply(b, add, v, apply(b, add, v, v))];
  });

  test("in reverse are what the backward region says", () => {
    const graph = graphOf("custom", [vector], (b, x) => {
      const [y] = b.callAll(customVjp, [apply(b, sin, x)], { results: 1 }, { regions: [square, thrice] });
      return [y!];
    });
    const x = data(3, 1);
    const [, dx] = evaluate(vjp(graph, [true]), [x, new Float64Array([1, 1, 1])]);
    dx!.forEach((v, i) => {
      expect(v).toBeCloseTo(3 * Math.sin(x[i]!) * Math.cos(x[i]!), 12);
    });
    expect(() => jvp(graph, [true])).toThrow("NotDifferentiable: a customVjp function has no forward-mode derivative");
  });

  test("of the identity do not mix the cotangents of the result and the argument", () => {
    const identity = graphOf("identity", [vector], (_, x) => [x]);
    const negate = graphOf("negate", [vector], (b, ct) => [apply(b, sub, apply(b, sub, ct, ct), ct)]);
    const graph = graphOf("custom", [vector], (b, x) => {
      const [y] = b.callAll(customVjp, [x], { results: 1 }, { regions: [identity, negate] });
      return [y!];
    });
    const [, dx] = evaluate(vjp(graph, [true]), [data(3, 1), new Float64Array([1, 2, 3])]);
    expect([...dx!]).toEqual([-1, -2, -3]);
  });

  test("in forward mode are what the tangent region says, and transpose for reverse mode", () => {
    const body = graphOf("body", [vector, vector], (b, x, y) => [apply(b, mul, apply(b, sin, x), y)]);
    const tangent = graphOf("tangent", [vector, vector, vector, vector], (b, x, y, tx, ty) => {
      // the true derivative, written out: t = cos(x)·y·tx + sin(x)·ty
      const cosine = apply(b, cos, x);
      return [apply(b, add, apply(b, mul, apply(b, mul, cosine, y), tx), apply(b, mul, apply(b, sin, x), ty))];
    });
    const plain = graphOf("custom", [vector, vector], (b, x, y) => [
      apply(b, mul, b.call(customJvp, [apply(b, exp, x), y], {}, { regions: [body, tangent] }), x),
    ]);
    check(plain);
    check(plain, [false, true]);
    check(vjp(plain, [true, true]));
  });
});
