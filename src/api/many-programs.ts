/** @file Says once that a function is compiled again and again, and which of its arguments is the reason. */
import { typeText } from "../ir/type.ts";
import type { FlatArguments } from "../trace/function.ts";
import type { TreeDef } from "../trace/tree.ts";

/** From this number of programs on a user is told. */
const MANY = 8;

type Arguments = Pick<FlatArguments, "leaves" | "trees">;

/** What a trace depends on, by path: types of tensors, values of constants. */
function parts({ leaves, trees }: Arguments): Map<string, string> {
  const found = new Map(leaves.map(({ path, type }) => [path, typeText(type)]));
  const visit = (def: TreeDef): void => {
    if (def.kind === "array") def.items.forEach(visit);
    else if (def.kind === "object") for (const [, own] of def.entries) visit(own);
    else if (def.kind === "static") found.set(def.path, String(def.value));
  };
  trees.forEach(visit);
  return found;
}

/** Counts the programs of a function: is called with arguments that there was none for. @internal */
export function programCounter(name: string): (args: Arguments) => void {
  let count = 0;
  let last = new Map<string, string>();
  return (args) => {
    if (++count > MANY) return;
    const [now, before] = [parts(args), last];
    last = now;
    if (count < MANY) return;
    const [path, is] = [...now].find(([own, text]) => before.get(own) !== text) ?? [];
    const was = path === undefined ? undefined : before.get(path);
    const why =
      path === undefined ? "its arguments have another structure" : `${path} is ${is} and was ${was ?? "not there"}`;
    // biome-ignore lint/suspicious/noConsole: nothing is wrong, so nothing is thrown; a compiled function has no other way to say it
    console.warn(
      `tidemark: ${name} has been compiled for ${MANY} kinds of arguments; this time ${why}. Each takes time to plan: name the ` +
        "extents that occur with { shapes, axes } and pad to them, or give { programs: 64 } if many are expected",
    );
  };
}
