/**
 * @file The innermost function of matrix products: one tile of C, held in registers while the depth k runs.
 *
 *                 b: NR = vectors · lanes columns
 *                 ┌───────┬───────┐  k = 0
 *                 ├───────┼───────┤  k = 1, …            panels are packed: NR elements of b for each k,
 *     a: MR rows  └───────┴───────┘                      MR elements of a for each k, nothing between
 *     ┌─┬─┬─      ┌───────┬───────┐
 *     │ │ │       │  c00  │  c01  │    an iteration loads the vectors of b's row k, then row by row splats one
 *     │ │ │       │  c10  │  c11  │    element of a over a register and adds its products to that row of c
 *     │ │ │       │  c20  │  c21  │
 *     └─┴─┴─      └───────┴───────┘
 *
 * Invariant: every element is c + ((a₀b₀ + a₁b₁) + …) in the order of k, with one multiplication and one addition each,
 * or one fused multiply-add. Its bits depend on nothing but the order of k and where the depth is cut into blocks: not
 * on the tile, not on the neighbours.
 *
 * The tile is as large as registers allow. On x64 V8 gives out 15 of the 16 vector registers; next to c and b's row k
 * the loop needs the splatted element and, without fused multiply-add, the product: MR·V + V + 2 ≤ 15, or + 1. A register
 * too many is spilled in the loop and costs a third to a half of the speed. So does unrolling over k in Node 20, whose
 * register allocator then spills the accumulators, and in newer ones it gains less than a tenth: there is one iteration per
 * k, tested at the bottom. Figures: bench/micro-kernel.ts and docs/decisions/0004-wasm-products.md. The scheme is that
 * of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (doi.org/10.1145/1356052.1356053).
 */
import { at } from "../../base/invariant.ts";
import { bytesOf, type ProductType } from "../../kernel/dtype.ts";
import { tileRows } from "../../kernel/loops.ts";
import { Code, type ModuleBuilder, OP, type SimdOp, type VectorMemoryOp } from "./encoder.ts";

/** MR = `rows`, NR = `vectors` · lanes. */
export interface Tile {
  readonly rows: number;
  readonly vectors: number;
  /** Bytes from one k to the next on either side, where there is more than the tile's elements between; default: packed panels. */
  readonly steps?: { readonly a: number; readonly b: number };
}

const VECTOR_BYTES = 16;

interface Arithmetic {
  readonly splat: VectorMemoryOp;
  readonly multiply: SimdOp;
  readonly add: SimdOp;
  /** Integers have no rounding to save. */
  readonly fused: SimdOp | null;
}

const ARITHMETIC: Record<ProductType, Arithmetic> = {
  f32: { splat: "load32_splat", multiply: "f32x4_mul", add: "f32x4_add", fused: "f32x4_relaxed_madd" },
  f64: { splat: "load64_splat", multiply: "f64x2_mul", add: "f64x2_add", fused: "f64x2_relaxed_madd" },
  i32: { splat: "load32_splat", multiply: "i32x4_mul", add: "i32x4_add", fused: null },
  i64: { splat: "load64_splat", multiply: "i64x2_mul", add: "i64x2_add", fused: null },
};

/**
 * The tile that was fastest among those whose sides suit common shapes: 5 rows of 2 vectors are a few percent faster
 * than 4 without fused multiply-add, and lose that again on every shape that is a power of two. A product of few rows has
 * lower tiles, no more of them, and less to pack: 8 rows are 2 × 4, not 2 × 6.
 */
export function tileOf(dtype: ProductType, fma: boolean, rows = Number.POSITIVE_INFINITY): Tile {
  const most = fma && ARITHMETIC[dtype].fused ? 6 : 4;
  return { rows: Number.isFinite(rows) ? tileRows(rows, most) : most, vectors: 2 };
}

