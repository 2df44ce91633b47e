/** @file Which weights a pattern means: names of weights or of the layers that they belong to, whole or from a dot on. */
import { describe, fail, requireArray } from "../trace/arguments.ts";

/** Names that say nothing beyond "the weight of its layer". */
const PLAIN = /\.(weight|w|table)$/;

/** `h.0.c_attn.weight` → `h.0.c_attn`. */
export const layerNameOf = (path: string): string => path.replace(PLAIN, "");

const escaped = (text: string): string => text.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&");

function expressionOf(pattern: unknown): RegExp {
  if (typeof pattern !== "string" || pattern === "") {
    fail("InvalidArgument", `lora: a target is ${describe(pattern)}`, 'give names: ["c_attn", "h.*.mlp.c_fc"]');
  }
  return new RegExp(`(^|\\.)${pattern.split("*").map(escaped).join(".*")}$`);
}

const SHOWN = 8;

/** Those of the names that are meant; every pattern means at least one. */
export function matchingNames(
  targets: readonly string[] | ((path: string) => boolean),
  names: readonly string[],
): ReadonlySet<string> {
  const listed = `weights with two axes or more: ${names.slice(0, SHOWN).join(", ")}${names.length > SHOWN ? ", …" : ""}`;
  if (typeof targets === "function") {
    const chosen = names.filter((name) => targets(name));
    if (chosen.length === 0) fail("InvalidArgument", "lora: targets is true of no weight", listed);
    return new Set(chosen);
  }
  requireArray("lora", "targets", targets, 'lora(model, { rank: 8, targets: ["c_attn"] })');
  const chosen = new Set<string>();
  const without: string[] = [];
  for (const pattern of targets) {
    const expression = expressionOf(pattern);
    const found = names.filter((name) => expression.test(name) || expression.test(layerNameOf(name)));
    if (found.length === 0) without.push(pattern);
    for (const name of found) chosen.add(name);
  }
  if (without.length > 0 || chosen.size === 0) {
    const which = without.length > 0 ? without.map((name) => JSON.stringify(name)).join(", ") : "an empty list";
    fail("InvalidArgument", `lora: no weight is named by ${which}`, listed);
  }
  return chosen;
}
