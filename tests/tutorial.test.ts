/** @file The tiny compiler of docs/tutorial: its gradients, its plans, and the plan that its page shows. */
import { describe, expect, it } from "vitest";
import { dce, planOf, printPlan, run, type Tensor, trace, vjp } from "../docs/tutorial/tiny.ts";
import { block, checkDocument } from "./support/generated.ts";

/** ‖tanh(x w) - y‖², the function of the page. */
const loss = (w: Tensor, x: Tensor, y: Tensor): Tensor => {
  const e = x.matmul(w).tanh().sub(y);
  return e.mul(e).sum();
};
const shapes = [
  [3, 2],
  [4, 3],
  [4, 2],
] as const;
const args = shapes.map(([rows, cols], n) => Array.from({ length: rows * cols }, (_, i) => Math.sin(7 * n + i + 1)));
const plain = trace(loss as (...x: Tensor[]) => Tensor, shapes);
const joint = dce(vjp(plain));

describe("the tiny compiler", () => {
  it("computes gradients that equal differences, in an arena full of NaN", () => {
    const plan = planOf(joint);
    const [value, ...grads] = run(plan, [...args, [1]], new Float64Array(plan.height).fill(Number.NaN));
    const at = (n: number, i: number, by: number): number => {
      const moved = args.map((x, m) => x.map((e, j) => (m === n && j === i ? e + by : e)));
      return run(planOf(plain), moved)[0]![0]!;
    };
    expect(value).toEqual(run(planOf(plain), args)[0]);
    args.forEach((x, n) => {
      x.forEach((_, i) => {
        expect(grads[n]![i]).toBeCloseTo((at(n, i, 1e-5) - at(n, i, -1e-5)) / 2e-5, 6);
      });
    });
  });

  it("places no two buffers that live together on the same elements", () => {
    const { buffers, height, bound } = planOf(joint);
    for (const [i, a] of buffers.entries()) {
      for (const b of buffers.slice(i + 1)) {
        const together = a.start < b.end && b.start < a.end;
        const overlap = a.offset < b.offset + b.length && b.offset < a.offset + a.length;
        expect(together && overlap).toBe(false);
      }
    }
    expect(height).toBeGreaterThanOrEqual(bound);
    expect(height).toBeLessThan(buffers.reduce((n, b) => n + b.length, 0));
  });

  it("gives zero for what the result does not depend on", () => {
    const graph = dce(
      vjp(
        trace(((a: Tensor) => a.sum()) as (...x: Tensor[]) => Tensor, [
          [1, 2],
          [2, 2],
        ]),
      ),
    );
    expect(run(planOf(graph), [[1, 2], [1, 2, 3, 4], [1]])).toEqual([[3], [1, 1], [0, 0, 0, 0]]);
  });

  it("is explained by a page that shows its plans", () => {
    const { found, expected } = checkDocument("docs/tutorial/README.md", {
      forward: block(printPlan(planOf(plain))),
      joint: block(printPlan(planOf(joint))),
    });
    expect(found).toBe(expected);
  });
});
