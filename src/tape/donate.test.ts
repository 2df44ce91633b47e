/** @file State that is donated from tape to tape stays in the pool: the same bits, no copies, nothing lost. */
import { describe, expect, it } from "vitest";
import { compile, type Tensor, tensor, valueAndGrad } from "../api/index.ts";
import { linear, sequential, tanh } from "../nn/index.ts";
import { adam } from "../optim/index.ts";
import { flatten, type Tree } from "../trace/tree.ts";
import { releaseTapes, type TapeOptions, tape } from "./tape.ts";

const model = sequential(linear(48, 64), tanh(), linear(64, 16));
const optimizer = adam({ lr: 1e-2 });
const start = () => optimizer.init(model.init(3));
type State = ReturnType<typeof start>;
const x = tensor(
  Float32Array.from({ length: 32 * 48 }, (_, i) => Math.sin(i)),
  { shape: [32, 48] },
);

function step(state: State): readonly [State, Tensor] {
  const [loss, grads] = valueAndGrad((p: State["params"]) => model.apply(p, x).square().mean())(state.params);
  return [optimizer.update(state, grads), loss];
}

const bits = (tree: Tree) => flatten(tree, "tree").leaves.map((leaf) => [...leaf.data()]);
const stateBytes = bits(start()).reduce((sum, { length }) => sum + 4 * length, 0);

function expected(steps: number): { readonly state: State; readonly losses: readonly number[] } {
  const compiled = compile(step);
  let state = start();
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const [next, loss] = compiled(state);
    [state] = [next];
    losses.push(loss.item());
  }
  return { state, losses };
}

describe("donated state", () => {
  it.each<TapeOptions>([{}, { compileRuns: false }, { memory: "1MiB" }, { memory: "200KiB", recompute: true }])(
    "has the bits of copies: %j",
    (options) => {
      const whole = expected(5);
      let state = start();
      const losses: number[] = [];
      for (let i = 0; i < 5; i++) {
        const [next, loss] = tape(
          () => {
            const made = step(state);
            if (i === 2) made[1].item();
            return made;
          },
          { ...options, donate: state },
        );
        state = next;
        losses.push(loss.item());
      }
      expect(losses).toEqual(whole.losses);
      expect(bits(state)).toEqual(bits(whole.state));
    },
  );

  it("stays in the pool until a tape begins that it is not donated to", () => {
    const held = (options: TapeOptions) => tape((t) => t.memory().allocated, options);
    let [state] = tape(() => step(start()), { donate: start() });
    [state] = tape(() => step(state), { donate: state });
    // looking at it does not move it
    const before = bits(state);
    const [next] = tape(
      (t) => {
        expect(t.memory().allocated).toBeGreaterThan(stateBytes / 2);
        return step(state);
      },
      { donate: state },
    );
    expect(() => flatten(state, "state").leaves[0]?.data()).toThrow(/DonatedTensor[\s\S]*donate\.test\.ts/);
    const after = bits(next);
    expect(after).not.toEqual(before);
    expect(held({})).toBe(0);
    expect(bits(next)).toEqual(after);
    const [last] = tape(() => step(next), { donate: next });
    releaseTapes();
    expect(bits(last)).toEqual(bits(expected(4).state));
  });

  it("is still there when the function fails", () => {
    const [state] = tape(() => step(start()), { donate: start() });
    const before = bits(state);
    const failing = () => {
      tape(
        () => {
          step(state)[1].item();
          throw new RangeError("the user's");
        },
        { donate: state },
      );
    };
    for (let i = 0; i < 3; i++) expect(failing).toThrow("the user's");
    expect(bits(state)).toEqual(before);
    expect(bits(tape(() => step(state), { donate: state })[0])).toEqual(bits(expected(2).state));
  });

  it("may be returned as it is, be read by eager operations, other tapes and compiled functions", () => {
    const [a, b] = [tensor([1, 2, 3]), tensor([4, 5, 6])];
    let state = tape(() => ({ a: a.mul(2), b }), { donate: { a, b } });
    expect(bits(state)).toEqual([
      [2, 4, 6],
      [4, 5, 6],
    ]);
    state = tape(() => ({ a: state.b, b: state.a }), { donate: state });
    expect(bits(state)).toEqual([
      [4, 5, 6],
      [2, 4, 6],
    ]);
    expect([...state.a.add(state.b).data()]).toEqual([6, 9, 12]);
    expect([...compile((v: Tensor) => v.mul(2))(state.a).data()]).toEqual([8, 10, 12]);
    const kept = state.b;
    expect([...compile((v: Tensor) => v.add(1), { donate: [0] })(state.a).data()]).toEqual([5, 6, 7]);
    expect(() => state.a.data()).toThrow("DonatedTensor");
    expect([...tape(() => kept.mul(2)).data()]).toEqual([4, 8, 12]);
    expect([...kept.data()]).toEqual([2, 4, 6]);
  });

  it("is refused where it is not there, or on a tape inside of another", () => {
    const w = tensor([1, 2]);
    tape(() => w.mul(2), { donate: w });
    expect(() => w.data()).toThrow("DonatedTensor");
    expect(() => tape(() => w.mul(2), { donate: w })).toThrow("DonatedTensor");
    const v = tensor([1, 2]);
    expect(() => tape(() => tape(() => v.mul(2), { donate: v }))).toThrow("donate on a tape inside of another one");
    expect(() => tape(() => v, { donate: "v" as never })).toThrow("InvalidTree");
    expect([...v.data()]).toEqual([1, 2]);
  });
});
