/** @file Plans of a chain of equal stages against the exact dynamic program (offload-chain.ts). */
import { expect } from "vitest";
import "./host.ts";
import { spec } from "../../src/api/create.ts";
import { grad } from "../../src/api/grad.ts";
import "../../src/api/methods.ts";
import { plan } from "../../src/api/plan.ts";
import type { CostModel } from "../../src/target/work.ts";
import type { Tensor } from "../../src/trace/tensor.ts";
import { leastOffloadTime, type OffloadChain, offloadTimeBound } from "./offload-chain.ts";

const [STAGES, WIDTH] = [100, 256];
const VALUE_BYTES = 4 * WIDTH * WIDTH;
/** Products alone take time: every stage has one, forward and backward. */
const costs: CostModel = { name: "products", productRate: 1e11, arithmeticRate: 1e18, byteRate: 1e18, callSeconds: 0 };
const STAGE_MS = (1000 * 2 * WIDTH ** 3) / costs.productRate;

function gradient(x: Tensor, w: Tensor): Tensor {
  const last = (h: Tensor): Tensor => Array.from({ length: STAGES }).reduce<Tensor>((v) => v.matmul(w).tanh(), h);
  return grad((h: Tensor) => last(h).sum())(x);
}

const options = { costs, resident: [1], cache: false } as const;
const types = [spec([WIDTH, WIDTH]), spec([WIDTH, WIDTH])] as const;

/** The predicted time of a chain of 100 stages at a quarter of its memory is within 2 % of the least. */
export function expectNearLeast(copy: number): void {
  const stored = plan(gradient, options)(...types);
  const memory = stored.persistentBytes + Math.floor((stored.arenaBytes - stored.persistentBytes) / 4);
  const bandwidth = `${Math.round(VALUE_BYTES / (0.001 * copy * STAGE_MS))}B/s`;
  const spill = { to: ".", bandwidth };
  const { predictedMs, arenaBytes } = plan(gradient, { ...options, memory, spill, validate: true })(...types);
  // a stage computes with its result or with a cotangent and the next one
  const slots = Math.floor((memory - stored.persistentBytes) / VALUE_BYTES) - 1;
  const chain: OffloadChain = { stages: STAGES, slots, forward: 1, backward: 1, copy };
  const least = leastOffloadTime(chain);
  expect(least).toBeGreaterThanOrEqual(offloadTimeBound(chain));
  expect(arenaBytes).toBeLessThanOrEqual(memory);
  expect(predictedMs / STAGE_MS).toBeGreaterThan(0.999 * offloadTimeBound({ ...chain, slots: slots + 2 }));
  expect(predictedMs / STAGE_MS).toBeLessThanOrEqual(1.02 * least);
}
