/** @file What formulas of derivatives have in common: tensors on the way, sums over axes that were broadcast, products of matrices. */
import type { Autograd, EagerTensor } from "../autograd.ts";
import { contiguousStrides, elementsOf, likeStrides, type Shape, viewStrides } from "../layout.ts";

/** A gradient like `dy`, made with some more tensors of its size, which are there until it is. */
export function withTemporaries(g: Autograd, dy: EagerTensor, count: number): EagerTensor {
  const strides = likeStrides(dy.shape, dy.strides);
  const temporaries = Array.from({ length: count }, () => g.fresh(dy.shape, dy, strides));
  const made = g.fresh(dy.shape, dy, strides);
  for (const temporary of temporaries) g.release(temporary);
  return made;
}

/** The sum over axes that were broadcast; takes the gradient over. */
export function sumTo(g: Autograd, gradient: EagerTensor, shape: Shape): EagerTensor {
  if (elementsOf(shape) === elementsOf(gradient.shape)) {
    if (shape.length === gradient.shape.length) return gradient;
    const view = g.view(gradient, shape, contiguousStrides(shape));
    g.release(gradient);
    return view;
  }
  const made = g.fresh(shape, gradient);
  g.release(gradient);
  return made;
}

/** A view of another shape, or a copy where there is none. */
export function reshaped(g: Autograd, x: EagerTensor, shape: Shape): EagerTensor {
  const strides = viewStrides(x.shape, x.strides, shape);
  return strides ? g.view(x, shape, strides) : g.fresh(shape, x);
}

export function transposed(g: Autograd, x: EagerTensor, a: number, b: number): EagerTensor {
  const swap = (list: readonly number[]): readonly number[] => {
    const swapped = [...list];
    [swapped[a], swapped[b]] = [list[b] as number, list[a] as number];
    return swapped;
  };
  return g.view(x, swap(x.shape), swap(x.strides));
}

/** Whether cuBLAS reads a matrix as it lies: one of the last two axes has stride 1, the other no overlap. */
function isMatrix({ shape, strides }: EagerTensor): boolean {
  const [rows, columns] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const [down, across] = [strides.at(-2) ?? 1, strides.at(-1) ?? 1];
  return (
    (across === 1 && down >= Math.max(1, columns)) ||
    (down === 1 && across >= Math.max(1, rows)) ||
    rows === 1 ||
    columns === 1
  );
}

/** Matrices that cuBLAS cannot read as they lie are copied for the time of a product. */
export function product(g: Autograd, operands: readonly EagerTensor[], make: () => EagerTensor): EagerTensor {
  const made = make();
  const copies = operands.filter((operand) => !isMatrix(operand)).map((operand) => g.fresh(operand.shape, operand));
  for (const copy of copies) g.release(copy);
  return made;
}

/** A gradient in the layout of its operand: that of a transposed matrix is computed transposed. */
export function matrixLike(g: Autograd, operand: EagerTensor, other: EagerTensor, dy: EagerTensor): EagerTensor {
  const strides = likeStrides(operand.shape, operand.strides);
  return product(g, [other, dy], () => g.fresh(operand.shape, operand, strides));
}
