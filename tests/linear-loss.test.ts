/** @file `linearCrossEntropy`: one pass in training, no logits of all tokens, the bits of one product, and its edges. */
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { grad, type Tensor, tensor } from "../src/api/index.ts";
import { allNodes } from "../src/ir/walk.ts";

const drawn = (shape: readonly number[], seed: number, dtype: "f32" | "f64" = "f32"): Tensor => {
  const elements = shape.reduce((n, extent) => n * extent, 1);
  return tensor(
    Float64Array.from({ length: elements }, (_, i) => Math.sin(i * 12.9898 + seed)),
    { shape, dtype },
  );
};
const classNumbers = (count: number, classes: number): Tensor =>
  tensor(
    Int32Array.from({ length: count }, (_, i) => (i * 7) % classes),
    { shape: [count] },
  );

type Loss = (h: Tensor, w: Tensor, targets: Tensor) => Tensor;
const inStrips =
  (strip: number, options: tm.LinearCrossEntropyOptions = {}): Loss =>
  (h, w, targets) =>
    tm.linearCrossEntropy(h, w, targets, { transposed: true, strip, ...options });
const whole: Loss = (h, w, targets) => tm.crossEntropy(tm.matmul(h, w, { tb: true }), targets);

const training = (loss: Loss) => (h: Tensor, w: Tensor, targets: Tensor) =>
  tm.valueAndGrad(loss, { argnums: [0, 1] })(h, w, targets);

describe("plans", () => {
  const [tokens, width, classes] = [8192, 96, 2000];
  const specs = [tm.spec([tokens, width]), tm.spec([classes, width]), tm.spec([tokens], "i32")] as const;
  const product = 2 * tokens * width * classes;
  /** Products of the whole size that all nodes together are, loops included. */
  const productsOf = (info: tm.PlanInfo): number => Math.round(info.flops / product);
  const most = (info: tm.PlanInfo): number =>
    Math.max(
      ...[...allNodes(info.graph)].flatMap(({ outputs }) =>
        outputs.map(({ type }) => type.shape.reduce((n, extent) => n * extent, 1)),
      ),
    );

  test("of training have three products and no logits beyond a strip", () => {
    const info = tm.plan(training(inStrips(1024)))(...specs);
    expect(productsOf(info)).toBe(3);
    expect(most(info)).toBe(1024 * classes);
    const logits = 4 * tokens * classes;
    const operands = 4 * (2 * width * (tokens + classes) + tokens);
    expect(info.arenaBytes - operands).toBeLessThan(1.05 * (logits / 8));
    const halves = tm.plan(training(inStrips(512)))(...specs);
    expect(halves.arenaBytes - operands).toBeLessThan(1.1 * (logits / 16));
  });

  test("of a loss alone have one product, of one gradient two", () => {
    expect(productsOf(tm.plan(inStrips(1024))(...specs))).toBe(1);
    const ofRows = tm.plan((h: Tensor, w: Tensor, y: Tensor) => tm.valueAndGrad(inStrips(1024))(h, w, y))(...specs);
    expect(productsOf(ofRows)).toBe(2);
    expect(most(ofRows)).toBe(1024 * classes);
  });

  test("of single losses and of second derivatives have no logits beyond a strip either", () => {
    const weighted = (h: Tensor, w: Tensor, y: Tensor): Tensor => {
      const losses = inStrips(1024, { reduction: "none" })(h, w, y);
      return tm.sum(tm.mul(losses, tm.cos(tm.arange(tokens, { dtype: "f32" }))));
    };
    const single = tm.plan(training(weighted))(...specs);
    expect(productsOf(single)).toBe(4);
    expect(most(single)).toBe(1024 * classes);
    const slope = (h: Tensor, w: Tensor, y: Tensor): Tensor => tm.sum(tm.square(grad(inStrips(1024))(h, w, y)));
    expect(most(tm.plan(training(slope))(...specs))).toBe(1024 * classes);
  });

  test("of a loop over losses recompute logits, a strip at a time", () => {
    const looped: Loss = (h, w, y) => {
      const rows = { h: tm.reshape(h, [2, tokens / 2, width]), y: tm.reshape(y, [2, tokens / 2]) };
      const add = (sum: Tensor, row: typeof rows): [Tensor, []] => [tm.add(sum, inStrips(1024)(row.h, w, row.y)), []];
      return tm.scan(add, tm.zeros([]), rows)[0];
    };
    const info = tm.plan(training(looped))(...specs);
    expect(productsOf(info)).toBe(4);
    expect(most(info)).toBe(1024 * classes);
  });

  test("of a loss that is scaled, or computed in a checkpoint, are one pass", () => {
    const scaled: Loss = (h, w, y) => tm.mul(inStrips(1024)(h, w, y), 128);
    expect(productsOf(tm.plan(training(scaled))(...specs))).toBe(3);
    const again: Loss = (h, w, y) => tm.checkpoint((a: Tensor, b: Tensor) => inStrips(1024)(tm.sin(a), b, y))(h, w);
    expect(productsOf(tm.plan(training(again))(...specs))).toBe(4);
  });
});

