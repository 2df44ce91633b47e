/**
 * @file Windows of a tensor at positions known only at run time: read one, or overwrite one. Starts are clamped so that the
 * window fits, hence no access is ever out of range.
 *
 *   x            . . . . . .          update   u v
 *   starts [3]         ^
 *   dynamic_slice {sizes=[2]}  → x[3:5]        dynamic_update → . . . u v .
 *
 * Starts may have leading axes, which are those of x: there is then a window for each position of these, and the window is whole
 * along them.
 *
 * Each is linear; their transposes are each other: the cotangent of a read window is written into zeros, the
 * cotangent of an update is read, and overwritten elements get none.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { LEADING, leading } from "../ir/batch.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef, Reader, Reference, Sample } from "../ir/op.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, typeOf } from "../kernel/dtype.ts";
import { call, constant, type Index } from "../kernel/expr.ts";
import { addIndex, constIndex, linearIndex, valueIndex, ZERO } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { requireIndices, requireInputs, requireList, requireSameDtype } from "./checks.ts";
import { fullLike } from "./create.ts";
import { apply, defineOp } from "./define.ts";
import { elementAt, tabulate } from "./reference.ts";

export type DynamicSliceAttrs = { readonly sizes: readonly number[] };

/** Axes of x along which there is a window for each position. */
const leadOf = ({ shape }: TensorType): number => shape.length - 1;

/** Extents that the window leaves over, after checking that it fits and that there is one start for each axis. */
function requireWindow(name: string, x: TensorType, starts: TensorType, sizes: Shape): void {
  requireIndices(name, "starts", starts);
  const [rank, lead] = [x.shape.length, leadOf(starts)];
  const axesOfBatch = x.shape.slice(0, lead);
  if (
    lead < 0 ||
    !sameShape(starts.shape, [...axesOfBatch, rank - lead]) ||
    !sameShape(axesOfBatch, sizes.slice(0, lead))
  ) {
    const summary = `${name}: starts are ${typeText(starts)}, but x ${typeText(x)} needs i32[${rank}]`;
    throw new TidemarkError("ShapeMismatch", summary, { help: "give one start for each axis of x" });
  }
  const axis = sizes.findIndex((extent, a) => extent > item(x.shape, a));
  if (axis < 0) return;
  const summary = `${name}: a window of ${sizes[axis]} does not fit axis ${axis} of ${typeText(x)}`;
  throw new TidemarkError("InvalidArgument", summary, { help: `make it ${x.shape[axis]} or less along axis ${axis}` });
}

/** Starts of windows: where they are read, and their type. */
type Starts = readonly [Reader, TensorType];

/** Start of the window that a position is in along each axis, moved into [0, extent - size]. */
function clampedStarts([read, type]: Starts, at: Position, shape: Shape, sizes: Shape): readonly Index[] {
  const lead = leadOf(type);
  return shape.map((extent, axis) => {
    const last = extent - item(sizes, axis);
    if (last === 0 || axis < lead) return ZERO;
    const raw = read(Position.at(type.shape, [...at.idx.slice(0, lead), constIndex(axis - lead)]));
    const start = call("min", [call("max", [raw, constant("i32", 0)]), constant("i32", last)]);
    return valueIndex(start, 0, last);
  });
}

/** The same in numbers. */
function clampedNumbers(starts: Reference, type: TensorType, shape: Shape, sizes: Shape) {
  const lead = leadOf(type);
  return (idx: readonly number[]): readonly number[] => {
    const first = elementAt(type.shape, [...idx.slice(0, lead), 0]);
    return shape.map((extent, axis) =>
      axis < lead ? 0 : Math.min(Math.max(item(starts, first + axis - lead), 0), extent - item(sizes, axis)),
    );
  };
}

interface WindowCase {
  readonly x: Shape;
  readonly sizes: Shape;
  /** Leading axes of the starts. */
  readonly lead?: number;
}

const CASES: readonly WindowCase[] = [
  { x: [6], sizes: [2] },
  { x: [4, 5], sizes: [2, 5] },
  { x: [3, 4, 2], sizes: [1, 2, 2] },
  { x: [], sizes: [] },
  { x: [3, 2], sizes: [0, 2] },
  { x: [0, 2], sizes: [0, 1] },
  { x: [3, 2, 6], sizes: [3, 2, 2], lead: 1 },
  { x: [2, 3, 7], sizes: [2, 3, 4], lead: 2 },
];

/** Starts are drawn from below 0 to beyond the last place. */
function windowSamples<A>(withUpdate: boolean, attrs: (sizes: Shape) => A): readonly Sample<A>[] {
  return DTYPES.flatMap((dtype) =>
    CASES.map(({ x, sizes, lead = 0 }) => {
      const values = typeOf(dtype).samples;
      const starts = tensorType("i32", [...x.slice(0, lead), x.length - lead]);
      return withUpdate
        ? {
            inputs: [tensorType(dtype, x), tensorType(dtype, sizes), starts],
            attrs: attrs(sizes),
            range: [values, values, [-2, 6]] as const,
          }
        : { inputs: [tensorType(dtype, x), starts], attrs: attrs(sizes), range: [values, [-2, 6]] as const };
    }),
  );
}

