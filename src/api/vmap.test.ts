/** @file Functions of batches as users make them: axes, nesting, derivatives in any order, loops and branches, mutation, keys, memory. */
import { describe, expect, test } from "vitest";
import { allNodes } from "../ir/walk.ts";
import {
  arange,
  attention,
  checkpoint,
  compile,
  cond,
  conv2d,
  customJvp,
  customVjp,
  forLoop,
  grad,
  jvp,
  layerNorm,
  plan,
  random,
  scan,
  spec,
  stack,
  switchCase,
  type Tensor,
  tensor,
  valueAndGrad,
  vmap,
  whileLoop,
} from "./index.ts";

type Unary = (x: Tensor) => Tensor;

const rowsOf = (x: Tensor): readonly Tensor[] => Array.from({ length: x.shape[0] ?? 0 }, (_, i) => x.slice([i]));

/** One application for each element. */
const each =
  (fn: Unary): Unary =>
  (x) =>
    stack(rowsOf(x).map(fn));

const x = random.normal(random.key(1), [5, 3]);
const w = random.normal(random.key(2), [3, 3]);

const PROGRAMS: Readonly<Record<string, Unary>> = {
  "a layer": (v) => v.matmul(w).tanh(),
  normalization: (v) => layerNorm(v, { axes: -1 }),
  "a scan": (v) => scan((s, r) => [s.mul(r).add(v.sum()), s.sin()], tensor(1), v)[1],
  "a scan from the end": (v) => scan((s, r) => [s.mul(r).add(1), s], v.sum(), v, { reverse: true })[1],
  "a scan whose rows do not vary": (v) => scan((s, r) => [s.mul(r.sum()), s], v, w)[0],
  "a loop": (v) => forLoop(4, v, (i, s) => s.mul(1.1).add(i.cast("f32"))),
  "a loop until a bound": (v) =>
    whileLoop(
      (s) => s.square().sum().less(40),
      (s) => s.mul(1.5).add(v.sin()),
      v,
    ),
  "a loop with a bound": (v) =>
    whileLoop(
      (s) => s.square().sum().less(40),
      (s) => s.mul(1.5).add(v.sin()),
      v,
      { maxSteps: 6 },
    ),
  "a loop of a number that varies": (v) => forLoop(v.abs().sum().cast("i32"), v, (_, s) => s.mul(0.5).add(v.square())),
  "a branch": (v) =>
    cond(
      v.sum().less(0),
      (u) => u.sin(),
      (u) => u.exp().mul(v),
      v,
    ),
  "a branch that all take": (v) =>
    cond(
      w.sum().less(0),
      (u) => u.sin(),
      (u) => u.exp().mul(v),
      v,
    ),
  "branches by number": (v) =>
    switchCase(v.sum().mul(2).cast("i32"), [(u) => u.sin(), (u) => u.mul(2), (u) => u.exp()], v),
  "a checkpoint": (v) => checkpoint((u) => u.sin().exp())(v),
  "loops in branches in loops": (v) =>
    scan(
      (s, r) => [
        cond(
          s.less(r),
          (a) => forLoop(2, a, (_, b) => b.sin().add(r)),
          (a) => a.mul(r),
          s,
        ),
        s,
      ],
      tensor(0.5),
      v,
    )[1],
  // changes are made inside of programs
  mutation: compile((v: Tensor) => {
    const y = v.mul(2);
    y.setAt(1, v.sum());
    y.slice([[0, 2]]).addInPlace(1);
    y.addAt(v.abs().cast("i32").clamp(0, 2), v);
    return y.mul(y);
  }),
  "indices that vary": (v) => w.take(v.abs().cast("i32").clamp(0, 2)).sum(-1).add(v.gather(v.argsort())),
  "a rule of its own": (v) =>
    customVjp((u) => u.mul(2), {
      forward: (u) => [u.mul(2), u.sin()],
      backward: (saved, ct) => [ct.clamp(-0.5, 0.5).mul(saved as Tensor)],
    })(v.mul(3)),
  "a tangent of its own": (v) =>
    customJvp(
      (u) => u.sign(),
      ([u], [t]) => t.div(u.abs().add(1).square()),
    )(v),
};

const near = (got: Tensor, wanted: Tensor): void => {
  expect(got.shape).toEqual(wanted.shape);
  const [a, b] = [got, wanted].map((t) => t.reshape([-1]).toArray() as number[]);
  b!.forEach((value, i) => {
    expect(a![i]).toBeCloseTo(value, 4);
  });
};

