/**
 * @file The transforms of Winograd's convolution (codegen/cpu/winograd-arithmetic.ts) in C, for tiles of 4 × 4 results of a 3 × 3
 * kernel.
 *
 * The lanes hold tiles next to each other for images and sums (a row of an image is split by its position mod 4 in
 * shuffles), and rows of the result for weights, as panels do; for the gradient they hold channels on both sides. Position
 * ξ = 6 · row + column of the 36 is the outermost axis. Nothing depends on which lane a tile is in.
 */

import {
  type Axis,
  gradientAxis,
  imageAxis,
  type RegisterOps,
  sumAxis,
  weightAxis,
  weightSumAxis,
} from "../cpu/winograd-arithmetic.ts";
import { SPAN, TILE } from "../cpu/winograd-choice.ts";
import { vectorName } from "./gemm-micro.ts";

const list = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);

/** Registers of a row of a tile of sums, and rows of it: 24 sums of 32 registers, 12 of 16. */
export const VECTORS = 3;
export const rowsOf = (lanes: number): number => (lanes === 16 ? 8 : 4);

const shuffle = (x: string, y: string, lanes: readonly number[]): string =>
  `__builtin_shufflevector(${x}, ${y}, ${lanes.join(", ")})`;

/** A function of C that transforms registers `d` to registers `o`. */
function axisText(name: string, v: string, axis: Axis, count: number): string {
  const lines: string[] = [];
  const value = (text: string): string => {
    const t = `t${lines.length}`;
    lines.push(`  const ${v} ${t} = ${text};`);
    return t;
  };
  const ops: RegisterOps<string> = {
    add: (a, b) => value(`${a} + ${b}`),
    sub: (a, b) => value(`${a} - ${b}`),
    scale: (a, n, d) => value(`${a} * ${d === 1 ? `${n}.0f` : `(${n}.0f / ${d}.0f)`}`),
  };
  const results = axis(
    ops,
    list(count).map((i) => `d[${i}]`),
  );
  const stores = results.map((text, i) => `o[${i}] = ${text}`).join(", ");
  return `INLINE void ${name}(const ${v} *d, ${v} *o) {\n${lines.join("\n")}\n  ${stores};\n}\n`;
}

/**
 * tide_winograd_image(p, ld, tiles, v, step, rows): a row of tiles from six rows of an image that are ld apart; position ξ of
 * tile t goes to v[ξ · step + t]. Columns first, into `rows`: six of ld elements. Reads and writes whole registers.
 *
 *   4 registers of a row   0 1 2 3 4 5 6 7 …    →    0 4 8 …   1 5 9 …   2 6 10 …   3 7 11 …    d0 to d3 of a register of tiles
 */
