/** @file What the copy engine brings of the sides of a product, and how tensor cores find it in shared memory. */
import { addIndex, constIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import type { ContractNest, MapNest } from "../../kernel/loops.ts";
import { type CopiedPlan, type CopiedSide, changedSides } from "./copied-plan.ts";
import { acrossMap } from "./tensor-across.ts";
import { ACROSS_BOX, ACROSS_BYTES } from "./tensor-stages.ts";
import { type FactorType, rowElements } from "./tensor-types.ts";

/** A part of an operand as the copy engine sees it: rows at a distance, of which it copies boxes. */
export interface TensorMap {
  readonly operand: number;
  /** What elements become on the way. */
  readonly factors: FactorType;
  /** In elements from the operand's start, and from one row to the next. */
  readonly offset: number;
  readonly pitch: number;
  /** Elements of a row, rows. */
  readonly extents: readonly [number, number];
  readonly box: readonly [number, number];
}

/** Where a side is in the workspace once it is transposed, or in its operand. */
export function mapOf(
  nest: ContractNest,
  { pitch: transposed }: CopiedPlan,
  side: CopiedSide,
  [rows, factors]: readonly [number, FactorType],
): TensorMap {
  const { operand, offset, pitch } = side;
  if (side.isAcross && factors === "tf32") return acrossMap({ ...side, depthStride: pitch }, nest);
  const depth = rowElements(factors);
  const place = { operand, offset, pitch, factors };
  if (side.isAcross) return { ...place, box: [ACROSS_BOX, depth], extents: [side.rows, nest.depth.extent] };
  const whole = { ...place, box: [depth, rows], extents: [nest.depth.extent, side.rows] } as const;
  if (side.transposedAt === null) return whole;
  return { ...whole, operand: nest.scratch, offset: side.transposedAt, pitch: transposed };
}

/** The maps that transpose sides into the workspace. */
export function transposing(nest: ContractNest, plan: CopiedPlan): readonly MapNest[] {
  const { a, b, rows, cols, depth, scratch } = plan.isChanged ? changedSides(nest) : nest;
  const sides = [
    { value: a, along: rows, to: plan.left.transposedAt },
    { value: b, along: cols, to: plan.right.transposedAt },
  ];
  return sides.flatMap(({ value, along, to }): readonly MapNest[] => {
    if (to === null) return [];
    const index = addIndex(scaleIndex(varIndex(along), plan.pitch), varIndex(depth), constIndex(to));
    return [{ kind: "map", loops: [along, depth], stores: [{ operand: scratch, index, value }] }];
  });
}

/** What the descriptor of a side consists of besides its place. */
export const formOf = ({ isAcross }: CopiedSide): string => (isAcross ? "across" : "form");

/** From one instruction's part of a side to the next, in units of 16 bytes: along rows, or sixteen rows down. */
export const instructionStep = ({ isAcross }: CopiedSide): number =>
  isAcross ? (ACROSS_BYTES / 16) * (16 / ACROSS_BOX) : 2;
