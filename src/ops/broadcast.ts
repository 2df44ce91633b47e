/**
 * @file Repeating along axes and summing along axes: each is the transpose of the other. Also `reduction`, which declares
 * all operations that reduce axes.
 *
 *   broadcast {shape=[2,4,3], axes=[0,2]}     x[i,k] → y[i,·,k]      axis a of x is axis axes[a] of y
 *   sum {axes=[1]}                            y[i,j,k] → Σⱼ y[i,j,k]
 *
 * Lowering of reductions: adjacent reduced axes become one counter, whose extent is their product, so that a sum over
 * all axes is one straight run over memory:
 *
 *   f32[5,4,3,2] over [1,2]     loops i < 5, l < 2     reduce r < 12      reads x[i, r div 3, r mod 3, l]
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import { behind, leading } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { Derivative, LowerContext, OpDef } from "../ir/op.ts";
import { axesOf, type StripForm, type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, type Shape, sameShape, shapeText, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, type DType, typeOf } from "../kernel/dtype.ts";
import type { Expr, Index } from "../kernel/expr.ts";
import { splitIndex, ZERO } from "../kernel/index-math.ts";
import { BLOCK_TERMS, type Combine, identityOf } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { requireAxes, requireList, requireOne } from "./checks.ts";
import { full } from "./create.ts";
import { DOMAIN, type Domain, defineOp, requireDomain } from "./define.ts";
import { movedFull, reshape } from "./movement.ts";
import { addIn, type Case, elementAt, forEachIndex, samplesIn, tabulate } from "./reference.ts";
import { partAlong } from "./slice.ts";

export type BroadcastAttrs = { readonly shape: readonly number[]; readonly axes: readonly number[] };

/** Axes 0 … rank - 1 that are not among `axes`. */
export function otherAxes(rank: number, axes: readonly number[]): readonly number[] {
  return Array.from({ length: rank }, (_, axis) => axis).filter((axis) => !axes.includes(axis));
}

function inferBroadcast(x: { readonly dtype: DType; readonly shape: Shape }, { shape, axes }: BroadcastAttrs): void {
  requireList("broadcast", "shape", shape, { count: shape.length, least: 0, of: "the result" });
  requireList("broadcast", "axes", axes, { count: x.shape.length, least: 0, of: typeText(x) });
  requireAxes("broadcast", axes, tensorType(x.dtype, shape));
  x.shape.forEach((extent, i) => {
    const axis = item(axes, i);
    if (extent === 1 || extent === shape[axis]) return;
    const summary =
      `broadcast: axis ${i} of ${typeText(x)} has extent ${extent}, ` +
      `axis ${axis} of the result ${shapeText(shape)} has ${shape[axis]}`;
    throw new TidemarkError("ShapeMismatch", summary, {
      help: "only an axis of extent 1 can be repeated; insert or reorder axes with reshape or transpose",
    });
  });
}

/** Cut along an axis of the result: the operand is cut where it has that axis, and whole where it is repeated. */
const broadcastStrips: StripForms<BroadcastAttrs> = ([x], [y], { shape, axes }) =>
  (y ? axesOf(y) : []).map((axis) => {
    const from = axes.indexOf(axis);
    const extent = item(shape, axis);
    return {
      inputs: [from >= 0 && x?.shape[from] === extent ? from : null],
      outputs: [axis],
      attrs: (strips) => ({ shape: shape.with(axis, extent / strips), axes }),
    };
  });