function imageText(v: string, lanes: number): string {
  const half = list(lanes / 2);
  const pairs = (first: number): readonly number[] => [0, 1].flatMap((p) => half.map((i) => TILE * i + first + p));
  const [low, high] = [
    [...half, ...half.map((i) => lanes + i)],
    [...half, ...half.map((i) => lanes + i)].map((i) => i + lanes / 2),
  ];
  const at = (offset: number): string => `*(const ${v}u *)(q + ${offset})`;
  return `FUNCTION void tide_winograd_image(const f32 *p, idx ld, idx tiles, f32 *v, idx step, f32 *rows) {
  for (idx x = 0; x < ${TILE} * tiles + 2; x += ${lanes}) {
    ${v} d[${SPAN}], o[${SPAN}];
    for (int i = 0; i < ${SPAN}; i++) d[i] = *(const ${v}u *)(p + i * ld + x);
    tide_winograd_b(d, o);
    for (int i = 0; i < ${SPAN}; i++) *(${v}u *)(rows + i * ld + x) = o[i];
  }
  for (idx t = 0; t < tiles; t += ${lanes}) for (int i = 0; i < ${SPAN}; i++) {
    const f32 *q = rows + i * ld + ${TILE} * t;
    ${v} d[${SPAN}], o[${SPAN}], r0 = ${at(0)}, r1 = ${at(lanes)}, r2 = ${at(2 * lanes)}, r3 = ${at(3 * lanes)};
    ${v} x = ${shuffle("r0", "r1", pairs(0))}, y = ${shuffle("r2", "r3", pairs(0))};
    d[0] = ${shuffle("x", "y", low)}, d[1] = ${shuffle("x", "y", high)};
    x = ${shuffle("r0", "r1", pairs(2))}, y = ${shuffle("r2", "r3", pairs(2))};
    d[2] = ${shuffle("x", "y", low)}, d[3] = ${shuffle("x", "y", high)};
    r0 = ${at(TILE)}, r1 = ${at(lanes + TILE)}, r2 = ${at(2 * lanes + TILE)}, r3 = ${at(3 * lanes + TILE)};
    x = ${shuffle("r0", "r1", pairs(0))}, y = ${shuffle("r2", "r3", pairs(0))};
    d[4] = ${shuffle("x", "y", low)}, d[5] = ${shuffle("x", "y", high)};
    tide_winograd_b(d, o);
    for (int j = 0; j < ${SPAN}; j++) *(${v}u *)(v + (i * ${SPAN} + j) * step + t) = o[j];
  }
}
`;
}

/**
 * tide_winograd_weights(w, tap, count, u, step): registers of weights, tap t of channel c at w[t · tap + c · L]; position ξ of it
 * goes to u[ξ · step + c · L]. Flipped weights start at their last tap and have a negative `tap`.
 */
function weightsText(v: string, lanes: number): string {
  return `FUNCTION void tide_winograd_weights(const f32 *w, idx tap, idx count, f32 *u, idx step) {
  for (idx c = 0; c < count; c++, w += ${lanes}, u += ${lanes}) {
    ${v} h[3][${SPAN}], g[3], o[${SPAN}];
    for (int j = 0; j < 3; j++) {
      for (int i = 0; i < 3; i++) g[i] = *(const ${v}u *)(w + (3 * i + j) * tap);
      tide_winograd_g(g, h[j]);
    }
    for (int i = 0; i < ${SPAN}; i++) {
      for (int j = 0; j < 3; j++) g[j] = h[j][i];
      tide_winograd_g(g, o);
      for (int j = 0; j < ${SPAN}; j++) *(${v}u *)(u + (i * ${SPAN} + j) * step) = o[j];
    }
  }
}
`;
}

/**
 * tide_winograd_sums(m, step, tiles, o, ld): position ξ of tile t at m[ξ · step + t]; four rows of results, ld apart, the four
 * of each tile next to each other. Reads and writes whole registers of tiles.
 */
function sumsText(v: string, lanes: number): string {
  const zip = (first: number, by: number): readonly number[] =>
    list(lanes).map((i) => {
      const at = first + Math.floor(i / (2 * by)) * by + (i % by);
      return Math.floor(i / by) % 2 === 0 ? at : lanes + at;
    });
  return `FUNCTION void tide_winograd_sums(const f32 *m, idx step, idx tiles, f32 *o, idx ld) {
  for (idx t = 0; t < tiles; t += ${lanes}) {
    ${v} y[${SPAN}][${TILE}], d[${SPAN}], e[${TILE}];
    for (int j = 0; j < ${SPAN}; j++) {
      for (int i = 0; i < ${SPAN}; i++) d[i] = *(const ${v}u *)(m + (i * ${SPAN} + j) * step + t);
      tide_winograd_a(d, y[j]);
    }
    for (int i = 0; i < ${TILE}; i++) {
      for (int j = 0; j < ${SPAN}; j++) d[j] = y[j][i];
      tide_winograd_a(d, e);
      f32 *to = o + i * ld + ${TILE} * t;
      ${v} a = ${shuffle("e[0]", "e[1]", zip(0, 1))}, b = ${shuffle("e[2]", "e[3]", zip(0, 1))};
      *(${v}u *)to = ${shuffle("a", "b", zip(0, 2))}, *(${v}u *)(to + ${lanes}) = ${shuffle("a", "b", zip(lanes / 2, 2))};
      a = ${shuffle("e[0]", "e[1]", zip(lanes / 2, 1))}, b = ${shuffle("e[2]", "e[3]", zip(lanes / 2, 1))};
      *(${v}u *)(to + ${2 * lanes}) = ${shuffle("a", "b", zip(0, 2))}, *(${v}u *)(to + ${3 * lanes}) = ${shuffle("a", "b", zip(lanes / 2, 2))};
    }
  }
}
`;
}

