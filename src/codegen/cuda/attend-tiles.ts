/**
 * @file The tiles of attention in shared memory: words of tf32, or pairs of bf16 or f16 where queries, keys and values are that
 * in memory.
 */
import type { Expr } from "../../kernel/expr.ts";
import type { AttendNest } from "../../kernel/loops.ts";
import { inRuns, neighbours, type SideCounters } from "./tensor-side.ts";
import { FACTORS, type FactorType } from "./tensor-types.ts";

/** Sums of a thread for each eight columns; floats that are read at once. */
export const EACH = 4;

export const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;

/** What all factors are: the type of queries, keys and values in memory, where it is one of sixteen bits. */
export function attendFactors({ q, k, v }: AttendNest): FactorType {
  const types = Object.keys(FACTORS) as FactorType[];
  const isIn = (expr: Expr, type: FactorType): boolean =>
    expr.kind === "load" && expr.storage === FACTORS[type].storage;
  return types.find((type) => [q, k, v].every((expr) => isIn(expr, type))) ?? "tf32";
}

/** A read of sixteen bytes and where in a tile it goes; it is zero where `inside` does not hold. */
interface Vector {
  readonly from: string;
  readonly inside: string;
  readonly each: number;
  readonly name: string;
  readonly place: string;
}

export class TileForm {
  readonly factors: FactorType;

  constructor(factors: FactorType) {
    this.factors = factors;
  }

  /** Elements of a word of shared memory. */
  get perWord(): number {
    return this.factors === "tf32" ? 1 : 2;
  }

  /** Depth of an instruction. */
  get unit(): number {
    return 8 * this.perWord;
  }

  /** Words from row to row: the threads of a warp read different banks, along rows and across. */
  pitch(width: number): number {
    return roundUp(roundUp(width, this.unit) / this.perWord, 32) + 4;
  }

  /** Elements of a side that are read at once: sixteen bytes of them, or one. */
  together(expr: Expr, counters: SideCounters): number {
    if (neighbours(expr, counters).vector) return EACH;
    if (this.factors === "tf32" || expr.kind !== "load" || expr.storage !== FACTORS[this.factors].storage) return 1;
    const isWhole = counters.aligned(expr.operand) && inRuns(expr.index, counters.depth, 2 * EACH);
    return isWhole ? 2 * EACH : 1;
  }

  elementText(name: string, place: string, value: string): string {
    if (this.factors === "tf32") return `((u32 *)${name})[${place}] = to_tf32(${value});`;
    return `((u16 *)${name})[${place}] = ${this.factors}_of(${value});`;
  }

  vectorText({ from, inside, each, name, place }: Vector): readonly string[] {
    const guard = inside ? `if (${inside}) ` : "";
    if (each > EACH) {
      const read = ["uint4 eight = { 0, 0, 0, 0 };", `${guard}eight = *(const uint4 *)${from};`];
      return [...read, `*(uint4 *)&((u16 *)${name})[${place}] = eight;`];
    }
    const read = ["float4 four = { 0.0f, 0.0f, 0.0f, 0.0f };", `${guard}four = *(const float4 *)${from};`];
    if (this.factors === "tf32") {
      const parts = ["x", "y", "z", "w"].map((part) => `to_tf32(four.${part})`).join(", ");
      return [...read, `*(uint4 *)&${name}[${place}] = make_uint4(${parts});`];
    }
    const pairs = ["four.x, four.y", "four.z, four.w"].map((pair) => `${this.factors}_factors(${pair})`).join(", ");
    return [...read, `*(uint2 *)&((u16 *)${name})[${place}] = make_uint2(${pairs});`];
  }
}
