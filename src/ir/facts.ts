/**
 * @file Facts about single operations that passes draw conclusions from. Each is optional: passes draw no conclusions about an
 * operation without facts.
 */

import type { CollectiveKind } from "../kernel/collective.ts";
import type { DeviceGroup } from "../kernel/device-group.ts";
import type { DType } from "../kernel/dtype.ts";
import type { Build } from "./build.ts";
import type { Node, Value } from "./graph.ts";
import type { Attrs, Reference } from "./op.ts";
import type { StripForms } from "./strips.ts";
import type { Shape, TensorType } from "./type.ts";
import type { VarianceRules } from "./variance.ts";

export interface OpFacts<A> {
  /** Every element is this number, before it is stored. */
  constant?(attrs: A): number;
  /** Every element is its position along this axis. */
  counter?(attrs: A): number;
  /**
   * The result shows every element of its only input, at all positions that agree with its own: which axis of the result each
   * axis of the input is; null for one that is split up or joined with others.
   */
  viewAxes?(attrs: A, from: Shape, to: Shape): readonly (number | null)[];
  /** The result is the sum of the inputs, each times its coefficient. */
  readonly coefficients?: readonly number[];
  /** The result is the first input with the third added at the rows that the second names, along this axis. */
  addsRows?(attrs: A): number;
  /**
   * Inputs that the results are linear in, all of them together, where the derivative does not say so: with these rounded at random
   * the expected results are the exact ones.
   */
  readonly linearIn?: readonly number[];
  /** Every element of the result is a whole number from 0 up and below this. */
  below?(attrs: A, inputs: readonly TensorType[]): number;
  /** It keeps its first input for the backward pass in fewer bits, which change gradients. */
  rounds?(attrs: A, inputs: readonly TensorType[], outputs: readonly TensorType[]): RoundedForm;
  /** The result is the product of its two inputs. */
  readonly isProduct?: true;
  /** True exactly where sign · (first - second) is 0 or less; less than 0 if strict. */
  readonly compares?: { readonly sign: 1 | -1; readonly strict: boolean };
  /** True exactly where its only input is false. */
  readonly isNegation?: true;
  /** The second input where the first is true, else the third. */
  readonly isSelection?: true;
  /** If this operand is `value`, so is the result for every finite value of the other operand except these. */
  readonly absorbs?: readonly { readonly operand: 0 | 1; readonly value: number; readonly unless: readonly number[] }[];
  /**
   * The floats that `autocast` gives it: "product" in the narrow type, "f32" in f32, "follow" as they are, in one type. Where it does not say:
   * operations on elements and their places follow, all others get f32 (api/autocast-mode.ts).
   */
  readonly autocast?: "product" | "follow" | "f32";
  /**
   * The attributes with which a product whose result has the type `from` gives it in the type `to`, not rounded to `from` first;
   * null where it cannot.
   */
  wideResult?(attrs: A, from: DType, to: DType): A | null;
  /** Its derivative takes a cotangent that a product gives from the product before it is rounded. */
  readonly takesWide?: true;
  /** The attributes of a product some of whose factors are zero: for each input a line through its last two axes, or []. */
  withZeroFactors?(attrs: A, lines: readonly (readonly number[])[]): A;
  /** The result is the first input with a window of it overwritten by the second, or changed by it. */
  readonly change?: ChangeRule<A>;
  /**
   * Inputs that PyTorch's derivative with respect to each input reads, where that is not what the operation's own derivative
   * reads: for comparisons of memory (tape/account.ts).
   */
  readonly torchReads?: readonly (readonly number[])[];
  /** It connects the devices of a mesh, or marks over which axes a value varies. */
  readonly collective?: CollectiveFact<A>;
  /** How it acts on strips of rows; operations on elements need not say. */
  readonly strips?: StripForms<A>;
}

/** An exchange between the devices of a group, or an identity that only says over which axes its result varies. */
export interface CollectiveFact<A> {
  readonly what: CollectiveKind | "mark";
  group(attrs: A): DeviceGroup;
  /** Of an operand and a result: the axes it varies over, given those of the operand; results that vary over none have []. */
  varies(over: readonly string[], attrs: A): readonly string[];
  /** What all devices of a group get, given what all of them have, in the order of the group; in doubles. */
  exchanged(inputs: readonly (readonly Reference[])[], attrs: A): readonly Reference[];
  /** The same in nodes that add up in the order of ranks. */
  ordered?(b: Build, inputs: readonly Value[], attrs: A): Value;
  readonly rules: VarianceRules;
}

/** A value that the backward pass reads rounded. */
export interface RoundedReport {
  readonly value: string;
  /** `4 bits`, `bf16`. */
  readonly form: string;
  /** Whether gradients are linear in it. */
  readonly linear: boolean;
  /** As it is kept, and whole. */
  readonly bytes: number;
  readonly wholeBytes: number;
  /** Root mean square of the error over that of the values, expected of normally distributed ones. */
  readonly error: number;
}

export interface RoundedForm extends RoundedReport {
  /** Another for every value. */
  readonly key: number;
}

/** A node apart from where it stands. */
export interface Application {
  readonly op: Node["op"];
  readonly inputs: readonly Value[];
  readonly attrs: Attrs;
}

/** The node that reads the window that a change overwrites, and the one that restores it in a later version. */
export interface ChangeRule<A> {
  read(node: Node, attrs: A): Application;
  restore(node: Node, after: Value, window: Value): Application;
}
