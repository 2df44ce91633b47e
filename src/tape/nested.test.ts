/** @file Tapes inside of tapes: the outer one differentiates what they return; what each may be asked for, and limits of memory. */
import { describe, expect, it } from "vitest";
import { grad, type Tensor, tensor } from "../api/index.ts";
import { type Tape, tape } from "./tape.ts";

const x = tensor([0.5, -1, 2]);

/** A helper as libraries have them: it takes a gradient of its own. */
const slopeOfSine = (y: Tensor): Tensor => tape((t) => t.gradient(y.mul(1).sin().sum(), y));

describe("a tape inside of another one", () => {
  it("is differentiated by it: second and third derivatives in the form of TensorFlow", () => {
    const f = (y: Tensor): Tensor => y.sin().mul(y).sum();
    const third = tape((a) => {
      const second = tape((b) => b.gradient(tape((c) => c.gradient(f(x), x)).sum(), x));
      return a.gradient(second.sum(), x);
    });
    const g1 = grad(f);
    const g2 = grad((y: Tensor) => g1(y).sum());
    expect(third.data()).toEqual(grad((y: Tensor) => g2(y).sum())(x).data());
    const outer = tape((t) => t.gradient(slopeOfSine(x.mul(2)).square().sum(), x));
    expect(outer.data()).toEqual(grad((y: Tensor) => y.mul(2).cos().square().sum())(x).data());
  });

  it("passes on gradients of values of the tape around it", () => {
    const slope = tape((t) => {
      const y = x.mul(2);
      const inner = tape(() => {
        const squared = y.square();
        return squared.sum().item() > 0 ? { loss: squared.sum(), kept: [y] } : null;
      });
      return t.gradient(inner!.loss.add(inner!.kept[0]!.sum()), x);
    });
    expect([...slope.data()]).toEqual([...x.data()].map((value) => 8 * value + 2));
  });

  it("takes gradients of what it computed, and the outer one of everything", () => {
    tape((a) => {
      const y = x.mul(1);
      const target = y.sum();
      tape((b) => {
        expect(() => b.gradient(target, x)).toThrow(
          /TraceLeak: gradient: the target f32\[\] is of another tape around this/,
        );
        expect([...b.gradient(y.square().sum(), y).data()]).toEqual([1, -2, 4]);
        const own = y.square();
        expect([...a.gradient(own.sum(), x).data()]).toEqual([1, -2, 4]);
        expect([...b.gradient(own.sum(), own).data()]).toEqual([1, 1, 1]);
      });
    });
  });

  it("ends when its function returns or throws, and the outer one goes on", () => {
    const sum = tape((t) => {
      let kept: Tape | null = null;
      expect(() =>
        tape((u) => {
          kept = u;
          throw new Error("mine");
        }),
      ).toThrow("mine");
      expect(() => kept!.gradient(x.sum(), x)).toThrow("TraceLeak: tape.gradient: the tape has ended");
      expect(() => tape(async () => x)).toThrow("InvalidArgument: tape: the function returned a promise");
      return t.gradient(x.square().sum(), x).sum();
    });
    expect(sum.item()).toBe(3);
  });

  it("has a limit of its own, for what it returns too", () => {
    const long = tensor(new Float32Array(1000).fill(0.5));
    const steps = (): Tensor => {
      let y = long.mul(1);
      for (let i = 0; i < 20; i++) {
        y = y.sin();
        y.slice([0]).item();
      }
      return y;
    };
    tape((t) => {
      expect(() => tape(() => long.exp(), { memory: 3000 })).toThrow(/PoolExhausted[\s\S]*nested\.test\.ts/);
      expect(() => tape(steps, { memory: "20KB" })).toThrow("PoolExhausted");
      const limit = t.memory().limit;
      const y = tape(steps, { memory: "20KB", recompute: true });
      expect(t.memory().limit).toBe(limit);
      const slope = t.gradient(y.sum(), long);
      expect(slope.data()).toEqual(tape((u) => u.gradient(steps().sum(), long)).data());
    });
  });

  it("keeps what the outer one says it watches", () => {
    const [a, b] = tape((t) => {
      t.watch(x);
      const y = tape((u) => {
        const own = x.mul(3);
        u.watch(own);
        return own.square();
      });
      return t.gradient(y.sum(), [x, y]);
    });
    expect([...a!.data()]).toEqual([9, -18, 36]);
    expect([...b!.data()]).toEqual([1, 1, 1]);
  });
});
