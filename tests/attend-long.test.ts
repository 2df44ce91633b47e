/** @file Attention over so many positions that all scores together would be more elements than a tensor can have. */
import { expect, it } from "vitest";
import { attention, grad, plan, spec, type Tensor } from "../src/api/index.ts";

const LENGTH = 8192;
const HEADS = 32;
const loss = (q: Tensor, k: Tensor, v: Tensor): Tensor => attention(q, k, v, { causal: true }).square().sum();

it("has a gradient whose plan has no scores", () => {
  expect(HEADS * LENGTH ** 2).toBeGreaterThan(2 ** 31 - 1);
  const head = spec([1, HEADS, LENGTH, 4]);
  const { arenaBytes } = plan(grad(loss))(head, head, head);
  expect(arenaBytes).toBeLessThan(16 * 4 * HEADS * LENGTH * 4);
});
