/**
 * @file Another batch for a model that was exported with fixed sizes: which extent is the batch, and what sizes that are written in the model
 * (of views, of expanded tensors) become. Each is compared with what the operand had when it was recorded and has now.
 *
 *   recorded   view([1, 1024, 768] → [1024, 768])     operand's axes 1·1024 became one of 1024
 *   now        view([8, 1024, 768] → [8192, 768])     the same axes are 8 times as many, so the first of the group is
 */
import { fail } from "../../trace/arguments.ts";
import type { ModelInput } from "./model.ts";

export interface Rebinding {
  /** The batch that was recorded, and the one that is wanted. */
  readonly from: number;
  readonly to: number;
}

/** From the recorded batch, the first extent of the first input that has one, to the wanted one; undefined where they are equal. */
export function rebindingOf(
  inputs: readonly ModelInput[],
  batch: number | undefined,
  who: string,
): Rebinding | undefined {
  if (batch === undefined) return undefined;
  if (!Number.isSafeInteger(batch) || batch < 1) {
    fail("InvalidArgument", `${who}: batch is ${batch}`, "give a whole number of at least 1");
  }
  const from = recordedBatch(inputs);
  if (from === null) {
    fail("InvalidArgument", `${who}: no input of the program has a fixed first size`, "give open sizes by name");
  }
  return from === batch ? undefined : { from, to: batch };
}

/** The first extent of the first input that has one; null where all are open. */
export function recordedBatch(inputs: readonly ModelInput[]): number | null {
  const from = inputs.map(({ shape }) => shape?.[0]).find((extent) => typeof extent === "number");
  return typeof from === "number" ? from : null;
}

/** An input with the wanted batch where it had the recorded one. */
export function withBatch(input: ModelInput, batch: Rebinding | undefined): ModelInput {
  const { shape } = input;
  if (!batch || shape?.[0] !== batch.from) return input;
  return { ...input, shape: [batch.to, ...shape.slice(1)] };
}

/** An axis that is written out has the recorded batch; -1 stays what the operand, of a shape now, has. */
export function expandedSizes(
  shape: readonly number[],
  sizes: readonly number[],
  change: Rebinding,
): readonly number[] {
  const lead = sizes.length - shape.length;
  return sizes.map((size, axis) => {
    const own = axis >= lead ? shape[axis - lead] : undefined;
    if (size === -1) return size;
    if (own !== undefined && own !== 1 && own !== size) return own;
    return axis === 0 && size === change.from && sizes.length > 1 ? change.to : size;
  });
}

/** A view: the operand's shape as recorded, the result's, and the operand's shape now. */
export interface RecordedView {
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly now: readonly number[];
}

/** Groups of axes that have equal numbers of elements on both sides grow by what the operand's axes grew; null where there are none. */
export function regroupedSizes({ before, after, now }: RecordedView, from: number): readonly number[] | null {
  const made = [...after];
  let [i, j] = [0, 0];
  let groupBefore = -1;
  while (i < before.length || j < after.length) {
    const [firstOut, firstIn] = [j, i];
    let [left, right] = [before[i++] ?? 1, after[j++] ?? 1];
    while (left !== right) {
      if (left < right && i < before.length) left *= before[i++] as number;
      else if (j < after.length) right *= after[j++] as number;
      else return null;
    }
    const grownTo = now.slice(firstIn, i).reduce((a, b) => a * b, 1);
    // a batch between positions and features goes with the positions: [197, 1, 768] → [197, 768]
    const isFeature = groupBefore >= 0 && before[firstIn] === 1 && i - firstIn > 1 && j - firstOut === 1;
    // in a group, the axis that is the recorded batch grows, or else the first
    const own = after.slice(firstOut, j).indexOf(from);
    const grown = isFeature ? groupBefore : firstOut + Math.max(own, 0);
    if (grown < after.length && left > 0) made[grown] = ((made[grown] as number) * grownTo) / left;
    groupBefore = firstOut;
  }
  return made.every(Number.isSafeInteger) ? made : null;
}
