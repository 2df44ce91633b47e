/**
 * @file Combining at positions that are known only at run time: the largest, the smallest or the product of an element and all
 * updates that go to it, by rows (scatter_max …) or element by element (scatter_max_along …). Updates are combined one after
 * the other in their order; those out of range are dropped. `indexing.ts` has sums and the rules for positions.
 */
import { at as item } from "../base/invariant.ts";
import { axisBehind, leading } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef, PullbackSite, PushforwardSite } from "../ir/op.ts";
import { elementsOf, tensorType } from "../ir/type.ts";
import { NUMBER_TYPES } from "../kernel/dtype.ts";
import { fullLike } from "./create.ts";
import { apply, defineOp } from "./define.ts";
import { div, eq, mul } from "./elementwise.ts";
import {
  type AxisAttrs,
  aligned,
  changeRowsOfBatch,
  gather,
  type PairSpec,
  pairedElement,
  pairedNumber,
  type ReadAttrs,
  requireUpdates,
  rows,
  scatterAdd,
  scatterAddAlong,
  take,
} from "./indexing.ts";
import { forEachIndex, mulIn } from "./reference.ts";
import { cast, where } from "./select.ts";

/** A family by its rule for positions, with its read and its sum. */
interface Family {
  readonly spec: PairSpec;
  readonly read: OpDef<ReadAttrs>;
  readonly sum: OpDef<AxisAttrs>;
}

const BY_ROWS: Family = { spec: rows, read: take, sum: scatterAdd };
const ALONG: Family = { spec: aligned, read: gather, sum: scatterAddAlong };

/** How a change of x, and of each update, changes the result at its place. */
interface Shares {
  readonly x: Value;
  readonly updates: Value;
}

/** An application: x, indices and updates, and the result. */
interface Site {
  readonly family: Family;
  readonly x: Value;
  readonly indices: Value;
  readonly updates: Value;
  readonly y: Value;
  readonly axis: number;
}

type Rule = (b: Build, site: Site) => Shares;

function siteOf(family: Family, { x, y, attrs }: Pick<PullbackSite<AxisAttrs>, "x" | "y" | "attrs">): Site {
  return { family, x: item(x, 0), indices: item(x, 1), updates: item(x, 2), y, axis: attrs.axis };
}

const isEqual = (b: Build, a: Value, c: Value): Value => b.call(cast, [apply(b, eq, a, c)], { dtype: a.type.dtype });

/** Elements at the places of updates; 0 for those out of range. */
const readAt = (b: Build, { family, indices, axis }: Site, x: Value): Value =>
  b.call<ReadAttrs>(family.read, [x, indices], { axis, outside: "zero" });

/** The extremum moves with those that attain it, each with an equal part. */
const shareExtremum: Rule = (b, site) => {
  const { family, x, indices, updates, y, axis } = site;
  const [isX, isUpdate] = [isEqual(b, x, y), isEqual(b, updates, readAt(b, site, y))];
  const count = b.call(family.sum, [isX, indices, isUpdate], { axis });
  const [zero, one] = [fullLike(b, y, 0), fullLike(b, y, 1)];
  // where the extremum is NaN it equals nothing
  const part = apply(b, div, one, apply(b, where, apply(b, eq, count, zero), one, count));
  return { x: apply(b, mul, isX, part), updates: apply(b, mul, isUpdate, readAt(b, site, part)) };
};

/** The product of the other factors: y / factor, or, for the only zero among them, the product of the rest. */
const shareProduct: Rule = (b, site) => {
  const { family, x, indices, updates, y, axis } = site;
  const zero = (of: Value): Value => apply(b, eq, of, fullLike(b, of, 0));
  const safe = (of: Value): Value => apply(b, where, zero(of), fullLike(b, of, 1), of);
  const counted = (of: Value): Value => b.call(cast, [zero(of)], { dtype: of.type.dtype });
  const zeros = b.call(family.sum, [counted(x), indices, counted(updates)], { axis });
  const rest = b.call(family === BY_ROWS ? scatterMul : scatterMulAlong, [safe(x), indices, safe(updates)], { axis });
  const alone = apply(b, where, apply(b, eq, zeros, fullLike(b, y, 1)), rest, fullLike(b, y, 0));
  const others = (factor: Value, ofAlone: Value, ofAll: Value): Value =>
    apply(b, where, zero(factor), ofAlone, apply(b, div, ofAll, safe(factor)));
  return { x: others(x, alone, y), updates: others(updates, readAt(b, site, alone), readAt(b, site, y)) };
};

