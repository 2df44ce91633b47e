/** @file The nest in which the devices of a group exchange values: only a target with a communicator renders it. */
import type { DeviceGroup } from "./device-group.ts";
import type { DType } from "./dtype.ts";
import type { Expr, LoopVar } from "./expr.ts";

/**
 * - all_reduce: every device of the group gets the combination of all, element by element
 * - all_gather: every device gets all parts, in the order of the group
 * - reduce_scatter: device i gets the combination of the parts i of all
 * - all_to_all: device i gets the parts i of all, in the order of the group
 * - permute: what device `from` has goes to device `to`, for pairs of numbers in the group; zeros where nothing arrives
 * - broadcast: every device gets what device `root` of the group has
 * - device_index: the number of the device in its group, an i32
 */
export type CollectiveKind =
  | "all_reduce"
  | "all_gather"
  | "reduce_scatter"
  | "all_to_all"
  | "permute"
  | "broadcast"
  | "device_index";

/**
 * An exchange between the devices of a group: each runs the same nest. Operands are contiguous; one part has `elements` elements:
 *
 *   all_reduce, permute, broadcast   from [elements]      to [elements]        all_reduce may have both at one place
 *   all_gather                       from [elements]      to [p, elements]
 *   reduce_scatter                   from [p, elements]   to [elements]
 *   all_to_all                       from [p, elements]   to [p, elements]
 *   device_index                     nothing              to [1]
 */
export interface CollectiveNest {
  readonly kind: "collective";
  /** None: buffers of the library are its own. */
  readonly scratch?: number;
  readonly what: CollectiveKind;
  /** Of all_reduce and reduce_scatter. */
  readonly combine: "add" | "max";
  readonly group: DeviceGroup;
  /** Of permute: numbers in the group. */
  readonly pairs: readonly (readonly [from: number, to: number])[];
  /** Of broadcast: a number in the group. */
  readonly root: number;
  /** Over the elements of `from`, of which `read` is a load; null where nothing is read. */
  readonly along: LoopVar;
  readonly read: (Expr & { readonly kind: "load" }) | null;
  /** The operand that is written. */
  readonly to: number;
  readonly elements: number;
  /** All of the above but for operands, for reading and for telling nests apart. */
  readonly text: string;
  readonly storage: DType;
}
