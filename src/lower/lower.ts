/**
 * @file From a node of the fused graph to its kernel. A node is one operation, or a fusion group whose region holds at
 * most one operation that is not a plain map: its *anchor* (a product, a reduction, a scan, a scatter, an update of a
 * window, a concatenation). The prologue is computed where the anchor reads, the epilogue where its result is
 * stored.
 *
 *   fused(x, w, b) { h = relu(x); y = matmul(h, w); z = add(y, broadcast(b)); return z }
 *
 *   contract: a = max(x[…], 0), b = w[…], store acc + b[…]
 */
import { InternalError, invariant } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import type { ContractPart, ContractShape, LowerContext } from "../ir/op.ts";
import { elementsOf } from "../ir/type.ts";
import { collapseLoops } from "../kernel/collapse.ts";
import { type Accumulator, isComputed, isFloat, productType, typeOf } from "../kernel/dtype.ts";
import { call, constant, type Expr, type Index, type LoopVar } from "../kernel/expr.ts";
import { addIndex, constIndex, linearIndex, offsetIndex, scaleIndex, varIndex } from "../kernel/index-math.ts";
import { type ContractNest, type Kernel, type Nest, type Store, spanBounds } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { mapIndices } from "../kernel/rewrite.ts";
import { inType, mul } from "../kernel/scalar-ops.ts";
import { guarded } from "../ops/guard.ts";
import type { LoweringTarget, UnplacedNest } from "../target/description.ts";
import { attendNest } from "./attend.ts";
import { type AnyLowering, Composer } from "./composer.ts";
import { sortNest } from "./sort.ts";

export interface Lowered {
  readonly kernel: Kernel;
  /** The value that each operand is bound to; null for workspace. */
  readonly values: readonly (Value | null)[];
}

const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

function counters(prefix: string, extents: readonly number[]): LoopVar[] {
  return extents.map((extent, i) => counter(`${prefix}${i}`, extent));
}

function mapNests(c: Composer): readonly UnplacedNest[] {
  const { shape } = c.firstResult.type;
  const loops = counters("i", shape);
  return [{ kind: "map", loops, stores: c.storesAt(Position.at(shape, loops.map(varIndex))) }];
}

function reduceNests(
  c: Composer,
  node: Node,
  lower: Extract<AnyLowering, { kind: "reduce" }>,
): readonly UnplacedNest[] {
  const context = c.context(node);
  const { shape } = context.outType;
  const loops = counters("i", shape);
  const { extents, order } = lower.counters(context.inTypes, context.attrs);
  const reduce = counters("r", extents);
  const at = Position.at(shape, loops.map(varIndex));
  const dtype = typeOf(context.outType.dtype).accumulate;
  const body = inType(lower.body(context, at, reduce.map(varIndex)), dtype);
  return [
    {
      kind: "reduce",
      loops,
      reduce,
      order,
      combine: lower.combine,
      dtype,
      body,
      stores: c.storesAt(at),
    },
  ];
}

function scanNests(c: Composer, node: Node, lower: Extract<AnyLowering, { kind: "scan" }>): readonly UnplacedNest[] {
  const context = c.context(node);
  const { shape } = context.outType;
  const axis = lower.axis(context.inTypes, context.attrs);
  const all = counters("i", shape);
  const along: LoopVar = { kind: "var", name: "s", extent: shape[axis] ?? 1 };
  const forward = varIndex(along);
  const position = lower.reverse(context.attrs) ? offsetIndex(scaleIndex(forward, -1), along.extent - 1) : forward;
  const at = Position.at(
    shape,
    all.map((v, i) => (i === axis ? position : varIndex(v))),
  );
  const dtype = typeOf(context.outType.dtype).accumulate;
  const read = (input: number): Expr => {
    const reader = context.inputs[input];
    invariant(reader, () => `scan without input ${input}`);
    return inType(reader(at), dtype);
  };
  return [
    {
      kind: "scan",
      ...(lower.combine ? { combine: lower.combine } : {}),
      loops: all.filter((_, i) => i !== axis),
      along,
      dtype,
      scale: lower.scale === null ? null : read(lower.scale),
      body: read(lower.body),
      stores: c.storesAt(at),
    },
  ];
}

