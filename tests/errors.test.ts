/**
 * @file What users read when they make a mistake: one golden file in tests/errors/ for each. UPDATE=1 rewrites them. Line
 * and column are left out, so that this file can be edited.
 */
import { join } from "node:path";
import { describe } from "vitest";
import type { Tensor } from "../src/api/index.ts";
import * as tm from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";
import * as optim from "../src/optim/index.ts";
import { checkErrors, wrong } from "./support/errors.ts";

const x = tm.tensor([1, 2, 3]);
const m = tm.tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const labels = tm.tensor([1, 0], { dtype: "i32" });
/** Runs a function inside a trace. */
const traced = (fn: (v: Tensor) => unknown) => tm.grad(fn as (v: Tensor) => Tensor)(x);

let leaked: Tensor | undefined;

/** Runs where the engine takes no module, in its words; src/runtime/wasm-module.test.ts has real modules that it refuses. */
function refusing(run: () => unknown): unknown {
  const { Module } = WebAssembly;
  const reason = "WebAssembly.Module(): size 46051137 > maximum function size 7654321 @+11367";
  WebAssembly.Module = new Proxy(Module, {
    construct() {
      throw new WebAssembly.CompileError(reason);
    },
  });
  try {
    return run();
  } finally {
    WebAssembly.Module = Module;
  }
}

function double(v: Tensor): Tensor {
  return double(v.mul(2));
}
function doubleWhile(v: Tensor): Tensor {
  return tm.cond(
    v.sum().less(9),
    (u) => doubleWhile(u.mul(2)),
    (u) => u,
    v,
  );
}

