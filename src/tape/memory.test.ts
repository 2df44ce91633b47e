/** @file Memory of tapes: given back, kept for reverses, limited, recomputed, and written to files. */
import { describe, expect, it } from "vitest";
import { compile, type Tensor, tensor, valueAndGrad } from "../api/index.ts";
import { threefry } from "../base/random.ts";
import { linear, sequential, tanh } from "../nn/index.ts";
import { adam } from "../optim/index.ts";
import { flatten, type Tree } from "../trace/tree.ts";
import { readSnapshot } from "../view/snapshot.ts";
import { releaseTapes, type Tape, type TapeOptions, tape, tapeCounts } from "./tape.ts";

const draw = (seed: number, ...shape: number[]): Tensor => {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Float32Array.from({ length: count }, (_, i) => (threefry([seed, 3], [i, 0])[0] >>> 0) / 2 ** 32 - 0.5),
    { shape },
  );
};

const leavesOf = (tree: Tree) => flatten(tree, "state").leaves.map((leaf) => leaf.data());

describe("memory of a tape", () => {
  const memoryOf = (body: (t: Tape) => unknown): number => {
    let bytes = 0;
    tape((t) => {
      body(t);
      bytes = t.memory().allocated;
    });
    return bytes;
  };

  it("is given back at its end, also after an error", () => {
    const w = draw(3, 8, 8);
    tape((t) => t.gradient(w.matmul(w).tanh().sum(), w));
    expect(() =>
      tape(() => {
        draw(1, 100).exp().sum().item();
        throw new RangeError("the user's");
      }),
    ).toThrow("the user's");
    expect(memoryOf(() => undefined)).toBe(0);
  });

  it("does not grow over many steps", () => {
    const x = tensor([1, 2, 3, 4]);
    const step = (): void => {
      tape((t) => {
        const y = x.square().sum();
        if (y.item() > 0) t.gradient(y, x).data();
      });
    };
    for (let i = 0; i < 200; i++) step();
    const programs = tapeCounts().programs;
    for (let i = 0; i < 3000; i++) step();
    expect(tapeCounts().programs).toBe(programs);
    expect(memoryOf(() => undefined)).toBe(0);
  });

  it("holds what the reverses read, and gives it back as they run", () => {
    const x = draw(5, 1000);
    const held = { forward: 0, after: 0 };
    const bytes = 4000;
    tape((t) => {
      let y = x.mul(1);
      for (let i = 0; i < 10; i++) y = y.sin().mul(2); // the reverse of sin reads its input; that of mul by a number nothing of size
      const loss = y.sum();
      loss.item();
      held.forward = t.memory().allocated;
      t.gradient(loss, x).data();
      held.after = t.memory().allocated;
    });
    // ten inputs of sin, and x
    expect(held.forward / bytes).toBeGreaterThan(9);
    expect(held.forward / bytes).toBeLessThan(13);
    expect(held.after / bytes).toBeLessThan(4);
  });

  it("takes what a compiled step with donated state takes: new states are written over the old ones", () => {
    const model = sequential(linear(64, 128), tanh(), linear(128, 64));
    const optimizer = adam({ lr: 1e-3 });
    const x = draw(21, 32, 64);
    const step = (state: ReturnType<typeof start>) => {
      const [loss, grads] = valueAndGrad((p: typeof state.params) => model.apply(p, x).square().mean())(state.params);
      return [optimizer.update(state, grads), loss] as const;
    };
    const start = () => optimizer.init(model.init(3));
    const compiled = compile(step, { donate: [0] });
    const planned = start();
    const { arenaBytes } = compiled.program(planned);
    const [expected] = compiled(planned);
    let reserved = () => 0;
    for (const reads of [true, false, false]) {
      const [state] = tape((t) => {
        reserved = () => t.memory().peak.reserved;
        const made = step(start());
        if (reads) made[1].item(); // until the end, what comes from outside may be read again
        return made;
      });
      expect(leavesOf(state)).toEqual(leavesOf(expected));
      expect(reserved()).toBeLessThan(1.6 * arenaBytes);
    }
    expect(reserved()).toBeLessThan(1.1 * arenaBytes);
  });

  it("learns what is read again after the host has looked at it", () => {
    const w = draw(22, 32, 32);
    const recomputed = (): number => {
      const before = tapeCounts().recomputed;
      tape((t) => {
        const slope = t.gradient(w.matmul(w).tanh().matmul(w).square().sum(), w);
        const norm = Math.hypot(...slope.data());
        for (let i = 0; i < 5; i++) w.mul(i).sum().item(); // other evaluations
        return norm > 1e9 ? w : slope;
      });
      return tapeCounts().recomputed - before;
    };
    expect(recomputed()).toBeGreaterThan(0);
    expect(recomputed()).toBe(0);
  });

  it("never passes the limit; the refusal names the lines of what is live", () => {
    const x = draw(6, 1000);
    const run = (memory: string): unknown =>
      tape(
        (t) => {
          let y = x.mul(1);
          for (let i = 0; i < 20; i++) {
            y = y.sin();
            y.slice([0]).item();
          }
          expect(t.memory().peak.reserved).toBeLessThanOrEqual(t.memory().limit);
          return t.gradient(y.sum(), x);
        },
        { memory },
      );
    expect(() => run("50KB")).toThrow(
      /PoolExhausted: tape: 4,\d+ bytes do not fit into the limit of 50,000;[\s\S]*memory\.test\.ts:\d+/,
    );
    run("1MB");
  });

  it("with recomputation takes a limit in which not everything fits, with the same bits", () => {
    const x = draw(15, 1000);
    const w = draw(16, 1000);
    const run = (options: TapeOptions) => {
      let reserved = 0;
      const gradients = tape((t) => {
        let y = x.mul(w);
        for (let i = 0; i < 40; i++) {
          y = y.sin().mul(w);
          if (i % 10 === 9 && y.sum().item() > 1e9) break;
        }
        const made = t.gradient(y.sum(), [x, w]);
        made[0]!.sum().item();
        reserved = t.memory().peak.reserved;
        return made;
      }, options);
      return { reserved, bits: gradients.map((g) => [...g.data()]) };
    };
    const whole = run({});
    expect(whole.reserved).toBeGreaterThan(80 * 4000);
    for (const memory of [160_000, 80_000, 48_000]) {
      const before = tapeCounts().recomputed;
      const small = run({ memory, recompute: true });
      expect(small.reserved).toBeLessThanOrEqual(memory);
      expect(small.bits).toEqual(whole.bits);
      expect(tapeCounts().recomputed).toBeGreaterThan(before);
    }
    expect(() => run({ memory: 160_000 })).toThrow("PoolExhausted");
    expect(() => run({ memory: 12_000, recompute: true })).toThrow("PoolExhausted");
    expect(() => run({ memory: 21_000, recompute: true })).toThrow(/operations were recomputed for|do not fit/);
  });

  it("that is kept between tapes can be given back", () => {
    const x = draw(18, 100);
    const run = (): number => tape(() => x.exp().sum()).item();
    const before = run();
    expect(() => tape(() => releaseTapes())).toThrow("SideEffect: releaseTapes: a tape is running");
    releaseTapes();
    expect(tapeCounts().programs).toBe(0);
    expect(run()).toBe(before);
  });

  it("can be written as a snapshot", () => {
    const bytes = tape(
      (t) => {
        tensor([1, 2, 3]).exp().sum().item();
        return { all: 0, file: t.snapshot().length };
      },
      { history: 100 },
    );
    expect(bytes.file).toBeGreaterThan(100);
    let file = new Uint8Array();
    tape(
      (t) => {
        tensor([1, 2, 3]).exp().sum().item();
        file = t.snapshot() as typeof file;
      },
      { history: 100 },
    );
    expect(readSnapshot(file, "tape")[0]!.steps.length).toBeGreaterThan(2);
  });
});
