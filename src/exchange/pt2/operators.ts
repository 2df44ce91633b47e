/** @file All ATen operations that are known, by name; overloads of one name differ in their arguments, which are looked at by name. */
import * as t from "../../api/functions.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator, Value } from "./args.ts";
import { BACKWARD } from "./backward.ts";
import { COMPOSITES, groupedProduct } from "./composites.ts";
import { FURTHER } from "./further.ts";
import { INDEXING } from "./indexing.ts";
import { usualName } from "./names.ts";
import { NETWORKS } from "./networks.ts";
import { POINTWISE } from "./pointwise.ts";
import { RECURRENT } from "./recurrent.ts";
import { SHAPES } from "./shapes.ts";

const ATEN: Readonly<Record<string, Operator>> = {
  ...BACKWARD,
  ...COMPOSITES,
  ...FURTHER,
  ...INDEXING,
  ...NETWORKS,
  ...POINTWISE,
  ...RECURRENT,
  ...SHAPES,
};

/** Checks of sizes and types, which are known here. */
const CHECKS: readonly string[] = [
  "_assert_tensor_metadata",
  "_assert_scalar",
  "_assert_async",
  "sym_constrain_range",
  "sym_constrain_range_for_size",
];

/** Arithmetic on sizes. */
const PYTHON: Readonly<Record<string, (a: number, b: number) => number | boolean>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  floordiv: (a, b) => Math.floor(a / b),
  truediv: (a, b) => a / b,
  mod: (a, b) => ((a % b) + b) % b,
  pow: (a, b) => a ** b,
  neg: (a) => -a,
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  and_: (a, b) => Boolean(a) && Boolean(b),
};

const size = (args: Args): number => {
  const x = args.t("self");
  return x.shape[args.axis(args.n("dim"), x.rank)] as number;
};

function python(name: string): Operator | undefined {
  const of = Object.hasOwn(PYTHON, name) ? PYTHON[name] : undefined;
  if (of) return (args) => of(Number(args.at(0)), Number(args.at(1)));
  if (name !== "getitem") return undefined;
  return (args) => (args.at(0) as readonly Value[])[Number(args.at(1))] as Value;
}

const SIZES: Readonly<Record<string, Operator>> = {
  sym_size: size,
  sym_numel: (args) => args.t("self").elements,
  sym_max: (args) => Math.max(Number(args.at(0)), Number(args.at(1))),
  sym_min: (args) => Math.min(Number(args.at(0)), Number(args.at(1))),
  sym_not: (args) => !args.at(0),
  sym_float: (args) => Number(args.at(0)),
};

/** `torch.ops.aten.add_.Tensor` → `add_`. */
const nameOf = (target: string): string => target.replace(/^torch\.ops\.aten\./, "").split(".")[0] ?? "";

/** Whether a node changes its first operand. */
export const changes = (target: string): boolean =>
  target.startsWith("torch.ops.aten.") && /[^_]_$/.test(nameOf(target));

/** Whether a result shares elements with its first operand: what is written to one is seen in the other. */
const VIEWS = [
  "select",
  "slice",
  "narrow",
  "unbind",
  "split",
  "split_with_sizes",
  "chunk",
  "tensor_split",
  "expand",
  "diagonal",
];
export const isPartView = (target: string): boolean => VIEWS.includes(nameOf(target));

/** A part of a program that was traced with or without gradients. */
const gradientMode: Operator = (args) => {
  const inputs = args.node.inputs.slice(2).map((_, i) => args.at(i + 2) as Value);
  const results = args.follow(1, inputs);
  return args.at(0) === false
    ? (results.map((value) => (value instanceof Tensor ? t.stopGradient(value) : value)) as Value)
    : (results as Value);
};

export function operatorOf(target: string): Operator | undefined {
  if (target === "torch.ops.higher_order.wrap_with_set_grad_enabled") return gradientMode;
  // mixtures of experts of transformers
  if (target === "torch.ops.transformers.grouped_mm_fallback.default") return groupedProduct;
  if (target.startsWith("_operator.")) return python(target.slice("_operator.".length));
  if (target.startsWith("torch.sym_")) return SIZES[target.slice("torch.".length)];
  if (!target.startsWith("torch.ops.aten.")) return undefined;
  const name = nameOf(target);
  if (CHECKS.includes(name)) return () => null;
  const found = [name, name.replace(/_$/, "")].map(usualName).find((one) => Object.hasOwn(ATEN, one));
  return found === undefined ? SIZES[name] : ATEN[found];
}

/** Names of all operations. */
export const OPERATIONS: readonly string[] = Object.keys(ATEN).sort();
