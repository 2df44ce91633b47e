/** @file How long a training step takes on a mesh, by rates: arithmetic, what the tensor axis exchanges, bubbles, gradients that are not hidden. */
import { ownParameters } from "./device.ts";
import { devicesOf, type Layout, rolesOf } from "./layout.ts";
import type { ZeroStage } from "./states.ts";
import type { Transformer } from "./transformer.ts";

export interface Rates {
  /** Operations a second of products, as they are reached. */
  readonly flops: number;
  /** Bytes a second between devices of one tensor axis, and between all others. */
  readonly linkBytes: number;
  readonly networkBytes: number;
}

/** An H100 with NVLink and one port of 400 Gbit/s. */
export const RATES: Rates = { flops: 400e12, linkBytes: 300e9, networkBytes: 40e9 };

export interface StepTime {
  readonly computeMs: number;
  readonly bubbleMs: number;
  readonly tensorMs: number;
  /** Of gradients and gathered parameters, what computing does not hide. */
  readonly dataMs: number;
  readonly totalMs: number;
}

const HALF = 2;

/** Operations of one token's forward pass: products with parameters, and attention over half of all pairs. */
function forwardFlops({ layers, heads, width, parameters }: Transformer, tokens: number): readonly [number, number] {
  const products = 2 * (layers * parameters.block + parameters.head);
  return [products, 2 * layers * heads * width * tokens];
}

/** The forward work that is repeated. */
function repeated([products, scores]: readonly [number, number], layout: Layout): number {
  if (layout.recompute === "full") return products + scores;
  if (layout.recompute === "products") return products / 2;
  return layout.recompute === "attention" ? scores / 2 : 0;
}

export function stepTime(model: Transformer, layout: Layout, rates: Rates): StepTime {
  const { data, context, tensor: n, pipeline: p, microbatch, microbatches: m, chunks: v, tokens, zero } = layout;
  const work = forwardFlops(model, tokens);
  const all = data * microbatch * m * tokens;
  const flops = all * (3 * (work[0] + work[1]) + repeated(work, layout));
  const computeMs = (1e3 * flops) / (devicesOf(layout) * rates.flops);
  const rows = (microbatch * tokens) / context;
  // two sums of rows × hidden in either direction, each as a scatter and a gather
  const exchanged = (4 * 2 * rows * model.hidden * HALF * (n - 1)) / n;
  const layers = Math.max(...rolesOf(model, layout).map((role) => role.layers));
  const tensorMs = (1e3 * exchanged * layers * m) / rates.linkBytes;
  const bubbleMs = ((computeMs + tensorMs) * (p - 1)) / (v * m);
  const shards = data * context;
  const count = Math.max(...rolesOf(model, layout).map((role) => ownParameters(model, layout, role)));
  const dataMs = unhiddenMs({ bytes: count * HALF, devices: shards, zero, computeMs }, rates);
  return { computeMs, bubbleMs, tensorMs, dataMs, totalMs: computeMs + bubbleMs + tensorMs + dataMs };
}

/** Parameters whose gradients are added up over devices. */
interface Sent {
  /** Of all parameters of a device, as they are sent. */
  readonly bytes: number;
  readonly devices: number;
  readonly zero: ZeroStage;
  readonly computeMs: number;
}

/** What computing does not hide: gradients go out during the backward pass, gathered parameters during both. */
export function unhiddenMs({ bytes, devices, zero, computeMs }: Sent, { networkBytes }: Rates): number {
  const passes = zero === 3 ? 3 : 2;
  const sentMs = (1e3 * passes * bytes * (devices - 1)) / (devices * networkBytes);
  return Math.max(0, sentMs - computeMs * (zero === 3 ? 1 : 2 / 3));
}
