/** @file The rules that a plan has to keep, by name; validate.ts and simulate.ts check them. */

export type Rule =
  /** The plan's steps are not the program's, each once. */
  | "schedule"
  /** A value, workspace or result has no buffer, or one that is too small. */
  | "no-storage"
  | "out-of-arena"
  | "misaligned"
  /** A buffer does not exist while something in it is needed. */
  | "lifespan"
  /** Two buffers share bytes and a step. */
  | "overlap"
  /** The same, and one of them is workspace. */
  | "scratch-overlap"
  | "read-before-write"
  /** A renamed value is not where the original is. */
  | "alias"
  /** A value is written over another one that is needed, or that the step does not allow. */
  | "in-place"
  /** Storage of a persistent parameter that was not donated is written. */
  | "persistent-overwritten"
  | "result-missing"
  /** A donated parameter's storage does not end with its replacement. */
  | "donated-slot"
  /** The symbolic execution did not find a value where it is read. */
  | "execution";

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
}

export type Report = (rule: Rule, message: string) => void;