/** Repeats the input along the axes that it lacks and along those of extent 1. */
export const broadcast: OpDef<BroadcastAttrs> = defineOp<BroadcastAttrs>({
  name: "broadcast",
  infer(inputs, attrs) {
    const x = requireOne("broadcast", inputs);
    inferBroadcast(x, attrs);
    return [tensorType(x.dtype, attrs.shape)];
  },
  batch: leading(({ shape, axes }, size) => ({ shape: [size, ...shape], axes: [0, ...behind(axes)] })),
  facts: { viewAxes: ({ axes }) => axes, strips: broadcastStrips },
  derivative: {
    kind: "multilinear",
    transpose(b, { x, ct, attrs: { shape, axes } }) {
      const from = item(x, 0).type.shape;
      // Axes that carry an input axis one to one; over all others the cotangents add up.
      const kept = axes.filter((axis, i) => item(from, i) === item(shape, axis));
      const summed = b.call(sum, [ct], { axes: otherAxes(shape.length, kept) });
      return sameShape(summed.type.shape, from) ? summed : b.call(reshape, [summed], { shape: from });
    },
  },
  view: { write: null },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const { shape } = item(c.inTypes, 0);
      const idx = shape.map((extent, i) => (extent === 1 ? ZERO : item(at.idx, item(c.attrs.axes, i))));
      return item(c.inputs, 0)(Position.at(shape, idx));
    },
  },
  simplify(b, node, { shape, axes }) {
    const x = item(node.inputs, 0);
    if (sameShape(x.type.shape, shape)) return x;
    // Nothing is repeated: axes of extent 1 were put in.
    if (elementsOf(x.type.shape) === elementsOf(shape)) return b.call(reshape, [x], { shape });
    const inner = b.producer(x);
    if (inner?.op === broadcast) {
      const first = (inner.attrs as BroadcastAttrs).axes;
      return b.call(broadcast, [item(inner.inputs, 0)], { shape, axes: first.map((axis) => item(axes, axis)) });
    }
    return movedFull(b, x, shape);
  },
  evaluate({ inputs: [x], inTypes, attrs: { shape, axes } }) {
    const from = item(inTypes, 0).shape;
    const source = (idx: readonly number[]) => from.map((n, i) => (n === 1 ? 0 : item(idx, item(axes, i))));
    return [tabulate(shape, (idx) => item(x ?? [], elementAt(from, source(idx))))];
  },
  samples: () =>
    samplesIn(DTYPES, [
      { shapes: [[3]], attrs: { shape: [2, 3], axes: [1] } },
      { shapes: [[2]], attrs: { shape: [2, 3], axes: [0] } },
      { shapes: [[2, 1]], attrs: { shape: [2, 4, 3], axes: [0, 2] } },
      { shapes: [[]], attrs: { shape: [2, 2], axes: [] } },
      { shapes: [[]], attrs: { shape: [], axes: [] } },
      { shapes: [[1, 3]], attrs: { shape: [0, 3], axes: [0, 1] } },
    ]),
});

/** Sorted, distinct, non-negative; the axes disappear from the shape. */
export type ReduceAttrs = { readonly axes: readonly number[] };

/** The result of a reduction over `axes` of `shape`, broadcast along them. */
export function broadcastAlong(b: Build, y: Value, shape: Shape, axes: readonly number[]): Value {
  return b.call(broadcast, [y], { shape, axes: otherAxes(shape.length, axes) });
}

/** Runs of adjacent axes as [first, past the last). */
function runsOf(axes: readonly number[]): readonly (readonly [number, number])[] {
  const runs: [number, number][] = [];
  for (const axis of axes) {
    const last = runs[runs.length - 1];
    if (last?.[1] === axis) last[1] = axis + 1;
    else runs.push([axis, axis + 1]);
  }
  return runs;
}

/** Fewer elements than this are no work for the lanes of a register. */
const SHORT = 16;

/**
 * Runs of axes with one counter each, and the order of the sum: interleaved if the reduced elements are contiguous, unless
 * they are few (windows of pooling): then the kept elements are vectorised. Few axes are not merged either: a fused prologue
 * may have a linear index along each axis but not along both.
 */
function countersOf(
  shape: readonly number[],
  axes: readonly number[],
): { readonly runs: readonly (readonly [number, number])[]; readonly order: "sequential" | "interleaved" } {
  const reduced = elementsOf(axes.map((axis) => item(shape, axis)));
  if (reduced < SHORT && axes.length < shape.length && item(shape, shape.length - 1) < SHORT) {
    return { runs: axes.map((axis) => [axis, axis + 1]), order: "sequential" };
  }
  return { runs: runsOf(axes), order: axes.includes(shape.length - 1) ? "interleaved" : "sequential" };
}

