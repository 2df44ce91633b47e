/** @file Matrices of derivatives, functions linearized at a point, and associative scans. */
import { describe, expect, test } from "vitest";
import { jvp as jvpGraph } from "../autodiff/jvp.ts";
import { splitGraph } from "../autodiff/split.ts";
import { allNodes } from "../ir/walk.ts";
import { traceFunction } from "../trace/function.ts";
import {
  associativeScan,
  checkpoint,
  compile,
  cond,
  grad,
  hessian,
  jacfwd,
  jacobian,
  jacrev,
  jvp,
  linearize,
  linearScan,
  plan,
  random,
  scan,
  spec,
  type Tensor,
  tensor,
  vmap,
  whileLoop,
} from "./index.ts";

type Unary = (x: Tensor) => Tensor;

const x = random.normal(random.key(1), [2, 3], "f64");
const w = random.normal(random.key(2), [3, 3], "f64");

const numbers = (t: Tensor): readonly number[] => t.reshape([-1]).toArray() as number[];

function near(got: Tensor, wanted: Tensor, digits = 9): void {
  expect(got.shape).toEqual(wanted.shape);
  numbers(wanted).forEach((value, i) => {
    expect(numbers(got)[i]).toBeCloseTo(value, digits);
  });
}

const FUNCTIONS: Readonly<Record<string, Unary>> = {
  "a layer": (v) => v.matmul(w).tanh().mul(v.sin()),
  "a scan": (v) =>
    scan(
      (s, r) => {
        const next = s.matmul(w.square().exp()).mul(r.sin()).add(v.sum()).tanh();
        return [next, next.mul(r)];
      },
      v.slice([0]),
      v,
    )[1],
  "a loop": (v) =>
    whileLoop(
      (s) => s.sum().less(50),
      (s) => s.mul(1.3).add(v.square()),
      v.abs(),
    ).sin(),
  "a branch": (v) =>
    cond(
      v.sum().less(0),
      (u) => u.sin(),
      (u) => u.exp(),
      v,
    ).cos(),
  "a checkpoint": (v) => checkpoint((u) => u.sin().exp())(v).cos(),
  "loops in loops": (v) => scan((s, r) => [scan((a, b) => [a.mul(b).sin(), a], s, r)[0], s], v.mean(), v)[1],
};

/** All partial derivatives by central differences. */
function differences(fn: Unary, at: Tensor, h = 1e-6): Tensor {
  const elements = numbers(at);
  const columns = elements.map((_, i) => {
    const moved = (by: number): Tensor =>
      fn(
        tensor(
          elements.map((e, k) => (k === i ? e + by : e)),
          { dtype: "f64" },
        ).reshape(at.shape),
      );
    return moved(h)
      .sub(moved(-h))
      .div(2 * h);
  });
  const shape = [...columns[0]!.shape, ...at.shape];
  const rows = numbers(columns[0]!).map((_, r) => columns.map((column) => numbers(column)[r]!));
  return tensor(rows, { dtype: "f64" }).reshape(shape);
}

describe("jacrev and jacfwd", () => {
  for (const [name, fn] of Object.entries(FUNCTIONS)) {
    test(`agree with differences and with each other, whole and in chunks: ${name}`, () => {
      const wanted = differences(fn, x);
      const rows = jacrev(fn)(x);
      near(rows, wanted, 4);
      near(jacfwd(fn)(x), rows);
      near(jacobian(fn)(x), rows);
      expect(jacrev(fn, { chunk: 4 })(x).toArray()).toEqual(rows.toArray());
      near(compile(jacfwd(fn, { chunk: 5 }))(x), rows);
    });
  }

  test("take trees, and give a tree like the argument in the place of each result", () => {
    const fn = (p: { w: Tensor; s: Tensor }, v: Tensor) => ({ a: p.w.matmul(v), b: [p.s.mul(v)] as [Tensor] });
    const params = { w, s: tensor([1, 2, 3], { dtype: "f64" }) };
    for (const made of [jacrev(fn)(params, x.slice([0])), jacfwd(fn)(params, x.slice([0]))]) {
      expect([made.a.w.shape, made.a.s.shape, made.b[0].w.shape]).toEqual([
        [3, 3, 3],
        [3, 3],
        [3, 3, 3],
      ]);
      near(made.b[0].s.sum(1), x.slice([0]));
    }
    const second = jacrev(fn, { argnums: 1 })(params, x.slice([0]));
    near(second.a, w);
  });

  test("of each other are second derivatives, and batches of matrices are matrices of a batch", () => {
    const loss: Unary = (v) => v.matmul(w).tanh().pow(3).sum();
    near(jacfwd(jacrev(loss))(x), hessian(loss)(x));
    near(jacrev(jacfwd(loss))(x), hessian(loss)(x));
    const each = vmap(jacrev((v: Tensor) => v.matmul(w).tanh()))(x);
    near(each.slice([1]), jacrev((v: Tensor) => v.matmul(w).tanh())(x.slice([1])));
  });

  test("compute the function once, in chunks with less memory", () => {
    const fn = (v: Tensor, m: Tensor) => v.matmul(m).tanh().matmul(m).tanh().matmul(m);
    const whole = plan((v: Tensor, m: Tensor) => jacrev(fn)(v, m))(spec([256]), spec([256, 256]));
    const parts = plan((v: Tensor, m: Tensor) => jacrev(fn, { chunk: 16 })(v, m))(spec([256]), spec([256, 256]));
    expect(whole.flops).toBeLessThan(1.1 * 3 * 2 * 256 ** 3);
    expect(parts.arenaBytes).toBeLessThan(whole.arenaBytes - 256 * 256 * 4 * 0.8);
  });

  test("of nothing are empty", () => {
    expect(jacrev((v: Tensor) => v.slice([[0, 0]]))(x).shape).toEqual([0, 3, 2, 3]);
    expect(jacfwd((v: Tensor) => v.slice([[0, 0]]))(x).shape).toEqual([0, 3, 2, 3]);
  });
});

