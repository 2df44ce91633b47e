/** @file Updates run early, small programs are solved, nothing needs more memory than before, every order is valid. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { branchedProgram, layeredProgram, numbers, treeProgram } from "../../bench/order-programs.ts";
import { leastPeak, randomOrder } from "../../tests/support/orders.ts";
import { ProgramBuilder, randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { byteLength } from "../ir/type.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { modelOf } from "./order/model.ts";
import { findOrders, orderSteps } from "./order.ts";
import { planProgram } from "./plan.ts";
import { problemIn } from "./problem.ts";
import { checkProgram, type Program } from "./program.ts";
import { validate } from "./validate.ts";

const maxLive = (program: Program) => boundOf(problemIn(assignBuffers(program).problem)).bytes;
/** Parameters whose replacement is copied at the end. */
const copied = (program: Program) => assignBuffers(program).copies.flatMap(({ param }) => (param ? [param] : []));
const least = (programs: readonly Program[]) => programs.reduce((low, p) => Math.min(low, maxLive(p)), Infinity);
const names = (program: Program) => program.steps.map((s) => s.writes.map((v) => v.name).join());

describe("orderSteps", () => {
  it("runs updates as soon as their gradient is complete and nothing else reads the weight", () => {
    const program = trainingStep(3);
    expect(names(program).slice(7)).toEqual(["d_h", "d_w2", "d_h2", "d_w1", "d_h1", "d_w0", "w0", "w1", "w2"]);
    const ordered = orderSteps(program);
    expect(names(ordered).slice(7)).toEqual(["d_h", "d_w2", "d_h2", "w2", "d_w1", "d_h1", "w1", "d_w0", "w0"]);
    expect(maxLive(ordered)).toBeLessThan(maxLive(program));
  });

  it("lets an update wait for the other readers of its weight, even for later ones", () => {
    const b = new ProgramBuilder();
    const [w, x] = [b.param("w", [64]), b.param("x", [64])];
    const g = b.call("grad", [x], { name: "g" });
    const next = b.call("sgd", [w, g], { name: "next", over: [w] });
    const y = b.call("use", [w, x], { name: "y", shape: [1] });
    const program = b.finish("p", [next, y], { donated: [[w, 0]], persistent: [w] });
    expect(names(orderSteps(program))).toEqual(["g", "y", "next"]);
    expect(assignBuffers(program).copies).toHaveLength(1);
    expect(assignBuffers(orderSteps(program)).copies).toHaveLength(0);
  });

  it("does not wait for a reader that needs the update's outcome", () => {
    const b = new ProgramBuilder();
    const w = b.param("w", [64]);
    const next = b.call("sgd", [w], { name: "next", over: [w] });
    const y = b.call("difference", [w, next], { name: "y" });
    const program = b.finish("p", [next, y], { donated: [[w, 0]], persistent: [w] });
    expect(names(orderSteps(program))).toEqual(["next", "y"]);
  });

  it("gets by when two updates would wait for each other", () => {
    const b = new ProgramBuilder();
    const [p, q] = [b.param("p", [64]), b.param("q", [64])];
    const nextP = b.call("f", [p, q], { name: "next_p", over: [p] });
    const nextQ = b.call("f", [q, p], { name: "next_q", over: [q] });
    const program = b.finish("p", [nextP, nextQ], {
      donated: [
        [p, 0],
        [q, 1],
      ],
      persistent: [p, q],
    });
    expect(() => checkProgram(orderSteps(program))).not.toThrow();
  });

  it("keeps program order where nothing is gained", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [4]);
    const [y, z] = [b.call("f", [x]), b.call("f", [x])];
    const program = b.finish("p", [y, z]);
    expect(orderSteps(program)).toBe(program);
  });

  it("returns all steps of any program in an order that defines before it uses, and needs no more than before", () => {
    fc.assert(
      fc.property(randomProgram, (program) => {
        const ordered = orderSteps(program);
        checkProgram(ordered);
        expect(new Set(ordered.steps)).toEqual(new Set(program.steps));
        expect(maxLive(ordered)).toBeLessThanOrEqual(maxLive(program));
        expect(orderSteps(program).steps).toEqual(ordered.steps);
      }),
      { numRuns: 1000, seed: 5 },
    );
  });

  it("is as good as the best of all permutations that leave no further copies, unless a copy saves four times as much", () => {
    let [orders, programs, paid] = [0, 0, 0];
    const check = (program: Program): void => {
      const all = permutations(program, 300)?.map((steps) => ({ ...program, steps }));
      if (!all) return;
      const known = new Set(copied(program));
      const careful = least(all.filter((p) => copied(p).every((param) => known.has(param))));
      const ordered = orderSteps(program);
      const further = copied(ordered).filter((param) => !known.has(param));
      const bytes = further.reduce((sum, param) => sum + byteLength(param.type), 0);
      if (further.length === 0) expect(maxLive(ordered)).toBe(careful);
      else expect(careful - maxLive(ordered)).toBeGreaterThanOrEqual(4 * bytes);
      expect(maxLive(ordered)).toBeGreaterThanOrEqual(least(all));
      [orders, programs, paid] = [orders + all.length, programs + 1, paid + (bytes > 0 ? 1 : 0)];
    };
    fc.assert(fc.property(randomProgram, check), { numRuns: 800, seed: 6 });
    for (let seed = 0; seed < 100; seed++) check(layeredProgram(8, 4, seed));
    expect(programs).toBeGreaterThan(500);
    expect(orders).toBeGreaterThan(10_000);
    expect(paid).toBeGreaterThan(0);
  });

  it("leaves a copy of something small to the end where that lets something large die", () => {
    const update = (elements: number): Program => {
      const b = new ProgramBuilder();
      const [w, x] = [b.param("w", [16]), b.param("x", [16])];
      const g = b.call("grad", [x], { name: "g", shape: [elements] });
      const h = b.call("reduce", [g], { name: "h", shape: [16] });
      const big = b.call("expand", [h], { name: "big", shape: [elements] });
      const y = b.call("use", [w, big], { name: "y", shape: [16] });
      const next = b.call("sum", [w, g], { name: "next", shape: [16], over: [w] });
      return b.finish("p", [next, y], { donated: [[w, 0]], persistent: [w] });
    };
    // g waits for the update, which waits for y; or w's replacement is written beside it, and g dies before big is made.
    const [small, large] = [orderSteps(update(32)), orderSteps(update(1024))];
    expect([names(small), copied(small).length]).toEqual([["g", "h", "big", "y", "next"], 0]);
    expect([names(large), copied(large).length]).toEqual([["g", "h", "next", "big", "y"], 1]);
  });

  it("knows the optimum of small programs, and knows that it does", () => {
    fc.assert(
      fc.property(randomProgram, (program) => {
        const model = modelOf(program);
        if (model.steps > 1) expect(findOrders(model)).toMatchObject({ bytes: leastPeak(model), optimal: true });
      }),
      { numRuns: 1500, seed: 7 },
    );
    for (let seed = 0; seed < 60; seed++) {
      for (const program of [layeredProgram(13, 8, seed), treeProgram(12, seed)]) {
        const model = modelOf(program);
        expect(findOrders(model)).toMatchObject({ bytes: leastPeak(model), optimal: true });
      }
    }
  });

  it("finds the same peak, whatever order a program of moderate size comes in", () => {
    for (let seed = 0; seed < 8; seed++) {
      const program = layeredProgram(60, 8, seed);
      const model = modelOf(program);
      const shuffled = { ...program, steps: randomOrder(model, numbers(seed)).map((i) => program.steps[i]!) };
      expect(maxLive(orderSteps(shuffled))).toBe(maxLive(orderSteps(program)));
    }
  });

  it("finishes branches one by one, those first that leave least, which saves what is proved to be the most possible", () => {
    for (let seed = 0; seed < 8; seed++) {
      const program = branchedProgram(8, seed);
      expect(findOrders(modelOf(program)).optimal).toBe(true);
      expect(maxLive(orderSteps(program))).toBeLessThanOrEqual(maxLive(program));
    }
    const [before, after] = [branchedProgram(8, 3), orderSteps(branchedProgram(8, 3))].map(maxLive);
    expect(after).toBeLessThan(0.95 * before!);
  });

  it("plans large programs correctly, no worse than before, and twice the same", () => {
    for (const program of [layeredProgram(3000, 30, 1), trainingStep(600, 8, 4), branchedProgram(200, 1)]) {
      const ordered = orderSteps(program);
      checkProgram(ordered);
      expect(maxLive(ordered)).toBeLessThan(maxLive(program));
      expect(orderSteps(program).steps).toEqual(ordered.steps);
    }
    const program = layeredProgram(400, 30, 1);
    expect(validate(program, planProgram(program))).toEqual([]);
  });
});

/** Every valid order of a program's steps, or null if there are more than `most`. */
function permutations(program: Program, most: number): (readonly Program["steps"][number][])[] | null {
  const found: Program["steps"][number][][] = [];
  const [order, defined] = [[] as Program["steps"][number][], new Set(program.params)];
  const visit = (): void => {
    if (found.length > most) return;
    if (order.length === program.steps.length) found.push([...order]);
    for (const step of program.steps) {
      if (order.includes(step) || !step.reads.every((v) => defined.has(v))) continue;
      order.push(step);
      for (const v of step.writes) defined.add(v);
      visit();
      order.pop();
      for (const v of step.writes) defined.delete(v);
    }
  };
  visit();
  return found.length > most ? null : found;
}