/** The input element that belongs to output position `at` when the counters, one for each run, are at `r`. */
function reducedElement(c: LowerContext<ReduceAttrs>, at: Position, r: readonly Index[]): Expr {
  const { shape } = item(c.inTypes, 0);
  const read = item(c.inputs, 0);
  const { axes } = c.attrs;
  if (axes.length === 0) return read(at);
  if (axes.length === shape.length) return read(Position.linear(shape, item(r, 0)));
  const idx: Index[] = new Array(shape.length).fill(ZERO);
  otherAxes(shape.length, axes).forEach((axis, i) => {
    idx[axis] = item(at.idx, i);
  });
  countersOf(shape, axes).runs.forEach(([first, past], run) => {
    splitIndex(item(r, run), shape.slice(first, past)).forEach((index, i) => {
      idx[first + i] = index;
    });
  });
  return read(Position.at(shape, idx));
}

/** Cut along an axis that is kept; or, a sum, along the first of all reduced axes. */
function reductionStrips(op: () => OpDef<ReduceAttrs>, combine: Combine): StripForms<ReduceAttrs> {
  return ([x], _, { axes }) => {
    if (!x) return [];
    const kept = otherAxes(x.shape.length, axes);
    const along = kept.map((axis, i) => sameAttrs([axis], [i], { axes }));
    return combine === "add" ? [...along, ...sumStrips(op(), x, axes)] : along;
  };
}

/**
 * A long sum over the first axes is a sum of blocks of 256 terms (kernel/loops.ts), each of which is a sum of its own. One
 * level of blocks is enough up to 256 of them.
 */
function sumStrips(op: OpDef<ReduceAttrs>, x: TensorType, axes: readonly number[]): readonly StripForm[] {
  const { runs, order } = countersOf(x.shape, axes);
  const first = axes[0] ?? 0;
  const terms = elementsOf(axes.map((axis) => item(x.shape, axis)));
  const isBlocked = terms > BLOCK_TERMS && terms <= BLOCK_TERMS * BLOCK_TERMS;
  if (runs.length !== 1 || order !== "sequential" || !isBlocked || typeOf(x.dtype).accumulate !== x.dtype) return [];
  const [before, after] = [elementsOf(x.shape.slice(0, first)), elementsOf(x.shape.slice(first + axes.length))];
  const parts: StripForm["parts"] = (b, inputs, strips) => {
    const rows = terms / strips;
    const flat = b.call(reshape, [item(inputs, 0)], { shape: [rows, after] });
    return Array.from({ length: rows / BLOCK_TERMS }, (_, block) => {
      const part = partAlong(b, flat, 0, [block * BLOCK_TERMS, BLOCK_TERMS]);
      const sumOfBlock = b.call(op, [part], { axes: [0] });
      return b.call(reshape, [sumOfBlock], { shape: x.shape.filter((__, axis) => !axes.includes(axis)) });
    });
  };
  const inBlocks = (strips: number): ReduceAttrs | null =>
    before === 1 && (terms / strips) % BLOCK_TERMS === 0 ? { axes } : null;
  return [{ inputs: [first], outputs: [null], attrs: inBlocks, parts }];
}

export interface ReductionSpec {
  readonly domain: Domain;
  readonly combine: Combine;
  /** Result over no elements; null where there is none. */
  readonly empty: number | null;
  readonly derivative: Derivative<ReduceAttrs>;
  /** Combines as the element type does. */
  reference(dtype: DType, a: number, b: number): number;
}

function simplifyReduction(b: Build, node: Node, axes: readonly number[], empty: number | null): Value | null {
  const x = item(node.inputs, 0);
  const { dtype, shape } = item(node.outputs, 0).type;
  if (axes.length === 0) return x;
  const extent = elementsOf(axes.map((axis) => item(x.type.shape, axis)));
  if (extent === 0 && empty !== null) return b.call(full, [], { dtype, shape, value: empty });
  // One element combined with the identity is that element.
  return extent === 1 ? b.call(reshape, [x], { shape }) : null;
}

