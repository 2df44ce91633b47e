/** @file Stores of a product as WebAssembly: finished sums, row by row, through what follows the product. */
import type { Operand } from "../../kernel/loops.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import type { ContractPanels } from "./contract-panels.ts";
import { emitStores, storeTargets } from "./emit-loops.ts";
import { OP } from "./encoder.ts";

/** Columns [from, to) of some rows: the first row is in `ip`, and `tile` has the address of its sums. */
export interface Finished {
  /** Locals. */
  readonly from: number;
  readonly to: number;
  /** Bytes between rows of sums. */
  readonly stride: number;
  readonly rows: number;
  /** A known divisor of the first column. */
  readonly multiple: number;
}

/** Runs the stores over rows [ip, min(ip + rows, m)) and the given columns, reading sums from `tile`. */
export function emitFinish(panels: ContractPanels, operands: readonly Operand[], finished: Finished): void {
  const { em, nest, locals, width } = panels;
  const { from, to, stride, rows, multiple } = finished;
  const { code } = em;
  const [row, rowEnd, sums, col] = [code.local("i32"), code.local("i32"), code.local("i32"), code.local("i32")];
  const values = nest.stores.map((s) => s.value);
  const targets = storeTargets(nest.stores, operands);
  panels.setMin(rowEnd, locals.ip, rows, nest.rows.extent);
  code.get(locals.tile).set(sums);
  panels.loop(row, [{ local: locals.ip }, { local: rowEnd }], 1, () => {
    em.vec = nest.cols;
    em.multiple = multiple;
    em.vars.set(nest.rows, row);
    em.vars.set(nest.cols, col);
    em.dropPointers();
    code.get(from).set(col);
    em.countUses(values);
    em.preparePointers(values, targets, nest.cols.extent === 1 ? null : nest.cols);
    em.hoist(values, nest.cols, [VECTOR]);
    const at = code.local("i32");
    code.get(sums).set(at);
    const run = (ctx: Context, count: number): void => {
      code.while(
        () => {
          code.get(col).i32Const(count).op(OP.i32Add).get(to).op(OP.i32LeS);
        },
        () => {
          em.scope(() => {
            const acc = code.local("v128");
            code
              .get(at)
              .loadBytes(count * width, 0)
              .set(acc);
            em.bind({ kind: "acc", dtype: nest.dtype }, ctx, acc);
            emitStores(em, nest.stores, operands, ctx);
          });
          em.bumpPointers(count);
          code.increment(col, count).increment(at, count * width);
        },
      );
    };
    if (nest.cols.extent >= em.lanes) run(VECTOR, em.lanes);
    if (nest.cols.extent % em.lanes !== 0 || multiple % em.lanes !== 0) run(SINGLE, 1);
    code.increment(sums, stride);
  });
  em.multiple = 1;
}
