/**
 * @file Another batch for a program that was exported with fixed sizes. Sizes that nodes have as constants (of views, of expanded and of
 * new tensors) are those of the recorded batch; each is compared with what the node's operand had then and has now (shared/rebatch.ts).
 */
import type { Pt2Argument, Pt2Node, Pt2TensorType } from "../../formats/pt2-program.ts";
import { tensorName } from "../../formats/pt2-program.ts";
import { Tensor } from "../../trace/tensor.ts";
import { expandedSizes, type Rebinding, regroupedSizes } from "../shared/rebatch.ts";
import type { Value } from "./args.ts";

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
  if (EXPANSIONS.includes(name))
    return withSizes(node, (sizes) => expandedSizes(operandShape(node, around), sizes, change));
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

/** The shape that the first operand has now. */
function operandShape(node: Pt2Node, { lookup }: Around): readonly number[] {
  const operand = lookup(tensorName(node.inputs[0]?.arg) ?? "");
  return operand instanceof Tensor ? operand.shape : [];
}

/** A count from zero up to the batch: positions of its items. */
function withEnd(node: Pt2Node, { from, to }: Rebinding): Pt2Node {
  const inputs = node.inputs.map((input) =>
    input.name === "end" && input.arg.as_int === from ? { ...input, arg: { as_int: to } } : input,
  );
  return { ...node, inputs };
}

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
  return regroupedSizes({ before, after, now: value.shape }, from) ?? sizes;
}
