/** @file Figures of the page about growth: bytes of a training step by depth, batch, width and length. */
import { languageModel } from "../../../src/cli/programs/gpt.ts";
import { liveAt } from "../../../src/plan/live.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import { attentionTraining, type ChainSize, chainForward, chainTraining } from "./models.ts";
import { plansFor } from "./plans.ts";

export interface Growth {
  /** Bytes of the loss alone, and with its gradients. */
  readonly forwardBytes: number;
  readonly trainingBytes: number;
  readonly weightBytes: number;
}

/** One size of a chain of residual blocks. */
export function growth(size: ChainSize): Growth {
  const forwardBytes = plansFor(chainForward(size)).storeAll.arenaBytes;
  const trainingBytes = plansFor(chainTraining(size)).storeAll.arenaBytes;
  return { forwardBytes, trainingBytes, weightBytes: size.depth * size.width ** 2 * 4 };
}

export interface AttentionBytes {
  readonly wholeBytes: number;
  readonly fusedBytes: number;
  /** Of one T × T matrix. */
  readonly squareBytes: number;
}

/** One head of attention on a text of some length, written out and as one operation. */
export function attentionBytes(length: number, width: number): AttentionBytes {
  return {
    wholeBytes: plansFor(attentionTraining(length, width, false)).storeAll.arenaBytes,
    fusedBytes: plansFor(attentionTraining(length, width, true)).storeAll.arenaBytes,
    squareBytes: length ** 2 * 4,
  };
}

export interface StepSize {
  readonly batch: number;
  readonly time: number;
  readonly width: number;
  readonly blocks: number;
}

export interface StepBytes {
  readonly arenaBytes: number;
  /** At the tightest step. */
  readonly parts: readonly { readonly name: string; readonly bytes: number }[];
}

const [HEADS, VOCABULARY] = [4, 512];

/** What the arena of a language model's training step is made of where it is fullest. */
export function stepBytes(size: StepSize): StepBytes {
  const model = languageModel("gpt", "", { ...size, heads: HEADS, vocabulary: VOCABULARY, tied: false });
  const planned = { fn: model.step as AnyFunction, args: model.specs?.() ?? [] };
  const { plan } = plansFor(planned, { donate: [0], name: "gpt" }).storeAll.result;
  const live = liveAt(plan, plan.bound.step);
  const bytesOf = (...kinds: readonly string[]): number =>
    live.filter(({ kind }) => kinds.includes(kind)).reduce((sum, { bytes }) => sum + bytes, 0);
  const parameters = bytesOf("persistent");
  return {
    arenaBytes: plan.height,
    parts: [
      { name: "weights and optimizer state", bytes: parameters },
      { name: "activations kept", bytes: bytesOf("activation") },
      { name: "gradients", bytes: bytesOf("gradient", "update", "result") },
      { name: "batch and workspace", bytes: bytesOf("input", "scratch") },
    ],
  };
}
