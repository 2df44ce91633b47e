/** @file Parameters of a program in parts, for `--mesh tensor=2`: what a device has of each, and all of them again for the hash of a state. */
import { compile } from "../api/compile.ts";
import { reshape, slice } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { allGather } from "../parallel/collectives.ts";
import type { Mesh, Spec } from "../parallel/mesh.ts";
import { shard } from "../parallel/shard.ts";
import { Tensor } from "../trace/tensor.ts";
import { usageError } from "./command.ts";
import type { TensorAxis, TensorCut } from "./programs/program.ts";

export type Cuts = Readonly<Record<string, TensorCut>>;

/** A tree of what becomes of each tensor of another, by the last name of its path. */
function mapped<R>(tree: unknown, name: string, leaf: (x: Tensor, name: string) => R): unknown {
  if (tree instanceof Tensor) return leaf(tree, name);
  if (Array.isArray(tree)) return tree.map((item) => mapped(item, name, leaf));
  const entries = Object.entries(tree as object).map(([key, item]) => [key, mapped(item, key, leaf)]);
  return Object.fromEntries(entries);
}

/** [..., groups · parts · n, ...] with the groups and the parts as axes of their own. */
function split(x: Tensor, { axis, groups = 1 }: TensorCut, parts: number, name: string): Tensor {
  const extent = at(x.shape, axis);
  const own = extent / (groups * parts);
  if (!Number.isInteger(own)) throw usageError(`bench: ${name} of ${extent} in ${parts} parts`, "take fewer devices");
  return reshape(x, [...x.shape.slice(0, axis), groups, parts, own, ...x.shape.slice(axis + 1)]);
}

/** The part of a device of each parameter. */
export function ownParameters<P extends object>(params: P, cuts: Cuts, parts: number, index: number): P {
  return mapped(params, "", (x, name) => {
    const cut = cuts[name];
    if (!cut) return x;
    const all = split(x, cut, parts, name);
    const ranges = all.shape.map(
      (extent, i) => (i === cut.axis + 1 ? [index, index + 1] : [0, extent]) as [number, number],
    );
    return reshape(slice(all, ranges), x.shape.with(cut.axis, at(x.shape, cut.axis) / parts));
  }) as P;
}

/** The axes over which parameters vary. */
export const parameterSpec = (params: object, cuts: Cuts, { over }: TensorAxis): Spec =>
  mapped(params, "", (_, name): Spec => (cuts[name] ? over : [])) as Spec;

/** All parameters from the parts of devices, inside of `shard`. */
export const gatheredParameters = <P>(own: P, cuts: Cuts, { over, parts }: TensorAxis): P =>
  mapped(own, "", (x, name) => {
    const cut = cuts[name];
    if (!cut) return x;
    const groups = split(x, cut, 1, name);
    const all = allGather(groups, { over, axis: cut.axis + 1, invariant: true });
    return reshape(all, x.shape.with(cut.axis, at(x.shape, cut.axis) * parts));
  }) as P;

/** All parameters, on every device. */
export function wholeParameters<P extends object>(params: P, cuts: Cuts, axis: TensorAxis, mesh: Mesh): P {
  const gathered = (own: P): P => gatheredParameters(own, cuts, axis);
  const whole = shard(gathered as never, { mesh, in: [parameterSpec(params, cuts, axis)], out: [] });
  return compile(whole as never, { target: "native", name: "whole" })(params as never) as P;
}
