/** @file Shapes and strides as PyTorch has them: which reshape is a view, and which tensors lie in memory without gaps. */

export type Shape = readonly number[];

export const elementsOf = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

export function contiguousStrides(shape: Shape): readonly number[] {
  const strides: number[] = [];
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= Math.max(shape[axis] as number, 1);
  }
  return strides;
}

/** Strides of axes of one element do not matter. */
export function sameStrides(shape: Shape, a: readonly number[], b: readonly number[]): boolean {
  return shape.every((extent, axis) => extent === 1 || a[axis] === b[axis]);
}

export const isContiguous = (shape: Shape, strides: readonly number[]): boolean =>
  sameStrides(shape, strides, contiguousStrides(shape));

/** Whether the elements lie in memory without gaps and overlaps, in whatever order of axes. */
export function isDense(shape: Shape, strides: readonly number[]): boolean {
  const axes = shape.map((extent, axis) => ({ extent, stride: strides[axis] as number })).filter((a) => a.extent !== 1);
  axes.sort((a, b) => a.stride - b.stride);
  let step = 1;
  for (const { extent, stride } of axes) {
    if (stride !== step) return false;
    step *= extent;
  }
  return true;
}

/** The strides of `empty_like`: those of a dense tensor are kept, others become contiguous. */
export const likeStrides = (shape: Shape, strides: readonly number[]): readonly number[] =>
  isDense(shape, strides) ? strides : contiguousStrides(shape);

/** The strides of a view of another shape; null where elements must be copied. (ATen's computeStride.) */
export function viewStrides(shape: Shape, strides: readonly number[], to: Shape): readonly number[] | null {
  if (elementsOf(shape) === 0) return contiguousStrides(to);
  const made: number[] = new Array(to.length).fill(1);
  let view = to.length - 1;
  let chunkStride = strides.at(-1) ?? 1;
  let [count, viewed] = [1, 1];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    count *= shape[axis] as number;
    const isEnd = axis === 0 || (shape[axis - 1] !== 1 && strides[axis - 1] !== count * chunkStride);
    if (!isEnd) continue;
    while (view >= 0 && (viewed < count || to[view] === 1)) {
      made[view] = viewed * chunkStride;
      viewed *= to[view] as number;
      view--;
    }
    if (viewed !== count) return null;
    if (axis > 0) {
      chunkStride = strides[axis - 1] as number;
      [count, viewed] = [1, 1];
    }
  }
  return view === -1 ? made : null;
}
