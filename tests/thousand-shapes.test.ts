/** @file A thousand shapes through one function: what it holds never exceeds its budget, and results are those of the function alone. */
import { expect, test } from "vitest";
import { compile, random, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import "./support/host.ts";

const BUDGET = 32 * 2 ** 20;
const SHAPES = 1000;

/** For the longest it needs more than the budget where nothing is recomputed. */
function train(w: Tensor, x: Tensor): readonly [Tensor, Tensor] {
  const [loss, dw] = valueAndGrad((v: Tensor) => {
    let h = x.mul(v);
    for (let i = 0; i < 3; i++) h = h.mul(v).add(h.square().mul(0.1));
    return h.square().mean();
  })(w);
  return [w.sub(dw.mul(0.01)), loss];
}

test("a thousand lengths stay within 32 MiB", { timeout: 1_200_000 }, () => {
  const step = compile(train, { donate: [0], memory: "32MiB", programs: 64 });
  const largest = 1500 * SHAPES;
  const data = random.uniform(random.key(0), [largest]).data() as Float32Array;
  expect(compile(train).program(tensor([1]), tensor(data)).arenaBytes).toBeGreaterThan(BUDGET);
  let w = tensor([1]);
  for (let i = 0; i < SHAPES; i++) {
    // every length once, long and short ones in turn
    const n = 1500 * (((i * 379) % SHAPES) + 1);
    const x = tensor(data.subarray(0, n));
    const alone = i % 100 === 0 ? compile(train)(w, x) : null;
    const [next, loss] = step(w, x);
    const { arenaBytes, allocatedBytes, programs } = step.stats();
    expect(Math.max(arenaBytes, allocatedBytes)).toBeLessThanOrEqual(BUDGET);
    expect(programs).toBeLessThanOrEqual(64);
    if (alone) expect([...next.data(), loss.item()]).toEqual([...alone[0].data(), alone[1].item()]);
    w = next;
  }
  expect(step.stats()).toMatchObject({ calls: SHAPES, planned: SHAPES, dropped: SHAPES - 64 });
});