const REDUCE_CASES: readonly Case<ReduceAttrs>[] = [
  { shapes: [[3, 5]], attrs: { axes: [1] } },
  { shapes: [[4, 3]], attrs: { axes: [0] } },
  { shapes: [[2, 3, 2, 2]], attrs: { axes: [1, 2] } },
  { shapes: [[2, 3, 19]], attrs: { axes: [0, 2] } },
  { shapes: [[4, 5]], attrs: { axes: [0, 1] } },
  { shapes: [[37, 2, 3]], attrs: { axes: [1, 2] } },
  { shapes: [[2, 35, 5]], attrs: { axes: [0, 2] } },
  { shapes: [[3, 1]], attrs: { axes: [1] } },
  { shapes: [[3]], attrs: { axes: [] } },
  { shapes: [[]], attrs: { axes: [] } },
  { shapes: [[0, 3]], attrs: { axes: [1] } },
];

const EMPTY_CASES: readonly Case<ReduceAttrs>[] = [
  { shapes: [[0, 3]], attrs: { axes: [0] } },
  { shapes: [[2, 0]], attrs: { axes: [0, 1] } },
];

/** y = ⊕ of x over `axes`: everything follows from the combining function and the derivative. */
export function reduction(name: string, spec: ReductionSpec): OpDef<ReduceAttrs> {
  const op: OpDef<ReduceAttrs> = defineOp<ReduceAttrs>({
    name,
    batch: leading(({ axes }) => ({ axes: behind(axes) })),
    facts: { strips: reductionStrips(() => op, spec.combine) },
    infer(inputs, { axes }) {
      const x = requireOne(name, inputs);
      requireDomain(name, spec.domain, [x]);
      requireAxes(name, axes, x);
      const none = axes.find((axis) => x.shape[axis] === 0);
      if (none !== undefined && spec.empty === null) {
        throw new TidemarkError("InvalidArgument", `${name}: axis ${none} of ${typeText(x)} has no elements`, {
          help: `${name} of nothing is not defined: give the axis at least one element`,
        });
      }
      return [
        tensorType(
          x.dtype,
          otherAxes(x.shape.length, axes).map((axis) => item(x.shape, axis)),
        ),
      ];
    },
    derivative: spec.derivative,
    cost: ([x]) => ({ flops: x ? elementsOf(x.shape) : 0 }),
    lower: {
      kind: "reduce",
      combine: spec.combine,
      counters([x], { axes }) {
        const shape = x?.shape ?? [];
        const { runs, order } = countersOf(shape, axes);
        return { extents: runs.map(([first, past]) => elementsOf(shape.slice(first, past))), order };
      },
      body: reducedElement,
    },
    simplify: (b, node, { axes }) => simplifyReduction(b, node, axes, spec.empty),
    evaluate({ inputs: [x], inTypes, outTypes, attrs: { axes } }) {
      const { shape, dtype } = item(inTypes, 0);
      const kept = otherAxes(shape.length, axes);
      const out = new Float64Array(elementsOf(item(outTypes, 0).shape));
      out.fill(x?.length === 0 ? (spec.empty ?? 0) : identityOf(spec.combine, typeOf(dtype).accumulate));
      forEachIndex(shape, (idx, e) => {
        const to = elementAt(
          item(outTypes, 0).shape,
          kept.map((axis) => item(idx, axis)),
        );
        out[to] = spec.reference(dtype, item(out, to), item(x ?? [], e));
      });
      return [out];
    },
    samples: () =>
      samplesIn(DOMAIN[spec.domain], spec.empty === null ? REDUCE_CASES : [...REDUCE_CASES, ...EMPTY_CASES]),
  });
  return op;
}

/** Σ over the axes; 0 over none. */
export const sum: OpDef<ReduceAttrs> = reduction("sum", {
  domain: "number",
  combine: "add",
  empty: 0,
  derivative: {
    kind: "multilinear",
    transpose: (b, { x, ct, attrs }) => broadcastAlong(b, ct, item(x, 0).type.shape, attrs.axes),
  },
  reference: addIn,
});