type Part = ContractPart<never>;

/** One nest for each part. They run one after the other. */
function contractNests(
  c: Composer,
  node: Node,
  lower: Extract<AnyLowering, { kind: "contract" }>,
  target: LoweringTarget,
): readonly UnplacedNest[] {
  const context = c.context(node);
  const { arithmetic } = target;
  const parts = lower.parts(context.inTypes, context.attrs);
  return parts.map((part, p) => {
    // Distinct names: expressions are shared between nests by the names of their counters.
    const prefix = parts.length === 1 ? "" : `p${p}_`;
    if (isThin(part)) return thinNest(c, context, part, { prefix, shortRow: arithmetic.shortRow });
    return contractNest(c, context, part, { prefix, target });
  });
}

/** A product whose sums start from a value, or to whose sums it is added where the target cannot. */
function withStart(
  nest: Omit<ContractNest, "scratch">,
  start: Expr,
  target: LoweringTarget,
): Omit<ContractNest, "scratch"> {
  if (target.startsSums?.(nest)) return { ...nest, start };
  return { ...nest, stores: addedTo(start, nest.stores, nest.dtype) };
}

/** Stores of a sum to which a value is added first. */
const addedTo = (start: Expr, stores: readonly Store[], dtype: Accumulator): readonly Store[] => {
  const sum = call("add", [start, { kind: "acc", dtype }]);
  return stores.map((store) => ({ ...store, value: mapIndices(store.value, (index) => index, sum) }));
};

/** Nests with the workspace that the target needs for them; those of one kernel run one after the other and share it. */
function withWorkspace(c: Composer, nests: readonly UnplacedNest[], target: LoweringTarget): readonly Nest[] {
  const elements = nests.map((nest) => target.workspace(nest, c.operands));
  const typed = nests.flatMap((nest, i) => {
    const isNeeded = nest.kind === "contract" || (elements[i] ?? 0) > 0;
    return isNeeded ? ["dtype" in nest ? nest.dtype : "f32"] : [];
  });
  const [dtype] = typed as readonly Accumulator[];
  if (dtype === undefined) return nests as readonly Nest[];
  const scratch = c.scratch(dtype, Math.max(...elements));
  return nests.map((nest, i): Nest => {
    if (nest.kind === "contract") return { ...nest, scratch };
    return (elements[i] ?? 0) > 0 && nest.kind !== "staged" ? { ...nest, scratch } : nest;
  });
}

/** Stores of a part's element. */
function partStores(
  c: Composer,
  { outType }: LowerContext<never>,
  { batch, m, n, place }: Part,
  at: readonly [batch: readonly Index[], i: Index, j: Index],
): readonly Store[] {
  if (place) return c.storesAt(Position.at(outType.shape, place(...at)));
  return c.stores(linearIndex([...at[0], at[1], at[2]], [...batch, m, n]));
}

function contractNest(
  c: Composer,
  context: LowerContext<never>,
  part: Part,
  { prefix, target }: { readonly prefix: string; readonly target: LoweringTarget },
): Omit<ContractNest, "scratch"> {
  const { m, n, k, run = k } = part;
  const dtype = productType(context.outType.dtype);
  const batch = counters(`${prefix}b`, part.batch);
  const [rows, cols, depth] = [counter(`${prefix}m`, m), counter(`${prefix}n`, n), counter(`${prefix}k`, k)];
  const split: ContractNest["split"] =
    run > 1 && run < k ? [counter(`${prefix}k0`, k / run), counter(`${prefix}k1`, run)] : null;
  const [b, i, j] = [batch.map(varIndex), varIndex(rows), varIndex(cols)];
  const l = split ? addIndex(scaleIndex(varIndex(split[0]), run), varIndex(split[1])) : varIndex(depth);
  const [left, right] = [inType(part.a(context, b, i, l), dtype), inType(part.b(context, b, l, j), dtype)];
  const stores = partStores(c, context, part, [b, i, j]);
  const within = part.within && part.within.length > 0 && !split ? { within: part.within } : {};
  const span = part.span ? { span: part.span(context, b) } : {};
  const window = split && part.window ? { window: part.window } : {};
  const sides = { a: left, b: right, ...narrowFactors(context) };
  const nest = {
    ...{ kind: "contract" as const, batch, rows, cols, depth, split, ...window, dtype },
    ...{ ...sides, ...within, ...span, stores },
  };
  return part.start ? withStart(nest, inType(part.start(context, b, i, j), dtype), target) : nest;
}

