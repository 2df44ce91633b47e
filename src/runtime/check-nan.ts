/** @file Finding where NaN comes from: a program run operation by operation, with a look at each result. */

import { grouped, TidemarkError } from "../base/errors.ts";
import { isTransfer } from "../codegen/placed.ts";
import type { Value } from "../ir/graph.ts";
import { messageNames } from "../ir/node-names.ts";
import { nodeText } from "../ir/print.ts";
import { splitElement } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Executable } from "./executable.ts";

interface Found {
  readonly count: number;
  readonly first: readonly number[];
}

function findNaN(executable: Executable, value: Value, address: number): Found | null {
  if (!isFloat(value.type.dtype)) return null;
  const data = executable.read(value.type, address);
  let count = 0;
  let first = -1;
  for (let i = 0; i < data.length; i++) {
    if (!Number.isNaN(data[i])) continue;
    if (first < 0) first = i;
    count++;
  }
  return count > 0 ? { count, first: splitElement(first, value.type.shape) } : null;
}

const countText = ({ count, first }: Found): string => `${grouped(count)} NaN, the first at [${first.join(",")}]`;

/** Runs a stepwise program; throws `NotANumber` at the first operation that makes NaN out of numbers. */
export function runChecked(executable: Executable): void {
  if (!executable.memory.readInto) {
    const { name } = executable.target.description;
    const help = "check on a target whose memory the host reads, or look at results";
    throw new TidemarkError("TargetUnsupported", `checkNaN: ${name} cannot be read between operations`, { help });
  }
  const { graph, kernels, kernelNodes, plan, params, base } = executable.placed;
  graph.params.forEach((param, i) => {
    const found = findNaN(executable, param, params[i] ?? 0);
    if (!found) return;
    throw new TidemarkError("NotANumber", `argument ${param.name ?? i} has ${countText(found)}`, {
      where: sourceLocation(),
      help: "look at where the data comes from; isnan(x) and where(...) can replace missing values",
    });
  });
  executable.runStepwise((kernel) => {
    const node = kernelNodes[kernel];
    // copies between memory spaces make no numbers
    const step = kernels[kernel];
    if (step && isTransfer(step)) return;
    for (const output of node?.outputs ?? []) {
      const buffer = plan.bufferOf.get(output);
      const found = buffer === undefined ? null : findNaN(executable, output, base + (plan.offsets[buffer] ?? 0));
      if (!node || !found) continue;
      throw new TidemarkError("NotANumber", `${nodeText(node, messageNames(graph))} made ${countText(found)}`, {
        where: node.where,
        help: "its inputs had none: look for a division by zero, the logarithm or root of a negative number, or ∞ - ∞",
      });
    }
  });
}
