/**
 * @file Fisher-Yates from random bits: the output starts as 0, 1, 2, …; for i from the last element down, element i
 * changes places with element floor(bits_i · (i + 1) / 2³²), bits taken as an unsigned number.
 */
import type { ShuffleNest } from "../../kernel/loops.ts";
import { SINGLE } from "./addresses.ts";
import { OP } from "./encoder.ts";
import type { VectorEmitter } from "./vector.ts";

export function emitShuffle(em: VectorEmitter, nest: ShuffleNest, out: number): void {
  const { code } = em;
  const n = nest.along.extent;
  if (n === 0) return;
  const [i, a, b, kept] = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i32")];
  const address = (index: () => void): void => {
    code.get(out);
    index();
    code.i32Const(2).op(OP.i32Shl).op(OP.i32Add);
  };
  code.i32Const(0).set(i);
  code.while(
    () => code.get(i).i32Const(n).op(OP.i32LtS),
    () => {
      address(() => code.get(i));
      code.get(i).i32Store().increment(i, 1);
    },
  );
  em.vec = null;
  em.vars.set(nest.along, i);
  code.i32Const(n - 1).set(i);
  code.while(
    () => code.i32Const(0).get(i).op(OP.i32LtS),
    () => {
      em.scope(() => {
        address(() => code.get(i));
        code.set(a);
        address(() => {
          em.countUses([nest.bits]);
          em.emit(nest.bits, SINGLE);
          code.simd("extract_i32", 0).op(OP.i64ExtendI32U);
          code.get(i).i32Const(1).op(OP.i32Add).op(OP.i64ExtendI32U).op(OP.i64Mul);
          code.i64Const(32).op(OP.i64ShrU).op(OP.i32WrapI64);
        });
        code.set(b);
        code.get(a).i32Load().set(kept);
        code.get(a).get(b).i32Load().i32Store();
        code.get(b).get(kept).i32Store();
        code.increment(i, -1);
      });
    },
  );
}
