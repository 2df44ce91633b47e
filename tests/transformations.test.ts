/**
 * @file Transformations of each other: derivatives of derivatives in every order of modes, through closures, rules of the
 * user, checkpoints and compiled functions, against closed forms and differences.
 */
import { describe, expect, test } from "vitest";
import {
  checkpoint,
  compile,
  customJvp,
  customVjp,
  grad,
  hessian,
  hvp,
  jacobian,
  jvp,
  type NestedArray,
  stopGradient,
  type Tensor,
  tensor,
  valueAndGrad,
  vjp,
} from "../src/api/index.ts";

const f64 = (data: NestedArray): Tensor => tensor(data, { dtype: "f64" });

function close(actual: Tensor, expected: ArrayLike<number>, digits = 9): void {
  const got = actual.data();
  expect(got.length).toBe(expected.length);
  got.forEach((v, i) => {
    expect(v).toBeCloseTo(expected[i]!, digits);
  });
}

/** x moved along axis k by h. */
function moved(x: Tensor, k: number, h: number): Tensor {
  const data = Float64Array.from(x.data());
  data[k]! += h;
  return tensor(data, { shape: x.shape });
}

/** ∂f/∂x by central differences, one row for each result element. */
function differences(f: (x: Tensor) => Tensor, x: Tensor, h = 1e-5): number[] {
  const columns = Array.from({ length: x.elements }, (_, k) => {
    const [up, down] = [f(moved(x, k, h)).data(), f(moved(x, k, -h)).data()];
    return Array.from(up, (v, i) => (v - down[i]!) / (2 * h));
  });
  return Array.from(columns[0]!, (_, i) => columns.map((column) => column[i]!)).flat();
}

const x = f64([0.3, -0.7, 1.1]);
const w = f64([
  [0.2, -0.4, 0.9],
  [1.3, 0.1, -0.6],
]);

/** A scalar with all derivatives, none of them zero. */
const curved = (v: Tensor): Tensor => w.matmul(v.sin()).exp().sum().mul(v.square().sum());

describe("derivatives of derivatives", () => {
  test("by reverse mode, up to the fourth", () => {
    const orders: ((v: Tensor) => Tensor)[] = [(v) => v.sin()];
    for (let i = 0; i < 4; i++) {
      const before = orders[i]!;
      orders.push((v) => grad((u: Tensor) => before(u).sum())(v));
    }
    const at = f64([0.5, 2]);
    const expected = [Math.sin, Math.cos, (v: number) => -Math.sin(v), (v: number) => -Math.cos(v), Math.sin];
    orders.forEach((f, i) => {
      close(f(at), Array.from(at.data(), expected[i]!), 12);
      close(compile(f)(at), Array.from(at.data(), expected[i]!), 12);
    });
  });

  test("in every order of modes", () => {
    const slope = (f: (v: Tensor) => Tensor) => ({
      forward: (v: Tensor) => jvp(f, [v], [v.mul(0).add(1)])[1],
      reverse: (v: Tensor) => vjp(f, v)[1](v.mul(0).add(1))[0],
    });
    const modes = ["forward", "reverse"] as const;
    const at = f64([0.4, 1.2]);
    // (sin² v)‴ = -4 sin 2v
    const expected = Array.from(at.data(), (v) => -4 * Math.sin(2 * v));
    for (const a of modes) {
      for (const b of modes) {
        for (const c of modes) {
          const third = slope(slope(slope((v) => v.sin().square())[a])[b])[c];
          close(third(at), expected, 11);
          close(compile(third)(at), expected, 11);
        }
      }
    }
  });

  test("do not confuse perturbations of different levels", () => {
    // d/dx (x · d/dy (x + y)) = 1, not 2
    const one = f64(1);
    const d = (f: (v: Tensor) => Tensor) => (v: Tensor) => jvp(f, [v], [one])[1];
    expect(d((a) => a.mul(d((b) => a.add(b))(one)))(one).item()).toBe(1);
    expect(grad((a: Tensor) => a.mul(grad((b: Tensor) => a.add(b))(one)))(one).item()).toBe(1);
    expect(grad((a: Tensor) => a.mul(d((b) => a.mul(b))(a)))(f64(3)).item()).toBe(6);
    expect(d((a) => a.mul(grad((b: Tensor) => a.mul(b))(a)))(f64(3)).item()).toBe(6);
  });

  test("hessian, hvp and differences agree", () => {
    const matrix = hessian(curved)(x);
    expect(matrix.shape).toEqual([3, 3]);
    close(matrix, differences(grad(curved), x), 6);
    close(matrix, matrix.T.data(), 12);
    const v = f64([1, -2, 0.5]);
    close(hvp(curved, [x], v), matrix.matmul(v).data(), 11);
    close(compile((u: Tensor, t: Tensor) => hvp(curved, [u], t))(x, v), matrix.matmul(v).data(), 11);
  });

  test("jacobian equals differences for wide, tall and shaped results", () => {
    const functions: readonly ((v: Tensor) => Tensor)[] = [
      (v) => w.matmul(v.exp()),
      (v) => v.reshape([3, 1]).matmul(v.sin().reshape([1, 3])),
      (v) => v.square().sum(),
      (v) => v.softmax(),
    ];
    for (const f of functions) {
      const matrix = jacobian(f)(x);
      expect(matrix.shape).toEqual([...f(x).shape, 3]);
      close(matrix, differences(f, x), 6);
      close(compile(jacobian(f))(x), matrix.data(), 12);
    }
    const second = jacobian((a: Tensor, b: Tensor) => a.mul(b.square()), { argnums: 1 });
    close(second(f64([2, 3]), f64([4, 5])), [16, 0, 0, 30]);
  });
});

