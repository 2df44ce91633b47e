/**
 * @file Whether a strip has the bits of the whole: the kernels of a node and of its strip must add up the same terms in the
 * same order. Extents along which nothing is summed may differ; those of sums, their order and a target's own algorithms
 * for products may not. Of a part of a sum only the extents differ: its operation knows which parts a sum consists of
 * (ir/strips.ts), but not what targets do.
 */
import { at } from "../base/invariant.ts";
import type { Node } from "../ir/graph.ts";
import type { LoopVar } from "../kernel/expr.ts";
import type { ContractNest, Nest, ReduceNest } from "../kernel/loops.ts";
import type { StripBits } from "../loops/strips/rewrite.ts";
import type { Lowered } from "../lower/lower.ts";
import type { LoweringTarget } from "../target/description.ts";

const extents = (loops: readonly LoopVar[]): string => loops.map(({ extent }) => extent).join();

/** Null where nothing is known about the order. */
function sumsOf(nest: Nest, target: LoweringTarget): readonly [order: string, terms: string] | null {
  switch (nest.kind) {
    case "map":
      return ["", ""];
    case "scan":
      return ["", extents([nest.along])];
    case "reduce":
      return [reduceOrder(nest), extents(nest.reduce)];
    case "contract":
      return [contractOrder(nest, target), extents([nest.depth])];
    case "attend":
      return ["", extents([nest.group, nest.rows, nest.cols, nest.depth, nest.width])];
    default:
      return null;
  }
}

const reduceOrder = ({ order, combine }: ReduceNest): string => `${order} ${combine}`;

const contractOrder = (nest: ContractNest, target: LoweringTarget): string => target.sumOrder?.(nest) ?? "";

/** For one target, whose kernels `lower` makes. */
export function sameBitsOn(target: LoweringTarget, lower: (node: Node) => Lowered): StripBits {
  return {
    isSame(whole, strip, isPart) {
      if (whole.op.alias !== null || whole.op.lower.kind === "map") return true;
      const [all, own] = [lower(whole).kernel.nests, lower(strip).kernel.nests];
      if (all.length !== own.length) return false;
      return all.every((nest, i) => {
        const [a, b] = [sumsOf(nest, target), sumsOf(at(own, i), target)];
        if (!a || !b || nest.kind !== at(own, i).kind || a[0] !== b[0]) return false;
        return isPart ? nest.kind !== "contract" || a[0] === "" : a[1] === b[1];
      });
    },
    goesOn: (whole) =>
      lower(whole).kernel.nests.every((nest) => nest.kind === "contract" && target.startsSums?.(nest) === true),
  };
}
