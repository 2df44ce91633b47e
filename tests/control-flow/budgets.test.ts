/**
 * @file Loops under a budget in bytes. What a loop's reverse reads is kept, or computed again from as many states as fit:
 * either way gradients have the very bits that they have when everything is kept, turns made again are as few as any
 * schedule makes with so many states, and neither code nor compilation grows with the number of turns.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  type ForOptions,
  forLoop,
  grad,
  matmul,
  type PlanningOptions,
  type ProgramInfo,
  pad,
  plan,
  type ScanOptions,
  scan,
  slice,
  type Tensor,
  tensor,
  whileLoop,
} from "../../src/api/index.ts";
import { plansOf } from "../../src/api/plan.ts";
import { at } from "../../src/base/invariant.ts";
import { hostRandom } from "../../src/base/random.ts";
import type { Node } from "../../src/ir/graph.ts";
import { allNodes } from "../../src/ir/walk.ts";
import { leastAdvances } from "../../src/loops/binomial.ts";
import { full } from "../../src/ops/create.ts";
import { REVERSALS, type Reversal } from "../../src/ops/loops.ts";
import { record } from "../../src/ops/record.ts";
import { type RewindAttrs, rewind } from "../../src/ops/rewind.ts";
import { ScriptMachine } from "../support/script-machine.ts";
import { sharePlans } from "../support/shared-plans.ts";

sharePlans();

type Params = Readonly<Record<string, Tensor>>;

function draw(shape: readonly number[], seed: number, scale = 1, dtype: "f32" | "f64" = "f64"): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  const data = Float64Array.from({ length: n }, () => (next.next() * 2 - 1) * scale);
  return tensor(dtype === "f64" ? data : Float32Array.from(data)).reshape(shape);
}

const bitsOf = (tree: Params): readonly string[] =>
  Object.values(tree).map((leaf) => {
    const { buffer, byteOffset, byteLength } = leaf.data() as Float64Array;
    return [...new Uint8Array(buffer, byteOffset, byteLength)].join(" ");
  });

interface Outcome extends ProgramInfo {
  readonly bits: readonly string[];
}

function gradientOf(loss: (p: Params) => Tensor, p: Params, options: PlanningOptions = {}): Outcome {
  const compiled = compile((q: Params) => grad(loss)(q) as Params, { validate: true, ...options });
  return { ...compiled.program(p), bits: bitsOf(compiled(p)) };
}

const nodesOf = ({ graph }: ProgramInfo, op: object): readonly Node[] =>
  [...allNodes(graph)].filter((node) => node.op === op);

/** Budgets at equal ratios. */
const ladder = (most: number, least: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => Math.ceil(most * (least / most) ** (i / (count - 1))));

const recurrent = ({ w, h, xs, k }: Params, options: object = {}): Tensor => {
  const [last, ys] = scan<Tensor, Tensor, Tensor>(
    (s, x) => {
      const next = matmul(s, w as Tensor)
        .add(x)
        .tanh();
      return [
        next,
        next
          .exp()
          .mul(s)
          .mul(k as Tensor),
      ];
    },
    h as Tensor,
    xs as Tensor,
    options,
  );
  return last
    .sum()
    .add(ys.square().sum())
    .add((k as Tensor).square().sum());
};

/** Two deep: constants of both loops get cotangents in both. */
const nested = ({ w, h, xs, k }: Params): Tensor => {
  const [last, ys] = scan<Tensor, Tensor, Tensor>(
    (s, x) => {
      const inner = forLoop(12, s, (_, c) =>
        matmul(c, w as Tensor)
          .add(x)
          .tanh()
          .mul(k as Tensor),
      );
      return [inner, inner.mul(s)];
    },
    h as Tensor,
    xs as Tensor,
  );
  return last
    .sum()
    .add(ys.square().sum())
    .add((k as Tensor).square().sum());
};

const bounded = ({ w, h, k }: Params): Tensor =>
  whileLoop(
    (s) => s.square().sum().greater(0.05),
    (s) =>
      matmul(s, w as Tensor)
        .tanh()
        .mul(k as Tensor),
    h as Tensor,
    { maxSteps: 300 },
  )
    .square()
    .sum();

const params = (turns: number): Params => ({
  w: draw([6, 6], 1, 0.5),
  h: draw([3, 6], 2),
  xs: draw([turns, 3, 6], 3, 0.3),
  k: draw([6], 4, 0.2).add(0.9),
});

