/**
 * @file Whether a program multiplies floats in nests of products. Their bits depend on whether a target rounds a product together with
 * the sum it is added to, and on the algorithm of convolutions; everything else has the same bits on every processor.
 */
import { isFloatScalar } from "../kernel/dtype.ts";
import type { Kernel, Nest } from "../kernel/loops.ts";
import type { PlacedProgram } from "./placed.ts";
import { isExchange, isKernel, isTransfer, type PlacedStep } from "./placed.ts";
import type { Statement } from "./script.ts";

const isProduct = (nest: Nest): boolean =>
  nest.kind === "attend" || (nest.kind === "contract" && isFloatScalar(nest.dtype));

const multiplies = ({ nests }: Kernel): boolean => nests.some(isProduct);

function someKernel(script: readonly Statement[], test: (kernel: Kernel) => boolean): boolean {
  return script.some((statement) => {
    if (statement.kind === "kernel") return test(statement.kernel);
    if (statement.kind === "while") return someKernel(statement.body, test);
    return statement.kind === "if" && (someKernel(statement.then, test) || someKernel(statement.else, test));
  });
}

function stepMultiplies(step: PlacedStep): boolean {
  if (isKernel(step)) return multiplies(step.kernel);
  if (isExchange(step)) return step.exchange === "start" && multiplies(step.start.kernel);
  return !isTransfer(step) && someKernel(step.script, multiplies);
}

export const hasFloatProducts = ({ kernels }: Pick<PlacedProgram, "kernels">): boolean => kernels.some(stepMultiplies);