/** All of them, for registers of `lanes` elements. */
export function winogradText(lanes: number): string {
  const v = vectorName("f32", lanes);
  const axes = [
    axisText("tide_winograd_b", v, imageAxis, SPAN),
    axisText("tide_winograd_g", v, weightAxis, 3),
    axisText("tide_winograd_a", v, sumAxis, SPAN),
  ].join("");
  return axes + imageText(v, lanes) + weightsText(v, lanes) + sumsText(v, lanes);
}

/**
 * tide_winograd_tiles(p, ld, tiles, v, width, step): a row of tiles with channels in the lanes, element x of row i of the image
 * at p[i · ld + x · L]; position ξ of tile t goes to v[ξ · step + t · width].
 * tide_winograd_seen: the same of a gradient, A of four rows and columns.
 * tide_winograd_weight_sums(m, step, count, o): position ξ of channel c at m[ξ · step + c]; Gᵀ of it, nine taps at o[9 c].
 */
export function winogradWeightsText(lanes: number): string {
  const v = vectorName("f32", lanes);
  const transform = (name: string, axis: string, span: number): string => `FUNCTION void ${name}(
    const f32 *p, idx ld, idx tiles, f32 *v, idx width, idx step) {
  for (idx t = 0; t < tiles; t++, p += ${TILE * lanes}, v += width) {
    ${v} h[${span}][${SPAN}], d[${span}], o[${SPAN}];
    for (int j = 0; j < ${span}; j++) {
      for (int i = 0; i < ${span}; i++) d[i] = *(const ${v}u *)(p + i * ld + j * ${lanes});
      ${axis}(d, h[j]);
    }
    for (int i = 0; i < ${SPAN}; i++) {
      for (int j = 0; j < ${span}; j++) d[j] = h[j][i];
      ${axis}(d, o);
      for (int j = 0; j < ${SPAN}; j++) *(${v}u *)(v + (i * ${SPAN} + j) * step) = o[j];
    }
  }
}
`;
  const axes = [
    axisText("tide_winograd_seen_a", v, gradientAxis, TILE),
    axisText("tide_winograd_seen_g", v, weightSumAxis, SPAN),
    axisText("tide_winograd_tiles_b", v, imageAxis, SPAN),
  ].join("");
  return `${axes}
${transform("tide_winograd_tiles", "tide_winograd_tiles_b", SPAN)}
${transform("tide_winograd_seen", "tide_winograd_seen_a", TILE)}
FUNCTION void tide_winograd_weight_sums(const f32 *m, idx step, idx count, f32 *o) {
  for (idx c = 0; c < count; c += ${lanes}) {
    ${v} h[${SPAN}][3], d[${SPAN}], g[3];
    for (int j = 0; j < ${SPAN}; j++) {
      for (int i = 0; i < ${SPAN}; i++) d[i] = *(const ${v}u *)(m + (i * ${SPAN} + j) * step + c);
      tide_winograd_seen_g(d, h[j]);
    }
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < ${SPAN}; j++) d[j] = h[j][i];
      tide_winograd_seen_g(d, g);
      for (int j = 0; j < 3; j++) for (int l = 0; l < ${lanes}; l++) o[9 * (c + l) + 3 * i + j] = g[j][l];
    }
  }
}
`;
}