describe("structure", () => {
  const params = { a: f64([1, 2]), rest: [{ b: f64(3) }, { b: f64(4) }] };
  const f = ({ a, rest }: typeof params, k: Tensor) => {
    const scale = rest[0]!.b.mul(rest[1]!.b);
    return { scaled: a.mul(scale), counts: [k.add(1), a.sum().mul(rest[0]!.b)] as const };
  };
  const k = tensor([5], { dtype: "i32" });

  test("of vjp: cotangents like arguments, as often as asked", () => {
    const [y, pullback] = vjp(f, params, k);
    expect([y.scaled.toArray(), y.counts[0].toArray(), y.counts[1].item()]).toEqual([[12, 24], [6], 9]);
    const pull = (scaled: NestedArray, total: number) =>
      pullback({ scaled: f64(scaled), counts: [tensor([0], { dtype: "i32" }), f64(total)] });
    const [ct, ctk] = pull([1, 0], 0);
    expect([ct.a.toArray(), ct.rest[0]!.b.item(), ct.rest[1]!.b.item()]).toEqual([[12, 0], 4, 3]);
    expect([ctk.dtype, ctk.toArray()]).toEqual(["i32", [0]]);
    const [other] = pull([0, 0], 1);
    expect([other.a.toArray(), other.rest[0]!.b.item(), other.rest[1]!.b.item()]).toEqual([[3, 3], 3, 0]);
  });

  test("of jvp: tangents like results", () => {
    const tangents = { a: f64([1, 0]), rest: [{ b: f64(0) }, { b: f64(1) }] };
    const [, t] = jvp(f, [params, k], [tangents, k]);
    expect([t.scaled.toArray(), t.counts[0].toArray(), t.counts[1].item()]).toEqual([[12 + 3, 6], [0], 3]);
  });

  test("of grad: argnums from either end, in the order asked, and aux untouched", () => {
    const g = (a: Tensor, b: Tensor, c: Tensor) => a.mul(b).mul(c).sum();
    const args = [f64([2]), f64([3]), f64([5])] as const;
    expect(grad(g, { argnums: 1 })(...args).toArray()).toEqual([10]);
    expect(grad(g, { argnums: -1 })(...args).toArray()).toEqual([6]);
    expect(grad(g, { argnums: [2, 0] })(...args).map((t) => t.toArray())).toEqual([[6], [15]]);
    const withAux = (a: Tensor, b: Tensor) => [a.mul(b).sum(), { parts: [a.add(b)], n: b.cast("i32") }] as const;
    const [slope, aux] = grad(withAux, { argnums: [1], hasAux: true })(f64([2]), f64([3]));
    expect([slope[0].toArray(), aux.parts[0]!.toArray(), aux.n.toArray()]).toEqual([[2], [5], [3]]);
    const [[value, aux2], slope2] = valueAndGrad(withAux, { hasAux: true })(f64([2]), f64([3]));
    expect([value.item(), aux2.n.toArray(), slope2.toArray()]).toEqual([6, [3], [3]]);
  });

  test("of a gradient that does not exist is zero", () => {
    const flat = grad((_: Tensor, b: Tensor) => b.sum(), { argnums: [0, 1] })(f64([1, 2]), f64([3]));
    expect(flat.map((t) => t.toArray())).toEqual([[0, 0], [1]]);
    expect(grad((a: Tensor) => a.floor().sum())(f64([1.5])).toArray()).toEqual([0]);
    expect(grad((a: Tensor) => a.greater(0).cast("f64").sum())(f64([1.5])).toArray()).toEqual([0]);
  });
});

