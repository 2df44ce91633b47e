/**
 * @file Functions that call themselves while they are traced: without end they are refused with a sentence about loops, and
 * what a plain number ends is unrolled. And the library's own ways through deep graphs, which are loops: a program has no
 * depth at which the call stack overflows.
 */
import { describe, expect, it } from "vitest";
import { checkpoint, compile, cond, grad, scan, type Tensor, TidemarkError, tensor } from "../../src/api/index.ts";
import { expectSameBits } from "../functions/compare.ts";

const x = tensor(1);

/** The error of a function that should end in one of ours. */
function errorOf(fn: () => unknown): TidemarkError {
  try {
    fn();
  } catch (error) {
    if (error instanceof TidemarkError) return error;
    throw error;
  }
  throw new Error("no error");
}

function halve(v: Tensor): Tensor {
  return cond(
    v.less(10),
    (u) => halve(u.mul(2)),
    (u) => u,
    v,
  );
}
/** The branch that is traced first recurses, and so does the other. */
function both(v: Tensor): Tensor {
  return cond(
    v.less(10),
    (u) => both(u.mul(2)),
    (u) => both(u.mul(3)),
    v,
  );
}
const even = (v: Tensor): Tensor => cond(v.less(10), odd, (u: Tensor) => u, v);
const odd = (v: Tensor): Tensor => even(v.mul(2));
function plain(v: Tensor): Tensor {
  return plain(v.mul(2));
}
const checkpointed: (v: Tensor) => Tensor = checkpoint((v: Tensor) => checkpointed(v.mul(2)));
function differentiated(v: Tensor): Tensor {
  return grad(differentiated)(v.mul(2));
}
const compiled: (v: Tensor) => Tensor = compile((v: Tensor) => compiled(v.mul(2)));
function scanned(v: Tensor): Tensor {
  return scan((s) => [scanned(s), []], v, null, { length: 2 })[0];
}

describe("recursion without end", () => {
  const cases: Readonly<Record<string, (v: Tensor) => Tensor>> = {
    "through cond": compile(halve),
    "through both branches of cond": compile(both),
    "through cond, outside of any trace": halve,
    "through two functions": compile(even),
    "of a plain function": compile(plain),
    "of a plain function that is differentiated": grad(plain),
    "through checkpoint": compile(checkpointed),
    "through grad": compile(differentiated),
    "through a compiled function": compiled,
    "through a loop": compile(scanned),
  };
  for (const [name, fn] of Object.entries(cases)) {
    it(`is an error that names loops: ${name}`, () => {
      const error = errorOf(() => fn(x));
      expect(error.code).toBe("EndlessRecursion");
      expect(error.help).toMatch(/whileLoop\(.*scan/);
      expect(error.where).toMatch(/^recursion\.test\.ts:\d+/);
      // Nothing is left behind: what is traced next is traced from outside.
      expect(compile((v: Tensor) => v.add(1))(x).item()).toBe(2);
    });
  }

  it("leaves other errors of range alone", () => {
    expect(() => compile((v: Tensor) => v.mul(new Array<number>(-1).length))(x)).toThrow(RangeError);
  });
});

describe("recursion that a plain number ends", () => {
  const DEPTH = 200;

  it("is unrolled through cond to 200 levels", () => {
    const nested = (v: Tensor, n: number): Tensor =>
      n === 0
        ? v
        : cond(
            v.less(2),
            (u) => nested(u.sin(), n - 1),
            (u) => u,
            v,
          );
    const unrolled = (v: Tensor, n: number): Tensor => (n === 0 ? v : unrolled(v.sin(), n - 1));
    expectSameBits(
      compile((v: Tensor) => nested(v, DEPTH))(x),
      compile((v: Tensor) => unrolled(v, DEPTH))(x),
      "unrolled",
    );
  });

  it("is unrolled through checkpoint and differentiated to 40 levels", () => {
    const nested = (v: Tensor, n: number): Tensor => (n === 0 ? v : checkpoint((u) => nested(u.sin(), n - 1))(v));
    const unrolled = (v: Tensor, n: number): Tensor => (n === 0 ? v : unrolled(v.sin(), n - 1));
    expectSameBits(grad((v: Tensor) => nested(v, 40))(x), grad((v: Tensor) => unrolled(v, 40))(x), "unrolled");
  });

  it("is unrolled without either to 2,000 levels", () => {
    const unrolled = (v: Tensor, n: number): Tensor => (n === 0 ? v : unrolled(v.add(1), n - 1));
    expect(compile((v: Tensor) => unrolled(v, 2000))(x).item()).toBe(2001);
  });
});

describe("deep programs", () => {
  const m = tensor([
    [1, 2],
    [3, 4],
  ]);
  const turned = (v: Tensor, times: number): Tensor => {
    let w = v;
    for (let i = 0; i < times; i++) w = w.reshape([4]).reshape([2, 2]);
    return w;
  };

  it("change tensors through views of views", () => {
    const change = compile((v: Tensor) => {
      const base = v.add(0);
      const far = turned(base, 3500);
      far.addInPlace(m);
      base.setAt(0, 9);
      far.setAt(1, 7);
      return [base, far];
    });
    for (const made of change(m) as Tensor[]) {
      expect(made.toArray()).toEqual([
        [9, 9],
        [7, 7],
      ]);
    }
  });

  it("have trees and arrays that are too deep refused", () => {
    let tree: unknown = x;
    for (let i = 0; i < 10_000; i++) tree = [tree];
    expect(errorOf(() => compile((v: Tensor) => v)(tree as Tensor)).code).toBe("InvalidTree");
    let nested: unknown = 1;
    for (let i = 0; i < 10_000; i++) nested = [nested];
    expect(errorOf(() => tensor(nested as number[])).code).toBe("InvalidArgument");
    const endless: unknown[] = [];
    endless.push(endless);
    expect(errorOf(() => tensor(endless as number[])).code).toBe("InvalidArgument");
  });
});
