/** @file What goes between the fuzz suite and its child processes: a line of JSON each way. */
import type { TargetName } from "./checks/session.ts";
import type { Group, Outcome } from "./findings.ts";
import type { Cast, Mode, Size } from "./program.ts";
import type { FloatType } from "./scene.ts";

/** One program to check. */
export interface Job {
  readonly seed: number;
  readonly target?: TargetName | undefined;
  readonly groups?: readonly Group[] | undefined;
  readonly size?: Size | undefined;
  readonly mode?: Mode | undefined;
  readonly dtype?: FloatType | undefined;
  readonly cast?: Cast | "none" | undefined;
  readonly mostSteps?: number | undefined;
  /** Steps that are left out. */
  readonly without?: readonly number[] | undefined;
}

/** What a child says: what it begins with, and in the end what came of it. */
export type Word = { readonly stage: string } | { readonly outcome: Outcome };