describe.each([
  ["a loop", recurrent, params(50)],
  ["a loop that goes backwards", (p: Params) => recurrent(p, { reverse: true }), params(50)],
  ["loops two deep", nested, params(30)],
  ["a while with a bound", bounded, params(1)],
] as const)("%s", (_, loss, p) => {
  const stored = gradientOf(loss, p);
  const least = gradientOf(loss, p, { memory: "min" });

  it("keeps every bit at every budget, within each of them", () => {
    expect(least.bits).toEqual(stored.bits);
    expect(least.arenaBytes).toBeLessThan(stored.arenaBytes);
    let before: Outcome | null = null;
    for (const memory of ladder(stored.arenaBytes, least.arenaBytes, 7)) {
      const outcome = gradientOf(loss, p, { memory });
      expect(outcome.arenaBytes).toBeLessThanOrEqual(memory);
      expect(outcome.bits, `${memory} bytes`).toEqual(stored.bits);
      if (before) {
        expect(outcome.arenaBytes).toBeLessThanOrEqual(before.arenaBytes);
        expect(outcome.predictedMs).toBeGreaterThanOrEqual(before.predictedMs);
      }
      before = outcome;
    }
  });

  it("buys bytes with a tolerated slowdown and does not pass it", () => {
    const outcome = gradientOf(loss, p, { maxSlowdown: 3 });
    expect(outcome.bits).toEqual(stored.bits);
    expect(outcome.slowdown).toBeLessThanOrEqual(3);
    expect(outcome.arenaBytes).toBeLessThan(stored.arenaBytes);
  });
});

describe("loops two deep", () => {
  it("hold states of both where that is all there is room for", () => {
    const p = params(30);
    const { arenaBytes } = gradientOf(nested, p, { memory: "min" });
    const outcome = gradientOf(nested, p, { memory: arenaBytes });
    expect(nodesOf(outcome, rewind).map(({ attrs }) => (attrs as RewindAttrs).length)).toEqual([30, 12]);
    expect(nodesOf(outcome, record)).toHaveLength(2);
  });
});

describe("a while with a bound", () => {
  it("holds states as they come, as its length shows at the end alone", () => {
    const outcome = gradientOf(bounded, params(1), { memory: "min" });
    expect(nodesOf(outcome, record)).toHaveLength(1);
    expect(nodesOf(outcome, rewind).map(({ attrs }) => attrs.split)).toEqual(["online"]);
  });
});

describe("a reversal that is asked for", () => {
  const p = params(23);
  const asked = (reversal: Reversal, snapshots?: number): Outcome =>
    gradientOf((q) => recurrent(q, snapshots === undefined ? { reversal } : { reversal, snapshots }), p);
  const stored = asked("store-all");

  it.each(REVERSALS)("%s gives the same bits", (reversal) => {
    for (const snapshots of [undefined, 1, 2, 5, 100]) {
      expect(asked(reversal, snapshots).bits, `${snapshots} snapshots`).toEqual(stored.bits);
    }
  });

  it("is honoured: states as many as asked for, or none", () => {
    const [node] = nodesOf(asked("binomial", 4), rewind);
    expect(node?.attrs).toMatchObject({ checkpoints: 4, split: "binomial", advances: leastAdvances(23, 4) - 22 });
    expect(nodesOf(asked("binary"), rewind)[0]?.attrs).toMatchObject({ split: "binary" });
    expect(nodesOf(asked("square-root"), rewind)[0]?.attrs).toMatchObject({ split: "periodic", every: 5 });
    expect(nodesOf(asked("periodic", 4), rewind)[0]?.attrs).toMatchObject({ split: "periodic", every: 6 });
    expect(nodesOf(stored, rewind)).toEqual([]);
    const inLoop = gradientOf((q) => recurrent(q, { reversal: "store-all" }), p, { memory: stored.arenaBytes });
    expect(nodesOf(inLoop, rewind)).toEqual([]);
    expect(() =>
      gradientOf((q) => recurrent(q, { reversal: "store-all" }), p, { memory: stored.arenaBytes >> 2 }),
    ).toThrow("PlanInfeasible");
  });

  it("is refused where it does not exist", () => {
    expect(() => asked("quadratic" as Reversal)).toThrow(/scan: reversal is .*quadratic/);
    expect(() => asked("binomial", 1.5)).toThrow("scan: snapshots is 1.5");
  });
});

