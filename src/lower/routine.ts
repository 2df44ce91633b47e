/** @file Steps for each matrix as a nest: the places of its result, and reads of its inputs. */
import { at } from "../base/invariant.ts";
import type { Node } from "../ir/graph.ts";
import type { LowerContext, Lowering } from "../ir/op.ts";
import { productType } from "../kernel/dtype.ts";
import type { LoopVar } from "../kernel/expr.ts";
import { linearIndex, varIndex, ZERO } from "../kernel/index-math.ts";
import type { RoutineNest } from "../kernel/loops.ts";
import { Position } from "../kernel/position.ts";
import { ix, Matrix, RoutineBuilder } from "../kernel/routine-builder.ts";
import { inType } from "../kernel/scalar-ops.ts";

/** The part of a kernel under construction that this needs. */
interface Composing {
  context(node: Node): LowerContext<never>;
  outputOperand(i: number): number;
}

export function routineNest(
  c: Composing,
  node: Node,
  lower: Extract<Lowering<never>, { kind: "routine" }>,
): RoutineNest {
  const context = c.context(node);
  const { outType, inTypes, inputs, attrs } = context;
  const loops = outType.shape.slice(0, -2).map((extent, i): LoopVar => ({ kind: "var", name: `b${i}`, extent }));
  const batch = loops.map(varIndex);
  const dtype = productType(outType.dtype);
  const r = new RoutineBuilder(dtype as RoutineNest["dtype"]);
  const [rows, columns] = [outType.shape.at(-2) ?? 1, outType.shape.at(-1) ?? 1];
  const start = linearIndex([...batch, ZERO, ZERO], outType.shape);
  const stored = new Matrix(c.outputOperand(0), outType.dtype, start, [columns, 1]);
  // what is computed is stored once, where storing rounds
  const isRounded = r.dtype !== outType.dtype;
  const out = isRounded ? r.matrix(rows, columns) : stored;
  const copy = (from: Matrix, to: Matrix): void =>
    r.for(0, rows, (i) => r.each(0, columns, (j) => r.set(to.place(i, j), from.at(i, j))));
  if (isRounded && lower.copies) copy(stored, out);
  lower.write(context, {
    r,
    out,
    read: (input, i, j) => {
      const place = Position.at(at(inTypes, input).shape, [...batch, ix(i), ix(j)]);
      return inType(at(inputs, input)(place), r.dtype);
    },
  });
  if (isRounded) copy(out, stored);
  const matrices = loops.reduce((n, v) => n * v.extent, 1);
  const { flops } = node.op.cost(inTypes, [outType], attrs, []);
  return {
    kind: "routine",
    loops,
    dtype: r.dtype,
    tiles: r.tiles,
    body: r.steps,
    flops: flops / Math.max(1, matrices),
  };
}
