/**
 * @file Packing: one side of a product computed into the layout that its tiles read, element by element from its expression, so
 * that windows of images, transposed views and a prologue of a product cost only their packing.
 *
 *   fillDepthMajor   dst[k][lane]     the side's own counter is in the lanes of registers
 *   fillRowMajor     dst[lane][k]     the depth is, where memory runs along it
 *
 * The depth may be two counters, depth = outer · inner.extent + inner. The loops go over runs of the inner one, so that no
 * element needs a division.
 */
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import type { Product } from "./contract-plan.ts";
import type { Context, VectorEmitter } from "./emitter.ts";

/** Source and destination of a panel. Strings are C. */
export interface Fill {
  readonly nest: Product;
  readonly expr: Expr;
  readonly lane: LoopVar;
  /** Lanes [from, to), and how many of them remain after whole registers; null if not known. */
  readonly from: string;
  readonly to: string;
  readonly left: number | null;
  /** Run of the depth: [begin, end), and the position of the first row of `dst`: begin, unless rows before it are left out. */
  readonly begin: string;
  readonly end: string;
  readonly origin?: string;
  readonly dst: string;
  readonly stride: number;
}

/** The counter of the depth that runs fastest. */
export const innerDepth = (nest: Product): LoopVar => nest.split?.[1] ?? nest.depth;

type Run = Pick<Fill, "begin" | "end" | "origin">;

/** Calls `body` in a loop over the run's stretches of the inner counter, which goes from `first` to `stop`; `at` is the
 * position in the run of inner counter zero. */
function stretches(
  em: VectorEmitter,
  nest: Product,
  { begin, end, origin = begin }: Run,
  body: (first: string, stop: string, at: string) => void,
): void {
  const { code } = em;
  if (!nest.split) {
    body(begin, end, `-(${origin})`);
    return;
  }
  const [outer, inner] = nest.split;
  const [k, first, stop, at] = [code.name("k"), code.name("first"), code.name("stop"), code.name("at")];
  em.block(`for (idx ${k} = ${begin}; ${k} < ${end};)`, () => {
    const name = em.counter(outer);
    code.line(`const idx ${name} = ${k} / ${inner.extent}, ${first} = ${k} - ${name} * ${inner.extent};`);
    code.line(
      `const idx ${stop} = ${first} + ${end} - ${k} < ${inner.extent} ? ${first} + ${end} - ${k} : ${inner.extent};`,
    );
    code.line(`const idx ${at} = ${k} - ${first} - (${origin});`);
    body(first, stop, at);
    code.line(`${k} += ${stop} - ${first};`);
  });
}

/** Calls `body` for every element of a run of the depth with its position in the run. */
export function eachDepth(em: VectorEmitter, nest: Product, run: Run, body: (position: string) => void): void {
  stretches(em, nest, run, (first, stop, at) => {
    const name = em.counter(innerDepth(nest));
    em.block(`for (idx ${name} = ${first}; ${name} < ${stop}; ${name}++)`, () => body(`(${at} + ${name})`));
  });
}

function put(em: VectorEmitter, expr: Expr, ctx: Context, to: string): void {
  const [type, name] = [em.type(expr.dtype), em.code.name("e")];
  em.code.line(`const ${type} ${name} = ${em.emit(expr, ctx)};`);
  em.code.line(ctx.count === 1 ? `*(${to}) = ${name}[0];` : `*(${type}_mem *)(${to}) = ${name};`);
}

/** dst[(k - origin) · stride + (lane - from)]; up to a register after a row is overwritten, then written by the next row. */
export function fillDepthMajor(em: VectorEmitter, fill: Fill): void {
  const { nest, expr, lane, from, to, left, dst, stride } = fill;
  em.vec = lane;
  eachDepth(em, nest, fill, (position) => {
    const l = em.counter(lane);
    const step = (ctx: Context): void => put(em, expr, ctx, `${dst} + ${position} * ${stride} + (${l} - (${from}))`);
    em.code.line(`idx ${l} = ${from};`);
    em.block(`for (; ${l} + ${em.lanes} <= ${to}; ${l} += ${em.lanes})`, () => step(em.all));
    if (left === null) em.block(`for (; ${l} < ${to}; ${l}++)`, () => step(em.first(1)));
    else if (left > 0) em.block("", () => step(em.first(left)));
  });
  em.vec = null;
}

/** dst[(lane - from) · stride + (k - origin)]; up to a register after a row is overwritten. */
export function fillRowMajor(em: VectorEmitter, fill: Fill): void {
  const { nest, expr, lane, from, to, dst, stride } = fill;
  const inner = innerDepth(nest);
  em.vec = inner;
  const l = em.counter(lane);
  em.block(`for (idx ${l} = ${from}; ${l} < ${to}; ${l}++)`, () => {
    stretches(em, nest, fill, (first, stop, at) => {
      const k = em.counter(inner);
      const step = (ctx: Context): void =>
        put(em, expr, ctx, `${dst} + (${l} - (${from})) * ${stride} + (${at} + ${k})`);
      const emitRow = (from: string, to: string, left: number | null): void => {
        em.code.line(`idx ${k} = ${from};`);
        em.block(`for (; ${k} + ${em.lanes} <= ${to}; ${k} += ${em.lanes})`, () => step(em.all));
        if (left === null) em.block(`for (; ${k} < ${to}; ${k}++)`, () => step(em.first(1)));
        else if (left > 0) em.block("", () => step(em.first(left)));
      };
      if (!nest.split) {
        emitRow(first, stop, null);
        return;
      }
      // Whole stretches end in one partly used register; cut stretches are rare.
      const { extent } = inner;
      em.block(`if (${first} == 0 && ${stop} == ${extent})`, () => emitRow("0", String(extent), extent % em.lanes));
      em.block("else", () => {
        em.block(`for (idx ${k} = ${first}; ${k} < ${stop}; ${k}++)`, () => step(em.first(1)));
      });
    });
  });
  em.vec = null;
}
