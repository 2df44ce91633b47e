/**
 * @file Transposition of matrices, in C. Where memory runs along the depth of a product, the lanes of a panel are a row apart:
 * blocks of L × L are read as rows and transposed in registers, in log2 L rounds that swap the off-diagonal halves of ever
 * smaller blocks.
 *
 *   a b | c d        a b  i j        a e  i m
 *   e f | g h   →    e f  m n   →    b f  j n          L = 4: rounds of 2 and 1
 *   ---------        c d  k l        c g  k o
 *   i j | k l        g h  o p        d h  l p
 *   m n | o p
 *
 * A panel is [depth][width]; lanes beyond the matrix are zero, so that tiles need not know where it ends.
 */
import type { ProductType } from "../../kernel/dtype.ts";
import { cTypeOf, vectorName } from "./gemm-micro.ts";
import { fileName } from "./names.ts";
import type { ShareFunction } from "./options.ts";

const list = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);

export const transposeName = (dtype: ProductType): string => fileName(`turn_${dtype}`);
export const packTransposedName = (dtype: ProductType): string => fileName(`across_${dtype}`);

/** tide_turn_T: the L rows of L lanes at r, transposed. */
function transposeText(dtype: ProductType, lanes: number): string {
  const v = vectorName(dtype, lanes);
  const out: string[] = [
    `static inline __attribute__((always_inline)) void ${transposeName(dtype)}(${v} *r) {`,
    `  ${v} x, y;`,
  ];
  for (let half = lanes / 2; half >= 1; half /= 2) {
    const low = list(lanes).map((l) => ((l & half) === 0 ? l : l - half + lanes));
    const high = list(lanes).map((l) => ((l & half) === 0 ? l + half : l + lanes));
    for (const i of list(lanes)) {
      if ((i & half) !== 0) continue;
      out.push(
        `  x = r[${i}], y = r[${i + half}];`,
        `  r[${i}] = __builtin_shufflevector(x, y, ${low.join(", ")});`,
        `  r[${i + half}] = __builtin_shufflevector(x, y, ${high.join(", ")});`,
      );
    }
  }
  return `${[...out, "}"].join("\n")}\n`;
}

/**
 * tide_across_T(src, ld, lanes, depth, dst, width, at, end): lane l of step k is src[l · ld + k], and goes to row at[k] of the
 * panel unless that is negative, or to row k where there is no such table. `width` is a multiple of L, or ends in less than L.
 * Blocks may read beyond the depth, up to `end`; steps that do not fill a block otherwise are copied one by one.
 */
function packTransposedText(dtype: ProductType, lanes: number): string {
  const [c, v] = [cTypeOf(dtype), vectorName(dtype, lanes)];
  const head = `const ${c} *src, idx ld, idx lanes, idx depth, ${c} *dst, idx width, const int *at, const ${c} *end`;
  return `FUNCTION void ${packTransposedName(dtype)}(${head}) {
  for (idx l = 0; l < width; l += ${lanes}) {
    idx there = lanes - l < ${lanes} ? lanes - l : ${lanes}, room = width - l < ${lanes} ? width - l : ${lanes}, k = 0;
    if (room == ${lanes}) for (; k < depth; k += ${lanes}) {
      idx steps = depth - k < ${lanes} ? depth - k : ${lanes};
      if (steps < ${lanes} && (!end || src + (l + there - 1) * ld + k + ${lanes} > end)) break;
      ${v} r[${lanes}];
      if (there == ${lanes}) {
        for (int i = 0; i < ${lanes}; i++) r[i] = *(const ${v}u *)(src + (l + i) * ld + k);
      } else {
        for (int i = 0; i < ${lanes}; i++) {
          r[i] = (${v}){0};
          if (i < there) r[i] = *(const ${v}u *)(src + (l + i) * ld + k);
        }
      }
      ${transposeName(dtype)}(r);
      if (at) {
        for (int i = 0; i < steps; i++) if (at[k + i] >= 0) *(${v}u *)(dst + at[k + i] * width + l) = r[i];
      } else if (steps == ${lanes}) {
        for (int i = 0; i < ${lanes}; i++) *(${v}u *)(dst + (k + i) * width + l) = r[i];
      } else {
        for (int i = 0; i < steps; i++) *(${v}u *)(dst + (k + i) * width + l) = r[i];
      }
    }
    for (; k < depth; k++) {
      if (at && at[k] < 0) continue;
      ${c} *row = dst + (at ? at[k] : k) * width + l;
      for (idx i = 0; i < room; i++) row[i] = i < there ? src[(l + i) * ld + k] : 0;
    }
  }
}
`;
}

/** Adds the functions that transpose matrices of a type to the file; `lanes` is a whole register. */
export function sharePacking(share: ShareFunction, dtype: ProductType, lanes: number): void {
  share(transposeName(dtype), "inline", () => transposeText(dtype, lanes));
  share(packTransposedName(dtype), "function", () => packTransposedText(dtype, lanes));
}