/** How many turns forward a program makes in all, by following the control of its module; bodies have one kernel or more. */
function turnsForward(loss: (p: Params) => Tensor, p: Params, options: PlanningOptions): number {
  const { plans } = plansOf(((q: Params) => grad(loss)(q)) as never, [p], options);
  const { kernels, kernelNodes, plan: placed } = plans.placed(plans.choose(), 0);
  const machine = new ScriptMachine({ onKernel: () => (run += 1) });
  let run = 0;
  let turns = 0;
  kernels.forEach((step, i) => {
    const node = at(kernelNodes, i);
    // The number of turns that the reverse reads is a constant in memory.
    if (step.kernel && node.op === full) machine.memory.set(at(step.addresses, 0), Number(node.attrs.value));
    if (!("script" in step)) return;
    const bodies = placed.program.steps.find((other) => other.node === node)?.bodies ?? [];
    const [first = 0, second = 0, third = 0] = bodies.map(
      ({ program }) => program.steps.filter(({ alias }) => !alias).length,
    );
    run = 0;
    machine.run(step.script);
    const { length, taped = 0 } = node.attrs as Partial<RewindAttrs>;
    // Turns of the reverse are not counted, those that are taped once.
    const others = node.op === rewind ? second * (Number(length) - taped) + third * taped : second * taped;
    turns += (run - others) / first + (node.op === rewind ? 0 : taped);
  });
  return turns;
}

const SIDE = 5;
type Field = { readonly u: Tensor; readonly before: Tensor };

/** u'' = c² Δu on a square with a rim of zeros, by leapfrog. */
function waves(turns: number, options: ForOptions = {}): (p: Params) => Tensor {
  const cut = (u: Tensor, dy: number, dx: number): Tensor =>
    slice(pad(u, 1), [
      [1 + dy, 1 + dy + SIDE],
      [1 + dx, 1 + dx + SIDE],
    ]);
  const laplacian = (u: Tensor): Tensor =>
    cut(u, 1, 0)
      .add(cut(u, -1, 0))
      .add(cut(u, 0, 1))
      .add(cut(u, 0, -1))
      .sub(u.mul(4));
  return ({ c, u }) => {
    const speed = (c as Tensor).square();
    const first: Field = { u: u as Tensor, before: u as Tensor };
    const step = (_: Tensor, s: Field): Field => ({
      u: s.u
        .mul(2)
        .sub(s.before)
        .add(speed.mul(laplacian(s.u))),
      before: s.u,
    });
    const last = forLoop(turns, first, step, options);
    return last.u.square().sum();
  };
}

describe("ten thousand steps of the wave equation", () => {
  const turns = 10_000;
  const p: Params = { c: draw([SIDE, SIDE], 1, 0.05).add(0.3), u: draw([SIDE, SIDE], 2) };
  const stored = gradientOf(waves(turns), p);

  it.each([10, 100, 500])(
    "have the same gradient in 1/%i of the arena, with the fewest turns for what is held",
    (part) => {
      const memory = Math.floor(stored.arenaBytes / part);
      const outcome = gradientOf(waves(turns), p, { memory });
      expect(outcome.arenaBytes).toBeLessThanOrEqual(memory);
      expect(outcome.bits).toEqual(stored.bits);
      const [node, ...others] = nodesOf(outcome, rewind);
      expect(others).toEqual([]);
      const { checkpoints, advances, taped } = (node as Node).attrs as RewindAttrs;
      const early = turns - taped;
      const made = turnsForward(waves(turns), p, { memory });
      // The last turn before those that are taped is not one that a schedule needs: its result is what comes after.
      expect(made).toBe(leastAdvances(early, checkpoints) + 1 + taped);
      expect(advances, "what the cost is of").toBe(leastAdvances(early, checkpoints) - (early - 1));
      expect(outcome.arenaBytes, "no state more would fit").toBeGreaterThan(memory - 3 * 8 * SIDE * SIDE);
      const states = (n: number): Outcome => gradientOf(waves(turns, { reversal: "binomial", snapshots: n }), p);
      let alone = checkpoints;
      while (states(alone + 1).arenaBytes <= memory) alone += Math.max(1, taped >> 6);
      expect(made, "no more turns than with states alone").toBeLessThanOrEqual(leastAdvances(turns, alone) + 1);
      expect(states(checkpoints + 1).bits).toEqual(stored.bits);
    },
  );

  it("compile to as much code as ten", () => {
    const size = (n: number): ProgramInfo => {
      const compiled = compile((q: Params) => grad(waves(n))(q) as Params, { memory: "min" });
      return compiled.program(p);
    };
    expect(size(turns).moduleBytes - size(10).moduleBytes).toBeLessThan(100);
  });
});

