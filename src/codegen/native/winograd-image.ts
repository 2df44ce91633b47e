/** @file Rows of an image for Winograd's convolution in C (codegen/cpu/winograd-plane.ts), written into the workspace. */
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import { UNIT } from "../cpu/counters.ts";
import type { Strips } from "../cpu/winograd-choice.ts";
import { ONE, type Plane, type Run, runOf } from "../cpu/winograd-plane.ts";
import type { Context, VectorEmitter } from "./emitter.ts";

/**
 * Writes positions 0 … W+1 of row `z` of the image to `row`. What is outside of the runs is zero and stays so: it is not
 * written where the row is inside of the image, and cleared with the rest of the row where it is not.
 */
export function emitImageRow(em: VectorEmitter, plane: Plane, z: string, row: string): void {
  const { code } = em;
  const { x, y, tap, slides } = plane;
  const [py, ty] = [em.counter(y), em.counter(tap)];
  em.vars.set(UNIT, "1");
  const last = y.extent - 1;
  code.line(`const idx ${py} = ${z} < 1 ? 0 : ${z} > ${last + 1} ? ${last} : ${z} - 1;`);
  code.line(`const idx ${ty} = 1 + (${slides}) * (${z} - 1 - ${py});`);
  const clear = `memset(${row}, 0, ${x.extent + 2} * sizeof(f32));`;
  em.block(`if (${z} > ${last + 2})`, () => code.line(clear));
  em.block("else", () => {
    const parts = [
      { ...runOf(em.interner, plane.middle, x), at: `${row} + 1` },
      ...plane.ends.map((expr, i) => ({
        ...runOf(em.interner, expr, ONE),
        at: `${row} + ${i === 0 ? 0 : x.extent + 1}`,
      })),
    ];
    for (const part of parts) {
      if (part.from >= part.to) continue;
      em.block("", () => {
        const holds = em.condition(part.bounds, em.all);
        em.block(`if (${holds})`, () => emitRun(em, x, part, part.at));
        if (holds !== "1") {
          const bytes = `${part.to - part.from} * sizeof(f32)`;
          em.block("else", () => code.line(`memset(${part.at} + ${part.from}, 0, ${bytes});`));
        }
      });
    }
  });
}

/** Writes an expression over the columns `x` to `row`, as many as there are. */
export function emitRow(em: VectorEmitter, expr: Expr, x: LoopVar, row: string): void {
  em.vars.set(UNIT, "1");
  emitRun(em, x, { expr, bounds: [], from: 0, to: x.extent }, row);
}

function emitRun(em: VectorEmitter, x: LoopVar, { expr, from, to }: Run, at: string): void {
  const type = em.type(expr.dtype);
  const put = (name: string, ctx: Context): void => {
    const value = em.code.name("e");
    em.code.line(`const ${type} ${value} = ${em.emit(expr, ctx)};`);
    if (ctx.count === em.lanes) em.code.line(`${type}_store(${at} + ${name}, ${value});`);
    else em.code.line(`${type}_store_first(${at} + ${name}, ${value}, ${ctx.count});`);
  };
  const whole = from + Math.floor((to - from) / em.lanes) * em.lanes;
  em.vec = x;
  const name = em.counter(x);
  if (whole > from) {
    em.block(`for (idx ${name} = ${from}; ${name} < ${whole}; ${name} += ${em.lanes})`, () => put(name, em.all));
  }
  if (to > whole) {
    em.block("", () => {
      em.code.line(`const idx ${name} = ${whole};`);
      put(name, em.first(to - whole));
    });
  }
  em.vec = null;
}

/**
 * Runs `body` for stretches of strips [strip0, strip1) that are of one piece of one image. In C: `st` is the first of them,
 * `q0` to `q1` are its rows of tiles, `image` and `piece` its numbers, `across` the tiles of a row of it.
 */
export function emitStretches(em: VectorEmitter, { tiles, pieces, across }: Strips, body: () => void): void {
  const { code } = em;
  const [each, wide] = tiles;
  em.block("for (idx st = strip0; st < strip1;)", () => {
    code.line(`const idx row = st / ${each}, q0 = st - row * ${each};`);
    code.line(`const idx q1 = q0 + strip1 - st < ${each} ? q0 + strip1 - st : ${each};`);
    code.line(`const idx image = row / ${pieces}, piece = row - image * ${pieces};`);
    code.line(`const idx across = piece < ${pieces - 1} ? ${across} : ${wide - (pieces - 1) * across};`);
    body();
    code.line("st += q1 - q0;");
  });
}