describe("vmap of a program", () => {
  for (const [name, fn] of Object.entries(PROGRAMS)) {
    const loss: Unary = (v) => fn(v).square().sum();
    test(`is one application for each element, and derivatives exchange: ${name}`, () => {
      expect(vmap(fn)(x).toArray()).toEqual(each(fn)(x).toArray());
      const slopes = each(grad(loss))(x);
      near(compile(vmap(grad(loss)))(x), slopes);
      near(grad((v) => vmap(loss)(v).sum())(x), slopes);
      if (name === "a rule of its own") return;
      const t = x.sin();
      const along = stack(rowsOf(x).map((v, i) => jvp(fn, [v], [t.slice([i])])[1]));
      near(vmap((v: Tensor, d: Tensor) => jvp(fn, [v], [d])[1])(x, t), along);
      near(jvp(vmap(fn), [x], [t])[1], along);
    });
  }

  test("adds up the derivatives of what does not vary", () => {
    const fn = (m: Tensor, v: Tensor) =>
      whileLoop(
        (s) => s.square().sum().less(9),
        (s) => s.mul(1.5).add(v.matmul(m)),
        v,
      )
        .square()
        .sum();
    const got = grad((m: Tensor) => vmap((v) => fn(m, v))(x).sum())(w);
    const wanted = stack(rowsOf(x).map((v) => grad((m: Tensor) => fn(m, v))(w))).sum(0);
    near(got.div(100), wanted.div(100));
  });

  test("lets nothing flow through the branch that an element does not take, nor through iterations after its last", () => {
    const safe: Unary = (v) =>
      cond(
        v.greater(0),
        (u) => u.log(),
        (u) => u,
        v,
      );
    expect(grad((v) => vmap(safe)(v).sum())(tensor([0, 2, -1])).toArray()).toEqual([1, 0.5, 1]);
    // the body is infinite at the end
    const shrinking: Unary = (v) =>
      whileLoop(
        (s) => s.greater(0),
        (s) => s.sub(1).add(s.log().mul(0)),
        v,
      );
    expect(grad((v) => vmap(shrinking)(v).sum())(tensor([2, 1, 3])).toArray()).toEqual([1, 1, 1]);
  });
});

