/** @file What becomes of the losses of single examples. */

import { guess } from "../base/suggest.ts";
import { fail } from "../trace/arguments.ts";

/** What becomes of the losses of single examples. */
export type Reduction = "mean" | "sum" | "none";

export interface LossOptions {
  /** "mean" by default. */
  readonly reduction?: Reduction;
}

const NAMES: readonly Reduction[] = ["mean", "sum", "none"];

/** The reduction that options name. @internal */
export function requireReduction(name: string, { reduction = "mean" }: LossOptions): Reduction {
  if (NAMES.includes(reduction)) return reduction;
  const help = `${guess(String(reduction), NAMES)}reductions are ${NAMES.join(", ")}`;
  return fail("InvalidArgument", `${name}: there is no reduction ${JSON.stringify(reduction)}`, help);
}
