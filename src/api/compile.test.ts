/** @file What a compiled function keeps: code and an arena, and nothing that only planning needs. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { printPlan } from "../plan/print.ts";
import { compile, ones, type Tensor, valueAndGrad } from "./index.ts";

const step = () => compile((w: Tensor, x: Tensor) => valueAndGrad((v: Tensor) => x.matmul(v).tanh().sum())(w));
const args = [ones([4, 3]), ones([2, 4])] as const;

test("the plan of a program is the same before it runs, afterwards, and of types alone", () => {
  const compiled = step();
  const { graph, plan } = compiled.program(...args);
  const before = printPlan(plan);
  expect(compiled.program(...args).graph).toBe(graph);
  compiled(...args);
  const after = compiled.program(...args);
  expect(printPlan(after.plan)).toBe(before);
  expect(after.plan).toBe(after.plan);
  expect(after.graph).not.toBe(graph);
});

test("a program that has run keeps neither graph nor plan", async () => {
  const compiled = step();
  const planned = (): WeakRef<object>[] => {
    const { graph, plan } = compiled.program(...args);
    return [new WeakRef(graph), new WeakRef(plan)];
  };
  const held = planned();
  compiled(...args);
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // references that were followed are kept until the next turn
  await new Promise((resolve) => setTimeout(resolve));
  collect();
  expect(held.map((ref) => ref.deref())).toEqual([undefined, undefined]);
  compiled(...args);
});