const cases: Readonly<Record<string, () => unknown>> = {
  // shapes
  "add-shapes": () => m.add(tm.tensor([1, 2])),
  "matmul-inner": () => m.matmul(tm.ones([2, 3])),
  "matmul-transposed": () => m.matmul(tm.ones([4, 3])),
  "matmul-batch": () => tm.ones([2, 3, 4]).matmul(tm.ones([3, 4, 5])),
  "matmul-scalar": () => m.matmul(tm.tensor(2)),
  "reshape-elements": () => m.reshape([4, -1]),
  "broadcast-to": () => m.broadcastTo([3, 3]),
  "concat-shapes": () => tm.concat([m, tm.ones([2, 2])]),
  "concat-nothing": () => tm.concat([]),
  "stack-shapes": () => tm.stack([x, tm.ones([2])]),
  "split-unequal": () => x.split(2),
  "squeeze-wide": () => m.squeeze(0),
  "item-of-many": () => x.item(),
  "tensor-endless": () => {
    const rows: unknown[] = [];
    rows.push(rows);
    return tm.tensor(wrong<number[]>(rows));
  },
  "tensor-ragged": () => tm.tensor([[1, 2], [3]]),
  "tensor-shape": () => tm.tensor([1, 2, 3], { shape: [2, 2] }),
  "conv-rank": () => tm.conv2d(m, m),
  "conv-channels": () => tm.conv2d(tm.ones([1, 3, 8, 8]), tm.ones([4, 2, 3, 3])),
  "einsum-letters": () => tm.einsum("ij,j->i", m, tm.ones([2])),
  "einsum-operands": () => tm.einsum("ij,jk", m),
  "einsum-output": () => tm.einsum("ij->ik", m),
  "slice-position": () => m.slice([2]),
  "slice-ranges": () => x.slice([null, null]),
  "pad-widths": () => m.pad([[1, 1]]),
  // element types
  "add-dtypes": () => x.add(tm.arange(3)),
  "add-fraction-to-i32": () => labels.add(0.5),
  "add-number-to-bool": () => x.greater(0).add(1),
  "exp-of-i32": () => labels.exp(),
  "logical-of-i32": () => labels.logicalAnd(labels),
  "bits-of-floats": () => x.bitwiseAnd(x),
  "shift-of-floats": () => x.leftShift(1),
  "isfinite-of-i32": () => labels.isfinite(),
  "polygamma-order": () => x.polygamma(-1),
  "flatten-order": () => m.flatten(1, 0),
  "elu-alpha": () => x.elu(-1),
  "prelu-slopes": () => m.prelu([1, 2, 3, 4, 5]),
  "glu-odd": () => x.glu(),
  "softplus-beta": () => x.softplus({ beta: 0 }),
  "hard-tanh-bounds": () => x.hardTanh(1, -1),
  "where-condition": () => tm.where(x, 1, 2),
  "mean-of-i32": () => labels.mean(),
  "take-float-indices": () => m.take(x),
  "one-hot-floats": () => tm.oneHot(x, 3),
  "tensor-fraction-i32": () => tm.tensor([0.5], { dtype: "i32" }),
  // axes
  "sum-axis": () => m.sum(2),
  "sum-axis-twice": () => m.sum([0, -2]),
  "sum-axis-of-scalar": () => tm.tensor(1).sum(0),
  "transpose-order": () => m.transpose([0, 0]),
  // arguments
  "add-string": () => x.add(wrong<number>("1")),
  "dropout-rate": () => tm.dropout(x, 1, tm.random.key(0)),
  "random-seed": () => tm.random.key(0.5),
  "clamp-bounds": () => x.clamp(1, 0),
  "argmax-empty": () => tm.zeros([0]).argmax(),
  "zeros-shape": () => tm.zeros([-1]),
  // the wrong kind of argument
  "zeros-number": () => tm.zeros(wrong<number[]>(3)),
  "zeros-too-many": () => tm.zeros([1e6, 1e6]),
  "zeros-dtype": () => tm.zeros([2], wrong<"f32">("f8")),
  "full-string": () => tm.full([2], wrong<number>("a")),
  "tensor-dtype": () => tm.tensor([1], { dtype: wrong<"f32">("f8") }),
  "tensor-beyond-i32": () => tm.tensor([2 ** 31], { dtype: "i32" }),
  "add-beyond-i32": () => labels.add(3e9),
  "reshape-number": () => m.reshape(wrong<number[]>(6)),
  "transpose-number": () => m.transpose(wrong<number[]>(1)),
  "slice-number": () => m.slice(wrong<null[]>(1)),
  "slice-range": () => m.slice([[0.5, 2]]),
  "pad-numbers": () => m.pad(wrong<[number, number][]>([1, 1])),
  "cast-nothing": () => x.cast(wrong<"f32">(undefined)),
  "cast-dtype": () => x.cast(wrong<"f32">("f8")),
  "sum-axis-string": () => m.sum(wrong<number>("0")),
  "sum-axis-null": () => m.sum(wrong<number>(null)),
  "sum-array": () => tm.sum(wrong<Tensor>([1, 2])),
  "sum-option": () => m.sum(0, wrong<object>({ keepdims: true })),
  "sum-options-number": () => m.sum(0, wrong<object>(1)),
  "stack-numbers": () => tm.stack(wrong<Tensor[]>([1, 2])),
  "concat-tensor": () => tm.concat(wrong<Tensor[]>(x)),
  "matmul-number": () => m.matmul(wrong<Tensor>(2)),
  "einsum-number": () => tm.einsum(wrong<string>(3), x),
  "einsum-number-operand": () => tm.einsum("i->", wrong<Tensor>(3)),
  "einsum-dots": () => tm.einsum("...i,...i", tm.ones([2, 3]), tm.ones([4, 3])),
  "einsum-dots-lost": () => tm.einsum("...i->i", m),
  "take-number": () => m.take(wrong<Tensor>(0)),
  "uniform-key": () => tm.random.uniform(wrong<Tensor>(0), [2]),
  "uniform-option": () => tm.random.uniform(tm.random.key(0), [2], wrong<object>({ low: 0 })),
  "dropout-no-key": () => tm.dropout(x, 0.5, wrong<Tensor>(undefined)),
  "conv-padding": () => tm.conv2d(tm.ones([1, 1, 4, 4]), tm.ones([1, 1, 3, 3]), { padding: [[1, 1, 1]] as never }),
  "conv-option": () => tm.conv2d(tm.ones([1, 1, 4, 4]), tm.ones([1, 1, 3, 3]), wrong<object>({ strides: 2 })),
  "conv-transpose-output-padding": () =>
    tm.convTranspose2d(tm.ones([1, 1, 4, 4]), tm.ones([1, 1, 3, 3]), { stride: 2, outputPadding: 2 }),
  "pool-padding": () => tm.maxPool2d(tm.ones([1, 1, 4, 4]), 2, { padding: 2 }),
  "attention-mask": () => tm.attention(m, m, m, { mask: tm.ones([2, 2], "i32") }),
  "batch-norm-half": () => tm.batchNorm(m, { mean: x }),
  "jvp-lists": () => tm.jvp((v) => v, wrong<[Tensor]>(x), wrong<[Tensor]>(x)),
  "jvp-tangent-missing": () => tm.jvp((v) => v, [x], wrong<[Tensor]>([])),
  "compile-number": () => tm.compile(wrong<() => Tensor>(3)),
  "compile-option": () => tm.compile((v: Tensor) => v, wrong<object>({ donat: [0] })),
  "compile-memory": () => tm.compile((v: Tensor) => v, { memory: "lots" }),
  "compile-memory-list": () => tm.compile((v: Tensor) => v, { memory: wrong<number>([1]) }),
  "compile-missing-argument": () => tm.compile((v: Tensor) => v.add(1))(...wrong<[Tensor]>([])),
  "compile-undefined-argument": () => tm.compile((v: Tensor) => v.add(1))(wrong<Tensor>(undefined)),
  "compile-array": () => tm.compile((v: Tensor) => v.add(1))(wrong<Tensor>([1, 2, 3])),
  "compile-spec": () => tm.compile((v: Tensor) => v.add(1))(tm.spec([2])),
  "donate-number": () => tm.compile((v: Tensor) => v, { donate: wrong<number[]>(0) }),
  "donate-fraction": () => tm.compile((v: Tensor) => v, { donate: [0.5] }),
  "donate-missing": () => tm.compile((v: Tensor) => v, { donate: [3] })(x),
  "number-axis": () => tm.compile((v: Tensor, axis: number) => v.sum(axis))(m, 0),
  "number-arithmetic": () => tm.compile((v: Tensor, o: { rate: number }) => v.mul(o.rate * 2))(m, { rate: 0.5 }),
  "number-fraction": () => tm.compile((v: Tensor, n: number) => v.add(n))(labels, 0.5),
  "number-gradient": () => tm.compile((n: number) => tm.grad((v) => tm.square(v))(wrong(n)))(2),
  "number-changed": () => tm.compile((v: Tensor, n: number) => v.add(wrong<Tensor>(n).assign(2)))(m, 1),
  "static-fraction": () => tm.compile((v: Tensor) => v, { static: [0.5] }),
  "disposed-call": () => {
    const halve = tm.compile((v: Tensor) => v.mul(0.5), { name: "halve" });
    halve(x);
    halve.dispose();
    halve(x);
  },
  // named dimensions
  "shapes-max": () => tm.compile((v: Tensor) => v, { shapes: { T: { max: 0.5 } }, axes: [["T"]] }),
  "shapes-min": () => tm.compile((v: Tensor) => v, { shapes: { T: wrong<{ max: number }>({ min: 1, max: 8 }) } }),
  "shapes-above": () =>
    tm.compile((v: Tensor) => v, { name: "halve", shapes: { T: { max: 2 } }, axes: [["T"]] })(tm.zeros([3])),
  "shapes-zero": () =>
    tm.compile((v: Tensor) => v, { name: "halve", shapes: { T: { max: 2 } }, axes: [["T"]] })(tm.zeros([0])),
  "shapes-number": () => tm.compile((v: Tensor) => v, { shapes: { T: wrong<number[]>(64) }, axes: [["T"]] }),
  "shapes-fraction": () => tm.compile((v: Tensor) => v, { shapes: { T: [64, 0.5] }, axes: [["T"]] }),
  "shapes-twice": () => tm.compile((v: Tensor) => v, { shapes: { T: [64, 64] }, axes: [["T"]] }),
  "shapes-none": () => tm.compile((v: Tensor) => v, { shapes: {}, axes: [["T"]] }),
  "shapes-list": () => tm.compile((v: Tensor) => v, { shapes: wrong<object>([64]) as never, axes: [["T"]] }),
  "shapes-many": () => tm.compile((v: Tensor) => v, { shapes: { T: [1, 2, 3] }, axes: [["T"]], programs: 2 }),
  "shapes-axes": () => tm.compile((v: Tensor) => v, { shapes: { T: [64] } }),
  "shapes-axes-unknown": () => tm.compile((v: Tensor) => v, { shapes: { time: [64] }, axes: [["tiem"]] }),
  "shapes-axes-missing": () => tm.compile((v: Tensor) => v, { shapes: { B: [2], T: [64] }, axes: [["T"]] }),
  "shapes-axes-number": () => tm.compile((v: Tensor) => v, { shapes: { T: [64] }, axes: [wrong<null>(1), ["T"]] }),
  "shapes-axes-rank": () => tm.compile((v: Tensor) => v, { shapes: { T: [3] }, axes: [["T"]] })(m),
  "shapes-axes-tree": () =>
    tm.compile((o: { v: Tensor }) => o.v, { shapes: { T: [3] }, axes: [{ w: ["T"] }] })({ v: x }),
  "shapes-axes-list": () => tm.compile((o: Tensor[]) => o, { shapes: { T: [3] }, axes: [[["T"]]] })([x, x]),
  "shapes-axes-tensor": () => tm.compile((v: Tensor) => v, { shapes: { T: [3] }, axes: [{ v: ["T"] }] })(x),
  "shapes-other": () =>
    tm.compile(
      function step(tokens: Tensor) {
        return tokens;
      },
      { shapes: { T: [64, 128] }, axes: [["T"]] },
    )(x),
  "shapes-longer": () =>
    tm.compile((v: Tensor) => v, { name: "step", shapes: { T: [1, 2] }, axes: [["T"]], pad: wrong<false>(true) })(x),
  "shapes-differ": () =>
    tm.compile((v: Tensor, w: Tensor) => v.add(w), { shapes: { T: [2, 3] }, axes: [["T"], ["T"]] })(x, labels),
  "shapes-argument": () =>
    tm.compile((v: Tensor, w?: Tensor) => w ?? v, { shapes: { T: [2, 3] }, axes: [null, ["T"]] })(x),
  "shapes-pad": () => tm.compile((v: Tensor) => v, { pad: wrong<false>(true) }),
  "shapes-axes-alone": () => tm.compile((v: Tensor) => v, { axes: [["T"]] }),
  "shapes-family": () => tm.compile((v: Tensor) => v, { name: "step" }).family(x),
  "compile-programs": () => tm.compile((v: Tensor) => v, { programs: 0 }),
  "donated-read": () => {
    const step = tm.compile((v: Tensor) => v.add(1), { donate: [0] });
    const held = step(tm.tensor([1, 2, 3]));
    step(held);
    return held.toArray();
  },
  "grad-number": () => tm.grad(wrong<() => Tensor>(3)),
  "grad-option": () => tm.grad((v: Tensor) => v.sum(), wrong<object>({ argnum: 0 })),
  "check-nan-argument": () => tm.compile((v: Tensor) => v.add(1), { checkNaN: true })(tm.tensor([0, Number.NaN])),
  "custom-vjp-disagrees": () => {
    const f = tm.customVjp((v) => v.sum(), { forward: (v) => [v, []], backward: (_, ct) => [ct] });
    return traced((v) => f(v).sum());
  },
  "adam-rate": () => optim.adam({ lr: wrong<number>("1") }),
  "adam-beta": () => optim.adam({ beta1: -0.5 }),
  "adam-option": () => optim.adam(wrong<object>({ learningRate: 1 })),
  "sequential-function": () => nn.sequential(nn.linear(2, 3), wrong<nn.Layer>(nn.relu)),
  "linear-option": () => nn.linear(2, 3, wrong<object>({ biass: false })),
  "apply-option": () => {
    const model = nn.sequential(nn.dropout(0.5));
    return model.apply(model.init(0), x, wrong<object>({ training: true }));
  },
  // trees and results
  "argument-cycle": () => {
    const loop: { self?: object } = {};
    loop.self = loop;
    return tm.compile((v: object) => v)(loop);
  },
  "result-cycle": () =>
    traced((v) => {
      const loop: { v: Tensor; self?: object } = { v };
      loop.self = loop;
      return loop;
    }),
  "argument-string": () =>
    tm.grad((p: { layers: Tensor[]; name: string }) => p.layers[0]!.sum())({ layers: [x], name: "a" }),
  "argument-class": () => tm.grad((p: { at: Date }) => wrong<Tensor>(p.at))({ at: new Date(0) }),
  "argument-undefined": () =>
    tm.grad((p: { layers: readonly Tensor[] }) => p.layers[0]!.sum())({ layers: [x, wrong<Tensor>(undefined)] }),
  "returns-nothing": () => traced(() => undefined),
  "returns-string": () => traced(() => ({ loss: "low" })),
  "returns-promise": () => traced(async (v) => v.sum()),
  "returns-several": () => traced((v) => [v.sum(), v]),
  "aux-missing": () =>
    tm.grad(
      wrong<(v: Tensor) => [Tensor, Tensor]>((v: Tensor) => v.sum()),
      { hasAux: true },
    )(x),
  // derivatives
  "loss-not-scalar": () => traced((v) => v.square()),
  "loss-integer": () => traced((v) => v.sum().cast("i32")),
  "grad-of-labels": () => tm.grad((y: { labels: Tensor }) => y.labels.cast("f32").sum())({ labels }),
  "grad-of-number": () => tm.grad((p: { w: Tensor; rate: number }) => p.w.sum())({ w: x, rate: 0.1 }),
  "grad-argnums": () => tm.grad((v: Tensor) => v.sum(), { argnums: wrong<0>(1) })(x),
  "jvp-tangent-shape": () => tm.jvp((v) => v, [x], [tm.ones([2])]),
  "jvp-tangent-structure": () => tm.jvp((p: { w: Tensor }) => p.w, [{ w: x }], [wrong<{ w: Tensor }>({ v: x })]),
  "jvp-custom-vjp": () => {
    const f = tm.customVjp((v) => v, { forward: (v) => [v, []], backward: (_, ct) => [ct] });
    return tm.jvp((v) => f(v), [x], [x]);
  },
  "jvp-reversible": () => {
    const twice = tm.reversible(
      (v: Tensor) => v.mul(2),
      (y: Tensor) => y.div(2),
    );
    return tm.jvp((v: Tensor) => twice(v), [x], [x]);
  },
  "reversible-inverse": () => {
    const twice = tm.reversible(
      (v: Tensor) => v.mul(2),
      (y: Tensor) => y.mul(2),
    );
    return traced((v) => twice(v).sum());
  },
  "custom-vjp-shape": () => {
    const f = tm.customVjp((v) => v, { forward: (v) => [v, []], backward: (_, ct) => [ct.sum()] });
    return traced((v) => f(v).sum());
  },
  "custom-vjp-closure": () =>
    traced((v) => {
      const f = tm.customVjp((u) => u.mul(v), { forward: (u) => [u.mul(v), []], backward: (_, ct) => [ct] });
      return f(x).sum();
    }),
  "jacobian-of-tree": () => tm.jacobian((p: { w: Tensor }) => p.w)({ w: x }),
  // what a trace cannot do
  "trace-data": () => traced((v) => tm.tensor(v.data()).sum()),
  "trace-item": () => traced((v) => v.mul(v.sum().item()).sum()),
  "trace-item-constant": () => traced((v) => v.mul(tm.tensor([3, 4]).sum().item()).sum()),
  "trace-branch": () => traced((v) => (wrong<number>(v.sum()) > 0 ? v.sum() : v.sum().neg())),
  "trace-arithmetic": () => traced((v) => tm.tensor(wrong<number>(v) * 2).sum()),
  "trace-recursion": () => tm.compile(double)(x),
  "trace-recursion-cond": () => tm.compile(doubleWhile)(x),
  // changes
  "change-outside": () => x.setAt(0, 1),
  "change-concrete": () => traced((v) => x.addInPlace(v).sum()),
  "change-view-of-concrete": () =>
    traced((v) =>
      x
        .slice([[1, null]])
        .assign(v.slice([[1, null]]))
        .sum(),
    ),
  "change-closure": () => tm.compile((v: Tensor) => tm.grad((w: Tensor) => v.addInPlace(w).sum())(v))(x),
  "change-closure-of-checkpoint": () =>
    traced((v) =>
      tm
        .checkpoint((w: Tensor) => v.T.fill(0).add(w))(v)
        .sum(),
    ),
  "change-broadcast": () => traced((v) => v.broadcastTo([2, 3]).slice([0]).mulInPlace(2).sum()),
  "change-not-returned": () =>
    tm.compile(function step(state: { w: Tensor }, dw: Tensor) {
      state.w.subInPlace(dw);
      return dw.sum();
    })({ w: x }, x),
  "change-not-returned-view": () =>
    tm.compile((v: Tensor) => {
      v.reshape([3, 1]).setAt(-1, 0);
      return v.sum();
    })(x),
  "change-not-returned-inside": () =>
    tm.compile((v: Tensor) => {
      const spoil = tm.compile((w: Tensor) => w.mulInPlace(2).sum());
      return [v, spoil(v)];
    })(x),
  "change-not-returned-checkpoint": () => traced((v) => tm.checkpoint((w: Tensor) => w.mulInPlace(2).sum())(v)),
  "change-shape": () => traced((v) => v.assign(tm.ones([2])).sum()),
  "change-dtype": () => traced((v) => v.setAt(0, labels.slice([0])).sum()),
  "change-fraction-of-i32": () => tm.compile((n: Tensor) => n.addAt(0, 0.5))(labels),
  "change-row": () => traced((v) => v.setAt(3, 0).sum()),
  "change-row-of-scalar": () => traced((v) => v.sum().addAt(0, 1)),
  "change-rows-floats": () => traced((v) => v.addAt(v, 1).sum()),
  "change-leaked": () => {
    traced((v) => {
      leaked = v.mul(2);
      return v.sum();
    });
    return traced((v) => (leaked as Tensor).addInPlace(v).sum());
  },
  "trace-leak": () => {
    traced((v) => {
      leaked = v.mul(2);
      return v.sum();
    });
    return leaked?.add(1);
  },
  "trace-leak-into-trace": () => {
    traced((v) => {
      leaked = v.mul(2);
      return v.sum();
    });
    return traced((v) => v.mul(leaked as Tensor).sum());
  },
  // loops and branches
  "scan-state-type": () => tm.scan((s) => [s.cast("f64"), s], tm.tensor(0), x),
  "scan-state-structure": () =>
    tm.scan((s) => wrong<never>([{ h: s.h }, s.h]), { h: tm.tensor(0), c: tm.tensor(0) } as tm.Tree & { h: Tensor }, x),
  "scan-not-a-pair": () => tm.scan((s) => wrong<never>(s), tm.tensor(0), x),
  "scan-no-length": () => tm.scan((s) => [s, s], tm.tensor(0), null),
  "scan-lengths": () => tm.scan((s) => [s, s], tm.tensor(0), [x, m]),
  "scan-length-of-rows": () => tm.scan((s) => [s, s], tm.tensor(0), x, { length: 4 }),
  "scan-scalar-rows": () => tm.scan((s) => [s, s], tm.tensor(0), tm.tensor(1)),
  "scan-no-state": () => tm.scan((s) => [s, []], [] as tm.Tree, x),
  "scan-function": () => tm.scan(wrong<() => never>(3), tm.tensor(0), x),
  "scan-option": () => tm.scan((s) => [s, s], tm.tensor(0), x, wrong({ lenght: 3 })),
  "scan-async": () =>
    tm.scan(
      wrong<() => never>(async (s: Tensor) => [s, s]),
      tm.tensor(0),
      x,
    ),
  "for-loop-state": () => tm.forLoop(3, m, (_, s) => s.sum(0)),
  "for-loop-negative": () => tm.forLoop(-1, x, (_, s) => s),
  "for-loop-count": () => tm.forLoop(tm.tensor(2.5), x, (_, s) => s),
  "while-test": () =>
    tm.whileLoop(
      (s) => s,
      (s) => s,
      x,
    ),
  "while-test-number": () =>
    tm.whileLoop(
      (s) => s.less(1),
      (s) => s,
      x,
    ),
  "while-state": () =>
    tm.whileLoop(
      (s) => s.sum().less(1),
      (s) => s.sum(),
      x,
    ),
  "while-steps": () =>
    tm.whileLoop(
      (s) => s.sum().less(1),
      (s) => s,
      x,
      { maxSteps: 1.5 },
    ),
  "while-snapshots": () =>
    tm.whileLoop(
      (s) => s.sum().less(1),
      (s) => s,
      x,
      { snapshots: 0 },
    ),
  "cond-types": () =>
    tm.cond(
      x.sum().less(1),
      (v) => v,
      (v) => v.sum(),
      x,
    ),
  "cond-structures": () =>
    tm.cond(
      x.sum().less(1),
      (v) => wrong<Tensor>([v]),
      (v) => v,
      x,
    ),
  "cond-predicate": () =>
    tm.cond(
      x.less(1),
      (v) => v,
      (v) => v,
      x,
    ),
  "cond-boolean": () =>
    tm.cond(
      wrong(true),
      (v) => v,
      (v) => v,
      x,
    ),
  "switch-index": () => tm.switchCase(tm.tensor(1), [(v) => v], x),
  "switch-branches": () => tm.switchCase(tm.tensor(1, { dtype: "i32" }), [], x),
  "switch-branch": () => tm.switchCase(tm.tensor(1, { dtype: "i32" }), [wrong<(v: Tensor) => Tensor>(x)], x),
  "loop-leak": () => {
    let kept = x;
    tm.forLoop(3, x, (_, s) => {
      kept = s;
      return s.add(1);
    });
    return kept.data();
  },
  "engine-refuses-code": () => refusing(() => tm.compile((v: Tensor) => v.sin())(x)),
  "loop-branch": () => tm.forLoop(3, tm.tensor(1), (_, s) => (s.item() > 1 ? s : s.add(1))),
};

describe("errors", () => {
  checkErrors(join(import.meta.dirname, "errors"), cases);
});