describe("bits", () => {
  const [tokens, width, classes] = [2048, 8, 20];
  const args = [drawn([tokens, width], 1), drawn([classes, width], 2), classNumbers(tokens, classes)] as const;
  const run = (loss: Loss): readonly Tensor[] => {
    const [value, grads] = tm.compile(training(loss))(...args);
    return [value, ...grads];
  };
  const bitsOf = (x: Tensor): readonly number[] => Array.from(new Uint32Array(Float32Array.from(x.data()).buffer));

  test("of loss and gradients do not depend on strips that are whole runs of a product", () => {
    const [expected, ...others] = [2048, 1024, 512, 1536].map((strip) => run(inStrips(strip)).map(bitsOf));
    for (const other of others) expect(other).toEqual(expected);
  });

  test("differ from those of all logits by rounding, for any strip", () => {
    const expected = run(whole).map((x) => Array.from(x.data()));
    for (const strip of [1024, 300]) {
      run(inStrips(strip)).forEach((x, i) => {
        const largest = Math.max(...expected[i]!.map(Math.abs));
        const apart = Array.from(x.data()).map((v, k) => Math.abs(v - expected[i]![k]!));
        expect(Math.max(...apart)).toBeLessThan(2e-6 * largest);
      });
    }
  });
});

describe("edges", () => {
  const w = drawn([4, 3], 2, "f64");
  const i32 = (list: number[]): Tensor => tensor(list, { dtype: "i32" });
  const both = (loss: (h: Tensor) => Tensor, h: Tensor): unknown => {
    const [now, compiled] = [loss(h).toArray(), tm.compile(loss)(h).toArray()];
    expect(compiled).toEqual(now);
    return now;
  };
  const nan = Number.NaN;

  test("no tokens: a sum of zero, a mean of NaN, and no gradient", () => {
    const none = tm.zeros([0, 3], { dtype: "f64" });
    const loss = (reduction: tm.Reduction) => (h: Tensor) => inStrips(2, { reduction })(h, w, i32([]));
    expect(both(loss("none"), none)).toEqual([]);
    expect(both(loss("sum"), none)).toBe(0);
    expect(both(loss("mean"), none)).toBe(nan);
    const [dh, dw] = grad((h: Tensor, v: Tensor) => inStrips(2)(h, v, i32([])), { argnums: [0, 1] })(none, w);
    expect(dh.shape).toEqual([0, 3]);
    expect(dw.abs().max().item()).toBe(0);
  });

  test("a target out of range: NaN for its token and no gradient of it, as crossEntropy has it", () => {
    const h = drawn([3, 3], 1, "f64");
    for (const strip of [1, 2]) {
      const loss = (reduction: tm.Reduction) => (x: Tensor) => inStrips(strip, { reduction })(x, w, i32([1, 4, -1]));
      expect(both((x) => tm.isnan(loss("none")(x)), h)).toEqual([false, true, true]);
      expect(both(loss("mean"), h)).toBe(nan);
      const [own, expected] = [loss("sum"), (x: Tensor) => whole(x, w, i32([1, 4, -1])).mul(3)].map((f) =>
        grad(f)(h).data(),
      );
      own!.forEach((v, i) => {
        expect(v).toBeCloseTo(Number(expected![i]), 12);
      });
    }
  });

  test("a token that is ignored takes no part, whatever its row", () => {
    const h = tensor([1, 2, 3, 1e300, 1e300, -1e300, 3, 2, 1], { shape: [3, 3], dtype: "f64" });
    const loss = (x: Tensor): Tensor => inStrips(2, { ignoreIndex: -1 })(x, w, i32([0, -1, 3]));
    const expected = whole(h.take(i32([0, 2])), w, i32([0, 3])).item();
    expect(both(loss, h)).toBeCloseTo(expected, 12);
    expect(grad(loss)(h).toArray()[1 as never]).toEqual([0, 0, 0]);
  });

  test("logits of any size", () => {
    const h = tensor([1000, -1000], { shape: [2, 1] });
    const loss = (x: Tensor): Tensor =>
      tm.linearCrossEntropy(x, tensor([[1, 0, -1]]), i32([0, 0]), { reduction: "none" });
    expect(both(loss, h)).toEqual([0, 2000]);
    const bias = tensor([0, Number.NEGATIVE_INFINITY, 0]);
    const masked = (x: Tensor): Tensor => tm.linearCrossEntropy(x, tm.zeros([1, 3]), i32([2, 0]), { bias });
    expect(both(masked, h)).toBeCloseTo(Math.LN2, 6);
  });

  test("one class, no width", () => {
    expect(both((h) => tm.linearCrossEntropy(h, tm.ones([3, 1]), i32([0, 0])), tm.ones([2, 3]))).toBe(0);
    const flat = (h: Tensor): Tensor => tm.linearCrossEntropy(h, tm.ones([0, 4]), i32([0, 3]));
    expect(both(flat, tm.ones([2, 0]))).toBeCloseTo(Math.log(4), 6);
  });
});