/** The window of extents `sizes` that begins at `starts`. */
export const dynamicSlice: OpDef<DynamicSliceAttrs> = defineOp<DynamicSliceAttrs>({
  name: "dynamic_slice",
  batch: leading(({ sizes }, size) => ({ sizes: [size, ...sizes] })),
  infer(inputs, { sizes }) {
    requireInputs("dynamic_slice", ["x", "starts"], inputs);
    const x = item(inputs, 0);
    requireList("dynamic_slice", "sizes", sizes, { count: x.shape.length, least: 0, of: typeText(x) });
    requireWindow("dynamic_slice", x, item(inputs, 1), sizes);
    return [tensorType(x.dtype, sizes)];
  },
  derivative: {
    kind: "multilinear",
    linear: [0],
    transpose: (b, { x, ct }) => apply(b, dynamicUpdate, fullLike(b, item(x, 0), 0), ct, item(x, 1)),
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "map",
    fusion: "once",
    value(c, at) {
      const { shape } = item(c.inTypes, 0);
      const starts = clampedStarts([item(c.inputs, 1), item(c.inTypes, 1)], at, shape, c.attrs.sizes);
      const idx = starts.map((start, axis) => addIndex(start, item(at.idx, axis)));
      return item(c.inputs, 0)(Position.at(shape, idx));
    },
  },
  simplify(_, node, { sizes }) {
    const x = item(node.inputs, 0);
    return sameShape(sizes, x.type.shape) ? x : null;
  },
  evaluate({ inputs, inTypes, attrs: { sizes } }) {
    const { shape } = item(inTypes, 0);
    const starts = clampedNumbers(item(inputs, 1), item(inTypes, 1), shape, sizes);
    const source = (idx: readonly number[]) => idx.map((i, axis) => i + item(starts(idx), axis));
    return [tabulate(sizes, (idx) => item(item(inputs, 0), elementAt(shape, source(idx))))];
  },
  samples: () => windowSamples(false, (sizes) => ({ sizes })),
});

/** x with the window that begins at `starts` replaced by `update`; in place where x is not needed any more. */
export const dynamicUpdate: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "dynamic_update",
  batch: LEADING,
  facts: {
    change: {
      read: ({ inputs: [x, update, starts] }) => ({
        op: dynamicSlice,
        inputs: [x as Value, starts as Value],
        attrs: { sizes: (update as Value).type.shape },
      }),
      restore: ({ inputs: [, , starts], attrs }, after, window) => ({
        op: dynamicUpdate,
        inputs: [after, window, starts as Value],
        attrs,
      }),
    },
  },
  infer(inputs) {
    requireInputs("dynamic_update", ["x", "update", "starts"], inputs);
    const [x, update] = [item(inputs, 0), item(inputs, 1)];
    requireSameDtype("dynamic_update", ["x", "update"], x, update);
    if (x.shape.length !== update.shape.length) {
      const summary = `dynamic_update: ranks differ: x ${typeText(x)}, update ${typeText(update)}`;
      throw new TidemarkError("ShapeMismatch", summary, { help: "reshape the update: an axis may have extent 1" });
    }
    requireWindow("dynamic_update", x, item(inputs, 2), update.shape);
    return [x];
  },
  derivative: {
    kind: "multilinear",
    linear: [0, 1],
    jointly: true,
    transpose(b, { x, ct, input }) {
      const [update, starts] = [item(x, 1), item(x, 2)];
      if (input === 1) return b.call(dynamicSlice, [ct, starts], { sizes: update.type.shape });
      return apply(b, dynamicUpdate, ct, fullLike(b, update, 0), starts);
    },
  },
  cost: (_, [out]) => ({ flops: out ? elementsOf(out.shape) : 0 }),
  lower: {
    kind: "update",
    updates: ([, update]) => update?.shape ?? [],
    target(c, u) {
      const { shape } = item(c.inTypes, 0);
      const starts = clampedStarts([item(c.inputs, 2), item(c.inTypes, 2)], u, shape, item(c.inTypes, 1).shape);
      return linearIndex(
        starts.map((start, axis) => addIndex(start, item(u.idx, axis))),
        shape,
      );
    },
    value: (c, u) => item(c.inputs, 1)(u),
  },
  simplify(_, node) {
    const [x, update] = [item(node.inputs, 0), item(node.inputs, 1)];
    return sameShape(x.type.shape, update.type.shape) ? update : null;
  },
  evaluate({ inputs, inTypes }) {
    const { shape } = item(inTypes, 0);
    const sizes = item(inTypes, 1).shape;
    const starts = clampedNumbers(item(inputs, 2), item(inTypes, 2), shape, sizes);
    return [
      tabulate(shape, (idx, e) => {
        const own = starts(idx);
        const inside = elementAt(
          sizes,
          idx.map((i, axis) => i - item(own, axis)),
        );
        return inside < 0 ? item(item(inputs, 0), e) : item(item(inputs, 1), inside);
      }),
    ];
  },
  samples: () => windowSamples(true, () => ({})),
});
