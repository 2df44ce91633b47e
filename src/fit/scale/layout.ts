/** @file How the devices of a mesh share a training step of a transformer, and which of them have different memory. */
import { counted, TidemarkError } from "../../base/errors.ts";
import type { Recompute } from "./kept.ts";
import type { RecipeName, ZeroStage } from "./states.ts";
import type { Transformer } from "./transformer.ts";

export interface Layout {
  readonly data: number;
  readonly tensor: number;
  readonly pipeline: number;
  /** Devices that share the tokens of each sequence; states are shared out among them as among those of `data`. */
  readonly context: number;
  readonly isSequence: boolean;
  readonly zero: ZeroStage;
  readonly recipe: RecipeName;
  readonly recompute: Recompute;
  /** Sequences of one microbatch on a replica, and microbatches of a step. */
  readonly microbatch: number;
  readonly microbatches: number;
  /** Tokens of a sequence. */
  readonly tokens: number;
  readonly hasScores: boolean;
  readonly hasDropout: boolean;
  /** Pieces of the model on each device of a pipeline: with several, stages are interleaved. */
  readonly chunks: number;
}

export const LAYOUT: Layout = {
  ...{ data: 1, tensor: 1, pipeline: 1, context: 1, isSequence: false, zero: 0, recipe: "mixed", recompute: "none" },
  ...{ microbatch: 1, microbatches: 1, tokens: 2048, hasScores: false, hasDropout: false, chunks: 1 },
};

export const devicesOf = ({ data, tensor, pipeline, context }: Layout): number => data * tensor * pipeline * context;

/** Devices of one role have one program. */
export interface Role {
  readonly name: "only" | "first" | "middle" | "last";
  readonly stage: number;
  readonly layers: number;
  readonly hasEmbedding: boolean;
  readonly hasHead: boolean;
  /** Microbatches whose kept values are there at a time, at most. */
  readonly inFlight: number;
}

/** Layers of each stage: as even as can be, the ends of the pipeline first to have fewer, since they have the tables too. */
export function layersOfStages(layers: number, stages: number): readonly number[] {
  const [least, more] = [Math.floor(layers / stages), layers % stages];
  const counts = new Array<number>(stages).fill(least);
  const order = Array.from({ length: stages }, (_, i) => i).sort(
    (a, b) => fromEnd(b, stages) - fromEnd(a, stages) || a - b,
  );
  for (const stage of order.slice(0, more)) counts[stage] = least + 1;
  return counts;
}

const fromEnd = (stage: number, stages: number): number => Math.min(stage, stages - 1 - stage);

/** With one forward, one backward: stage i of p holds p - i microbatches, more where stages are interleaved. */
function inFlight(stage: number, { pipeline: p, microbatches, chunks: v }: Layout): number {
  const interleaved = v > 1 ? 1 + (p - 1) / (p * v) : 1;
  return Math.min(microbatches, (p - stage) * interleaved);
}

export function rolesOf(model: Transformer, layout: Layout): readonly Role[] {
  const { pipeline: p } = layout;
  const layers = layersOfStages(model.layers, p);
  const role = (name: Role["name"], stage: number): Role => ({
    ...{ name, stage, layers: layers[stage] ?? 0 },
    ...{ hasEmbedding: stage === 0, hasHead: stage === p - 1, inFlight: inFlight(stage, layout) },
  });
  if (p === 1) return [role("only", 0)];
  return [role("first", 0), ...(p > 2 ? [role("middle", 1)] : []), role("last", p - 1)];
}

/** Refuses what cannot be divided, with the numbers. */
export function requireLayout(model: Transformer, layout: Layout): void {
  const { tensor, pipeline, context, tokens, chunks, isSequence } = layout;
  const fail = (summary: string, help: string): never => {
    throw new TidemarkError("InvalidArgument", summary, { help });
  };
  const divides = (what: string, extent: number, axis: string, by: number): void => {
    if (extent % by !== 0) fail(`${extent} ${what} are not divisible by ${axis}=${by}`, `give a divisor of ${extent}`);
  };
  divides("heads", model.heads, "tensor", tensor);
  divides("inner elements", model.inner, "tensor", tensor);
  divides("tokens", tokens, "context", context);
  if (isSequence) divides("tokens of a device", tokens / context, "tensor", tensor);
  if (pipeline * chunks > model.layers) {
    fail(
      `${counted(model.layers, "layer")} for ${counted(pipeline * chunks, "piece")} of a pipeline`,
      `give at most pipeline=${model.layers}`,
    );
  }
}