/** NR: the elements in a row of the tile. */
export function columnsOf(dtype: ProductType, tile: Tile): number {
  return (tile.vectors * VECTOR_BYTES) / bytesOf(dtype);
}

/**
 * Adds the function `(a, b, depth, c, strideBytes, accumulate)`, all i32, and returns its number. Addresses are in
 * bytes; c's rows are `strideBytes` apart. With `accumulate` ≠ 0 the sums are added to the tile, otherwise written
 * without reading it. A depth of 0 leaves the tile or writes zeros. No alignment is needed. `fma` needs relaxed SIMD (see
 * features.ts).
 */
export function addMicroKernel(
  module: ModuleBuilder,
  dtype: ProductType,
  fma: boolean,
  tile: Tile = tileOf(dtype, fma),
): number {
  const steps = tile.steps ?? { a: tile.rows * bytesOf(dtype), b: tile.vectors * VECTOR_BYTES };
  const code = new Code(["i32", "i32", "i32", "i32", "i32", "i32"]);
  const [a, b, depth, c, stride, accumulate] = [0, 1, 2, 3, 4, 5] as const;
  const row = code.local("i32");
  const end = code.local("i32");
  const sums = Array.from({ length: tile.rows }, () => vectorLocals(code, tile.vectors));

  const eachVector = (visit: (sum: number, offset: number) => void): void => {
    code.get(c).set(row);
    for (const sumsOfRow of sums) {
      for (const [j, sum] of sumsOfRow.entries()) visit(sum, j * VECTOR_BYTES);
      code.get(row).get(stride).op(OP.i32Add).set(row);
    }
  };

  code.get(a).get(depth).i32Const(steps.a).op(OP.i32Mul).op(OP.i32Add).set(end);
  const more = (): Code => code.get(a).get(end).op(OP.i32Ne);
  const iteration = (): void => {
    emitOuterProduct(code, ARITHMETIC[dtype], { a, b, sums, bytes: bytesOf(dtype), fma });
    code.increment(a, steps.a).increment(b, steps.b);
  };
  // Locals start as zeros: a block is summed on its own and then added, which keeps long sums accurate.
  more().if(null, () => code.repeat(iteration, more));
  const addTo = (sum: number, offset: number): void => {
    code.get(row).memory("load", offset).get(sum).simd(ARITHMETIC[dtype].add).set(sum);
  };
  code.get(accumulate).if(null, () => eachVector(addTo));
  eachVector((sum, offset) => code.get(row).get(sum).memory("store", offset));
  return module.add(code);
}

interface OuterProduct {
  /** Locals that hold the addresses of this k's elements. */
  readonly a: number;
  readonly b: number;
  /** The tile's locals, row by row. */
  readonly sums: readonly (readonly number[])[];
  readonly bytes: number;
  readonly fma: boolean;
}

/** sums[r][j] += a[r] · b[j] for one k. The vectors of b stay in registers, the elements of a come one at a time. */
function emitOuterProduct(code: Code, arithmetic: Arithmetic, { a, b, sums, bytes, fma }: OuterProduct): void {
  const { splat, multiply, add, fused } = arithmetic;
  const rowOfB = vectorLocals(code, at(sums, 0).length);
  const element = code.local("v128");
  for (const [j, vector] of rowOfB.entries())
    code
      .get(b)
      .memory("load", j * VECTOR_BYTES)
      .set(vector);
  for (const [r, sumsOfRow] of sums.entries()) {
    code
      .get(a)
      .memory(splat, r * bytes)
      .set(element);
    for (const [j, vector] of rowOfB.entries()) {
      const sum = at(sumsOfRow, j);
      if (fma && fused) code.get(element).get(vector).get(sum).simd(fused).set(sum);
      else code.get(sum).get(element).get(vector).simd(multiply).simd(add).set(sum);
    }
  }
}

function vectorLocals(code: Code, count: number): readonly number[] {
  return Array.from({ length: count }, () => code.local("v128"));
}
