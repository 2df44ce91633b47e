/**
 * @file Orthogonal initial weights (A. Saxe, J. McClelland, S. Ganguli, ICLR 2014): they keep the length of what passes
 * through, however many times, which is why recurrent weights start so.
 *
 * A matrix with normal entries is made orthonormal by Gram and Schmidt, each vector against the earlier ones twice
 * ("twice is enough": Giraud and others, Numer. Math. 101, 2005), in doubles. The result is distributed evenly over all
 * orthogonal matrices, because the diagonal of R is positive by construction. O(n²·m) for n vectors of length m.
 */
import { at } from "../base/invariant.ts";
import { normalFromBits, threefry } from "../base/random.ts";
import { elementsOf, shapeText } from "../ir/type.ts";
import { fail } from "../trace/arguments.ts";
import { type Initializer, initial } from "./distributions.ts";
import { DRAW, wordsOf } from "./key.ts";

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += at(a, i) * at(b, i);
  return sum;
}

/** Makes rows orthonormal in place, first to last. */
function orthonormalize(rows: readonly Float64Array[]): void {
  rows.forEach((row, n) => {
    for (let pass = 0; pass < 2; pass++) {
      for (const earlier of rows.slice(0, n)) {
        const part = dot(row, earlier);
        for (let i = 0; i < row.length; i++) row[i] = at(row, i) - part * at(earlier, i);
      }
    }
    const length = Math.sqrt(dot(row, row));
    for (let i = 0; i < row.length; i++) row[i] = at(row, i) / length;
  });
}

/** Orthonormal rows, or columns where there are fewer of them, times a gain. The first axis counts the rows. */
export function orthogonal(gain = 1): Initializer {
  return (key, shape, dtype = "f32") => {
    if (shape.length < 2) {
      const help = "use normal or uniform for vectors";
      fail("ShapeMismatch", `orthogonal: needs a matrix, got shape ${shapeText(shape)}`, help);
    }
    const words = wordsOf(key);
    const height = at(shape, 0);
    const width = elementsOf(shape.slice(1));
    const [count, length] = height <= width ? [height, width] : [width, height];
    return initial(shape, dtype, (into) => {
      const vectors = Array.from({ length: count }, (_, v) =>
        Float64Array.from({ length }, (_, i) => normalFromBits(threefry(words, [v * length + i, DRAW]), 53)),
      );
      orthonormalize(vectors);
      for (let i = 0; i < into.length; i++) {
        const [row, column] = [Math.floor(i / width), i % width];
        into[i] = gain * (height <= width ? at(at(vectors, row), column) : at(at(vectors, column), row));
      }
    });
  };
}
