/** @file The programs that come with the command line, for measuring and for looking at plans. */
import { chain } from "./chain.ts";
import { cnn } from "./cnn.ts";
import { gpt } from "./gpt.ts";
import { lstm } from "./lstm.ts";
import { mlp } from "./mlp.ts";
import type { TrainingProgram } from "./program.ts";

/** A program whose state nobody looks into. */
export type AnyProgram = TrainingProgram<object>;

export const BUILT_IN: readonly AnyProgram[] = [mlp, cnn, lstm, gpt, chain(64), chain(256)];
