/** @file Maps one after the other for each unit as C, over a tile that each thread has for itself. */
import type { StagedNest } from "../../kernel/loops.ts";
import { product, type Units } from "../units.ts";
import { splitUnit } from "./emit-loops.ts";
import { VectorEmitter } from "./emitter.ts";
import { emitMap } from "./nests.ts";
import type { CFile } from "./options.ts";

export function emitStaged(outer: VectorEmitter, { units, tile, dtype, body }: StagedNest, file: CFile): Units {
  const { code, operands, lanes } = outer;
  const w = code.name("w");
  code.line(`${dtype} *const ${w} = ${outer.pointer(tile.operand, 0)} + thread * ${tile.elements};`);
  const pointer = (operand: number, offset: number): string =>
    operand === tile.operand ? `(${w} + ${offset})` : `(${outer.pointer(operand, 0)} + ${offset})`;
  const em = new VectorEmitter(code, lanes, pointer, operands);
  const unit = code.name("unit");
  em.block(`for (idx ${unit} = lo; ${unit} < hi; ${unit}++)`, () => {
    splitUnit(em, unit, units);
    for (const map of body) {
      em.block("", () => {
        const line = code.lines.length;
        const { count } = emitMap(em, map, file);
        code.lines.splice(line, 0, `const idx lo = 0, hi = ${count}; (void)lo; (void)hi;`);
      });
    }
  });
  return { count: product(units), grain: 1 };
}
