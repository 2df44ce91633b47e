/** @file Derivatives as users call them: structure, nesting, closures, rules of their own. */
import { describe, expect, test } from "vitest";
import { flattenArguments } from "../trace/function.ts";
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
  stopGradient,
  type Tensor,
  tensor,
  valueAndGrad,
  vjp,
  where,
} from "./index.ts";

describe("grad", () => {
  test("has the structure of the argument and nests", () => {
    const slope = grad((x) => x.square().sum());
    expect(slope(tensor([1, 2, 3])).toArray()).toEqual([2, 4, 6]);
    const curvature = grad((x) => slope(x).sum());
    expect(curvature(tensor([1, 2, 3])).toArray()).toEqual([2, 2, 2]);
    const third = grad((x) => grad((y) => grad((z) => z.pow(4).sum())(y).sum())(x).sum());
    expect(third(tensor([2])).toArray()).toEqual([48]);
  });

  test("takes trees, several arguments and auxiliary results", () => {
    const params = {
      layers: [
        {
          w: tensor([
            [1, 2],
            [3, 4],
          ]),
          b: tensor([1, 1]),
        },
      ],
      scale: tensor(2),
    };
    const loss = (p: typeof params, x: Tensor) => {
      const y = x.matmul(p.layers[0]!.w).add(p.layers[0]!.b).mul(p.scale);
      return [y.sum(), { y }] as const;
    };
    const [[value, aux], grads] = valueAndGrad(loss, { hasAux: true })(params, tensor([1, 1]));
    expect(value.item()).toBe(24);
    expect(aux.y.toArray()).toEqual([10, 14]);
    expect(grads.layers[0]!.b.toArray()).toEqual([2, 2]);
    expect(grads.layers[0]!.w.toArray()).toEqual([
      [2, 2],
      [2, 2],
    ]);
    expect(grads.scale.item()).toBe(12);
    const both = grad((a: Tensor, b: Tensor) => a.mul(b).sum(), { argnums: [1, 0] });
    const [db, da] = both(tensor([1, 2]), tensor([3, 4]));
    expect([db.toArray(), da.toArray()]).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  test("closes over tensors of outer functions, concrete and traced", () => {
    const k = tensor([1, 2, 3]);
    const outer = (a: Tensor) => grad((x) => x.mul(a).mul(k).sum())(a).sum();
    // d/da Σ a k = Σ k
    expect(grad(outer)(tensor([5, 5, 5])).toArray()).toEqual([1, 2, 3]);
    const mixed = grad((a) => grad((x) => x.mul(a).square().sum())(tensor(3)).sum());
    // d/da 2 x a² = 4 x a
    expect(mixed(tensor(2)).item()).toBe(24);
  });

  test("of a function sees closures as they are at each call", () => {
    let k = 2;
    const g = grad((x) => x.mul(k).sum());
    expect(g(tensor([1])).toArray()).toEqual([2]);
    k = 3;
    expect(g(tensor([1])).toArray()).toEqual([3]);
  });

  test("stops at stopGradient", () => {
    expect(grad((x) => x.mul(stopGradient(x)).sum())(tensor([3])).toArray()).toEqual([3]);
  });
});

describe("both modes", () => {
  const f = (x: Tensor, n: Tensor) => ({ a: x.square(), b: where(n.greater(0), x, 0) });
  const n = tensor([1, 0], { dtype: "i32" });

  test("vjp gives cotangents of all arguments", () => {
    const [y, pullback] = vjp(f, tensor([1, 2]), n);
    expect(y.a.toArray()).toEqual([1, 4]);
    const [dx, dn] = pullback({ a: tensor([1, 10]), b: tensor([5, 5]) });
    expect(dx.toArray()).toEqual([7, 40]);
    expect([dn.dtype, dn.toArray()]).toEqual(["i32", [0, 0]]);
  });

  test("jvp gives the derivative along tangents", () => {
    const [y, t] = jvp(f, [tensor([1, 2]), n], [tensor([1, 10]), n]);
    expect([y.b.toArray(), t.a.toArray(), t.b.toArray()]).toEqual([
      [1, 0],
      [2, 40],
      [1, 0],
    ]);
  });

  test("hvp, jacobian and hessian agree", () => {
    const cube = (x: Tensor) => x.pow(3).sum();
    const x = tensor([1, 2]);
    expect(hvp(cube, [x], tensor([1, 1])).toArray()).toEqual([6, 12]);
    expect(hessian(cube)(x).toArray()).toEqual([
      [6, 0],
      [0, 12],
    ]);
    expect(jacobian((v) => v.square())(x).toArray()).toEqual([
      [2, 0],
      [0, 4],
    ]);
    const tall = jacobian((v: Tensor) =>
      v.matmul(
        tensor([
          [1, 2, 3],
          [4, 5, 6],
        ]),
      ),
    )(x);
    expect(tall.toArray()).toEqual([
      [1, 4],
      [2, 5],
      [3, 6],
    ]);
    expect(jacobian((v: Tensor) => v.sum())(x).toArray()).toEqual([1, 1]);
    // inside a trace too
    expect(grad((v) => jacobian((u) => u.square())(v).sum())(x).toArray()).toEqual([2, 2]);
  });
});

describe("own derivatives", () => {
  test("checkpoint changes no value and no gradient", () => {
    const block = (x: Tensor, w: Tensor) => x.matmul(w).tanh();
    const kept = (x: Tensor) => block(block(x, w), w).sum();
    const again = (x: Tensor) => checkpoint(block)(checkpoint(block)(x, w), w).sum();
    const w = tensor([
      [0.1, 0.2],
      [0.3, -0.4],
    ]);
    const x = tensor([[1, 2]]);
    expect(grad(again)(x).toArray()).toEqual(grad(kept)(x).toArray());
    const [a, b] = [hessian(again)(x).data(), hessian(kept)(x).data()];
    a.forEach((v, i) => {
      expect(v).toBeCloseTo(b[i]!, 6);
    });
  });

  test("customVjp uses its rule in reverse", () => {
    const clipped = customVjp((x) => x, { forward: (x) => [x, []], backward: (_, ct) => [ct.clamp(-1, 1)] });
    expect(grad((x) => clipped(x).mul(5).sum())(tensor([3])).toArray()).toEqual([1]);
    expect(clipped(tensor([3])).toArray()).toEqual([3]);
    const k = tensor([1, 2, 3]);
    const scaled = customVjp((x: Tensor, _n: Tensor) => x.mul(k), {
      forward: (x, _n) => [x.mul(k), { x }],
      backward: ({ x }, ct) => [ct.mul(x).mul(k.add(1)), null as unknown as Tensor],
    });
    const n = tensor([0], { dtype: "i32" });
    expect(grad((x) => scaled(x, n).sum())(tensor([1, 1, 2])).toArray()).toEqual([2, 3, 8]);
  });

  test("customJvp serves both modes", () => {
    const k = tensor([3, 4]);
    const odd = customJvp(
      (x) => x.sign(),
      ([x], [t]) => t.mul(x).mul(k),
    );
    expect(grad((x) => odd(x).sum())(tensor([1, 2])).toArray()).toEqual([3, 8]);
    expect(jvp(odd, [tensor([1, 2])], [tensor([1, 1])])[1].toArray()).toEqual([3, 8]);
    expect(hvp((x) => odd(x).sum(), [tensor([1, 2])], tensor([1, 1])).toArray()).toEqual([3, 4]);
  });
});

describe("undefined", () => {
  const x = tensor([1, 2]);

  test("behind the other arguments is no argument: one program serves both calls", () => {
    let traces = 0;
    const f = compile((v: Tensor, w?: Tensor) => {
      traces++;
      return w ? v.add(w) : v.mul(10);
    });
    expect(f(x, undefined).toArray()).toEqual([10, 20]);
    expect(f(x).toArray()).toEqual([10, 20]);
    expect(traces).toBe(1);
    expect(f(x, x).toArray()).toEqual([2, 4]);
    const sumOf = (v: Tensor, ...others: readonly Tensor[]): Tensor => (others[0] ?? v).sum();
    expect(grad(sumOf)(x, undefined as unknown as Tensor).toArray()).toEqual([1, 1]);
  });

  test("before others takes the default", () => {
    const f = compile((scale: Tensor = tensor(3), v: Tensor = x) => v.mul(scale));
    expect(f(undefined, tensor([1, 1])).toArray()).toEqual([3, 3]);
  });

  test("as a property is no property, of arguments and of results", () => {
    type Params = { readonly w: Tensor; readonly b?: Tensor | undefined };
    const f = compile((p: Params) => ({ y: p.b ? p.w.add(p.b) : p.w, note: undefined }));
    expect(Object.keys(f({ w: x, b: undefined }))).toEqual(["y"]);
    expect(Object.keys(grad((p: Params) => p.w.sum())({ w: x, b: undefined }))).toEqual(["w"]);
    expect(flattenArguments(f, [{ w: x, b: undefined }]).key).toBe(flattenArguments(f, [{ w: x }]).key);
  });
});
