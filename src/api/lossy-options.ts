/** @file The option `lossy`: which residuals may be kept in few bits. Results then differ from those without it, so it is asked for in words. */
import type { LossyRequest } from "../compiler/request.ts";
import type { ResidualForm } from "../passes/residual-forms.ts";
import { describe, fail, requireOptions } from "../trace/arguments.ts";

/** How a number is kept for the backward pass: in so many bits, with others in groups, or as the nearest bf16. */
export type ResidualBits = 1 | 2 | 4 | 8 | "bf16";

/** A value of which the largest elements are kept, this share of every 256; the others are zero for the backward pass. */
export interface SparseResiduals {
  readonly sparse: number;
}

/** A value whose rows are kept projected to so many dimensions, those in which they are largest. */
export interface LowRankResiduals {
  readonly rank: number;
}

/** What may be rounded between the forward and the backward pass (`lossy` of {@link compile}). */
export interface LossyOptions {
  /**
   * Forms that values kept for the backward pass may take. `linear`: those that every gradient is linear in, the operands of products for
   * example; rounding them at random changes no gradient in expectation. `rest`: all others, 8 bits or bf16. A kind that is left out is kept
   * as it is. Without a budget all of both kinds are rounded, within one those that make it fit. `"auto"`: { linear: 4, rest: 8 }, and
   * nothing is rounded that a budget does not need.
   */
  readonly residuals:
    | "auto"
    | { readonly linear?: ResidualBits | SparseResiduals | LowRankResiduals; readonly rest?: 8 | "bf16" };
  /** Decides how numbers are rounded; 0 by default. */
  readonly seed?: number;
}

const BITS: readonly unknown[] = [1, 2, 4, 8, "bf16"];
/** Where gradients are not linear. */
const REST: readonly unknown[] = [8, "bf16"];
const HELP = 'give { residuals: "auto" }, or { residuals: { linear: 4, rest: 8 } }';

/** A form that keeps a part of a value. */
function partOf(name: string, kind: "linear" | "rest", form: object): ResidualForm {
  requireOptions(name, form as { sparse?: number; rank?: number }, { sparse: "a number", rank: "a number" });
  const { sparse, rank } = form as { readonly sparse?: number; readonly rank?: number };
  if ((sparse === undefined) === (rank === undefined)) {
    fail("InvalidArgument", `${name}: ${describe(form)} is not one form`, "give { sparse: 0.1 } or { rank: 16 }");
  }
  if (kind === "rest") {
    const summary = `${name}: a part of a value, and gradients are not linear in these values: training fails`;
    fail("InvalidArgument", summary, 'give rest: 8 or "bf16", or leave it out to keep them whole');
  }
  if (sparse !== undefined) {
    if (sparse > 0 && sparse < 1) return { sparse };
    fail("InvalidArgument", `${name}: sparse is ${sparse}`, "give the share that is kept, above 0 and below 1");
  }
  if (rank !== undefined && Number.isInteger(rank) && rank > 0) return { rank };
  return fail("InvalidArgument", `${name}: rank is ${rank}`, "give a whole number from 1 up");
}

function formOf(caller: string, kind: "linear" | "rest", bits: unknown): ResidualForm | null {
  if (bits === undefined) return null;
  if (typeof bits === "object" && bits !== null) return partOf(`${caller}: lossy.residuals.${kind}`, kind, bits);
  if (!BITS.includes(bits)) {
    fail(
      "InvalidArgument",
      `${caller}: lossy.residuals.${kind} is ${describe(bits)}`,
      'give 8, 4, 2 or 1 bits, "bf16", { sparse: 0.1 } or { rank: 16 }',
    );
  }
  if (kind === "rest" && !REST.includes(bits)) {
    const summary = `${caller}: lossy.residuals.rest is ${bits}, and gradients are not linear in these values: below 8 bits training fails`;
    fail(
      "InvalidArgument",
      summary,
      'give rest: 8 or "bf16", or leave it out to keep them whole; linear may be 4, 2 or 1',
    );
  }
  return bits as ResidualForm;
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
  const [linear, rest] = [formOf(caller, "linear", residuals.linear), formOf(caller, "rest", residuals.rest)];
  if (linear === null && rest === null) fail("InvalidArgument", `${caller}: lossy.residuals says no bits`, HELP);
  return { linear, rest, everywhere: true, seed };
}

/** A request as the option. @internal */
export function lossyOptions({ linear, rest, everywhere, seed }: LossyRequest): LossyOptions {
  if (!everywhere) return { residuals: "auto", seed };
  const bits = { ...(linear === null ? {} : { linear }), ...(rest === null ? {} : { rest }) };
  return { residuals: bits, seed } as LossyOptions;
}
