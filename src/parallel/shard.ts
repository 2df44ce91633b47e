/** @file Functions that every device of a mesh runs, each on its own part. */
import { applyGraph, applyOp } from "../api/apply.ts";
import { bind } from "../api/grad.ts";
import { at } from "../base/invariant.ts";
import { shardIn, shardOut } from "../ops/collective.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { type Tensor, tensorTypeOf } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";
import { flatten, type Tree, type TreeDef, unflatten } from "../trace/tree.ts";
import { currentMesh, isOnMesh, onMesh } from "./current.ts";
import { type Mesh, type Spec, specAt } from "./mesh.ts";

/** Options of `shard`. */
export interface ShardOptions {
  readonly mesh: Mesh;
  /** For each argument the axes over which it varies: devices that differ along them have parts of their own. Others: equal on all. */
  readonly in: readonly Spec[];
  /** The most axes over which results vary. */
  readonly out: Spec;
  /** Sums have one order, ((x0 + x1) + x2) + …, whatever the library does: the bits of one process that adds up in that order. */
  readonly deterministic?: boolean;
}

const OPTIONS: OptionKinds<ShardOptions> = {
  mesh: "anything",
  in: "anything",
  out: "anything",
  deterministic: "a boolean",
};

/** The keys that lead to every leaf of a tree. */
export function leafKeys(def: TreeDef, keys: readonly string[] = []): readonly (readonly string[])[] {
  if (def.kind === "tensor") return [keys];
  if (def.kind === "array") return def.items.flatMap((item, i) => leafKeys(item, [...keys, String(i)]));
  return def.kind === "object" ? def.entries.flatMap(([key, item]) => leafKeys(item, [...keys, key])) : [];
}

function marked(arg: unknown, spec: Spec | undefined, path: string): unknown {
  const { mesh, text } = currentMesh("shard");
  if (arg === undefined) return arg;
  const flat = flatten(arg, path);
  const keys = leafKeys(flat.def);
  const leaves = flat.leaves.map((leaf, i) => {
    const over = specAt(`shard: in, ${path}`, spec ?? [], at(keys, i), mesh);
    return over.length === 0 ? leaf : applyOp(shardIn, [leaf], { mesh: text, over: over.join() });
  });
  return unflatten(flat.def, leaves);
}

/** The results, which are what one device has. */
function unmarked(result: unknown, spec: Spec): unknown {
  const { mesh, text } = currentMesh("shard");
  const flat = flatten(result, "result", "result");
  const keys = leafKeys(flat.def);
  const leaves = flat.leaves.map((leaf, i) => {
    const most = specAt("shard: out", spec, at(keys, i), mesh);
    const over = tensorTypeOf(leaf).varies?.over ?? [];
    const more = over.filter((axis) => !most.includes(axis));
    if (more.length > 0) {
      fail(
        "VarianceMismatch",
        `shard: ${flat.paths[i]} varies over ${more.join(", ")}, out says ${most.length === 0 ? "that it is equal on all devices" : most.join(", ")}`,
        `combine it, allReduce(x, { over: "${more[0]}" }), or say so in out`,
      );
    }
    return over.length === 0 ? leaf : applyOp(shardOut, [leaf], { mesh: text, over: over.join() });
  });
  return unflatten(flat.def, leaves);
}

function requireShardOptions(options: ShardOptions): void {
  requireOptions("shard", options, OPTIONS);
  const { mesh, in: given, out } = options;
  const example = 'shard(step, { mesh: mesh({ data: 2 }), in: [[], "data"], out: [] })';
  if (typeof mesh !== "object" || typeof mesh?.axes !== "object") {
    fail("InvalidArgument", `shard: the mesh is ${describe(mesh)}`, example);
  }
  if (!Array.isArray(given)) fail("InvalidArgument", `shard: in is ${describe(given)}, not a list`, example);
  if (out === undefined) fail("InvalidArgument", "shard: out is missing", example);
}

/**
 * A function that every device of a mesh runs on its own part. Sizes are those of one device. `in` says for each argument over which axes
 * of the mesh it varies, `out` the same of the results; nothing else is equal on all devices but what is computed from what is. Inside,
 * the functions of `tidemark/parallel` connect the devices; derivatives, loops, checkpoints and budgets work as everywhere.
 *
 * @memory That of the function with sizes of one device, and of what collectives receive.
 *
 * @example
 * import { compile, grad, type Tensor, tensor } from "tidemark";
 * import { allReduce, mesh, shard } from "tidemark/parallel";
 *
 * const slope = shard(
 *   (w: Tensor, x: Tensor) => grad((v: Tensor) => allReduce(v.mul(x).sum(), { over: "data" }))(w),
 *   { mesh: mesh({ data: 1 }), in: [[], "data"], out: [] },
 * );
 * console.log(compile(slope)(tensor([1, 1]), tensor([3, 4])).toArray()); // [3, 4]
 */
export function shard<Args extends readonly Tree[] = [Tensor], R extends Tree = Tensor>(
  fn: (...args: Args) => R,
  options: ShardOptions,
): (...args: Args) => R {
  requireFunction("shard", "its first argument", fn, "shard(step, { mesh, in, out })");
  requireShardOptions(options);
  const { mesh, in: given, out, deterministic = false } = options;
  function onDevice(...args: Args): R {
    if (isOnMesh())
      fail(
        "InvalidArgument",
        "shard: inside of a function that is given to shard",
        "one mesh has all axes: mesh({ data: 2, tensor: 2 })",
      );
    if (!currentTrace()) return atOnce(onDevice as AnyFunction, args) as R;
    return onMesh(mesh, deterministic, () => {
      const own = args.map((arg, i) => marked(arg, given[i], `argument ${i}`));
      return unmarked(fn(...(own as unknown as Args)), out) as R;
    });
  }
  // messages and plans name programs after functions
  return Object.defineProperty(onDevice, "name", { value: fn.name || "onDevice" });
}

/** Outside of programs: as a program of its own. */
function atOnce(fn: AnyFunction, args: readonly unknown[]): unknown {
  const { traced, inputs } = bind(fn, args);
  return unflatten(traced.resultTree, applyGraph(traced.graph, inputs));
}
