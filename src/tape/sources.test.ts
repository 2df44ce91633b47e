/**
 * @file Sources of gradients on a tape that are easily taken for others: constants of one value, copies, weakly typed tensors beside other types,
 * and tensors that were changed in place since.
 */
import { describe, expect, it } from "vitest";
import {
  checkpoint,
  compile,
  cond,
  full,
  grad,
  ones,
  onesLike,
  scan,
  type Tensor,
  tensor,
  vmap,
  zeros,
  zerosLike,
} from "../api/index.ts";
import { type Tape, tape } from "./tape.ts";

const x = tensor([1, 2]);

/** Gradients of 2 a + 3 b with respect to both. */
function slopes(make: () => readonly [Tensor, Tensor]): readonly (readonly number[])[] {
  const made = tape((t) => {
    const [a, b] = make();
    return t.gradient(a.mul(2).add(b.mul(3)).sum(), [a, b]);
  });
  return made.map((slope) => [...slope.data()]);
}

describe("a source", () => {
  it("is a tensor of its own, whatever others have its value", () => {
    const apart = [
      [2, 2],
      [3, 3],
    ];
    expect(slopes(() => [zeros([2]), zeros([2])])).toEqual(apart);
    expect(slopes(() => [ones([2]), ones([2])])).toEqual(apart);
    expect(slopes(() => [full([2], 7), full([2], 7)])).toEqual(apart);
    expect(slopes(() => [zerosLike(x), onesLike(x).sub(1)])).toEqual(apart);
    expect(slopes(() => [tensor([1, 2]), tensor([1, 2])])).toEqual(apart);
    expect(slopes(() => [x.mul(1).fill(0), x.mul(2).fill(0)])).toEqual(apart);
  });

  it("has the gradient of its copies, and copies have their own", () => {
    const through = [
      [2, 2],
      [5, 5],
    ];
    const copied = (copy: (b: Tensor) => Tensor): readonly [Tensor, Tensor] => {
      const b = x.mul(1);
      return [copy(b), b];
    };
    expect(slopes(() => copied((b) => b.copy()))).toEqual(through);
    expect(slopes(() => copied((b) => b.cast("f32")))).toEqual(through);
    expect(slopes(() => copied((b) => zeros([2]).assign(b)))).toEqual(through);
    expect(slopes(() => [x.copy(), x])).toEqual(through);
  });

  it("without a given type has a gradient beside tensors of another type", () => {
    const y = tensor([3, 4], { dtype: "f64" });
    const w = tensor([0.1, 0.2]);
    for (const make of [() => w, () => tensor([0.1, 0.2]), () => zeros([2])]) {
      const slope = tape((t) => {
        const own = make();
        return t.gradient(
          own.mul(y).sum().add(own.mul(y).mul(2).sum()).add(own.square().sum().cast("f64").mul(0)),
          own,
        );
      });
      expect(slope.dtype).toBe("f32");
      expect([...slope.data()]).toEqual([9, 12]);
    }
  });

  it("is read by what is traced on the tape, also where its elements are equal or it has no given type", () => {
    const y = tensor([3, 4], { dtype: "f64" });
    const rows = ones([3, 2], { dtype: "f64" });
    const functions: readonly ((w: Tensor) => Tensor)[] = [
      (w) => scan((c, e) => [c.mul(w).add(e), {}], y, rows)[0].sum(),
      (w) =>
        cond(
          y.sum().greater(0),
          (a) => a.mul(w).sum(),
          (a) => a.sum(),
          y,
        ),
      (w) => grad((a) => a.mul(w).square().sum())(y).sum(),
      (w) => checkpoint((a) => a.mul(w).square().sum())(y),
      (w) => compile((a) => a.mul(w).square().sum())(y),
      (w) => vmap((a: Tensor) => a.mul(w).square().sum())(y.reshape([1, 2])).sum(),
    ];
    const outside = [tensor([2, 2], { dtype: "f64" }), tensor([2, 2]), full([2], 2)];
    for (const fn of functions) {
      const wanted = [...grad(fn)(tensor([2, 2], { dtype: "f64" })).data()].map(Number);
      for (const make of [...outside.map((w) => () => w), () => tensor([2, 2]), () => full([2], 2)]) {
        const slope = tape((t) => {
          const w = make();
          return t.gradient(fn(w), w);
        });
        expect([...slope.data()].map(Number)).toEqual(wanted);
      }
    }
  });

  it("without a given type is made in another type once", () => {
    const peak = tape((t) => {
      const half = tensor(Array.from({ length: 1000 }, (_, i) => i / 1000));
      const y = ones([1000], { dtype: "f64" });
      let sum = y;
      for (let i = 0; i < 50; i++) sum = sum.mul(half);
      // the sums are kept for the reverse
      sum.data();
      return t.memory().peak.allocated;
    });
    expect(peak).toBeLessThan(60 * 8000);
  });

  it("that was changed after the target was computed from it is an error with both lines", () => {
    const changed = (t: Tape, change: (z: Tensor) => void): Tensor => {
      const z = x.mul(1);
      const y = z.square().sum();
      change(z);
      return t.gradient(y, z);
    };
    const both =
      /NotDifferentiable: gradient: the target was computed from sources before sources was changed in place at sources\.test\.ts:\d+:\d+[\s\S]*at sources\.test\.ts:\d+/;
    expect(() => tape((t) => changed(t, (z) => z.addInPlace(1)))).toThrow(both);
    expect(() => tape((t) => changed(t, (z) => z.setAt(0, 5)))).toThrow(both);
    expect(() => tape((t) => changed(t, (z) => z.slice([[0, 1]]).fill(3)))).toThrow(both);
    expect(() => tape((t) => changed(t, (z) => z.assign(x)))).toThrow(both);
    const weak = (t: Tape): Tensor => {
      const z = ones([2]);
      const y = z.mul(tensor([3, 4], { dtype: "f64" })).sum();
      z.addInPlace(1);
      return t.gradient(y, z);
    };
    expect(() => tape(weak)).toThrow(both);
    const ofView = (part: readonly [number, number]): Tensor =>
      tape((t) => {
        const z = x.mul(1);
        const view = z.slice([[0, 1]]);
        const y = z.slice([part]).add(view.sum().mul(0)).square().sum();
        z.addInPlace(1);
        return t.gradient(y, view);
      });
    expect(() => ofView([0, 1])).toThrow(both);
  });

  it("that was changed before, or that the target never read, is what it is now", () => {
    const before = tape((t) => {
      const z = x.mul(1).mulInPlace(2);
      return t.gradient(z.square().sum(), z);
    });
    expect([...before.data()]).toEqual([4, 8]);
    const unread = tape((t) => {
      const z = x.mul(1).mulInPlace(2);
      return t.gradient(x.sum(), z);
    });
    expect([...unread.data()]).toEqual([0, 0]);
    const elsewhere = tape((t) => {
      const z = x.mul(1);
      const view = z.slice([[0, 1]]);
      const y = z
        .slice([[1, 2]])
        .square()
        .sum();
      z.addInPlace(1);
      return t.gradient(y, view);
    });
    expect([...elsewhere.data()]).toEqual([0]);
  });

  it("is a tensor", () => {
    expect(() => tape((t) => t.gradient(x.sum(), { w: x, rate: 0.1 }))).toThrow(
      /NotDifferentiable: gradient: sources\.rate is the number 0\.1, not a tensor/,
    );
    expect(() => tape((t) => t.gradient(x.sum(), true as never))).toThrow(/sources is the boolean true/);
    expect(() => tape((t) => t.gradient(x.sum(), null as never))).toThrow(/InvalidTree: sources is null/);
  });
});
