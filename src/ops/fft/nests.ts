/**
 * @file A Fourier transform as the nests of a kernel: reads of its inputs along the axis, and the places of its result.
 *
 * On targets with threads, lines are transformed a few at a time, so that they stay in a cache and workspace is as small as they are: one
 * line after the other along the last axis, and neighbouring columns along another one. Where lines are few or long, and on other
 * targets, each stage runs over all lines. What is computed is the same.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { KernelBuild, LowerContext } from "../../ir/op.ts";
import { elementsOf, type Shape } from "../../ir/type.ts";
import { type Accumulator, bytesOf, isFloatScalar, typeOf } from "../../kernel/dtype.ts";
import type { Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { addIndex, linearIndex, scaleIndex, splitIndex, varIndex } from "../../kernel/index-math.ts";
import type { Nest, Store } from "../../kernel/loops.ts";
import { Position } from "../../kernel/position.ts";
import { inType, mul } from "../../kernel/scalar-ops.ts";
import { ofReal, toReal } from "./real.ts";
import type { Buffer, Plane, Sink, Source, Workspace } from "./stages.ts";
import { Transforms } from "./transforms.ts";

/** A Fourier transform of length n: of pairs, of a real input to pairs, or of pairs to a real result. */
export interface FftPart {
  readonly form: "complex" | "real" | "hermitian";
  readonly axis: number;
  readonly n: number;
  readonly inverse: boolean;
  /** Factor of the result. */
  readonly scale: number;
  /** Factor of the elements 0 and n/2 on the side of half a transform. */
  readonly ends: number;
}

/** Bytes of the lines of a unit, at most; and columns of a unit, the most first. */
const UNIT_BYTES = 2 ** 18;
const COLUMNS = [64, 48, 32, 40, 24, 16, 8];
/** Units for each thread, at least. */
const UNITS = 4;

/** Counters of the lines that are transformed together, those of units, and where in a tensor a line is. */
interface Layout {
  readonly units: readonly LoopVar[];
  readonly lines: { readonly outer: readonly LoopVar[]; readonly inner: readonly LoopVar[] };
  readonly before: readonly Index[];
  readonly after: readonly Index[];
}

const counters = (prefix: string, extents: Shape): readonly LoopVar[] =>
  extents.map((extent, i): LoopVar => ({ kind: "var", name: `${prefix}${i}`, extent }));

/** All lines at once. */
function wholeLayout(shape: Shape, axis: number): Layout {
  const [outer, inner] = [counters("o", shape.slice(0, axis)), counters("i", shape.slice(axis + 1))];
  return { units: [], lines: { outer, inner }, before: outer.map(varIndex), after: inner.map(varIndex) };
}

/** A few lines at a time; null where that is of no use. `bytes`: of one line. */
function unitLayout(shape: Shape, axis: number, bytes: number, threads: number): Layout | null {
  const [outside, inside] = [shape.slice(0, axis), shape.slice(axis + 1)];
  const columns = elementsOf(inside);
  const isGood = (width: number): boolean =>
    columns % width === 0 && width * bytes <= UNIT_BYTES && elementsOf(outside) * (columns / width) >= UNITS * threads;
  const width = (columns === 1 ? [1] : COLUMNS).find(isGood);
  if (width === undefined) return null;
  const [outer, strip] = [counters("o", outside), counters("u", [columns / width])];
  const inner = counters("c", [width]);
  const column = addIndex(scaleIndex(varIndex(at(strip, 0)), width), varIndex(at(inner, 0)));
  const units = [...outer, ...strip];
  return { units, lines: { outer: [], inner }, before: outer.map(varIndex), after: splitIndex(column, inside) };
}

/** Memory of whole operands: all lines have their own. */
function wholeMemory(c: KernelBuild, dtype: Accumulator): Workspace {
  const table = (elements: number): number => c.scratch(dtype, elements);
  return { table, plane: (elements) => ({ operand: table(elements), offset: 0 }) };
}

/** The results as the planes of a buffer: two of them, or both halves of one. */
function places(outputs: readonly number[], n: number, { lines }: Layout): Buffer["planes"] {
  const [re = 0, im = re] = outputs;
  const count = [...lines.outer, ...lines.inner].reduce((all, v) => all * v.extent, 1);
  return [
    { operand: re, offset: 0 },
    { operand: im, offset: im === re ? (n / 2) * count : 0 },
  ];
}