describe("closures", () => {
  test("over tensors of outer functions, three levels deep", () => {
    const c = f64([1, 2, 3]);
    // Σ_c ∂/∂u (u² v t c) at u = v, differentiated with respect to v at v = t, and so on
    const level1 = (v: Tensor, t: Tensor) => grad((u: Tensor) => u.square().mul(v).mul(t).mul(c).sum())(v).sum();
    const level2 = (t: Tensor) => grad((v: Tensor) => level1(v, t))(t).sum();
    // level1 = Σ 2 v² t c; level2 = Σ 4 t² c; its derivative is 8 t c
    const t = f64([1, 0.5, 2]);
    close(grad(level2)(t), [8, 8, 48], 12);
    close(compile(grad(level2))(t), [8, 8, 48], 12);
  });

  test("of jvp and checkpoint over traced tensors carry derivatives outwards", () => {
    const f = (a: Tensor): Tensor => jvp((u: Tensor) => u.mul(a).square(), [a], [a])[1].sum();
    // d/dε ((a + εa) a)² = 2 a⁴
    close(grad(f)(f64([2])), [64]);
    const g = (a: Tensor): Tensor => checkpoint((u: Tensor) => u.mul(a).sin())(a.square()).sum();
    // sin(a³)
    close(grad(g)(f64([0.9])), [3 * 0.81 * Math.cos(0.729)]);
  });

  test("see a compiled function as the function", () => {
    const inner = compile((v: Tensor) => v.square().sum());
    expect(grad((v: Tensor) => inner(v.mul(2)))(f64([3])).toArray()).toEqual([24]);
    expect(hessian((v: Tensor) => inner(v))(f64([3, 4])).toArray()).toEqual([
      [2, 0],
      [0, 2],
    ]);
  });
});

