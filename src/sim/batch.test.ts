/** @file Solvers over a batch: each element takes its own steps, and rejected steps give nothing to gradients. */
import { expect, test } from "vitest";
import { grad, stack, type Tensor, tensor, vmap } from "../api/index.ts";
import { odeint } from "./index.ts";

const starts = tensor([0.1, 1, 3]);
const times = [0, 0.5, 2];

/** The first step is far too long: its trial overflows for some elements. */
const solve = (y0: Tensor, rate: Tensor): Tensor =>
  odeint((y) => y.mul(rate).mul(y.square().mul(40).add(1)), y0, times, { firstStep: 1, maxSteps: 200 });

const each = (fn: (y0: Tensor) => Tensor): Tensor => stack([0, 1, 2].map((i) => fn(starts.slice([i]))));

test("an adaptive solver over a batch is one for each element", () => {
  const rate = tensor(-1);
  expect(vmap((y0) => solve(y0, rate))(starts).toArray()).toEqual(each((y0) => solve(y0, rate)).toArray());
});

test("and so are its gradients, to the start and to what all elements share", () => {
  const rate = tensor(-1);
  const lossOf = (y0: Tensor, r: Tensor): Tensor => solve(y0, r).square().sum();
  const ofStarts = each(grad((y0: Tensor) => lossOf(y0, rate)));
  const got = grad((y: Tensor) => vmap((y0) => lossOf(y0, rate))(y).sum())(starts).toArray() as number[];
  (ofStarts.toArray() as number[]).forEach((slope, i) => {
    expect(got[i]! / slope).toBeCloseTo(1, 4);
  });
  const shared = grad((r: Tensor) => vmap((y0) => lossOf(y0, r))(starts).sum())(rate).item();
  const alone = each((y0) => grad((r: Tensor) => lossOf(y0, r))(rate))
    .sum()
    .item();
  expect(Number.isFinite(alone)).toBe(true);
  expect(shared / alone).toBeCloseTo(1, 4);
});
