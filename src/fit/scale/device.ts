/**
 * @file What one device of each role takes for a training step, by term. The peak of a stage is either while the loss is computed, where
 * logits and all kept values are there, or while a block is recomputed and differentiated.
 */
import { bytesOfKept, keptTensors } from "./kept.ts";
import { type Layout, type Role, requireLayout, rolesOf } from "./layout.ts";
import { RECIPES, type Recipe, stateBytes } from "./states.ts";
import type { Transformer } from "./transformer.ts";

/** Bytes by what they are for. */
export interface Terms {
  readonly parameters: number;
  readonly gradients: number;
  readonly optimizer: number;
  /** Copies of 16 bits of parameters that are shared out, while they are used; and their gradients. */
  readonly gathered: number;
  /** Kept for the backward pass by the blocks of all microbatches in flight. */
  readonly activations: number;
  /** One block while it is recomputed and differentiated, beyond what it keeps. */
  readonly block: number;
  /** The loss: logits, their logarithms and gradients. */
  readonly logits: number;
  /** Gradients on their way to other devices. */
  readonly buckets: number;
}

export interface DeviceMemory {
  readonly role: Role;
  readonly terms: Terms;
  /** The larger of both moments, since blocks and the loss are not at work at the same time. */
  readonly bytes: number;
  readonly peakAt: "loss" | "block";
}

const HALF = 2;
const SINGLE = 4;
/** Gradients of this many bytes are sent at a time, and two such pieces are there. */
export const BUCKET_BYTES = 25 * 2 ** 20;

export function memoryOf(model: Transformer, layout: Layout): readonly DeviceMemory[] {
  requireLayout(model, layout);
  return rolesOf(model, layout).map((role) => deviceMemory(model, layout, role));
}

/** Parameters of a stage on one device of the tensor axis. */
export function ownParameters({ parameters }: Transformer, { tensor }: Layout, role: Role): number {
  const { block, embedding, head } = parameters;
  return (role.layers * block + (role.hasEmbedding ? embedding : 0) + (role.hasHead ? head : 0)) / tensor;
}

function deviceMemory(model: Transformer, layout: Layout, role: Role): DeviceMemory {
  const terms = termsOf(model, layout, role);
  const { block, logits, ...always } = terms;
  const held = Object.values(always).reduce((sum, bytes) => sum + bytes, 0);
  const isLoss = logits > block;
  return { role, terms, bytes: held + Math.max(block, logits), peakAt: isLoss ? "loss" : "block" };
}

function termsOf(model: Transformer, layout: Layout, role: Role): Terms {
  const { data, context, tensor, zero, tokens, microbatch, recompute } = layout;
  const recipe: Recipe = RECIPES[layout.recipe];
  const count = ownParameters(model, layout, role);
  const states = stateBytes(count, recipe, zero, data * context);
  const own = { ...layout, batch: microbatch, tokens: tokens / context };
  const kept = bytesOfKept(keptTensors(model, own, recompute));
  const all = bytesOfKept(keptTensors(model, own, "none"));
  return {
    ...states,
    gathered: gatheredBytes(model, layout, role),
    activations: role.layers * role.inFlight * kept,
    block: Math.max(0, all - kept) + largestGradient(model, layout),
    logits: role.hasHead ? logitsBytes(model, layout) : 0,
    buckets: data * context > 1 ? Math.min(2 * BUCKET_BYTES, (count * recipe.gradient) / tensor) : 0,
  };
}

/**
 * With ZeRO-3: the block at work and the next one, and the tables, which are used at both ends of a step. With a pipeline everything of a
 * stage stays gathered from one microbatch to the next, gradients too.
 */
function gatheredBytes(model: Transformer, layout: Layout, role: Role): number {
  const isShared = layout.data * layout.context > 1;
  if (!isShared || layout.zero < 3) return 0;
  const count = ownParameters(model, layout, role);
  if (layout.pipeline > 1) return count * (HALF + RECIPES[layout.recipe].gradient);
  const { block, embedding, head } = model.parameters;
  return (HALF * (2 * block + embedding + head)) / layout.tensor;
}

/** The gradient of the feed-forward part's inner values and of the block's result. */
function largestGradient(model: Transformer, layout: Layout): number {
  const rows = (layout.microbatch * layout.tokens) / layout.context;
  return rows * HALF * ((model.isGated ? 2 : 1) * (model.inner / layout.tensor) + 2 * model.hidden);
}

/**
 * Logits of 16 bits, and three values of f32 as large: logarithms of probabilities, their gradient, the gradient of the logits. Where the
 * vocabulary lies in pieces on several devices the logarithms take two more: shifted logits and their exponentials.
 */
export function logitsBytes(model: Transformer, layout: Layout): number {
  const rows = (layout.microbatch * layout.tokens) / layout.context;
  const wide = layout.tensor > 1 ? 5 : 3;
  return (rows * model.vocabulary * (HALF + wide * SINGLE)) / layout.tensor;
}