describe("linearize", () => {
  const t = random.normal(random.key(3), [2, 3], "f64");
  for (const [name, fn] of Object.entries(FUNCTIONS)) {
    test(`gives the value and the derivative along tangents, any number of times: ${name}`, () => {
      const [y, along] = linearize(fn, x);
      const [value, slope] = jvp(fn, [x], [t]);
      expect(y.toArray()).toEqual(value.toArray());
      expect(along(t).toArray()).toEqual(slope.toArray());
      near(along(t.mul(2)), slope.mul(2));
      const both = compile((v: Tensor, d: Tensor) => {
        const [z, f] = linearize(fn, v);
        return [z, f(d), f(d.mul(2))] as const;
      })(x, t);
      near(both[1], slope);
      near(both[2], slope.mul(2));
    });
  }

  test("leaves to tangents only what is linear in them, in loops as well", () => {
    const namesOf = (fn: Unary): readonly string[] => {
      const { graph } = traceFunction(fn, [x]);
      const joint = jvpGraph(graph, [true, ...graph.params.slice(1).map(() => false)]);
      const isFirst = joint.params.map((_, i) => i < graph.params.length);
      const { rest } = splitGraph(joint, isFirst, joint.results.slice(1));
      return [...allNodes({ name: "rest", params: [], nodes: rest, results: [] })].map(({ op }) => op.name);
    };
    for (const name of ["a layer", "a scan", "loops in loops"]) {
      const names = namesOf(FUNCTIONS[name]!);
      expect(names.filter((one) => ["tanh", "sin", "cos", "exp"].includes(one))).toEqual([]);
      expect(names).toContain("mul");
    }
  });

  test("takes several arguments, trees and integers", () => {
    const k = tensor([0, 1], { dtype: "i32" });
    const fn = (p: { a: Tensor }, rows: Tensor) => ({ y: p.a.take(rows).square(), rows });
    const [value, along] = linearize(fn, { a: x }, k);
    expect(value.rows.toArray()).toEqual([0, 1]);
    near(along({ a: t }, k).y, x.mul(t).mul(2));
  });
});

describe("associativeScan", () => {
  const lengths = [0, 1, 2, 3, 5, 8, 13];

  test("of a matrix product is that of a scan, from either end, and so is its gradient", () => {
    for (const n of lengths) {
      const m = random.normal(random.key(n), [n, 2, 2], "f64");
      const eye = tensor(
        [
          [1, 0],
          [0, 1],
        ],
        { dtype: "f64" },
      );
      for (const reverse of [false, true]) {
        const tree: Unary = (v) => associativeScan((a, b) => a.matmul(b), v, { reverse });
        const chain: Unary = (v) => scan((s, r) => [s.matmul(r), s.matmul(r)], eye, v, { reverse })[1];
        near(tree(m), chain(m));
        near(grad((v) => tree(v).sin().sum())(m), grad((v) => chain(v).sin().sum())(m), 7);
      }
    }
  });

  test("of a recurrence is the operation for it, on trees and along any axis", () => {
    const [a, b] = [random.uniform(random.key(4), [3, 11], "f64"), random.normal(random.key(5), [3, 11], "f64")];
    const made = associativeScan((p, q) => ({ a: p.a.mul(q.a), b: p.b.mul(q.a).add(q.b) }), { a, b }, { axis: -1 });
    near(made.b, linearScan(b, a, 1));
    expect(associativeScan((p, q) => p.add(q), tensor([1, 2, 3, 4, 5])).toArray()).toEqual([1, 3, 6, 10, 15]);
    expect(compile((v: Tensor) => vmap((r: Tensor) => associativeScan((p, q) => p.mul(q), r))(v))(a).shape).toEqual([
      3, 11,
    ]);
  });

  test("takes a logarithmic number of rounds and less than twice the work", () => {
    const combinations = (n: number): readonly number[] => {
      const nodes = plan((v: Tensor) => associativeScan((p, q) => p.atan2(q), v))(spec([n])).graph;
      return [...allNodes(nodes)]
        .filter(({ op }) => op.name === "atan2")
        .map(({ outputs }) => outputs[0]!.type.shape[0]!);
    };
    const rounds = combinations(1024);
    expect(rounds.length).toBeLessThanOrEqual(2 * 10);
    expect(rounds.reduce((sum, size) => sum + size, 0)).toBeLessThan(2 * 1024);
  });
});
