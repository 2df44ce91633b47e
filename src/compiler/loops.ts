/** @file What the compiler does to loops and branches, as one part: programs without them are planned without it. */
import { withoutChoice } from "../loops/groups.ts";
import { lowerControl } from "../loops/lower/control.ts";
import { rewindLoops, userDecisions } from "../loops/rewrite.ts";

export const loopSupport = { withoutChoice, lowerControl, rewindLoops, userDecisions } as const;

export type LoopSupport = typeof loopSupport;