describe("a million turns of a scalar", () => {
  it("are differentiated in less than a megabyte", () => {
    const loss = ({ x, a }: Params): Tensor =>
      forLoop(1_000_000, x as Tensor, (_, s) => s.mul(a as Tensor).add(s.sin().mul(1e-7)));
    const p: Params = { x: tensor(0.5, { dtype: "f64" }), a: tensor(0.999999, { dtype: "f64" }) };
    const outcome = gradientOf(loss, p, { memory: "100kB" });
    expect(outcome.arenaBytes).toBeLessThanOrEqual(100_000);
    expect(outcome.storeAllArenaBytes).toBeGreaterThan(8_000_000);
    expect(outcome.bits).toEqual(gradientOf(loss, p).bits);
  });
});

describe("a loop between keeping rows and holding states", () => {
  const p = params(64);
  /** A turn leaves four rows of the size of its state. */
  const gatedCell =
    (options: ScanOptions = {}) =>
    ({ w, h, xs, k }: Params): Tensor => {
      const cell = (s: Tensor, x: Tensor): Tensor => {
        const gate = matmul(s, w as Tensor)
          .add(x)
          .sigmoid();
        const fresh = matmul(s.mul(gate), w as Tensor)
          .add(k as Tensor)
          .tanh();
        return s.add(gate.mul(fresh.sub(s).tanh()));
      };
      const [last, ys] = scan<Tensor, Tensor, Tensor>(
        (s, x) => [cell(s, x), s.sum([0])],
        h as Tensor,
        xs as Tensor,
        options,
      );
      return last.square().sum().add(ys.square().sum());
    };
  const stored = gradientOf(gatedCell(), p);
  const states = gradientOf(gatedCell({ reversal: "binomial", snapshots: 63 }), p);

  it("keeps the rows of as many turns as fit, and states for the others", () => {
    expect(states.arenaBytes).toBeLessThan(stored.arenaBytes);
    const taped = [0.2, 0.5, 0.8].map((share) => {
      const memory = Math.ceil(states.arenaBytes + share * (stored.arenaBytes - states.arenaBytes));
      const outcome = gradientOf(gatedCell(), p, { memory });
      expect(outcome.bits, `${memory} bytes`).toEqual(stored.bits);
      expect(outcome.arenaBytes).toBeLessThanOrEqual(memory);
      const [node] = nodesOf(outcome, rewind);
      if (node) expect(outcome.arenaBytes, "most of the budget is used").toBeGreaterThan(0.95 * memory);
      // Without a reverse from states there are rows of all turns, some of them computed again.
      return node ? (node.attrs as RewindAttrs).taped : 64;
    });
    expect(taped).toEqual([...taped].sort((a, b) => a - b));
    expect(taped[0]).toBeGreaterThan(0);
    expect(taped[2]).toBeGreaterThan(32);
  });

  it("does so going backwards too", () => {
    const back = gatedCell({ reverse: true });
    const all = gradientOf(back, p);
    const outcome = gradientOf(back, p, { memory: Math.ceil(all.arenaBytes * 0.8) });
    expect(outcome.bits).toEqual(all.bits);
    expect(((nodesOf(outcome, rewind)[0] as Node).attrs as RewindAttrs).taped).toBeGreaterThan(0);
  });
});

describe("the memory of a recurrent network", () => {
  it("grows with the length of the sequence by its inputs alone, at a slowdown that is bounded", () => {
    const bytes = (turns: number, options: PlanningOptions): number =>
      plan(
        (q: Params) => grad((r: Params) => recurrent({ ...q, w: r.w as Tensor }))({ w: q.w as Tensor }) as Params,
        options,
      )(params(turns)).arenaBytes;
    const inputs = 3 * 6 * 8;
    const each = (options: PlanningOptions): number => (bytes(400, options) - bytes(200, options)) / 200 / inputs;
    expect(each({})).toBeGreaterThan(3);
    expect(each({ maxSlowdown: 4 })).toBeLessThan(2.5);
  });
});
