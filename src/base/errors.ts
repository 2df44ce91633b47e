/**
 * @file The two kinds of errors. A `TidemarkError` is the user's to fix and answers four questions in order: what, where,
 * the numbers, what to do. `invariant` (invariant.ts) is for internal errors.
 */

/** Stable names of everything a user can get wrong. Each has a section in `docs/errors.md`. */
export type ErrorCode =
  | "ShapeMismatch"
  | "DtypeMismatch"
  | "InvalidAxis"
  | "InvalidArgument"
  | "InvalidTree"
  | "TraceLeak"
  | "SideEffect"
  | "EndlessRecursion"
  | "NotDifferentiable"
  | "DonatedTensor"
  | "StaleResult"
  | "Disposed"
  | "NotReady"
  | "DeviceLost"
  | "DeviceFailed"
  | "Aborted"
  | "NotANumber"
  | "ParseError"
  | "InvalidGraph"
  | "InvalidPlan"
  | "PlanInfeasible"
  | "PoolExhausted"
  | "TargetUnsupported"
  | "VarianceMismatch"
  | "StorageError"
  | "InvalidFile"
  | "UnknownProgram"
  | "UsageError";

export interface ErrorDetail {
  /** The user's source line, `model.ts:21:14 in decoder`. */
  readonly where?: string | undefined;
  /** What to do about it. */
  readonly help?: string | undefined;
}

/**
 * An error that the user can fix; `code` is stable, the text is for people.
 *
 * @example
 * import { matmul, ones, TidemarkError } from "tidemark";
 *
 * try {
 *   matmul(ones([2, 3]), ones([2, 3]));
 * } catch (error) {
 *   if (error instanceof TidemarkError) console.log(error.code); // …
 * }
 */
export class TidemarkError extends Error {
  readonly code: ErrorCode;
  readonly summary: string;
  readonly where: string | undefined;
  readonly help: string | undefined;

  constructor(code: ErrorCode, summary: string, detail: ErrorDetail = {}) {
    const where = detail.where ? `\n  at ${detail.where}` : "";
    const help = detail.help ? `\n  help: ${detail.help}` : "";
    super(`${code}: ${summary}${where}${help}`);
    this.name = "TidemarkError";
    this.code = code;
    this.summary = summary;
    this.where = detail.where;
    this.help = detail.help;
  }
}

/** The same error with the place it came from, for errors raised where the user's line is not known. */
export function withLocation(error: unknown, where: string | undefined): unknown {
  if (!(error instanceof TidemarkError) || error.where || !where) return error;
  return new TidemarkError(error.code, error.summary, { where, help: error.help });
}

/** `1 layer`, `1,234 layers`, `2 batches`. */
export function counted(n: number, word: string): string {
  const end = /(?:ch|sh|s|x)$/.test(word) ? "es" : "s";
  return `${grouped(n)} ${word}${n === 1 ? "" : end}`;
}

/** `1234567` → `1,234,567`. */
export function grouped(n: number): string {
  return n.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}
