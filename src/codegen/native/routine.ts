/**
 * @file Routines (kernel/routine.ts) as C: single values are variables, arrays are in the thread's workspace. Loops whose iterations
 * are apart go register by register, and one by one at their end.
 */
import type { Expr, Index } from "../../kernel/expr.ts";
import type { RoutineNest } from "../../kernel/loops.ts";
import { FIRST_TILE, type Step, type Steps } from "../../kernel/routine.ts";
import { routineLayout, withTiles } from "../cpu/routine.ts";
import { live, product, UNDIVIDED, type Units } from "../units.ts";
import { emitOuter, emitStores } from "./emit-loops.ts";
import { VectorEmitter } from "./emitter.ts";

class RoutineEmitter {
  readonly em: VectorEmitter;

  constructor(em: VectorEmitter) {
    this.em = em;
  }

  /** Bounds as variables; nothing that was read for them is known afterwards. */
  #bounds(from: Index, to: Index): readonly [string, string] {
    const { em } = this;
    const [lo, hi] = [em.code.name("from"), em.code.name("to")];
    em.vec = null;
    em.code.line(`idx ${lo}, ${hi};`);
    em.block("", () => {
      em.code.line(`${lo} = ${em.index(from, em.first(1))};`);
      em.code.line(`${hi} = ${em.index(to, em.first(1))};`);
    });
    return [lo, hi];
  }

  #test(test: Expr): string {
    const { em } = this;
    const name = em.code.name("test");
    em.vec = null;
    em.code.line(`int ${name};`);
    em.block("", () => em.code.line(`${name} = ${em.emit(test, em.first(1))}[0] != 0;`));
    return name;
  }

  steps(steps: Steps): void {
    for (const step of steps) this.#step(step);
  }

  #step(step: Step): void {
    const { em } = this;
    const { code } = em;
    switch (step.kind) {
      case "set":
        em.vec = null;
        em.block("", () => emitStores(em, step.stores, em.first(1)));
        return;
      case "for": {
        const [lo, hi] = this.#bounds(step.from, step.to);
        const name = em.counter(step.counter);
        em.block(`for (idx ${name} = ${lo}; ${name} < ${hi}; ${name}++)`, () => this.steps(step.body));
        return;
      }
      case "each":
        this.#each(step);
        return;
      case "if": {
        const test = this.#test(step.test);
        em.block(`if (${test})`, () => this.steps(step.body));
        if (step.otherwise.length > 0) em.block("else", () => this.steps(step.otherwise));
        return;
      }
      case "while": {
        const count = code.name("count");
        em.block(`for (idx ${count} = 0; ${count} < ${step.most}; ${count}++)`, () => {
          code.line(`if (!${this.#test(step.test)}) break;`);
          this.steps(step.body);
        });
      }
    }
  }

  #each({ counter, from, to, body }: Extract<Step, { kind: "each" }>): void {
    const { em } = this;
    const [lo, hi] = this.#bounds(from, to);
    em.vec = counter;
    em.block("", () => {
      const values = body.flatMap(({ stores }) => stores.map(({ value }) => value));
      em.hoist(values, counter, em.all);
      const name = em.counter(counter);
      em.code.line(`idx ${name} = ${lo};`);
      const all = (count: number): void => {
        for (const { stores } of body) em.block("", () => emitStores(em, stores, em.first(count)));
      };
      em.block(`for (; ${name} + ${em.lanes} <= ${hi}; ${name} += ${em.lanes})`, () => all(em.lanes));
      em.block(`for (; ${name} < ${hi}; ${name}++)`, () => all(1));
    });
    em.vec = null;
  }
}

export function emitRoutine(outer: VectorEmitter, nest: RoutineNest): Units {
  const loops = live(nest.loops);
  if (product(loops) === 0) return { count: 0, grain: 1 };
  const { code } = outer;
  const { offsets, elements } = routineLayout(nest);
  const w = code.name("w");
  if (nest.scratch !== undefined) {
    code.line(`${nest.dtype} *const ${w} = ${outer.pointer(nest.scratch, 0)} + thread * ${elements};`);
  }
  const names = nest.tiles.map((tile) => {
    if (tile.kind === "array") return null;
    const name = code.name("v");
    code.line(`${tile.dtype} ${name} = 0;`);
    return name;
  });
  const pointer = (operand: number, offset: number): string => {
    if (operand < FIRST_TILE) return outer.pointer(operand, offset);
    const name = names[operand - FIRST_TILE];
    return name ? `(&${name})` : `(${w} + ${(offsets[operand - FIRST_TILE] ?? 0) + offset})`;
  };
  const em = new VectorEmitter(code, outer.lanes, pointer, withTiles(outer.operands, nest));
  const emitter = new RoutineEmitter(em);
  if (loops.length > 0) return emitOuter(em, loops, () => emitter.steps(nest.body));
  emitter.steps(nest.body);
  return UNDIVIDED;
}
