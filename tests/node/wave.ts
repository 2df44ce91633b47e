/** @file The simulation that the tests of long runs share: a wave on a string, in f64, with a speed at every point. */
import { concat, type Tensor, tensor, zeros } from "../../src/api/index.ts";

export interface Wave {
  readonly now: Tensor;
  readonly before: Tensor;
}

/** Leapfrog with fixed ends: u' = 2u - u₋ + k (u_left - 2u + u_right). */
export function waveStep({ now, before }: Wave, i: Tensor, speed: Tensor): Wave {
  const n = now.shape[0] ?? 0;
  const edge = zeros([1], "f64");
  const left = concat([edge, now.slice([[0, n - 1]])], 0);
  const right = concat([now.slice([[1, n]]), edge], 0);
  const push = speed.mul(left.sub(now.mul(2)).add(right));
  // a source that swings with the number of the step
  const source = i.cast("f64").mul(0.1).sin().mul(0.001);
  return { now: now.mul(2).sub(before).add(push).add(source), before: now };
}

export const waveLoss = ({ now }: Wave): Tensor => now.square().sum();

/** A bump in the middle, at rest, and speeds that vary. */
export function waveStart(points: number): { readonly state: Wave; readonly speed: Tensor } {
  const bump = Array.from({ length: points }, (_, x) => Math.exp(-(((x - points / 2) / 4) ** 2)));
  const speed = Array.from({ length: points }, (_, x) => 0.2 + 0.1 * Math.sin(x));
  const f64 = (data: readonly number[]): Tensor => tensor(data, { dtype: "f64" });
  return { state: { now: f64(bump), before: f64(bump) }, speed: f64(speed) };
}
