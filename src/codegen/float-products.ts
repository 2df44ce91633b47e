/**
 * @file Whether a program multiplies floats in nests of products. Their bits depend on whether a target rounds a product together with
 * the sum it is added to, and on the algorithm of convolutions; everything else has the same bits on every processor.
 */
import { isFloatScalar } from "../kernel/dtype.ts";
import type { Kernel, Nest } from "../kernel/loops.ts";
import type { PlacedProgram } from "./placed.ts";
import { isKernel, isTransfer, type PlacedStep } from "./placed.ts";
import { someKernel } from "./script.ts";

const isProduct = (nest: Nest): boolean =>
  nest.kind === "attend" || (nest.kind === "contract" && isFloatScalar(nest.dtype));

const multiplies = ({ nests }: Kernel): boolean => nests.some(isProduct);

function stepMultiplies(step: PlacedStep): boolean {
  if (isKernel(step)) return multiplies(step.kernel);
  return !isTransfer(step) && someKernel(step.script, multiplies);
}

export const hasFloatProducts = ({ kernels }: Pick<PlacedProgram, "kernels">): boolean => kernels.some(stepMultiplies);
