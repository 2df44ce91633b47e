/**
 * @file Bytes that a kernel moves between its loops and memory, against the fewest it could.
 *
 *   softmax(x):  max over x │ sum of exp(x - max) │ exp(x - max) / sum → y
 *
 *   moved   every nest for itself: x three times, y once     what the loops ask for; caches may answer
 *   least   every operand once: x, y                         what no order of loops within the kernel can beat
 *
 * moved ≥ least. The panels into which products pack their sides stay in caches and are not counted; workspace that one
 * nest leaves for the next is moved, and not needed.
 */
import { at } from "../../base/invariant.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { type Kernel, type Nest, nestExprs, storesOf } from "../../kernel/loops.ts";
import { isTile, routineStores } from "../../kernel/routine.ts";
import { Dependence } from "./instructions.ts";

/** Of a kernel, in bytes. */
export interface KernelTraffic {
  readonly moved: number;
  /** Every operand once. */
  readonly least: number;
}

/** The nests that run: a copy of an operand onto itself does not. */
export function runningNests({ nests }: Kernel, inPlace: boolean): readonly Nest[] {
  return nests.filter((nest) => !(inPlace && nest.kind === "map" && nest.skipIfAliased));
}

/** Elements of each operand that a nest touches: as many as the counters in their indices can tell apart. */
function touchedBy(nest: Nest, dependence: Dependence): ReadonlyMap<number, number> {
  const places = new Map<string, { readonly operand: number; readonly index: Index }>();
  const touch = (operand: number, index: Index): void => {
    places.set(`${operand}:${index.key}`, { operand, index });
  };
  const { atStore, elsewhere } = nestExprs(nest);
  const seen = new Set<Expr>();
  for (const root of [...atStore, ...elsewhere]) {
    walkExpr(root, (e) => (e.kind === "load" ? touch(e.operand, e.index) : undefined), seen);
  }
  for (const store of storesOf(nest)) touch(store.operand, store.index);
  if (nest.kind === "scatter") touch(nest.operand, nest.index);
  if (nest.kind === "routine") for (const { operand, index } of routineStores(nest)) touch(operand, index);
  const elements = new Map<number, number>();
  for (const { operand, index } of places.values()) {
    if (!isTile(operand)) elements.set(operand, (elements.get(operand) ?? 0) + extent(dependence.ofIndex(index)));
  }
  if (nest.kind === "collective") elements.set(nest.to, Number.POSITIVE_INFINITY);
  if (nest.kind === "shuffle") elements.set(nest.operand, nest.along.extent);
  return elements;
}

function extent(vars: ReadonlySet<LoopVar>): number {
  let n = 1;
  for (const v of vars) n *= v.extent;
  return n;
}

/** Of some nests of a kernel. */
export function kernelTraffic({ operands }: Kernel, nests: readonly Nest[]): KernelTraffic {
  const dependence = new Dependence();
  const all = new Map<number, number>();
  let moved = 0;
  for (const nest of nests) {
    for (const [i, touched] of touchedBy(nest, dependence)) {
      const { elements, dtype } = at(operands, i);
      moved += Math.min(elements, touched) * bytesOf(dtype);
      all.set(i, (all.get(i) ?? 0) + touched);
    }
  }
  const least = operands.reduce((bytes, { role, elements, dtype }, i) => {
    return bytes + (role === "scratch" ? 0 : Math.min(elements, all.get(i) ?? 0) * bytesOf(dtype));
  }, 0);
  return { moved, least };
}
