/** @file Operations on matrices as routines: the place of the result of one batch, and reads of the inputs there. */
import { at } from "../../base/invariant.ts";
import type { LowerContext, Lowering } from "../../ir/op.ts";
import { productType } from "../../kernel/dtype.ts";
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import { linearIndex, varIndex, ZERO } from "../../kernel/index-math.ts";
import type { RoutineNest } from "../../kernel/loops.ts";
import { Position } from "../../kernel/position.ts";
import { type Ix, ix, Matrix, RoutineBuilder } from "../../kernel/routine-builder.ts";
import { inType } from "../../kernel/scalar-ops.ts";

/** A routine under construction: the result of one batch, and reads of the inputs there, all of them matrices. */
export interface RoutineSite {
  readonly r: RoutineBuilder;
  readonly out: Matrix;
  read(input: number, i: Ix, j: Ix): Expr;
}

interface MatrixRoutine<A> {
  /** The result starts as a copy of input 0, which is then not read. */
  readonly copies: boolean;
  write(c: LowerContext<A>, site: RoutineSite): void;
}

function nestOf<A>(
  { copies, write }: MatrixRoutine<A>,
  context: LowerContext<A>,
  to: number,
): Omit<RoutineNest, "flops"> {
  const { outType, inTypes, inputs } = context;
  const loops = outType.shape.slice(0, -2).map((extent, i): LoopVar => ({ kind: "var", name: `b${i}`, extent }));
  const batch = loops.map(varIndex);
  const r = new RoutineBuilder(productType(outType.dtype) as RoutineNest["dtype"]);
  const [rows, columns] = [outType.shape.at(-2) ?? 1, outType.shape.at(-1) ?? 1];
  const start = linearIndex([...batch, ZERO, ZERO], outType.shape);
  const stored = new Matrix(to, outType.dtype, start, [columns, 1]);
  // what is computed is stored once, where storing rounds
  const isRounded = r.dtype !== outType.dtype;
  const out = isRounded ? r.matrix(rows, columns) : stored;
  const copy = (from: Matrix, into: Matrix): void =>
    r.for(0, rows, (i) => r.each(0, columns, (j) => r.set(into.place(i, j), from.at(i, j))));
  if (isRounded && copies) copy(stored, out);
  const read = (input: number, i: Ix, j: Ix): Expr => {
    const place = Position.at(at(inTypes, input).shape, [...batch, ix(i), ix(j)]);
    return inType(at(inputs, input)(place), r.dtype);
  };
  write(context, { r, out, read });
  if (isRounded) copy(out, stored);
  return { kind: "routine", loops, dtype: r.dtype, tiles: r.tiles, body: r.steps };
}

export function matrixRoutine<A>(routine: MatrixRoutine<A>): Lowering<A> {
  return { kind: "routine", copies: routine.copies, nest: (c, to) => nestOf(routine, c, to) };
}
