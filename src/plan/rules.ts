/** @file The rules that a valid plan obeys, by name; validate.ts and simulate.ts check them. */

/** Names of the rules that a valid plan obeys. */
export type Rule =
  /** The plan's steps are not the program's, each once. */
  | "schedule"
  /** A value, workspace or result has no buffer, or one that is too small. */
  | "no-storage"
  | "out-of-arena"
  | "misaligned"
  /** A memory space is larger than its capacity. */
  | "over-capacity"
  /** A buffer is larger than its memory space's largest allocation. */
  | "largest-allocation"
  /** A value is not in the memory space that the program assigns, or in one that the step cannot reach. */
  | "wrong-space"
  /** A buffer does not exist while a value in it is needed. */
  | "lifespan"
  /** Two buffers share bytes and a step. */
  | "overlap"
  /** The same, and one of them is workspace. */
  | "scratch-overlap"
  | "read-before-write"
  /** A copy is not a start and later one wait, of equal values in two spaces. */
  | "copy"
  /** A collective in flight is not a start and later one wait. */
  | "exchange"
  /** The destination of a copy, or the result of a collective in flight, is read before the step that waits for it. */
  | "read-before-wait"
  /** Something is written over what a copy or a collective reads or writes before the step that waits for it. */
  | "in-flight"
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

/** A rule that a plan violates. */
export interface Violation {
  readonly rule: Rule;
  readonly message: string;
}

export type Report = (rule: Rule, message: string) => void;
