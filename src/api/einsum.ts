/**
 * @file Einstein's summation. Operands are contracted two at a time, the pair with the smallest result first; each
 * contraction is one matrix product:
 *
 *   bij,bjk->bik        batch: in both and wanted later (b)         left [b…, m…, k…]
 *                       inner: in both and not wanted later (j)     right [b…, k…, n…]
 *                       rows, columns: in one of them (i, k)        result [b…, m…, n…]
 *
 * An index that occurs twice in one operand takes its diagonal; one that occurs nowhere else is summed at once.
 */
import { elementsOf, typeText } from "../ir/type.ts";
import type { Tensor } from "../trace/tensor.ts";
import { ownCopy } from "./apply.ts";
import { diagonal } from "./indexing.ts";
import { matmul } from "./linear.ts";
import { fail } from "./operands.ts";
import { sum } from "./reduce.ts";
import { reshape, transpose } from "./shape.ts";

/** A tensor whose axes have names, no name twice. */
interface Named {
  readonly x: Tensor;
  readonly axes: string;
}

interface Spec {
  readonly inputs: readonly string[];
  readonly output: string;
}

function parse(spec: string, count: number): Spec {
  const [left = "", right, ...more] = spec.replaceAll(" ", "").split("->");
  const inputs = left.split(",");
  const letters = /^[A-Za-z]*$/;
  if (more.length > 0 || ![...inputs, right ?? ""].every((part) => letters.test(part))) {
    fail("InvalidArgument", `einsum: cannot read "${spec}"`, 'write letters for axes, as in "ij,jk->ik"');
  }
  if (inputs.length !== count) {
    fail(
      "InvalidArgument",
      `einsum: "${spec}" names ${inputs.length} operands, got ${count}`,
      "one list of letters for each",
    );
  }
  // without an arrow the output has the indices that occur once, in alphabetical order
  const all = inputs.join("");
  const implicit = [...new Set(all)]
    .filter((c) => all.split(c).length === 2)
    .sort()
    .join("");
  const output = right ?? implicit;
  const unknown = [...output].find((c, i) => !all.includes(c) || output.indexOf(c) !== i);
  if (unknown)
    fail(
      "InvalidArgument",
      `einsum: index ${unknown} in the output of "${spec}"`,
      "each output index must occur in an operand, and once",
    );
  return { inputs, output };
}

function requireExtents(spec: string, inputs: readonly string[], operands: readonly Tensor[]): void {
  const extents = new Map<string, number>();
  inputs.forEach((axes, i) => {
    const x = operands[i] as Tensor;
    if (axes.length !== x.rank) {
      fail(
        "ShapeMismatch",
        `einsum: operand ${i} is ${typeText(x)}, but "${axes}" names ${axes.length} axes`,
        "one letter for each axis",
      );
    }
    [...axes].forEach((c, axis) => {
      const extent = x.shape[axis] as number;
      const known = extents.get(c);
      if (known !== undefined && known !== extent) {
        fail(
          "ShapeMismatch",
          `einsum: index ${c} of "${spec}" has extent ${known} and, in operand ${i}, ${extent}`,
          "an index has one extent",
        );
      }
      extents.set(c, extent);
    });
  });
}

/** Diagonals of repeated indices. */
function withoutRepeats({ x, axes }: Named): Named {
  const second = [...axes].findIndex((c, i) => axes.indexOf(c) !== i);
  if (second < 0) return { x, axes };
  const c = axes[second] as string;
  const first = axes.indexOf(c);
  const rest = [...axes].filter((_, i) => i !== first && i !== second).join("");
  return withoutRepeats({ x: diagonal(x, first, second), axes: rest + c });
}

function arranged({ x, axes }: Named, order: string): Tensor {
  return transpose(
    x,
    [...order].map((c) => axes.indexOf(c)),
  );
}

/** Sums over axes that neither the output nor another operand has. */
function withoutLone(named: Named, wanted: string): Named {
  const lone = [...named.axes].flatMap((c, axis) => (wanted.includes(c) ? [] : [axis]));
  if (lone.length === 0) return named;
  return { x: sum(named.x, lone), axes: [...named.axes].filter((c) => wanted.includes(c)).join("") };
}

const extentsOf = ({ x, axes }: Named, order: string): readonly number[] =>
  [...order].map((c) => x.shape[axes.indexOf(c)] as number);

function contract(a: Named, b: Named, wanted: string): Named {
  const both = [...a.axes].filter((c) => b.axes.includes(c));
  const batch = both.filter((c) => wanted.includes(c)).join("");
  const inner = both.filter((c) => !wanted.includes(c)).join("");
  const rows = [...a.axes].filter((c) => !b.axes.includes(c)).join("");
  const columns = [...b.axes].filter((c) => !a.axes.includes(c)).join("");
  const lead = extentsOf(a, batch);
  const k = elementsOf(extentsOf(a, inner));
  const left = reshape(arranged(a, batch + rows + inner), [...lead, elementsOf(extentsOf(a, rows)), k]);
  const right = reshape(arranged(b, batch + inner + columns), [...lead, k, elementsOf(extentsOf(b, columns))]);
  const y = matmul(left, right);
  return { x: reshape(y, [...lead, ...extentsOf(a, rows), ...extentsOf(b, columns)]), axes: batch + rows + columns };
}

/** Elements of the contraction of two operands. */
function resultElements(a: Named, b: Named, wanted: string): number {
  const axes = [...new Set(a.axes + b.axes)].filter((c) => wanted.includes(c));
  return elementsOf(
    axes.map((c) => (a.axes.includes(c) ? a : b)).map((n, i) => n.x.shape[n.axes.indexOf(axes[i] as string)] as number),
  );
}

/** The pair with the smallest result, the earliest on ties. */
function cheapestPair(
  operands: readonly Named[],
  wantedBy: (i: number, j: number) => string,
): readonly [number, number] {
  let best: readonly [number, number] = [0, 1];
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < operands.length; i++) {
    for (let j = i + 1; j < operands.length; j++) {
      const elements = resultElements(operands[i] as Named, operands[j] as Named, wantedBy(i, j));
      if (elements < least) [best, least] = [[i, j], elements];
    }
  }
  return best;
}

/**
 * Products of tensors summed over named axes: indices in the output stay, the others are summed. Without `->` the
 * output has the indices that occur once, in alphabetical order.
 *
 * @example
 * import { einsum, tensor } from "tidemark";
 *
 * const a = tensor([[1, 2], [3, 4]]);
 * console.log(einsum("ij,kj->ik", a, a).toArray()); // [[5, 11], [11, 25]]
 * console.log(einsum("ii", a).item()); // 5
 */
export function einsum(spec: string, ...operands: readonly Tensor[]): Tensor {
  const { inputs, output } = parse(spec, operands.length);
  requireExtents(spec, inputs, operands);
  let left = inputs.map((axes, i) => withoutRepeats({ x: operands[i] as Tensor, axes }));
  const wantedBy = (...used: readonly number[]): string =>
    output +
    left
      .filter((_, i) => !used.includes(i))
      .map((n) => n.axes)
      .join("");
  left = left.map((named, i) => withoutLone(named, wantedBy(i)));
  while (left.length > 1) {
    const [i, j] = cheapestPair(left, wantedBy);
    const made = contract(left[i] as Named, left[j] as Named, wantedBy(i, j));
    left = [...left.filter((_, n) => n !== i && n !== j), made];
  }
  const [last] = left as [Named];
  return ownCopy(arranged(withoutLone(last, output), output));
}
