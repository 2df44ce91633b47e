/** @file The rules of all ATen operations that are modelled, by name. */
import { usualName } from "../../../exchange/pt2/names.ts";
import type { Rule } from "../call.ts";
import { CONVOLUTIONS } from "./convolution.ts";
import { NETWORKS } from "./networks.ts";
import { POINTWISE, plain } from "./pointwise.ts";
import { PRODUCTS } from "./products.ts";
import { TRACED } from "./traced.ts";
import { VIEWS } from "./views.ts";

const RULES: Readonly<Record<string, Rule>> = {
  ...VIEWS,
  ...POINTWISE,
  ...PRODUCTS,
  ...CONVOLUTIONS,
  ...NETWORKS,
};

/** Nodes that compute sizes or check something: they hold no memory. */
const isSilent = (target: string): boolean =>
  target.startsWith("_operator.") ||
  target.startsWith("torch.sym_") ||
  /^torch\.ops\.aten\.(_assert_|sym_|_set_grad)/.test(target);

const silent: Rule = () => [];

/** The rule for a target such as `torch.ops.aten.add_.Tensor`; undefined where there is none. */
export function ruleOf(target: string): Rule | undefined {
  if (isSilent(target)) return silent;
  if (Object.hasOwn(TRACED, target)) return TRACED[target];
  // a part without gradients
  if (target === "torch.ops.higher_order.wrap_with_set_grad_enabled") return plain;
  if (target === "torch.ops.transformers.grouped_mm_fallback.default") return RULES._grouped_mm;
  if (!target.startsWith("torch.ops.aten.")) return undefined;
  const name = target.slice("torch.ops.aten.".length).split(".")[0] ?? "";
  const found = [name, name.replace(/_$/, "")].map(usualName).find((one) => Object.hasOwn(RULES, one));
  return found === undefined ? undefined : RULES[found];
}