/** One operand that has the buffers of the lines of a unit, one after the other. */
class TileMemory implements Workspace {
  /** Null where nothing is between stages. */
  operand: number | null = null;
  elements = 0;
  readonly #c: KernelBuild;
  readonly #dtype: Accumulator;

  constructor(c: KernelBuild, dtype: Accumulator) {
    this.#c = c;
    this.#dtype = dtype;
  }

  table(elements: number): number {
    return this.#c.scratch(this.#dtype, elements);
  }

  plane(elements: number): Plane {
    this.operand ??= this.#c.scratch(this.#dtype, 0);
    const offset = this.elements;
    this.elements += Math.ceil(elements / 16) * 16;
    return { operand: this.operand, offset };
  }

  /** With a tile for each thread. */
  finish(operand: number, threads: number): void {
    const { dtype, role } = at(this.#c.operands, operand);
    this.#c.operands[operand] = { dtype, role, elements: threads * this.elements };
  }
}

export function fftNests(
  c: KernelBuild,
  context: LowerContext<never>,
  part: FftPart,
  threads: number | undefined,
): readonly Nest[] {
  const dtype = typeOf(context.outType.dtype).accumulate;
  invariant(isFloatScalar(dtype), () => `a Fourier transform of ${context.outType.dtype}`);
  const { shape } = at(context.inTypes, 0);
  const bytes = 4 * part.n * bytesOf(dtype);
  const inUnits = threads === undefined ? null : unitLayout(shape, part.axis, bytes, threads);
  const outputs = (part.form === "hermitian" ? [0] : [0, 1]).map((i) => c.outputOperand(i));
  if (!inUnits || threads === undefined) {
    const layout = wholeLayout(shape, part.axis);
    const made = new Transforms(dtype, layout.lines, wholeMemory(c, dtype));
    // as workspace where its elements have the type that is computed in
    const spare =
      context.outType.dtype === dtype ? { planes: places(outputs, part.n, layout), length: part.n } : undefined;
    transform(made, context, part, { layout, outputs, spare });
    return [...made.tables, ...made.nests];
  }
  const memory = new TileMemory(c, dtype);
  const made = new Transforms(dtype, inUnits.lines, memory);
  transform(made, context, part, { layout: inUnits, outputs, spare: undefined });
  const { units } = inUnits;
  if (memory.operand === null) {
    return [...made.tables, ...made.nests.map((nest) => ({ ...nest, loops: [...units, ...nest.loops] }))];
  }
  memory.finish(memory.operand, threads);
  const tile = { operand: memory.operand, elements: memory.elements };
  return [...made.tables, { kind: "staged", units, dtype, tile, body: made.nests }];
}

interface Result {
  readonly layout: Layout;
  readonly outputs: readonly number[];
  readonly spare: Buffer | undefined;
}

/** Between the inputs of a context and its result. */
function transform(
  made: Transforms,
  { inputs, inTypes, outType }: LowerContext<never>,
  { form, n, scale, inverse, ends }: FftPart,
  { layout, outputs, spare }: Result,
): void {
  const { accumulate: dtype, compute } = typeOf(outType.dtype);
  const indices = (place: Index): readonly Index[] => [...layout.before, place, ...layout.after];
  const read = (input: number, place: Index): Expr =>
    inType(at(inputs, input)(Position.at(at(inTypes, input).shape, indices(place))), dtype);
  const store = (output: number, place: Index, value: Expr): Store => ({
    operand: at(outputs, output),
    index: linearIndex(indices(place), outType.shape),
    value: inType(scale === 1 ? value : mul(value, scale), compute),
  });
  const pairs: Source = (place) => ({ re: read(0, place), im: read(1, place) });
  const zero: Expr = { kind: "const", dtype, value: 0 };
  const planes: Sink = (place, { re, im }) => [re, im].map((value, plane) => store(plane, place, value ?? zero));
  if (form === "complex") made.transform(n, inverse ? 1 : -1, { source: pairs, sink: planes }, { other: spare });
  else if (form === "real") ofReal(made, { n, ends, spare }, (place) => read(0, place), planes);
  else toReal(made, { n, ends, spare }, pairs, (place, value) => [store(0, place, value)]);
}
