/**
 * @file A side of a product that reads zero outside of an image. Testing each element for the edges would cost as much as the
 * product; instead the image is copied once into the workspace, padded with zeros, and the copy is read in place like any
 * other side without edges (contract-access.ts).
 *
 *   0 0 0 0 0        guard 0 ≤ y < 2 and 0 ≤ x < 3:  image[3 y + x],   y from -1 to 2, x from -1 to 3
 *   0 a b c 0
 *   0 d e f 0        copy[5 (y + 1) + (x + 1)], no test
 *   0 0 0 0 0
 *
 * The index of the load is decomposed into the tested indices, each times a stride, and a remainder (channels), whose counters
 * become further axes of the copy:  load = rest + Σ stride · index.  Any strides are correct; those with the smallest remainder
 * are taken.
 */
import { typeOf } from "../../kernel/dtype.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import { addIndex, offsetIndex, rangeOf, scaleIndex, ZERO } from "../../kernel/index-math.ts";
import type { Interner } from "../intern.ts";
import { type Access, accessOf, indexOf, type Side } from "./contract-access.ts";
import type { VectorEmitter } from "./emitter.ts";

/** An axis of the copy: values [least, least + extent) of an index, of which [lo, hi) are in the image. */
interface Axis {
  readonly index: Index;
  /** In the image, and in the copy. */
  readonly stride: number;
  readonly copyStride: number;
  readonly least: number;
  readonly extent: number;
  readonly lo: number;
  readonly hi: number;
}

export interface Padding {
  readonly load: Extract<Expr, { kind: "load" }>;
  /** Outermost first. */
  readonly axes: readonly Axis[];
  /** The part that no axis accounts for: batches, and a constant. */
  readonly rest: Index;
  readonly elements: number;
  /** Of the copy. */
  readonly access: Access;
}

type Bounded = Omit<Axis, "copyStride">;

/** Strides an index may have in a load: ratios of coefficients, and those of dense rows below it. */
function candidates(load: Index, index: Index, dense: number): readonly number[] {
  const found = new Set<number>([dense]);
  for (const { coef } of load.terms) {
    for (const term of index.terms) if (coef % term.coef === 0) found.add(coef / term.coef);
  }
  return [...found].filter((stride) => stride > 0);
}

/** The strides, one for each bound from the last to the first, that leave the fewest terms in the remainder. */
function takeApart(
  load: Index,
  bounds: readonly Bounded[],
): { readonly rest: Index; readonly axes: readonly Bounded[] } {
  const last = bounds[bounds.length - 1];
  if (!last) return { rest: load, axes: [] };
  const inner = bounds.slice(0, -1);
  let best: ReturnType<typeof takeApart> | null = null;
  for (const stride of candidates(load, last.index, last.stride)) {
    const left = addIndex(load, scaleIndex(last.index, -stride));
    const dense = inner.map((b, i) => (i === inner.length - 1 ? { ...b, stride: stride * (last.hi - last.lo) } : b));
    const made = takeApart(left, dense);
    if (!best || made.rest.terms.length < best.rest.terms.length) {
      best = { rest: made.rest, axes: [...made.axes, { ...last, stride }] };
    }
  }
  return best ?? { rest: load, axes: [] };
}

/** The copy that makes a guarded side readable without tests, or null. `most`: elements it may have. */
export function paddingOf(interner: Interner, side: Side, most: number): Padding | null {
  const { expr, lane, depth } = side;
  if (expr.kind !== "guard" || expr.then.kind !== "load") return null;
  const { then: load, otherwise } = expr;
  if (otherwise.kind !== "const" || !Object.is(otherwise.value, 0) || !typeOf(load.storage).plain) return null;
  const own = new Set([lane, ...depth]);
  const within = (index: Index): boolean => [...interner.ofIndex(index)].every((v) => own.has(v));
  if (!expr.bounds.every(({ index }) => within(index))) return null;
  const bounds = expr.bounds.map(({ index, lo, hi }): Bounded => {
    const [least, greatest] = rangeOf(index);
    return { index, stride: 1, least, extent: greatest - least + 1, lo, hi };
  });
  const apart = takeApart(load.index, bounds);
  if (apart.axes.length !== bounds.length) return null;
  const free: Bounded[] = [];
  let rest: Index = offsetIndex(ZERO, apart.rest.offset - load.index.offset);
  for (const term of apart.rest.terms) {
    const index = indexOf([{ atom: term.atom, coef: 1 }]);
    const vars = interner.ofIndex(index);
    if (![...vars].some((v) => own.has(v))) rest = addIndex(rest, scaleIndex(addIndex(index), term.coef));
    else if (!within(index) || term.atom.kind === "value") return null;
    else {
      const [least, greatest] = rangeOf(index);
      free.push({
        index: addIndex(index),
        stride: term.coef,
        least,
        extent: greatest - least + 1,
        lo: least,
        hi: greatest + 1,
      });
    }
  }
  return copyOf(interner, { load, bounded: [...free, ...apart.axes], rest }, side, most);
}

/** A load as axes of an image, and the part that does not depend on the side. */
interface Image {
  readonly load: Padding["load"];
  readonly bounded: readonly Bounded[];
  readonly rest: Index;
}

function copyOf(interner: Interner, { load, bounded, rest }: Image, side: Side, most: number): Padding | null {
  let elements = 1;
  const axes = [...bounded]
    .reverse()
    .map((axis): Axis => {
      const copyStride = elements;
      elements *= axis.extent;
      return { ...axis, copyStride };
    })
    .reverse();
  if (elements > most) return null;
  const index = addIndex(...axes.map((a) => scaleIndex(offsetIndex(a.index, -a.least), a.copyStride)));
  const access = accessOf(interner, { ...side, expr: { ...load, index } });
  return access && { load, axes, rest, elements, access };
}

/** Copies the image into `dst`, padded with zeros. Batch counters have names. */
export function emitPadding(em: VectorEmitter, { load, axes, rest, elements }: Padding, dst: string): void {
  const { code } = em;
  const image = `${em.pointer(load.operand, load.index.offset)} + (${em.index(rest, em.all)})`;
  code.line(`memset(${dst}, 0, ${elements} * sizeof(*${dst}));`);
  const walk = (at: number, from: string, to: string): void => {
    const axis = axes[at];
    if (!axis) {
      code.line(`*(${to}) = *(${from});`);
      return;
    }
    const [first, end] = [Math.max(axis.lo, axis.least), Math.min(axis.hi, axis.least + axis.extent)];
    if (end <= first) return;
    if (at === axes.length - 1 && axis.stride === 1) {
      const into = `${to} + ${first - axis.least}`;
      code.line(`memcpy(${into}, ${from} + (${first}), ${end - first} * sizeof(*${dst}));`);
      return;
    }
    const v = code.name("y");
    em.block(`for (idx ${v} = ${first}; ${v} < ${end}; ${v}++)`, () =>
      walk(at + 1, `${from} + ${v} * ${axis.stride}`, `${to} + (${v} - (${axis.least})) * ${axis.copyStride}`),
    );
  };
  em.block("", () => walk(0, image, dst));
}
