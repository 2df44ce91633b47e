/**
 * @file Einstein's summation. Operands are contracted two at a time, the pair with the smallest result first; each
 * contraction is one matrix product:
 *
 *   bij,bjk->bik        batch: in both and wanted later (b)         left [b…, m…, k…]
 *                       inner: in both and not wanted later (j)     right [b…, k…, n…]
 *                       rows, columns: in one of them (i, k)        result [b…, m…, n…]
 *
 * An index that occurs twice in one operand takes its diagonal; one that occurs nowhere else is summed at once. The axes
 * behind `...` get letters of their own, counted from the last of them, and broadcast: an operand in which such an axis
 * has extent 1 where others have more loses it, and its product with the others does the rest.
 */
import { elementsOf, typeText } from "../ir/type.ts";
import { describe, fail, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { ownCopy } from "./apply.ts";
import { diagonal } from "./indexing.ts";
import { matmul } from "./linear.ts";
import { sum } from "./reduce.ts";
import { reshape, transpose } from "./shape.ts";

/** A tensor whose axes have names, no name twice. */
interface Named {
  readonly x: Tensor;
  readonly axes: string;
}

/** Operands and the axes of the result, all axes with letters. */
interface Spec {
  readonly inputs: readonly Named[];
  readonly output: string;
}

const DOTS = "...";
const TERM = /^[A-Za-z]*(?:\.\.\.)?[A-Za-z]*$/;

/** The letter of axis -1 - i of those behind the dots: one that users do not write. */
const dotLetter = (i: number): string => String.fromCharCode(0xe000 + i);

/** The letters of `count` axes behind dots, in order. */
const dotLetters = (count: number): string =>
  Array.from({ length: count }, (_, i) => dotLetter(count - 1 - i)).join("");

interface Terms {
  readonly inputs: readonly string[];
  /** Null where there is no arrow. */
  readonly output: string | null;
}

function termsOf(spec: string, operands: readonly Tensor[]): Terms {
  if (typeof spec !== "string") {
    fail("InvalidArgument", `einsum: the first argument is ${describe(spec)}`, 'it is the text, as in "ij,jk->ik"');
  }
  operands.forEach((x, i) => {
    requireTensor("einsum", `operand ${i}`, x);
  });
  const [left = "", right, ...more] = spec.replaceAll(" ", "").split("->");
  const inputs = left.split(",");
  if (more.length > 0 || ![...inputs, right ?? ""].every((part) => TERM.test(part))) {
    fail(
      "InvalidArgument",
      `einsum: cannot read "${spec}"`,
      'write letters for axes, as in "ij,jk->ik" or "...ij->...ji"',
    );
  }
  if (inputs.length !== operands.length) {
    fail(
      "InvalidArgument",
      `einsum: "${spec}" names ${inputs.length} operands, got ${operands.length}`,
      "one list of letters for each",
    );
  }
  return { inputs, output: right ?? null };
}

/** An operand with a letter for each axis. */
function named(x: Tensor, term: string, i: number): Named {
  const letters = term.replace(DOTS, "").length;
  const behind = x.rank - letters;
  if (behind === 0 || (behind > 0 && term.includes(DOTS))) return { x, axes: term.replace(DOTS, dotLetters(behind)) };
  return fail(
    "ShapeMismatch",
    `einsum: operand ${i} is ${typeText(x)}, but "${term}" names ${letters} axes`,
    `one letter for each axis, or ... for those without`,
  );
}

/** Operands without the axes of extent 1 behind the dots that are wider in another. */
function broadcastDots(spec: string, given: readonly Named[]): readonly Named[] {
  const widest = new Map<string, number>();
  for (const { x, axes } of given) {
    [...axes].forEach((c, axis) => {
      const [extent, most] = [x.shape[axis] as number, widest.get(c) ?? 1];
      if (c < dotLetter(0) || extent === 1) return;
      if (most !== 1 && most !== extent) {
        const help = "axes of `...` broadcast: their extents must be equal or 1, counted from the last";
        fail("ShapeMismatch", `einsum: ... of "${spec}" has extents ${most} and ${extent} on one axis`, help);
      }
      widest.set(c, extent);
    });
  }
  return given.map(({ x, axes }) => {
    const stays = (c: string, axis: number): boolean => x.shape[axis] !== 1 || !widest.has(c);
    const shape = x.shape.filter((_, axis) => stays(axes[axis] as string, axis));
    return { x: reshape(x, shape), axes: [...axes].filter(stays).join("") };
  });
}

function parse(spec: string, operands: readonly Tensor[]): Spec {
  const terms = termsOf(spec, operands);
  const given = operands.map((x, i) => named(x, terms.inputs[i] as string, i));
  const written = terms.inputs.join("").replaceAll(".", "");
  const isDot = (c: string): boolean => c >= dotLetter(0);
  const most = Math.max(0, ...given.map(({ axes }) => [...axes].filter(isDot).length));
  // without an arrow the output has the dots, then the indices that occur once, in alphabetical order
  const once = [...new Set(written)].filter((c) => written.split(c).length === 2).sort();
  const right = terms.output ?? DOTS + once.join("");
  if (most > 0 && !right.includes(DOTS)) {
    const help = `\`...\` must also appear in the output: write "${spec.replace(/->\s*/, `->${DOTS}`)}"`;
    fail("InvalidArgument", `einsum: no ... in the output of "${spec}"`, help);
  }
  const letters = right.replace(DOTS, "");
  const unknown = [...letters].find((c, i) => !written.includes(c) || letters.indexOf(c) !== i);
  if (unknown)
    fail(
      "InvalidArgument",
      `einsum: index ${unknown} in the output of "${spec}"`,
      "each output index must occur in an operand, and once",
    );
  return { inputs: broadcastDots(spec, given), output: right.replace(DOTS, dotLetters(most)) };
}

function requireExtents(spec: string, inputs: readonly Named[]): void {
  const extents = new Map<string, number>();
  inputs.forEach(({ x, axes }, i) => {
    [...axes].forEach((c, axis) => {
      const extent = x.shape[axis] as number;
      const known = extents.get(c);
      if (known !== undefined && known !== extent) {
        fail(
          "ShapeMismatch",
          `einsum: index ${c} of "${spec}" has extent ${known}, but ${extent} in operand ${i}`,
          "an index must have the same extent everywhere",
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
 * Products of tensors summed over named axes: indices in the output stay, the others are summed. `...` stands for any
 * further axes, which broadcast. Without `->` the output has those, then the indices that occur once, in alphabetical
 * order.
 *
 * @example
 * import { einsum, ones, tensor } from "tidemark";
 *
 * const a = tensor([[1, 2], [3, 4]]);
 * console.log(einsum("ij,kj->ik", a, a).toArray()); // [[5, 11], [11, 25]]
 * console.log(einsum("ii", a).item()); // 5
 * console.log(einsum("...ij->...ji", ones([7, 2, 3])).shape); // [7, 3, 2]
 */
export function einsum(spec: string, ...operands: readonly Tensor[]): Tensor {
  const { inputs, output } = parse(spec, operands);
  requireExtents(spec, inputs);
  let left = inputs.map(withoutRepeats);
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
