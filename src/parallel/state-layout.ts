/**
 * @file Where the elements of a training state lie on a mesh, for what writes and reads states without running a program. The whole
 * state, as one process has it, is a list of tensors; of each of them a device has all elements or a run of them:
 *
 *   whole        w0 w1 w2 w3 w4 w5 w6              seven elements over three devices
 *   isCut        w0 w1 w2 │ w3 w4 w5 │ w6 0 0      the parts that shards.ts makes
 */
import type { TensorType } from "../ir/type.ts";
import { tensorType } from "../ir/type.ts";
import type { Optimizer, OptimizerState } from "../optim/optimizer.ts";
import { flatten, type Tree } from "../trace/tree.ts";
import { axesOf, type Mesh, type Over, type Spec, specAt } from "./mesh.ts";
import { leafKeys } from "./shard.ts";

/** A tensor of the whole state. */
export interface StateTensor {
  /** `params.w`, `slots.m.w`, `step`. */
  readonly path: string;
  readonly type: TensorType;
  /** Whether a device has a part of its elements alone. */
  readonly isCut: boolean;
}

/** The whole state of a training on devices, and where it lies. */
export interface StateLayout {
  readonly mesh: Mesh;
  /** The axes along which devices have parts of the batch, and of tensors that are cut. */
  readonly over: readonly string[];
  readonly zero: number;
  /** The axes along which devices have parameters of their own. */
  readonly own: readonly string[];
  /** In the order of `{ params, slots, step }`. */
  readonly tensors: readonly StateTensor[];
  readonly optimizer: Optimizer;
}

export interface LaidOut {
  readonly mesh: Mesh;
  readonly over: Over;
  readonly zero: number;
  readonly params: Spec;
  readonly optimizer: Optimizer;
}

/** From a whole state, of which the types alone are read. */
export function layoutOfState({ mesh, over, zero, params, optimizer }: LaidOut, whole: OptimizerState): StateLayout {
  const listed = (tree: unknown, path: string, isCut: boolean): readonly StateTensor[] => {
    const { leaves, paths } = flatten(tree, path);
    return leaves.map(({ dtype, shape }, i) => ({ path: paths[i] ?? path, type: tensorType(dtype, shape), isCut }));
  };
  const own = leafKeys(flatten(whole.params as Tree, "params").def).flatMap((keys) =>
    specAt("dataParallel: params", params, keys, mesh),
  );
  return {
    ...{ mesh, zero, optimizer },
    over: axesOf("dataParallel", over, mesh),
    own: axesOf("dataParallel", [...new Set(own)], mesh),
    tensors: [
      ...listed(whole.params, "params", zero === 3),
      ...listed(whole.slots, "slots", zero > 0),
      ...listed(whole.step, "step", false),
    ],
  };
}
