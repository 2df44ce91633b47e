/** @file All operators by domain and name. An operator is a function from a node's inputs and attributes to tensors of this library. */
import { ARRANGEMENTS } from "./arrange.ts";
import type { Operator } from "./call.ts";
import { CONTROL } from "./control.ts";
import { ELEMENTWISE } from "./elementwise.ts";
import { IMAGES } from "./image.ts";
import { INDEXING } from "./indexing.ts";
import { NEWER } from "./newer.ts";
import { NORMALIZATIONS } from "./normalize.ts";
import { RANDOM, TRAINING } from "./random.ts";
import { RECURRENT } from "./recurrent.ts";
import { REDUCTIONS } from "./reduce.ts";
import { SPATIAL } from "./spatial.ts";

const USUAL: Readonly<Record<string, Operator>> = {
  ...ARRANGEMENTS,
  ...CONTROL,
  ...ELEMENTWISE,
  ...IMAGES,
  ...INDEXING,
  ...NEWER,
  ...NORMALIZATIONS,
  ...RANDOM,
  ...RECURRENT,
  ...REDUCTIONS,
  ...SPATIAL,
};

const DOMAINS: Readonly<Record<string, Readonly<Record<string, Operator>>>> = {
  "": USUAL,
  "ai.onnx.preview.training": TRAINING,
};

export function operatorOf(domain: string, kind: string): Operator | undefined {
  const table = Object.hasOwn(DOMAINS, domain) ? DOMAINS[domain] : undefined;
  return table && Object.hasOwn(table, kind) ? table[kind] : undefined;
}

/** Names of all operators of the usual domain. */
export const OPERATORS: readonly string[] = Object.keys(USUAL).sort();

/**
 * Inputs that are settings rather than weights, by position: an initializer that is used nowhere else is a constant, not a parameter.
 * Statistics of a batch norm are among them, as they are in other frameworks.
 */
const SETTINGS: Readonly<Record<string, readonly number[]>> = {
  BatchNormalization: [3, 4],
  Clip: [1, 2],
  Pad: [2],
  Dropout: [1, 2],
  Resize: [1, 2, 3],
  Upsample: [1],
  OneHot: [1, 2],
  Range: [0, 1, 2],
  Pow: [1],
  Where: [0],
  RoiAlign: [1, 2],
  LSTM: [5, 6],
  GRU: [5],
  RNN: [5],
  STFT: [2],
};

export const isSetting = (kind: string, input: number): boolean => SETTINGS[kind]?.includes(input) ?? false;
