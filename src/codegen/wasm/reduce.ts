/**
 * @file Reductions as WebAssembly. The order of additions is that of kernel/loops.ts, also after fusion: across the
 * lanes of the last counter, or down sequential sums with the kept counter in the lanes, long ones in blocks.
 */

import { invariant } from "../../base/invariant.ts";
import { laneBytes } from "../../kernel/dtype.ts";
import type { Operand, ReduceNest } from "../../kernel/loops.ts";
import { BLOCK_TERMS, blockElements, identityOf, usesBlockSums } from "../../kernel/loops.ts";
import { live, UNDIVIDED, type Units } from "../units.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import { contextsOf, emitCombine, emitCounters, emitStores, emitStrides, emitUnits, type Runs } from "./emit-loops.ts";
import { OP } from "./encoder.ts";
import { splatConstant } from "./scalar.ts";
import type { VectorEmitter } from "./vector.ts";

/** Block sums and totals of a long reduction; see ReduceNest. */
class BlockSumEmitter {
  readonly #em: VectorEmitter;
  readonly #nest: ReduceNest;
  readonly #accs: readonly number[];
  readonly #blockSum: readonly number[];
  readonly #total: readonly number[];
  readonly #flushes: number;
  readonly runs: Runs;

  constructor(em: VectorEmitter, nest: ReduceNest, accs: readonly number[]) {
    this.#em = em;
    this.#nest = nest;
    this.#accs = accs;
    this.#blockSum = accs.map(() => em.code.local("v128"));
    this.#total = accs.map(() => em.code.local("v128"));
    this.#flushes = em.code.local("i32");
    this.runs = { run: blockElements(nest), emit: () => this.#flush() };
  }

  restart(): void {
    this.#clear(this.#blockSum);
    this.#clear(this.#total);
    this.#em.code.i32Const(0).set(this.#flushes);
  }

  #clear(locals: readonly number[]): void {
    const identity = splatConstant(this.#nest.dtype, identityOf(this.#nest.combine, this.#nest.dtype));
    for (const local of locals) this.#em.code.v128Const(identity).set(local);
  }

  #into(target: readonly number[], source: readonly number[]): void {
    for (const [i, local] of target.entries()) {
      this.#em.code.get(local).get(source[i] as number);
      emitCombine(this.#em, this.#nest.combine, this.#nest.dtype);
      this.#em.code.set(local);
    }
    this.#clear(source);
  }

  #flush(): void {
    const { code } = this.#em;
    this.#into(this.#blockSum, this.#accs);
    code.increment(this.#flushes, 1);
    code.get(this.#flushes).i32Const(BLOCK_TERMS).op(OP.i32RemU).op(OP.i32Eqz);
    code.if(null, () => this.#into(this.#total, this.#blockSum));
  }

  /** Leaves the totals where the accumulators were. */
  finish(): void {
    this.#into(this.#total, this.#blockSum);
    for (const [i, acc] of this.#accs.entries()) this.#em.code.get(this.#total[i] as number).set(acc);
  }
}

export function emitReduce(em: VectorEmitter, nest: ReduceNest, operands: readonly Operand[]): Units {
  if (nest.loops.some((v) => v.extent === 0)) return UNDIVIDED;
  return nest.order === "interleaved" ? emitReduceAcross(em, nest, operands) : emitReduceDown(em, nest, operands);
}

/** The last reduce counter is in the lanes; see ReduceNest for the order. */
function emitReduceAcross(em: VectorEmitter, nest: ReduceNest, operands: readonly Operand[]): Units {
  const { code } = em;
  const last = nest.reduce.at(-1);
  invariant(last, () => "a reduction without counters");
  const mid = laneBytes(nest.dtype) === 8 ? 2 : 4;
  const wide = mid * 4;
  const accs = Array.from({ length: wide / em.lanes }, () => code.local("v128"));
  const identity = splatConstant(nest.dtype, identityOf(nest.combine, nest.dtype));
  const laneZero = new Uint8Array(16).fill(255, 0, laneBytes(nest.dtype));
  const accumulate = (acc: number, ctx: Context): void => {
    code.get(acc);
    em.emit(nest.body, ctx);
    if (ctx.single) {
      const value = code.local("v128");
      code.set(value).get(value).v128Const(identity).v128Const(laneZero).simd("bitselect");
    }
    emitCombine(em, nest.combine, nest.dtype);
    code.set(acc);
  };
  const blockSums = usesBlockSums(nest) ? new BlockSumEmitter(em, nest, accs) : null;
  return emitUnits(em, live(nest.loops), () => {
    for (const acc of accs) code.v128Const(identity).set(acc);
    blockSums?.restart();
    em.vec = last;
    if (nest.reduce.every((v) => v.extent > 0)) {
      emitCounters(em, live(nest.reduce.slice(0, -1)), () => {
        em.scope(() => {
          const start = code.local("i32");
          em.vars.set(last, start);
          code.i32Const(0).set(start);
          em.countUses([nest.body]);
          em.preparePointers([nest.body], [], last);
          em.hoist([nest.body], last, [VECTOR]);
          emitStrides(em, last, [wide, mid, 1], {
            body: (stride) => {
              if (stride === 1) accumulate(accs[0] as number, SINGLE);
              else
                for (let i = 0; i * em.lanes < stride; i++)
                  accumulate(accs[i] as number, { ...VECTOR, shift: i * em.lanes });
            },
            after: (stride) => em.bumpPointers(stride),
            runs: blockSums?.runs,
          });
        });
      });
    }
    blockSums?.finish();
    const total = joinAccumulators(em, nest, accs, mid);
    em.vec = null;
    em.scope(() => {
      em.bind({ kind: "acc", dtype: nest.dtype }, SINGLE, total);
      em.countUses(nest.stores.map((s) => s.value));
      emitStores(em, nest.stores, operands, SINGLE);
    });
  });
}

/** ((q0+q1)+(q2+q3)) over four groups of `mid` lanes, then across the lanes; the sum ends in lane 0. */
function joinAccumulators(em: VectorEmitter, nest: ReduceNest, accs: readonly number[], mid: number): number {
  const { code } = em;
  const join = (): void => emitCombine(em, nest.combine, nest.dtype);
  const perGroup = mid / em.lanes;
  const halves = Array.from({ length: perGroup }, (_, h) => {
    const [q0, q1, q2, q3] = [0, 1, 2, 3].map((g) => accs[g * perGroup + h] as number) as [
      number,
      number,
      number,
      number,
    ];
    code.get(q0).get(q1);
    join();
    code.get(q2).get(q3);
    join();
    join();
    const local = code.local("v128");
    code.set(local);
    return local;
  });
  const out = halves[0] as number;
  const swap = (from: number): void => {
    // lane 0 + the lane at byte `from`
    code
      .get(out)
      .get(out)
      .get(out)
      .shuffle(Array.from({ length: 16 }, (_, i) => (i + from) % 16));
    join();
    code.set(out);
  };
  if (perGroup === 2) {
    code.get(out).get(halves[1] as number);
    join();
    code.set(out);
    swap(4);
  } else if (em.lanes === 4) {
    swap(8);
    swap(4);
  } else swap(laneBytes(nest.dtype));
  return out;
}

/** Sequential sums, with the last kept counter in the lanes. */
function emitReduceDown(em: VectorEmitter, nest: ReduceNest, operands: readonly Operand[]): Units {
  const kept = live(nest.loops);
  const across = kept.pop() ?? null;
  const shared = kept.length === 0 && across !== null;
  const outer = emitUnits(em, kept, () => {
    em.vec = across;
    if (!across) {
      emitReduceTile(em, nest, operands, [SINGLE]);
      return;
    }
    emitStrides(em, across, [em.lanes * 4, em.lanes, 1], {
      body: (stride) => emitReduceTile(em, nest, operands, contextsOf(em, stride)),
      shared,
    });
  });
  return shared ? { count: across.extent, grain: em.lanes * 4 } : outer;
}

function emitReduceTile(
  em: VectorEmitter,
  nest: ReduceNest,
  operands: readonly Operand[],
  contexts: readonly Context[],
): void {
  const { code } = em;
  const identity = splatConstant(nest.dtype, identityOf(nest.combine, nest.dtype));
  const accs = contexts.map(() => code.local("v128"));
  for (const acc of accs) code.v128Const(identity).set(acc);
  const blockSums = usesBlockSums(nest) ? new BlockSumEmitter(em, nest, accs) : null;
  blockSums?.restart();
  const counters = live(nest.reduce);
  const inner = counters.pop() ?? null;
  const step = (): void => {
    contexts.forEach((ctx, i) => {
      code.get(accs[i] as number);
      em.emit(nest.body, ctx);
      emitCombine(em, nest.combine, nest.dtype);
      code.set(accs[i] as number);
    });
  };
  if (nest.reduce.every((v) => v.extent > 0)) {
    emitCounters(em, counters, () =>
      em.scope(() => {
        em.countUses([nest.body]);
        if (!inner) {
          step();
          return;
        }
        const local = code.local("i32");
        em.vars.set(inner, local);
        code.i32Const(0).set(local);
        em.preparePointers([nest.body], [], inner);
        em.hoist([nest.body], inner, contexts);
        emitStrides(em, inner, [1], { body: step, after: () => em.bumpPointers(1), runs: blockSums?.runs });
      }),
    );
  }
  blockSums?.finish();
  em.scope(() => {
    em.countUses(nest.stores.map((s) => s.value));
    contexts.forEach((ctx, i) => {
      em.bind({ kind: "acc", dtype: nest.dtype }, ctx, accs[i] as number);
      emitStores(em, nest.stores, operands, ctx);
    });
  });
}
