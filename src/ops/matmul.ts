/**
 * @file The matrix product, y[…, i, j] = Σ_k x[…, i, k] · w[…, k, j]. Both sides have the same leading (batch) axes: the
 * API brings vectors and broadcast axes to this form. The flags `ta` and `tb` read a side with its
 * last two axes swapped, so that every derivative of a product is one product, with no transposed copy in between.
 *
 *   ta = false: x is [… m k]      tb = false: w is [… k n]
 *   ta = true:  x is [… k m]      tb = true:  w is [… n k]
 *
 * A side may be known to be zero on one side of a line through its last two axes, as the weights of causal attention are:
 * `xNonzero` = [r, c, k] says that x[…, i, j] is zero unless r · i + c · j + k ≤ 0, in the order of x's axes; `wNonzero` the
 * same of w. These terms may be left out of the sums, which changes no bit of finite results. The pass infer-zero-regions
 * sets both.
 *
 * Invariant: the sum runs over k from 0 upwards for all flags; an empty sum is zero.
 */

import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type BatchSite, LEADING } from "../ir/batch.ts";
import { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import type { ContractPart, ContractShape, EvaluateContext, OpDef, Reader, Sample, TransposeSite } from "../ir/op.ts";
import { type StripForm, type StripForms, sameAttrs } from "../ir/strips.ts";
import { elementsOf, sameShape, sameType, shapeText, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { isFloat, NUMBER_TYPES, type NumberType, typeOf } from "../kernel/dtype.ts";
import type { Index } from "../kernel/expr.ts";
import { depthRun, type Within } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { joinedAxes, movedAxis, splitAxis, withAxis } from "./batch.ts";
import { requireInputs, requireSameDtype, resultType, wideResult } from "./checks.ts";
import { apply, defineOp, requireDomain } from "./define.ts";
import { add } from "./elementwise.ts";
import { reshape, type TransposeAttrs, transpose } from "./movement.ts";
import { addIn, mulIn } from "./reference.ts";
import { inDtype } from "./select.ts";
import { partAlong } from "./slice.ts";

export type MatmulAttrs = {
  readonly ta: boolean;
  readonly tb: boolean;
  /** [] if nothing is known. */
  readonly xNonzero?: readonly number[];
  readonly wNonzero?: readonly number[];
  /** The result has the type that products are added up in: f32 for bf16 and f16. */
  readonly wide?: boolean;
};

/** With rows and columns exchanged. */
const exchanged = (line: readonly number[]): readonly number[] =>
  line.length === 0 ? line : [at(line, 1), at(line, 0), at(line, 2)];

/** Positions up to this far beyond the edges of a product are counted: tiles at its edges. */
const BEYOND_EDGES = 256;

/**
 * The half-spaces outside of which a factor is zero, in the product's counters. Those that take steps along the depth are left
 * out, and those that reach the end of i32, in which targets may count: column - row ≤ 2³¹ - 1 says nothing and would wrap
 * around.
 */
function withinOf(shape: ContractShape, { ta, tb, xNonzero = [], wNonzero = [] }: MatmulAttrs): readonly Within[] {
  const [[i = 0, k = 0, a = 0], [l = 0, j = 0, b = 0]] = [
    ta ? exchanged(xNonzero) : xNonzero,
    tb ? exchanged(wNonzero) : wNonzero,
  ];
  const most = Math.max(shape.m, shape.n, shape.k) + BEYOND_EDGES;
  const half = (rows: number, cols: number, depth: number, constant: number): readonly Within[] => {
    const reach = (Math.abs(rows) + Math.abs(cols) + 1) * most + Math.abs(constant);
    return (depth === 1 || depth === -1) && reach < 2 ** 31 ? [{ rows, cols, depth, constant }] : [];
  };
  return [...half(i, 0, k, a), ...half(0, j, l, b)];
}

function requireLine(name: string, line: readonly number[] = []): void {
  if (line.length === 0 || (line.length === 3 && line.every(Number.isSafeInteger))) return;
  throw new TidemarkError("InvalidArgument", `matmul: ${name} is [${line.join(",")}], not three integers or none`, {
    help: "leave it out: the compiler infers where operands are zero",
  });
}

/** The last two axes in the order in which the product reads them. */
function matrixAxes(type: TensorType, transposed: boolean): readonly [number, number] {
  const rank = type.shape.length;
  const rows = at(type.shape, rank - 2);
  const cols = at(type.shape, rank - 1);
  return transposed ? [cols, rows] : [rows, cols];
}

function contraction(inputs: readonly TensorType[], { ta, tb }: MatmulAttrs): ContractShape {
  const [m, k] = matrixAxes(at(inputs, 0), ta);
  const [, n] = matrixAxes(at(inputs, 1), tb);
  return { batch: at(inputs, 0).shape.slice(0, -2), m, n, k };
}

/** How to make the inner dimensions agree: with one flag if that is enough. */
function innerHelp(x: TensorType, w: TensorType, { ta, tb }: MatmulAttrs): string {
  const [m, k] = matrixAxes(x, ta);
  const [rows, n] = matrixAxes(w, tb);
  if (k === n) return `w seems to be stored ${tb ? "[in, out]" : "[out, in]"}: matmul(x, w, { tb: ${!tb} })`;
  if (m === rows) return `x seems to be stored the other way round: matmul(x, w, { ta: ${!ta} })`;
  return "x needs as many columns as w has rows";
}

function inferMatmul(inputs: readonly TensorType[], attrs: MatmulAttrs): readonly TensorType[] {
  requireInputs("matmul", ["x", "w"], inputs);
  requireDomain("matmul", "number", inputs);
  const [x, w] = [at(inputs, 0), at(inputs, 1)];
  requireSameDtype("matmul", ["x", "w"], x, w);
  requireLine("xNonzero", attrs.xNonzero);
  requireLine("wNonzero", attrs.wNonzero);
  const both = `x ${typeText(x)} and w ${typeText(w)}`;
  if (x.shape.length < 2 || w.shape.length !== x.shape.length) {
    throw new TidemarkError("ShapeMismatch", `matmul: takes two tensors of one rank, 2 or more, got ${both}`, {
      help: "reshape a vector to a row [1, k] or a column [k, 1], and broadcast missing batch axes",
    });
  }
  const batch = x.shape.slice(0, -2);
  if (!sameShape(batch, w.shape.slice(0, -2))) {
    const text = `${shapeText(batch)} and ${shapeText(w.shape.slice(0, -2))}`;
    throw new TidemarkError("ShapeMismatch", `matmul: batch axes differ: ${text} in ${both}`, {
      help: "broadcast the leading axes of one side to those of the other",
    });
  }
  const [m, k] = matrixAxes(x, attrs.ta);
  const [rows, n] = matrixAxes(w, attrs.tb);
  if (k !== rows) {
    const read = (flag: boolean): string => (flag ? " (read transposed)" : "");
    const numbers = `${k} in x ${typeText(x)}${read(attrs.ta)}, ${rows} in w ${typeText(w)}${read(attrs.tb)}`;
    throw new TidemarkError("ShapeMismatch", `matmul: inner dimensions differ: ${numbers}`, {
      help: innerHelp(x, w, attrs),
    });
  }
  return [tensorType(resultType(x.dtype, attrs.wide), [...batch, m, n])];
}

/**
 * With X = x or xᵀ and W = w or wᵀ as the flags say, Y = X·W gives dX = dY·Wᵀ and dW = Xᵀ·dY. A side that was read
 * transposed needs the transpose of its cotangent, (dY·Wᵀ)ᵀ = W·dYᵀ and (Xᵀ·dY)ᵀ = dYᵀ·X:
 *
 *   ta tb   dx                       dw
 *   -  -    matmul(dy, w)  {tb}      matmul(x, dy)  {ta}
 *   -  tb   matmul(dy, w)            matmul(dy, x)  {ta}
 *   ta -    matmul(w, dy)  {tb}      matmul(x, dy)
 *   ta tb   matmul(w, dy)  {ta tb}   matmul(dy, x)  {ta tb}
 */
function matmulTranspose(b: Build, { x, ct, input, attrs }: TransposeSite<MatmulAttrs>): Value {
  const { ta, tb, xNonzero = [], wNonzero = [] } = attrs;
  const left = at(x, 0);
  const right = at(x, 1);
  const dy = inDtype(b, ct, left.type.dtype);
  if (input === 0) {
    return ta
      ? b.call(matmul, [right, dy], { ta: tb, tb: true, xNonzero: wNonzero })
      : b.call(matmul, [dy, right], { ta: false, tb: !tb, wNonzero });
  }
  return tb
    ? b.call(matmul, [dy, left], { ta: true, tb: ta, wNonzero: xNonzero })
    : b.call(matmul, [left, dy], { ta: !ta, tb: false, xNonzero });
}

/** The input of a transposition that swaps the last two axes and nothing else, or null. */
function untransposed(b: Build, value: Value): Value | null {
  const node = b.producer(value);
  if (node?.op !== transpose) return null;
  const rank = value.type.shape.length;
  const perm = (node.attrs as TransposeAttrs).perm;
  const swaps = perm.every((from, to) => from === (to < rank - 2 ? to : 2 * rank - 3 - to));
  return swaps ? at(node.inputs, 0) : null;
}

/** A transposed input becomes a flag: the same elements are multiplied and added in the same order. */
function foldTransposes(b: Build, node: Node, attrs: MatmulAttrs): Value | null {
  const { ta, tb, xNonzero = [], wNonzero = [], wide = false } = attrs;
  const x = untransposed(b, at(node.inputs, 0));
  const w = untransposed(b, at(node.inputs, 1));
  if (!x && !w) return null;
  const inputs = [x ?? at(node.inputs, 0), w ?? at(node.inputs, 1)];
  const flags = { ta: ta !== (x !== null), tb: tb !== (w !== null) };
  return b.call(matmul, inputs, {
    ...flags,
    xNonzero: x ? exchanged(xNonzero) : xNonzero,
    wNonzero: w ? exchanged(wNonzero) : wNonzero,
    wide,
  });
}

/**
 * A product of a vector and a matrix, transposed so that memory is read along rows, or whole rows are added. Both forms
 * multiply and add the same elements.
 *
 *   x·wᵀ, one row x          w·xᵀ: sums along the rows of w
 *   xᵀ·w, one column w       wᵀ·x: rows of x, added up
 */
function transposeVector(b: Build, node: Node, attrs: MatmulAttrs): Value | null {
  const { ta, tb, xNonzero = [], wNonzero = [], wide = false } = attrs;
  const [x, w] = [at(node.inputs, 0), at(node.inputs, 1)];
  const { shape } = at(node.outputs, 0).type;
  const [m, n] = shape.slice(-2);
  if ((m === 1) === (n === 1) || !(m === 1 ? tb : ta)) return null;
  const turned = { ta: !tb, tb: !ta, xNonzero: wNonzero, wNonzero: xNonzero, wide };
  const transposed = b.call(matmul, [w, x], turned);
  return b.call(reshape, [transposed], { shape });
}

function evaluateMatmul({ inputs, inTypes, outTypes, attrs }: EvaluateContext<MatmulAttrs>): readonly [Float64Array] {
  const { m, n, k } = contraction(inTypes, attrs);
  const x = at(inputs, 0);
  const w = at(inputs, 1);
  const out = new Float64Array(elementsOf(at(outTypes, 0).shape));
  const { dtype } = at(outTypes, 0);
  for (let e = 0; e < out.length; e++) {
    const j = e % n;
    const i = Math.floor(e / n) % m;
    const t = Math.floor(e / (n * m));
    let sum = 0;
    for (let r = 0; r < k; r++) {
      const a = at(x, t * m * k + (attrs.ta ? r * m + i : i * k + r));
      const b = at(w, t * k * n + (attrs.tb ? j * k + r : r * n + j));
      sum = addIn(dtype, sum, mulIn(dtype, a, b));
    }
    out[e] = sum;
  }
  return [out];
}

/** Rows, depth and columns of a product. */
type Mkn = readonly [number, number, number];

function matmulSamples(): readonly Sample<MatmulAttrs>[] {
  const samples: Sample<MatmulAttrs>[] = [];
  const sides = (flags: MatmulAttrs, batch: readonly number[], [m, k, n]: Mkn) => ({
    x: [...batch, ...(flags.ta ? [k, m] : [m, k])],
    w: [...batch, ...(flags.tb ? [n, k] : [k, n])],
  });
  const push = (dtype: NumberType, flags: MatmulAttrs, batch: readonly number[], mkn: Mkn): void => {
    const { x, w } = sides(flags, batch, mkn);
    samples.push({
      inputs: [tensorType(dtype, x), tensorType(dtype, w)],
      attrs: flags,
      range: isFloat(dtype) ? typeOf(dtype).samples : [-9, 9],
    });
  };
  for (const ta of [false, true]) {
    for (const tb of [false, true]) {
      for (const dtype of NUMBER_TYPES) {
        push(dtype, { ta, tb }, [], [3, 5, 4]);
        push(dtype, { ta, tb }, [2, 3], [2, 3, 5]);
      }
      push("f32", { ta, tb }, [], [17, 33, 19]);
      push("f32", { ta, tb }, [], [1, 6, 1]);
      push("f32", { ta, tb }, [], [1, 40, 37]);
      push("f32", { ta, tb }, [2], [35, 20, 1]);
      push("f32", { ta, tb }, [], [4, 0, 3]);
    }
  }
  const plain = { ta: false, tb: false };
  push("f32", plain, [], [0, 3, 4]);
  push("f32", plain, [], [3, 4, 0]);
  push("f64", plain, [0], [2, 3, 4]);
  push("i32", plain, [2], [2, 0, 2]);
  push("f64", plain, [], [1, 1, 1]);
  push("bf16", { ...plain, wide: true }, [], [3, 40, 4]);
  push("f16", { ta: true, tb: false, wide: true }, [2], [5, 7, 17]);
  push("bf16", { ta: false, tb: true, wide: true }, [], [1, 9, 6]);
  return samples;
}

/**
 * A batch of products: one product with more rows where w is the same for all, with more columns where x is; else one with a batch
 * axis more. Products that have batch axes already, or lines beyond which a side is zero, get the axis on both sides.
 */
function matmulOfBatch(b: Build, site: BatchSite<MatmulAttrs>): readonly Value[] {
  const { x: sides, batched, size, attrs } = site;
  const { ta, tb, xNonzero = [], wNonzero = [] } = attrs;
  const isPlain = [0, 1].some((i) => !batched[i] && at(sides, i).type.shape.length === 2);
  if (!isPlain || xNonzero.length + wNonzero.length > 0) {
    return [b.call(matmul, [withAxis(b, site, 0), withAxis(b, site, 1)], attrs)];
  }
  const [x, w] = [at(sides, 0), at(sides, 1)];
  if (batched[0]) {
    // behind the depth, where that comes first
    const rows = joinedAxes(b, ta ? movedAxis(b, x, 0, 1) : x, ta ? 1 : 0);
    return [splitAxis(b, b.call(matmul, [rows, w], attrs), 0, size)];
  }
  const columns = joinedAxes(b, tb ? w : movedAxis(b, w, 0, 1), tb ? 0 : 1);
  return [movedAxis(b, splitAxis(b, b.call(matmul, [x, columns], attrs), 1, size), 1, 0)];
}

/** Terms that hardware may add at once: a chain of sums is cut at multiples of them. */
const CHAINED = 64;

/**
 * Cut along a batch axis, along rows or columns of the result, or along the depth: then one product a run, which is how the
 * runs of the whole depth are added up. A side with a line beyond which it is zero is cut in batches alone: elsewhere the line
 * differs from strip to strip, and without it zeros would be multiplied with what may be infinite.
 */
const matmulStrips: StripForms<MatmulAttrs> = (inputs, [y], attrs) => {
  const rank = y?.shape.length ?? 0;
  const { ta, tb, xNonzero = [], wNonzero = [], wide = false } = attrs;
  const [isFullX, isFullW] = [xNonzero.length === 0, wNonzero.length === 0];
  const plain = { ta, tb, wide };
  const [rows, cols] = [rank - 2, rank - 1];
  const batch = Array.from({ length: rows }, (_, axis) => sameAttrs([axis, axis], [axis], attrs));
  const [xRows, xDepth] = ta ? [cols, rows] : [rows, cols];
  const [wDepth, wCols] = tb ? [cols, rows] : [rows, cols];
  const { k } = contraction(inputs, attrs);
  const run = depthRun(k);
  const isExact = typeOf(at(inputs, 0).dtype).accumulate === y?.dtype;
  const parts: StripForm["parts"] = (b, sides, strips) =>
    Array.from({ length: k / strips / run }, (_, i) => {
      const part = [i * run, run] as const;
      return b.call(
        matmul,
        [partAlong(b, at(sides, 0), xDepth, part), partAlong(b, at(sides, 1), wDepth, part)],
        plain,
      );
    });
  const inRuns = (strips: number): MatmulAttrs | null => (isExact && (k / strips) % run === 0 ? plain : null);
  const onto: StripForm["onto"] = (b, sum, own) => {
    const strip = contraction(
      own.map(({ type }) => type),
      attrs,
    );
    return strip.k % CHAINED === 0 ? b.call(matmulOnto, [sum, ...own], plain) : null;
  };
  return [
    ...batch,
    ...(isFullX ? [sameAttrs([xRows, null], [rows], { ...plain, wNonzero })] : []),
    ...(isFullW ? [sameAttrs([null, wCols], [cols], { ...plain, xNonzero })] : []),
    ...(isFullX && isFullW ? [{ inputs: [xDepth, wDepth], outputs: [null], attrs: inRuns, parts, onto }] : []),
  ];
};

export const matmul: OpDef<MatmulAttrs> = defineOp<MatmulAttrs>({
  name: "matmul",
  defaults: { ta: false, tb: false, xNonzero: [], wNonzero: [], wide: false },
  infer: inferMatmul,
  batch: { kind: "general", apply: matmulOfBatch },
  facts: {
    autocast: "product",
    wideResult,
    withZeroFactors: (attrs, [xNonzero = [], wNonzero = []]) => ({ ...attrs, xNonzero, wNonzero }),
    strips: matmulStrips,
  },
  derivative: { kind: "multilinear", transpose: matmulTranspose },
  cost(inputs, _, attrs) {
    const { batch, m, n, k } = contraction(inputs, attrs);
    return { flops: 2 * elementsOf(batch) * m * n * k };
  },
  lower: {
    kind: "contract",
    parts: (inputs, attrs) => [
      {
        ...contraction(inputs, attrs),
        within: withinOf(contraction(inputs, attrs), attrs),
        a: (c, batch, i, k) => readMatrix(at(c.inputs, 0), at(c.inTypes, 0), batch, attrs.ta ? [k, i] : [i, k]),
        b: (c, batch, k, j) => readMatrix(at(c.inputs, 1), at(c.inTypes, 1), batch, attrs.tb ? [j, k] : [k, j]),
      },
    ],
  },
  simplify: (b, node, attrs) => foldTransposes(b, node, attrs) ?? transposeVector(b, node, attrs),
  evaluate: evaluateMatmul,
  samples: () => matmulSamples(),
});

function readMatrix(
  read: Reader,
  type: TensorType,
  batch: readonly Index[],
  last: readonly [Index, Index],
): ReturnType<Reader> {
  return read(Position.at(type.shape, [...batch, ...last]));
}

/** Without lines beyond which factors are zero: a strip has other lines than the whole. */
export type MatmulOntoAttrs = Pick<MatmulAttrs, "ta" | "tb" | "wide">;

/**
 * A product that goes on with a sum: y = s + x · w, where s is what earlier terms of one sum came to. The planner makes it in
 * loops over strips of rows (loops/strips). Targets whose sums are one chain start theirs from s, so that the last of
 * several such products has the bits of one product along the whole depth; elsewhere the product is added to s.
 */
export const matmulOnto: OpDef<MatmulOntoAttrs> = defineOp<MatmulOntoAttrs>({
  name: "matmul_onto",
  batch: LEADING,
  defaults: { ta: false, tb: false, wide: false },
  infer(inputs, attrs) {
    requireInputs("matmul_onto", ["s", "x", "w"], inputs);
    const [s, x, w] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
    const [y] = matmul.infer([x, w], attrs, []);
    if (y && sameType(s, y)) return [y];
    throw new TidemarkError("ShapeMismatch", `matmul_onto: s is ${typeText(s)}, the product ${y ? typeText(y) : ""}`, {
      help: "a sum goes on with products of its own type",
    });
  },
  derivative: {
    kind: "region",
    rule({ inputs, attrs }) {
      const b = new Build("onto");
      const [s, x, w] = [b.param(at(inputs, 0).type), b.param(at(inputs, 1).type), b.param(at(inputs, 2).type)];
      const product = b.call(matmul, [x, w], attrs as MatmulAttrs);
      return { kind: "replay", body: b.finish([apply(b, add, s, product)]) };
    },
  },
  cost: ([, ...inputs], outputs, attrs) => matmul.cost(inputs, outputs, attrs, []),
  lower: {
    kind: "contract",
    parts([, ...sides], attrs) {
      const { lower } = matmul;
      if (lower.kind !== "contract") return [];
      return lower.parts(sides, attrs).map(
        (part): ContractPart<MatmulOntoAttrs> => ({
          ...part,
          a: (c, ...place) => part.a({ ...c, inputs: c.inputs.slice(1), inTypes: c.inTypes.slice(1) }, ...place),
          b: (c, ...place) => part.b({ ...c, inputs: c.inputs.slice(1), inTypes: c.inTypes.slice(1) }, ...place),
          start: (c, batch, i, j) => at(c.inputs, 0)(Position.at(c.outType.shape, [...batch, i, j])),
        }),
      );
    },
  },
  evaluate({ inputs: [s, ...sides], inTypes, ...rest }) {
    const [product] = matmul.evaluate({ ...rest, inputs: sides, inTypes: inTypes.slice(1) });
    const { dtype } = at(rest.outTypes, 0);
    return [(product ?? new Float64Array()).map((y, i) => addIn(dtype, at(s ?? new Float64Array(), i), y))];
  },
  samples: () =>
    [
      [3, 5, 4],
      [17, 33, 19],
      [1, 6, 3],
    ].flatMap(([m = 0, k = 0, n = 0]) =>
      (["f32", "f64"] as const).map((dtype) => ({
        inputs: [tensorType(dtype, [m, n]), tensorType(dtype, [k, m]), tensorType(dtype, [k, n])],
        attrs: { ta: true, tb: false },
      })),
    ),
});