describe("axes", () => {
  test("are one for all, one for each argument, or trees", () => {
    const m = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(vmap((v) => v.sum(), { in: 1 })(m).toArray()).toEqual([5, 7, 9]);
    expect(vmap((v) => v.mul(2), { in: -1, out: 1 })(m).toArray()).toEqual(m.mul(2).toArray());
    const both = vmap((a: Tensor, b: Tensor) => a.add(b), { in: [0, null] });
    expect(both(tensor([1, 2]), tensor([10, 20])).toArray()).toEqual([
      [11, 21],
      [12, 22],
    ]);
    const params = { w: m, layers: [tensor([1, 2]), tensor(3)] };
    const fn = (p: typeof params, scale: number) => ({
      y: p.w.mul(p.layers[0]!).add(p.layers[1]!).mul(scale),
      z: p.layers[1]!,
    });
    const made = vmap(fn, { in: [{ w: 1, layers: [null, null] }, null], out: { y: 1, z: null } })(params, 2);
    expect(made.y.toArray()).toEqual([
      [8, 10, 12],
      [22, 26, 30],
    ]);
    expect(made.z.toArray()).toBe(3);
  });

  test("nest, with what the inner function closes over", () => {
    const table = vmap((a: Tensor) => vmap((b: Tensor) => a.mul(b).add(w.sum()))(tensor([1, 2, 3])))(tensor([1, 2]));
    const sum = w.sum().item();
    expect(table.sub(sum).round().toArray()).toEqual([
      [1, 2, 3],
      [2, 4, 6],
    ]);
    const products = vmap(
      vmap((a: Tensor, b: Tensor) => a.matmul(b), { in: [null, 0] }),
      { in: [0, null] },
    );
    const [p, q] = [random.normal(random.key(5), [2, 3, 4]), random.normal(random.key(6), [5, 4, 2])];
    expect(products(p, q).toArray()).toEqual(
      stack(rowsOf(p).map((a) => stack(rowsOf(q).map((b) => a.matmul(b))))).toArray(),
    );
  });

  test("of no elements and of one are batches", () => {
    const empty = vmap((v) => v.matmul(w).sum())(x.slice([[0, 0]]));
    expect(empty.shape).toEqual([0]);
    expect(vmap(PROGRAMS["a loop until a bound"]!)(x.slice([[0, 1]])).toArray()).toEqual([
      PROGRAMS["a loop until a bound"]!(x.slice([0])).toArray(),
    ]);
    expect(grad((m: Tensor) => vmap((v) => v.matmul(m).sum())(x.slice([[0, 0]])).sum())(w).toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });

  test("of compiled functions, and compiled functions of batches", () => {
    const row = compile((v: Tensor) => v.matmul(w).sum());
    expect(compile(vmap(row))(x).toArray()).toEqual(vmap(row)(x).toArray());
  });
});

describe("keys", () => {
  test("that vary draw for each element; one that does not draws the same for all", () => {
    const keys = random.keys(random.key(7), 4);
    const alone = random.split(random.key(7), 4);
    for (const draw of [
      (k: Tensor) => random.normal(k, [2, 3]),
      (k: Tensor) => random.permutation(k, 6),
      (k: Tensor) => random.gamma(k, tensor([1, 2])),
      (k: Tensor) => random.uniform(random.split(k, 2)[1], [3]),
      (k: Tensor) => random.uniform(random.foldIn(k, 5), [2]),
      (k: Tensor) => random.randint(k, [3], 0, 10),
    ]) {
      expect(vmap(draw)(keys).toArray()).toEqual(stack(alone.map(draw)).toArray());
    }
    const [a, b] = vmap((v) => random.uniform(random.key(7), [2]).add(v))(tensor([0, 0])).toArray() as number[][];
    expect(a).toEqual(b);
    const byNumber = vmap((i: Tensor) => random.uniform(random.foldIn(random.key(7), i), [2]))(arange(3, "i32"));
    expect(new Set((byNumber.toArray() as number[][]).flat()).size).toBe(6);
  });
});

describe("memory and work", () => {
  const names = (fn: (...args: Tensor[]) => Tensor, ...args: readonly Tensor[]): readonly string[] => [
    ...[...allNodes(plan(fn)(...args).graph)].map((node) => node.op.name),
  ];
  const count = (list: readonly string[], name: string): number => list.filter((one) => one === name).length;

  test("a product with a side that does not vary is one product, and nothing is repeated in memory", () => {
    const layer = (v: Tensor, m: Tensor) => vmap((one) => one.matmul(m).relu())(v);
    const info = plan(layer)(spec([32, 8, 64]), spec([64, 16]));
    const whole = plan((v: Tensor, m: Tensor) => v.reshape([256, 64]).matmul(m).relu())(
      spec([32, 8, 64]),
      spec([64, 16]),
    );
    expect([info.kernelCalls, info.arenaBytes, info.flops]).toEqual([1, whole.arenaBytes, whole.flops]);
    expect(names((v, m) => vmap((one) => m!.matmul(one))(v!), spec([32, 16]), spec([64, 16]))).not.toContain(
      "broadcast",
    );
  });

  test("gradients of each example of a convolution are one convolution in groups", () => {
    const slopes = vmap(
      grad((m: Tensor, image: Tensor) => conv2d(image, m).square().sum()),
      { in: [null, 0] },
    );
    const list = names((m, images) => slopes(m!, images!), spec([8, 3, 3, 3]), spec([16, 1, 3, 12, 12]));
    expect([count(list, "conv_weight"), count(list, "scan")]).toEqual([1, 0]);
  });

  test("attention stays attention", () => {
    const fn = (q: Tensor, k: Tensor) => vmap((one) => attention(one, k, k, { causal: true, form: "streamed" }))(q);
    const list = names((q, k) => fn(q!, k!), spec([4, 2, 60, 16]), spec([2, 60, 16]));
    expect([count(list, "attend"), count(list, "scan")]).toEqual([1, 0]);
    const [q, k] = [random.normal(random.key(8), [4, 2, 60, 16]), random.normal(random.key(9), [2, 60, 16])];
    const alone = rowsOf(q).map((one) => attention(one, k, k, { causal: true, form: "streamed" }));
    expect(fn(q, k).toArray()).toEqual(stack(alone).toArray());
  });

  test("gradients of each example of a small network", () => {
    const params = {
      w1: random.normal(random.key(3), [3, 4]),
      b1: tensor([0, 0.1, 0.2, 0.3]),
      w2: random.normal(random.key(4), [4]),
    };
    const loss = (p: typeof params, v: Tensor, y: Tensor) =>
      v.matmul(p.w1).add(p.b1).tanh().matmul(p.w2).sub(y).square();
    const ys = arange(5).cast("f32");
    const [values, grads] = vmap(valueAndGrad(loss), { in: [null, 0, 0] })(params, x, ys);
    const alone = rowsOf(x).map((v, i) => valueAndGrad(loss)(params, v, ys.slice([i])));
    near(values, stack(alone.map(([value]) => value)));
    near(grads.w1, stack(alone.map(([, g]) => g.w1)));
    near(grads.b1, stack(alone.map(([, g]) => g.b1)));
    near(grads.w2, stack(alone.map(([, g]) => g.w2)));
  });
});
