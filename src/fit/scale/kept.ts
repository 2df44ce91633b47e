/**
 * @file What the backward pass of one block keeps on one device, tensor by tensor, as published training systems do it: values of 16
 * bits, masks of dropout of one byte. (V. Korthikanti and others, Reducing activation recomputation in large transformer models, 2022.)
 *
 *   x ─ norm ─ q, k, v ─ attention ─ projection ─ + ─ norm ─ feed forward ─ +
 *       └ whole, or a piece of the sequence ┘└ a part of the heads ┘   └ whole or piece ┘└ a part of inner ┘
 *
 * A tensor axis of t devices divides heads and the inner extent by t; with sequence parallelism the rest is divided too.
 */
import type { Transformer } from "./transformer.ts";

/**
 * none: everything is kept. attention: what attention computes between q, k, v and its result is recomputed. products: every second
 * product and attention's result are kept, all else is recomputed from them. full: the block's input is kept.
 */
export const RECOMPUTES = ["none", "attention", "products", "full"] as const;
export type Recompute = (typeof RECOMPUTES)[number];

export interface BlockSplit {
  /** Sequences of a microbatch, and tokens of each on this device. */
  readonly batch: number;
  readonly tokens: number;
  readonly tensor: number;
  readonly isSequence: boolean;
  /** Scores are stored, with dropout on them; otherwise attention streams and keeps a number for each row. */
  readonly hasScores: boolean;
  readonly hasDropout: boolean;
}

export interface KeptTensor {
  readonly name: string;
  readonly bytes: number;
}

interface Candidate extends KeptTensor {
  /** It is between q, k, v and the result of attention. */
  readonly isScore?: true;
  /** It is kept where only products are. */
  readonly isProduct?: true;
}

const HALF = 2;
const SINGLE = 4;

/** Of one block, in order of computation; `isDistributed` values lie in pieces on the devices of the tensor axis. */
function candidates(model: Transformer, split: BlockSplit): readonly Candidate[] {
  const { hidden, heads, sharedHeads, width, inner, isGated } = model;
  const { batch, tokens, tensor, isSequence, hasScores, hasDropout } = split;
  const rows = batch * tokens;
  const whole = (elements: number, bytes = HALF): number => (rows * elements * bytes) / (isSequence ? tensor : 1);
  const part = (elements: number, bytes = HALF): number => (rows * elements * bytes) / tensor;
  const scores = (bytes: number): number => (batch * heads * tokens * tokens * bytes) / tensor;
  const ownShared = Math.max(1, sharedHeads / tensor) * tensor;
  const stored: readonly Candidate[] = [
    { name: "softmax", bytes: scores(HALF), isScore: true },
    ...(hasDropout
      ? ([
          { name: "mask of the softmax", bytes: scores(1), isScore: true },
          { name: "dropped softmax", bytes: scores(HALF), isScore: true },
        ] as const)
      : []),
  ];
  const streamed: readonly Candidate[] = [{ name: "sums of rows", bytes: part(heads, SINGLE), isProduct: true }];
  const mask = (name: string): readonly Candidate[] => (hasDropout ? [{ name, bytes: whole(hidden, 1) }] : []);
  return [
    { name: "input", bytes: whole(hidden), isProduct: true },
    { name: "normed input", bytes: whole(hidden) },
    { name: "queries", bytes: part(heads * width), isProduct: true },
    { name: "keys", bytes: part(ownShared * width) },
    { name: "values", bytes: part(ownShared * width), isProduct: true },
    ...(hasScores ? stored : streamed),
    { name: "attention", bytes: part(heads * width), isProduct: true },
    ...mask("mask after attention"),
    { name: "input of feed forward", bytes: whole(hidden) },
    { name: "normed", bytes: whole(hidden) },
    ...(isGated ? [{ name: "gate", bytes: part(inner), isProduct: true } as const] : []),
    { name: isGated ? "up" : "inner", bytes: part(inner), ...(isGated ? {} : ({ isProduct: true } as const)) },
    ...(isGated ? [{ name: "activated gate", bytes: part(inner) }] : []),
    { name: "activated", bytes: part(inner) },
    ...(isGated ? [{ name: "down", bytes: whole(hidden), isProduct: true } as const] : []),
    ...mask("mask after feed forward"),
  ];
}

/** What a block keeps under a policy. The result of the last product is the next block's input, and counted there unless products are kept. */
export function keptTensors(model: Transformer, split: BlockSplit, recompute: Recompute): readonly KeptTensor[] {
  const all = candidates(model, split);
  if (recompute === "full") return all.slice(0, 1);
  if (recompute === "products") return all.filter(({ isProduct }) => isProduct);
  const isKept = ({ name, isScore }: Candidate): boolean => name !== "down" && !(recompute === "attention" && isScore);
  return all.filter(isKept);
}

export const bytesOfKept = (tensors: readonly KeptTensor[]): number =>
  tensors.reduce((sum, { bytes }) => sum + bytes, 0);
