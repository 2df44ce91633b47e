/** @file The option `lossy`: which residuals may be kept in few bits. Results then differ from those without it, so it is asked for in words. */
import type { LossyRequest } from "../compiler/request.ts";
import { describe, fail, requireOptions } from "../trace/arguments.ts";

/** Bits of a number that is kept for the backward pass. */
export type ResidualBits = 1 | 2 | 4 | 8;

/** What may be rounded between the forward and the backward pass (`lossy` of {@link compile}). */
export interface LossyOptions {
  /**
   * Bits that values kept for the backward pass may take. `linear`: those that every gradient is linear in, the operands of products for
   * example; rounding them at random changes no gradient in expectation. `rest`: all others, 8 at least. A kind that is left out is kept
   * as it is. Without a budget all of both kinds are rounded, within one those that make it fit. `"auto"`: { linear: 4, rest: 8 }, and
   * nothing is rounded that a budget does not need.
   */
  readonly residuals: "auto" | { readonly linear?: ResidualBits; readonly rest?: 8 };
  /** Decides how numbers are rounded; 0 by default. */
  readonly seed?: number;
}

const BITS: readonly unknown[] = [1, 2, 4, 8];
const HELP = 'give { residuals: "auto" }, or { residuals: { linear: 4, rest: 8 } }';

function bitsOf(caller: string, kind: "linear" | "rest", bits: unknown): number | null {
  if (bits === undefined) return null;
  if (!BITS.includes(bits)) {
    fail("InvalidArgument", `${caller}: lossy.residuals.${kind} is ${describe(bits)}`, "give 8, 4, 2 or 1 bits");
  }
  if (kind === "rest" && bits !== 8) {
    const summary = `${caller}: lossy.residuals.rest is ${bits}, and gradients are not linear in these values: below 8 bits training fails`;
    fail("InvalidArgument", summary, "give rest: 8, or leave it out to keep them whole; linear may be 4, 2 or 1");
  }
  return bits as number;
}

/** The option, checked; undefined where nothing may be rounded. @internal */
export function lossyRequest(caller: string, lossy: LossyOptions | undefined): LossyRequest | undefined {
  if (lossy === undefined) return undefined;
  if (typeof lossy !== "object" || lossy === null)
    fail("InvalidArgument", `${caller}: lossy is ${describe(lossy)}`, HELP);
  requireOptions(`${caller}: lossy`, lossy, { residuals: "anything", seed: "a number" });
  const { residuals, seed = 0 } = lossy;
  if ((seed | 0) !== seed) {
    fail("InvalidArgument", `${caller}: lossy.seed is ${describe(seed)}`, "give a whole number of 32 bits");
  }
  if (residuals === "auto") return { linear: 4, rest: 8, everywhere: false, seed };
  if (typeof residuals !== "object" || residuals === null) {
    fail("InvalidArgument", `${caller}: lossy.residuals is ${describe(residuals)}`, HELP);
  }
  requireOptions(`${caller}: lossy.residuals`, residuals, { linear: "anything", rest: "anything" });
  const [linear, rest] = [bitsOf(caller, "linear", residuals.linear), bitsOf(caller, "rest", residuals.rest)];
  if (linear === null && rest === null) fail("InvalidArgument", `${caller}: lossy.residuals says no bits`, HELP);
  return { linear, rest, everywhere: true, seed };
}

/** A request as the option. @internal */
export function lossyOptions({ linear, rest, everywhere, seed }: LossyRequest): LossyOptions {
  if (!everywhere) return { residuals: "auto", seed };
  const bits = { ...(linear === null ? {} : { linear }), ...(rest === null ? {} : { rest }) };
  return { residuals: bits, seed } as LossyOptions;
}
