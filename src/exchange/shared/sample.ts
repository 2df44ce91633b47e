/** @file Images at the points of a grid, with cubic interpolation where it is asked for. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { typeText } from "../../ir/type.ts";
import { fail } from "../../trace/arguments.ts";
import type { Tensor } from "../../trace/tensor.ts";

export interface Sampling {
  readonly mode: "bilinear" | "nearest" | "bicubic";
  readonly padding: "zeros" | "border" | "reflection";
  readonly alignCorners: boolean;
}

export function sampleAt(x: Tensor, grid: Tensor, how: Sampling): Tensor {
  const { mode, padding, alignCorners } = how;
  if (mode !== "bicubic") return t.gridSample(x, grid, { mode, padding, alignCorners });
  if (x.rank !== 4) fail("ShapeMismatch", `GridSample: cubic interpolation takes images, got ${typeText(x)}`);
  return cubicSample(x, grid, how);
}

/** Where a coordinate from -1 to 1 lies along an axis. */
function placeOf(coordinate: Tensor, extent: number, alignCorners: boolean): Tensor {
  const from0 = t.add(coordinate, 1);
  return alignCorners ? t.mul(from0, (extent - 1) / 2) : t.sub(t.mul(from0, extent / 2), 0.5);
}

/** A whole position beyond the edge, as one inside of it. */
function inside(position: Tensor, extent: number, { padding, alignCorners }: Sampling): Tensor {
  if (padding !== "reflection") return t.clamp(position, 0, extent - 1);
  const [lo, span] = alignCorners ? [0, extent - 1] : [-0.5, extent];
  if (span === 0) return t.mul(position, 0);
  const far = t.abs(t.sub(position, lo));
  const rest = t.fmod(far, span);
  const isOdd = t.equal(t.fmod(t.floor(t.div(far, span)), 2), 1);
  return t.clamp(t.add(t.where(isOdd, t.sub(span, rest), rest), lo), 0, extent - 1);
}

const A = -0.75;

/** Weights of the four neighbours at a distance d behind the second. */
function weights(d: Tensor): readonly Tensor[] {
  const near = (x: Tensor): Tensor => t.add(t.mul(t.mul(t.sub(t.mul(x, A + 2), A + 3), x), x), 1);
  const far = (x: Tensor): Tensor => t.sub(t.mul(t.add(t.mul(t.sub(t.mul(x, A), 5 * A), x), 8 * A), x), 4 * A);
  return [far(t.add(d, 1)), near(d), near(t.sub(1, d)), far(t.sub(2, d))];
}

function cubicSample(x: Tensor, grid: Tensor, how: Sampling): Tensor {
  const [batch, channels, height, width] = x.shape as [number, number, number, number];
  const [rows, columns] = [at(grid.shape, 1), at(grid.shape, 2)];
  const points = rows * columns;
  const flat = t.reshape(x, [batch, channels, height * width]);
  const along = (k: number, extent: number): Tensor =>
    placeOf(t.reshape(t.slice(grid, [null, null, null, k]), [batch, points]), extent, how.alignCorners);
  const [column, row] = [along(0, width), along(1, height)];
  const [left, top] = [t.floor(column), t.floor(row)];
  const [across, down] = [weights(t.sub(column, left)), weights(t.sub(row, top))];
  const isIn = (p: Tensor, extent: number): Tensor => t.logicalAnd(t.greaterEqual(p, 0), t.less(p, extent));
  const pixel = (i: number, j: number): Tensor => {
    const [r, c] = [t.add(top, i - 1), t.add(left, j - 1)];
    const number = t.add(t.mul(inside(r, height, how), width), inside(c, width, how));
    const place = t.broadcastTo(t.reshape(t.cast(number, "i32"), [batch, 1, points]), [batch, channels, points]);
    const read = t.gather(flat, place, 2);
    if (how.padding !== "zeros") return read;
    return t.where(t.reshape(t.logicalAnd(isIn(r, height), isIn(c, width)), [batch, 1, points]), read, 0);
  };
  const terms = down.flatMap((v, i) =>
    across.map((h, j) => t.mul(pixel(i, j), t.reshape(t.mul(v, h), [batch, 1, points]))),
  );
  return t.reshape(
    terms.reduce((sum, term) => t.add(sum, term)),
    [batch, channels, rows, columns],
  );
}
