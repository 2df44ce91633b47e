/**
 * @file Another batch for a program that was exported with fixed sizes. Sizes that nodes have as constants (of views, of expanded and of
 * new tensors) are those of the recorded batch; each is compared with what the node's operand had then and has now.
 *
 *   recorded   view([1, 1024, 768] → [1024, 768])     operand's axes 1·1024 became one of 1024
 *   now        view([8, 1024, 768] → [8192, 768])     the same axes are 8 times as many, so the first of the group is
 */
import type { Pt2Argument, Pt2Node, Pt2TensorType } from "../../formats/pt2-program.ts";
import { tensorName } from "../../formats/pt2-program.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { Value } from "./args.ts";

export interface Rebinding {
  /** The batch that was recorded, and the one that is wanted. */
  readonly from: number;
  readonly to: number;
}

interface Around {
  lookup(name: string): Value | undefined;
  type(name: string): Pt2TensorType | undefined;
}

const nameOf = (target: string): string => target.replace(/^torch\.ops\.aten\./, "").split(".")[0] ?? "";

const RESHAPES: readonly string[] = ["view", "reshape", "_unsafe_view"];
const EXPANSIONS: readonly string[] = ["expand", "broadcast_to"];
const NEW: readonly string[] = ["full", "zeros", "ones", "empty", "new_zeros", "new_ones", "new_full", "rand", "randn"];

/** The node with the sizes of the new batch. */
export function rebound(node: Pt2Node, change: Rebinding, around: Around): Pt2Node {
  const name = nameOf(node.target);
  if (RESHAPES.includes(name)) return withSizes(node, (sizes) => reshapeSizes(node, sizes, change, around));
  if (EXPANSIONS.includes(name)) return withSizes(node, (sizes) => expandSizes(node, sizes, change, around));
  if (NEW.includes(name)) return withSizes(node, (sizes) => firstReplaced(sizes, change));
  if (name === "arange") return withEnd(node, change);
  return node;
}

const knownSizes = (type: Pt2TensorType | undefined): readonly number[] | null =>
  type?.sizes.every((size) => typeof size === "number") ? (type.sizes as readonly number[]) : null;

function withSizes(node: Pt2Node, sizes: (recorded: readonly number[]) => readonly number[]): Pt2Node {
  const inputs = node.inputs.map((input) => {
    const list = (input.name === "size" || input.name === "shape" || input.name === "sizes") && sizesIn(input.arg);
    return list ? { ...input, arg: { as_ints: sizes(list) } } : input;
  });
  return { ...node, inputs };
}

function sizesIn(arg: Pt2Argument): readonly number[] | null {
  if (Array.isArray(arg.as_ints)) return arg.as_ints as readonly number[];
  return null;
}

/** The first extent that is the batch; scalars and lists of one have none. */
function firstReplaced(sizes: readonly number[], { from, to }: Rebinding): readonly number[] {
  const axis = sizes.length > 1 ? sizes.indexOf(from) : -1;
  return sizes.map((size, i) => (i === axis ? to : size));
}

/** An axis that is written out has the recorded batch; -1 stays what the operand has. */
function expandSizes(
  node: Pt2Node,
  sizes: readonly number[],
  change: Rebinding,
  { lookup }: Around,
): readonly number[] {
  const operand = lookup(tensorName(node.inputs[0]?.arg) ?? "");
  const shape = operand instanceof Tensor ? operand.shape : [];
  const lead = sizes.length - shape.length;
  return sizes.map((size, axis) => {
    const own = axis >= lead ? shape[axis - lead] : undefined;
    if (size === -1) return size;
    if (own !== undefined && own !== 1 && own !== size) return own;
    return axis === 0 && size === change.from && sizes.length > 1 ? change.to : size;
  });
}

/** A count from zero up to the batch: positions of its items. */
function withEnd(node: Pt2Node, { from, to }: Rebinding): Pt2Node {
  const inputs = node.inputs.map((input) =>
    input.name === "end" && input.arg.as_int === from ? { ...input, arg: { as_int: to } } : input,
  );
  return { ...node, inputs };
}

/** Sizes of a view: groups of axes that have equal numbers of elements on both sides grow by what the operand's axes grew. */
function reshapeSizes(
  node: Pt2Node,
  sizes: readonly number[],
  { from }: Rebinding,
  { lookup, type }: Around,
): readonly number[] {
  const operand = tensorName(node.inputs[0]?.arg) ?? "";
  const value = lookup(operand);
  const before = knownSizes(type(operand));
  const after = knownSizes(type(tensorName(node.outputs[0]) ?? ""));
  if (!(value instanceof Tensor) || !before || !after || before.length !== value.rank) return sizes;
  const made = [...after];
  let [i, j] = [0, 0];
  let groupBefore = -1;
  while (i < before.length || j < after.length) {
    const [firstOut, firstIn] = [j, i];
    let [left, right] = [before[i++] ?? 1, after[j++] ?? 1];
    while (left !== right) {
      if (left < right && i < before.length) left *= before[i++] as number;
      else if (j < after.length) right *= after[j++] as number;
      else return sizes;
    }
    const now = value.shape.slice(firstIn, i).reduce((a, b) => a * b, 1);
    // a batch between positions and features goes with the positions: [197, 1, 768] → [197, 768]
    const isFeature = groupBefore >= 0 && before[firstIn] === 1 && i - firstIn > 1 && j - firstOut === 1;
    // in a group, the axis that is the recorded batch grows, or else the first
    const own = after.slice(firstOut, j).indexOf(from);
    const grown = isFeature ? groupBefore : firstOut + Math.max(own, 0);
    if (grown < after.length && left > 0) made[grown] = ((made[grown] as number) * now) / left;
    groupBefore = firstOut;
  }
  return made.every(Number.isSafeInteger) ? made : sizes;
}