function jvpOf(rule: Rule, family: Family) {
  return (b: Build, site: PushforwardSite<AxisAttrs>): Value | null => {
    const [dx, , du] = site.tangents;
    if (!dx && !du) return null;
    const shares = rule(b, siteOf(family, site));
    const ofX = dx ? apply(b, mul, dx, shares.x) : fullLike(b, site.y, 0);
    return du ? b.call(family.sum, [ofX, item(site.x, 1), apply(b, mul, du, shares.updates)], site.attrs) : ofX;
  };
}

function vjpOf(rule: Rule, family: Family) {
  return (b: Build, site: PullbackSite<AxisAttrs>): Value => {
    const own = siteOf(family, site);
    const shares = rule(b, own);
    if (site.input === 0) return apply(b, mul, site.ct, shares.x);
    return apply(b, mul, readAt(b, own, site.ct), shares.updates);
  };
}

/** By rows, an operation by elements serves a batch in which each element has its own rows. */
function combining(
  name: string,
  combine: "max" | "min" | "mul",
  family: Family,
  along?: OpDef<AxisAttrs>,
): OpDef<AxisAttrs> {
  const { spec } = family;
  const rule = combine === "mul" ? shareProduct : shareExtremum;
  const op: OpDef<AxisAttrs> = defineOp<AxisAttrs>({
    name,
    batch: along
      ? {
          kind: "general",
          apply: changeRowsOfBatch(
            () => op,
            () => along,
          ),
        }
      : leading(axisBehind),
    defaults: { axis: 0 },
    infer: (inputs, { axis }) => [requireUpdates(name, spec, inputs, axis)],
    derivative: { kind: "general", jvp: jvpOf(rule, family), vjp: vjpOf(rule, family) },
    cost: ([, , updates]) => ({ flops: updates ? elementsOf(updates.shape) : 0 }),
    lower: {
      kind: "scatter",
      combine,
      updates: ([, , updates]) => updates?.shape ?? [],
      target(c, u) {
        const { bounds, position } = pairedElement(spec.pairing, c, u);
        return { bounds, index: position.linear };
      },
      value: (c, u) => item(c.inputs, 2)(u),
    },
    evaluate({ inputs, inTypes, attrs: { axis } }) {
      const element = pairedNumber(spec.pairing, inTypes, item(inputs, 1), axis);
      const { dtype } = item(inTypes, 0);
      const both = (a: number, c: number): number => (combine === "mul" ? mulIn(dtype, a, c) : Math[combine](a, c));
      const out = Float64Array.from(item(inputs, 0));
      forEachIndex(item(inTypes, 2).shape, (idx, u) => {
        const e = element(idx);
        if (e >= 0) out[e] = both(item(out, e), item(item(inputs, 2), u));
      });
      return [out];
    },
    // one case of each family; strays and repeated positions are among them
    samples: () =>
      NUMBER_TYPES.map((dtype) => {
        const { x, indices, axis } = item(spec.cases, 1);
        const [given, at, updates] = [x, indices, spec.pairing.shape(x, indices, axis)];
        const values = [-2, 2] as const;
        return {
          inputs: [tensorType(dtype, given), tensorType("i32", at), tensorType(dtype, updates)],
          attrs: { axis },
          range: [values, [-1, item(x, axis) + 1] as const, values],
        };
      }),
  });
  return op;
}

export const scatterMaxAlong: OpDef<AxisAttrs> = combining("scatter_max_along", "max", ALONG);
export const scatterMinAlong: OpDef<AxisAttrs> = combining("scatter_min_along", "min", ALONG);
export const scatterMulAlong: OpDef<AxisAttrs> = combining("scatter_mul_along", "mul", ALONG);
export const scatterMax: OpDef<AxisAttrs> = combining("scatter_max", "max", BY_ROWS, scatterMaxAlong);
export const scatterMin: OpDef<AxisAttrs> = combining("scatter_min", "min", BY_ROWS, scatterMinAlong);
export const scatterMul: OpDef<AxisAttrs> = combining("scatter_mul", "mul", BY_ROWS, scatterMulAlong);