/** The type of both factors, which are the last floats among the inputs, where it is one that is not computed in. */
function narrowFactors({ inTypes }: LowerContext<never>): Pick<ContractNest, "factors"> {
  const [left, right] = inTypes.filter(({ dtype }) => isFloat(dtype)).slice(-2);
  const isNarrow = left && left.dtype === right?.dtype && !isComputed(left.dtype);
  return isNarrow ? { factors: left.dtype } : {};
}

/** Copies the first input to the result; skipped if the two share storage. */
function copyNest(c: Composer, context: LowerContext<never>): UnplacedNest {
  const { shape } = context.outType;
  const out = c.outputOperand(0);
  const loops = counters("i", shape);
  const at = Position.at(shape, loops.map(varIndex));
  const first = context.inputs[0]?.(at);
  invariant(first, () => "nothing to copy");
  const same = first.kind === "load" && first.index.key === at.key ? ([first.operand, out] as const) : null;
  const stores = [{ operand: out, index: at.linear, value: first }];
  return { kind: "map", loops, stores, ...(same ? { skipIfAliased: same } : {}) };
}

function updateNests(
  c: Composer,
  node: Node,
  lower: Extract<AnyLowering, { kind: "update" }>,
): readonly UnplacedNest[] {
  const context = c.context(node);
  const updates = lower.updates(context.inTypes, context.attrs);
  // Distinct names: expressions are shared between nests by the names of their counters.
  const loops = counters("u", updates);
  const u = Position.at(updates, loops.map(varIndex));
  const index = lower.target(context, u);
  return [
    copyNest(c, context),
    { kind: "map", loops, stores: [{ operand: c.outputOperand(0), index, value: lower.value(context, u) }] },
  ];
}

/** A product with a side of one row or column has nothing to reuse: packing it would cost more than it saves. */
function isThin({ m, n }: ContractShape): boolean {
  return n === 1 || m === 1;
}

/** The product as a plain sum over all its counters, none of them merged, so that memory is read in even strides. */
function thinNest(
  c: Composer,
  context: LowerContext<never>,
  part: Part,
  { prefix, shortRow }: { readonly prefix: string; readonly shortRow: number },
): Exclude<Nest, ContractNest> {
  const { batch, m, n, k, columns = [n], depths = [k] } = part;
  const dtype = productType(context.outType.dtype);
  const [b, rows, cols] = [counters(`${prefix}b`, batch), counter(`${prefix}m`, m), counters(`${prefix}n`, columns)];
  const reduce = counters(`${prefix}k`, depths);
  const [i, j] = [varIndex(rows), linearIndex(cols.map(varIndex), columns)];
  const l = linearIndex(reduce.map(varIndex), depths);
  const at = b.map(varIndex);
  const term = (): Expr => mul(inType(part.a(context, at, i, l), dtype), inType(part.b(context, at, l, j), dtype));
  const body = part.span ? guarded(spanBounds(part.span(context, at), l, k), term, constant(dtype, 0)) : term();
  const own = partStores(c, context, part, [at, i, j]);
  const stores = part.start ? addedTo(inType(part.start(context, at, i, j), dtype), own, dtype) : own;
  const across = (columns.at(-1) ?? 1) < shortRow && (depths.at(-1) ?? 1) >= shortRow;
  const order = across ? "interleaved" : "sequential";
  return { kind: "reduce", loops: [...b, rows, ...cols], reduce, order, combine: "add", dtype, body, stores };
}

function scatterNests(
  c: Composer,
  node: Node,
  lower: Extract<AnyLowering, { kind: "scatter" }>,
): readonly UnplacedNest[] {
  const context = c.context(node);
  const updates = lower.updates(context.inTypes, context.attrs);
  const updateCounters = counters("u", updates);
  const u = Position.at(updates, updateCounters.map(varIndex));
  const target = lower.target(context, u);
  return [
    copyNest(c, context),
    {
      kind: "scatter",
      ...(lower.combine ? { combine: lower.combine } : {}),
      loops: updateCounters,
      bounds: target.bounds,
      operand: c.outputOperand(0),
      index: target.index,
      value: lower.value(context, u),
    },
  ];
}

