/**
 * @file Routines (kernel/routine.ts) as WebAssembly. Tiles are in the thread's workspace, single values behind the arrays. Loops whose
 * iterations are apart go register by register, and one by one at their end.
 */
import { invariant } from "../../base/invariant.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import type { Operand, RoutineNest } from "../../kernel/loops.ts";
import { FIRST_TILE, routinePlaces, type Step, type Steps } from "../../kernel/routine.ts";
import { routineLayout, withTiles } from "../cpu/routine.ts";
import type { AddressNumber } from "../operand-addresses.ts";
import { live, product, UNDIVIDED, type Units } from "../units.ts";
import { type Context, SINGLE, VECTOR } from "./addresses.ts";
import { emitStores, emitUnits } from "./emit-loops.ts";
import { OP } from "./encoder.ts";
import { VectorEmitter } from "./vector.ts";

class RoutineEmitter {
  readonly em: VectorEmitter;
  readonly operands: readonly Operand[];

  constructor(em: VectorEmitter, operands: readonly Operand[]) {
    this.em = em;
    this.operands = operands;
  }

  /** An index in a local; nothing that was read for it is known afterwards. */
  #bound(index: Index): number {
    const { em } = this;
    const local = em.code.local("i32");
    em.scope(() => em.emitIndex(index, SINGLE));
    em.code.set(local);
    return local;
  }

  /** Leaves whether a test holds. */
  #test(test: Expr): void {
    const { em } = this;
    em.scope(() => {
      em.countUses([test]);
      em.emit(test, SINGLE);
    });
    em.code.simd("extract_i32", 0);
  }

  #assign(stores: Extract<Step, { kind: "set" }>["stores"], ctx: Context): void {
    const { em } = this;
    em.scope(() => {
      em.countUses(stores.map(({ value }) => value));
      emitStores(em, stores, this.operands, ctx);
    });
  }

  steps(steps: Steps): void {
    for (const step of steps) this.#step(step);
  }

  #step(step: Step): void {
    const { code } = this.em;
    this.em.vec = null;
    switch (step.kind) {
      case "set":
        this.#assign(step.stores, SINGLE);
        return;
      case "for": {
        const [counter, end] = [this.#bound(step.from), this.#bound(step.to)];
        this.em.vars.set(step.counter, counter);
        code.while(
          () => code.get(counter).get(end).op(OP.i32LtS),
          () => {
            this.steps(step.body);
            code.increment(counter, 1);
          },
        );
        return;
      }
      case "each":
        this.#each(step);
        return;
      case "if":
        this.#test(step.test);
        code.if(
          null,
          () => this.steps(step.body),
          step.otherwise.length > 0 ? () => this.steps(step.otherwise) : undefined,
        );
        return;
      case "while": {
        const count = code.local("i32");
        code.i32Const(0).set(count);
        code.while(
          () => {
            this.#test(step.test);
            code.i32Const(0).op(OP.i32Ne).get(count).i32Const(step.most).op(OP.i32LtS).op(OP.i32And);
          },
          () => {
            this.steps(step.body);
            code.increment(count, 1);
          },
        );
      }
    }
  }

  #each({ counter, from, to, body }: Extract<Step, { kind: "each" }>): void {
    const { em } = this;
    const { code } = em;
    const [local, end] = [this.#bound(from), this.#bound(to)];
    em.vars.set(counter, local);
    em.vec = counter;
    em.scope(() => {
      const values = body.flatMap(({ stores }) => stores.map(({ value }) => value));
      em.hoist(values, counter, [VECTOR]);
      const all = (stride: number, ctx: Context): void => {
        for (const { stores } of body) this.#assign(stores, ctx);
        code.increment(local, stride);
      };
      code.while(
        () => code.get(local).i32Const(em.lanes).op(OP.i32Add).get(end).op(OP.i32LeS),
        () => all(em.lanes, VECTOR),
      );
      code.while(
        () => code.get(local).get(end).op(OP.i32LtS),
        () => all(1, SINGLE),
      );
    });
    em.vec = null;
  }
}

export function emitRoutine(
  outer: VectorEmitter,
  nest: RoutineNest,
  operands: readonly Operand[],
  addressNumber: AddressNumber,
): Units {
  const loops = live(nest.loops);
  if (product(loops) === 0) return UNDIVIDED;
  const { code, share } = outer;
  const { offsets, elements } = routineLayout(nest);
  const bytes = bytesOf(nest.dtype);
  const w = code.local("i32");
  invariant(nest.scratch !== undefined, () => "a routine without workspace");
  code.get(addressNumber(nest.scratch, 0));
  if (share && loops.length > 0)
    code
      .get(share.thread)
      .i32Const(elements * bytes)
      .op(OP.i32Mul)
      .op(OP.i32Add);
  code.set(w);
  const all = withTiles(operands, nest);
  const locals = new Map<string, number>();
  for (const { operand, offset } of routinePlaces(nest, true)) {
    const local = code.local("i32");
    const own = bytesOf(all[operand]?.dtype ?? nest.dtype);
    const start = (offsets[operand - FIRST_TILE] ?? 0) * bytes + offset * own;
    code.get(w).i32Const(start).op(OP.i32Add).set(local);
    locals.set(`${operand}+${offset}`, local);
  }
  const address = (operand: number, offset: number): number =>
    locals.get(`${operand}+${offset}`) ?? addressNumber(operand, offset);
  const em = new VectorEmitter(code, outer.lanes, address, share);
  return emitUnits(em, loops, () => new RoutineEmitter(em, all).steps(nest.body));
}