describe("rules of the user", () => {
  /** Value of the square, derivative of something else: shows whether the rule is used. */
  const wrong = customVjp((v: Tensor) => v.square(), {
    forward: (v: Tensor) => [v.square(), { v }],
    backward: ({ v }, ct: Tensor) => [ct.mul(v).mul(100)],
  });

  test("customVjp is honoured everywhere, wrong or right", () => {
    const at = f64([1, 2]);
    expect(grad((v: Tensor) => wrong(v).sum())(at).toArray()).toEqual([100, 200]);
    expect(compile(grad((v: Tensor) => wrong(v).sum()))(at).toArray()).toEqual([100, 200]);
    expect(grad((v: Tensor) => checkpoint((u: Tensor) => wrong(u))(v).sum())(at).toArray()).toEqual([100, 200]);
    expect(grad((v: Tensor) => wrong(v.mul(2)).mul(3).sum())(at).toArray()).toEqual([1200, 2400]);
    expect(vjp(wrong, at)[1](f64([1, -1]))[0].toArray()).toEqual([100, -200]);
    expect(jacobian(wrong)(at).toArray()).toEqual([
      [100, 0],
      [0, 200],
    ]);
    expect(wrong(at).toArray()).toEqual([1, 4]);
  });

  test("customVjp's rule is differentiated in its turn", () => {
    expect(grad((v: Tensor) => grad((u: Tensor) => wrong(u).sum())(v).sum())(f64([1, 2])).toArray()).toEqual([
      100, 100,
    ]);
  });

  test("customVjp takes trees and leaves integers alone", () => {
    const pick = customVjp((p: { v: Tensor; n: Tensor }, s: Tensor) => ({ y: p.v.mul(s), n: p.n }), {
      forward: (p: { v: Tensor; n: Tensor }, s: Tensor) => [{ y: p.v.mul(s), n: p.n }, [p.v, s] as const],
      backward: ([v, s], ct) => [{ v: ct.y.mul(s), n: null as unknown as Tensor }, ct.y.mul(v).sum().mul(-1)],
    });
    const n = tensor([7], { dtype: "i32" });
    const f = (v: Tensor, s: Tensor) => pick({ v, n }, s).y.sum();
    const [dv, ds] = grad(f, { argnums: [0, 1] })(f64([1, 2]), f64(3));
    expect([dv.toArray(), ds.item()]).toEqual([[3, 3], -3]);
  });

  test("customJvp serves both modes, twice, and inside checkpoints", () => {
    const odd = customJvp(
      (v: Tensor) => v.abs(),
      ([v], [t]) => t.mul(v.square()),
    );
    const at = f64([-2, 3]);
    expect(grad((v: Tensor) => odd(v).sum())(at).toArray()).toEqual([4, 9]);
    expect(jvp(odd, [at], [f64([1, 1])])[1].toArray()).toEqual([4, 9]);
    expect(hvp((v: Tensor) => odd(v).sum(), [at], f64([1, 1])).toArray()).toEqual([-4, 6]);
    close(hessian((v: Tensor) => odd(v).sum())(at), [-4, 0, 0, 6]);
    expect(grad((v: Tensor) => checkpoint((u: Tensor) => odd(u).mul(u))(v).sum())(at).toArray()).toEqual([-6, 30]);
  });

  test("stopGradient stops both modes and all orders, and nothing else", () => {
    const f = (v: Tensor) => v.mul(stopGradient(v.square())).sum();
    const at = f64([3]);
    expect(grad(f)(at).toArray()).toEqual([9]);
    expect(jvp(f, [at], [f64([1])])[1].item()).toBe(9);
    expect(hessian(f)(at).toArray()).toEqual([[0]]);
    expect(grad((v: Tensor) => grad((u: Tensor) => u.mul(stopGradient(v)).sum())(v).sum())(at).toArray()).toEqual([0]);
  });
});

describe("checkpoint", () => {
  test("in checkpoint, in loops and in second derivatives, changes nothing", () => {
    const layer = (v: Tensor): Tensor => w.T.matmul(w.matmul(v).tanh()).add(v);
    const chain = (f: (v: Tensor) => Tensor) => (v: Tensor) =>
      f(f(f(f(v))))
        .square()
        .sum();
    const nested = (v: Tensor): Tensor => checkpoint((u: Tensor) => checkpoint(layer)(checkpoint(layer)(u)))(v);
    const plain = chain(layer);
    const variants = [chain(checkpoint(layer)), (v: Tensor) => nested(nested(v)).square().sum()];
    for (const variant of variants) {
      expect(compile(grad(variant))(x).toArray()).toEqual(compile(grad(plain))(x).toArray());
      close(hessian(variant)(x), hessian(plain)(x).data(), 11);
      close(hvp(variant, [x], x), hvp(plain, [x], x).data(), 11);
    }
  });

  test("keeps less: the arena of a deep chain is smaller with it", () => {
    const deep = (f: (v: Tensor) => Tensor) => (v: Tensor) => {
      let h = v;
      for (let i = 0; i < 4; i++) h = f(h);
      return h.sum();
    };
    const block = (v: Tensor): Tensor => {
      let h = v;
      for (let i = 0; i < 4; i++) h = h.transpose().sin().cumsum(1).tanh();
      return h;
    };
    const big = tensor(
      Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i)),
      { shape: [64, 64] },
    );
    const kept = compile(grad(deep(block))).program(big).arenaBytes;
    const again = compile(grad(deep(checkpoint(block)))).program(big).arenaBytes;
    expect(again).toBeLessThan(kept);
  });
});