function concatNests(
  c: Composer,
  node: Node,
  lower: Extract<AnyLowering, { kind: "concat" }>,
): readonly UnplacedNest[] {
  const context = c.context(node);
  const { shape } = context.outType;
  const axis = lower.axis(context.attrs);
  let start = 0;
  return context.inTypes.map((type, i) => {
    // Distinct names: expressions are shared between nests by the names of their counters.
    const loops = counters(`c${i}_`, type.shape);
    const idx = loops.map(varIndex);
    const target = idx.map((index, a) => (a === axis ? addIndex(index, constIndex(start)) : index));
    start += type.shape[axis] ?? 0;
    const read = context.inputs[i];
    invariant(read, () => "concat input");
    return {
      kind: "map",
      loops,
      stores: [
        { operand: c.outputOperand(0), index: linearIndex(target, shape), value: read(Position.at(type.shape, idx)) },
      ],
    };
  });
}

function shuffleNests(c: Composer, node: Node): readonly UnplacedNest[] {
  const context = c.context(node);
  const along: LoopVar = { kind: "var", name: "s", extent: elementsOf(context.outType.shape) };
  const bits = context.inputs[0]?.(Position.at(context.outType.shape, [varIndex(along)]));
  invariant(bits, () => "shuffle without bits");
  return [{ kind: "shuffle", along, bits, operand: c.outputOperand(0) }];
}

function routineNest(c: Composer, node: Node, lower: Extract<AnyLowering, { kind: "routine" }>): UnplacedNest {
  const context = c.context(node);
  const nest = lower.nest(context, c.outputOperand(0));
  const matrices = nest.loops.reduce((n, v) => n * v.extent, 1);
  const { flops } = node.op.cost(context.inTypes, [context.outType], context.attrs, []);
  return { ...nest, flops: flops / Math.max(1, matrices) };
}

function anchorNests(c: Composer, node: Node, target: LoweringTarget): readonly UnplacedNest[] {
  const lower = node.op.lower as AnyLowering;
  switch (lower.kind) {
    case "reduce":
      return reduceNests(c, node, lower);
    case "scan":
      return scanNests(c, node, lower);
    case "contract":
      return contractNests(c, node, lower, target);
    case "scatter":
      return scatterNests(c, node, lower);
    case "update":
      return updateNests(c, node, lower);
    case "concat":
      return concatNests(c, node, lower);
    case "shuffle":
      return shuffleNests(c, node);
    case "sort":
      return [sortNest(c, node, lower)];
    case "nests":
      return lower.nests(c, c.context(node), target) as readonly UnplacedNest[];
    case "attend":
      return [attendNest(c, node, lower)];
    case "routine":
      return [...(lower.copies ? [copyNest(c, c.context(node))] : []), routineNest(c, node, lower)];
    default:
      throw new InternalError(`${node.op.name} has no kernel of its own; regions are inlined before lowering`);
  }
}

/** A lone operation as the region that a fusion group would be. */
function regionOf(node: Node): Graph {
  const [region] = node.regions;
  if (region && node.op.lower.kind === "region") return region;
  return { name: node.op.name, params: [...new Set(node.inputs)], nodes: [node], results: node.outputs };
}

export function lowerNode(node: Node, target: LoweringTarget): Lowered {
  const region = regionOf(node);
  const inputs = node.op.lower.kind === "region" ? node.inputs : region.params;
  const c = new Composer(region, inputs, node.outputs);
  const nests = withWorkspace(c, c.anchor ? anchorNests(c, c.anchor, target) : mapNests(c), target);
  const parts = c.anchor?.op.lower.kind === "contract" && nests.length > 1;
  const kernel: Kernel = { operands: c.operands, nests, ...(parts ? { disjoint: true } : {}) };
  return { kernel: target.shapeLoops(collapseLoops(kernel)), values: c.values };
}
