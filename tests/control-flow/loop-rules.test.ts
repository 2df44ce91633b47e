/** @file Strategies about loops by name, and what a loop's named reversal counts for. */
import { describe, expect, it } from "vitest";
import {
  compile,
  grad,
  type PlanInfo,
  type PlanningOptions,
  plan,
  type ScanOptions,
  scan,
  spec,
  type Tensor,
  tensor,
} from "../../src/api/index.ts";
import { plansOf } from "../../src/api/plan.ts";
import { record } from "../../src/ops/record.ts";

const TURNS = 100;
const loss =
  (options: ScanOptions = {}) =>
  (x: Tensor): Tensor =>
    scan((h: Tensor) => [h.sin().mul(1.01), h.sum()], x, null, { length: TURNS, ...options })[0].sum();

const planned = (options: PlanningOptions, own: ScanOptions = {}): PlanInfo =>
  plan((x: Tensor) => grad(loss(own))(x), { cache: false, ...options })(spec([64]));

/** States that its loop holds; null where it keeps rows. */
const checkpointsOf = ({ graph }: PlanInfo): number | null =>
  graph.nodes.flatMap(({ op, attrs }) => (op === record ? [Number(attrs.checkpoints)] : []))[0] ?? null;

describe("a loop's named reversal", () => {
  it("is counted against loops that keep everything", () => {
    const stored = planned({});
    expect(stored.slowdown).toBe(1);
    for (const reversal of ["binomial", "square-root", "binary"] as const) {
      const named = planned({}, { reversal });
      expect(named.arenaBytes).toBeLessThan(stored.arenaBytes);
      expect(named.storeAllArenaBytes).toBe(stored.arenaBytes);
      expect(named.slowdown).toBe(named.predictedMs / stored.predictedMs);
      expect(named.slowdown).toBeGreaterThan(1);
    }
  });

  it("is kept under a limit of time, which is of the time that everything stored takes", () => {
    const named = planned({ maxSlowdown: 1.01 }, { reversal: "binomial", snapshots: 3 });
    expect(checkpointsOf(named)).toBe(3);
  });
});

describe("strategies about loops", () => {
  const stored = planned({});

  it("binomial holds as many states as fit", () => {
    const budgets = [0.7, 0.4, 0.2].map((part) => Math.ceil(part * stored.arenaBytes));
    const plans = budgets.map((memory) => planned({ strategy: "binomial", memory }));
    plans.forEach(({ arenaBytes, strategy }, i) => {
      expect(arenaBytes).toBeLessThanOrEqual(budgets[i]!);
      expect(strategy).toBe("binomial");
    });
    const checkpoints = plans.map((found) => checkpointsOf(found) ?? TURNS);
    expect(checkpoints).toEqual([...checkpoints].sort((a, b) => b - a));
    expect(checkpoints[2]).toBeLessThan(checkpoints[0]!);
    // without a budget nothing is computed again
    expect(planned({ strategy: "binomial" }).arenaBytes).toBe(stored.arenaBytes);
  });

  it("segments of iterations are the periodic schedules", () => {
    const named = planned({}, { reversal: "square-root" });
    const root = planned({ strategy: "sqrt", segments: "loop", memory: "min" });
    expect([root.arenaBytes, checkpointsOf(root)]).toEqual([named.arenaBytes, checkpointsOf(named)]);
    const memory = Math.ceil(0.6 * stored.arenaBytes);
    const some = planned({ strategy: "every-k", segments: "loop", memory });
    expect(some.arenaBytes).toBeLessThanOrEqual(memory);
    expect(some.predictedMs).toBeLessThanOrEqual(root.predictedMs);
    expect(checkpointsOf(some)).toBeGreaterThan(checkpointsOf(root)!);
  });

  it("keep every bit", () => {
    const x = tensor(Float32Array.from({ length: 64 }, (_, i) => Math.sin(i)));
    const bits = (options: PlanningOptions): string =>
      Buffer.from(compile((v: Tensor) => grad(loss())(v), { cache: false, ...options })(x).data().buffer).toString(
        "hex",
      );
    const expected = bits({});
    for (const strategy of ["binomial", "every-k", "sqrt"] as const) {
      expect(bits({ strategy, segments: "loop", memory: "min" })).toBe(expected);
    }
  });

  it("are on curves", () => {
    const { plans } = plansOf((x: Tensor) => grad(loss())(x), [spec([64])], { cache: false });
    const points = plans.curve("binomial", 4);
    expect(points.length).toBeGreaterThan(4);
    expect(Math.min(...points.map((p) => p.plan.arenaBytes))).toBeLessThan(0.3 * stored.arenaBytes);
    const plain = plansOf((x: Tensor) => grad((v: Tensor) => v.sin().sum())(x), [spec([64])], { cache: false });
    expect(plain.plans.curve("binomial", 4)).toEqual([]);
  });
});
