/** @file The programs that come with the command line, for measuring and for looking at plans. */
import { chain } from "./chain.ts";
import { cnn } from "./cnn.ts";
import { gpt, gpt2Small } from "./gpt.ts";
import { lstm } from "./lstm.ts";
import { mlp } from "./mlp.ts";
import type { TrainingProgram } from "./program.ts";
import { resnet50, resnet1001 } from "./resnet.ts";
import { unet } from "./unet.ts";

/** A program with an opaque state. */
export type AnyProgram = TrainingProgram<object>;

/** Those that train in seconds. */
export const BUILT_IN: readonly AnyProgram[] = [mlp, cnn, lstm, gpt, chain(64), chain(256)];

/** Those of published sizes, to plan. */
export const LARGE: readonly AnyProgram[] = [resnet50, resnet1001, gpt2Small, unet];

export const ALL_PROGRAMS: readonly AnyProgram[] = [...BUILT_IN, ...LARGE];
