/**
 * @file Routines (kernel/routine.ts) as C: single values are variables, arrays are in the thread's workspace. Loops whose iterations
 * are apart go register by register, and one by one at their end.
 */
import { type FloatScalar, laneBytes } from "../../kernel/dtype.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import type { RoutineNest } from "../../kernel/loops.ts";
import { type Assignment, FIRST_TILE, type Step, type Steps } from "../../kernel/routine.ts";
import { routineLayout, withTiles } from "../cpu/routine.ts";
import { live, product, UNDIVIDED, type Units } from "../units.ts";
import type { CCode } from "./c-code.ts";
import { emitOuter, emitStores } from "./emit-loops.ts";
import { VectorEmitter } from "./emitter.ts";
import type { CFile } from "./options.ts";
import { lanesText } from "./prelude.ts";

class RoutineEmitter {
  /** Registers for loops whose iterations are apart, and the narrowest ones for everything else. */
  readonly #wide: VectorEmitter;
  readonly #narrow: VectorEmitter;

  constructor(wide: VectorEmitter, narrow: VectorEmitter) {
    this.#wide = wide;
    this.#narrow = narrow;
  }

  get #code(): CCode {
    return this.#wide.code;
  }

  /** The narrow emitter, with the counters that there are; nothing that was read in a block is known after it. */
  #one(body: (em: VectorEmitter) => void): void {
    const em = this.#narrow;
    for (const [v, name] of this.#wide.vars) em.vars.set(v, name);
    em.block("", () => body(em));
  }

  /** Bounds as variables. */
  #bounds(from: Index, to: Index): readonly [string, string] {
    const [lo, hi] = [this.#code.name("from"), this.#code.name("to")];
    this.#code.line(`idx ${lo}, ${hi};`);
    this.#one((em) => {
      this.#code.line(`${lo} = ${em.index(from, em.first(1))};`);
      this.#code.line(`${hi} = ${em.index(to, em.first(1))};`);
    });
    return [lo, hi];
  }

  #test(test: Expr): string {
    const name = this.#code.name("test");
    this.#code.line(`int ${name};`);
    this.#one((em) => this.#code.line(`${name} = ${em.emit(test, em.first(1))}[0] != 0;`));
    return name;
  }

  #assign({ stores }: Assignment): void {
    this.#one((em) => emitStores(em, stores, em.first(1)));
  }

  steps(steps: Steps): void {
    for (const step of steps) this.#step(step);
  }

  #step(step: Step): void {
    const code = this.#code;
    switch (step.kind) {
      case "set":
        this.#assign(step);
        return;
      case "for": {
        const [lo, hi] = this.#bounds(step.from, step.to);
        const name = this.#wide.counter(step.counter);
        code.block(`for (idx ${name} = ${lo}; ${name} < ${hi}; ${name}++)`, () => this.steps(step.body));
        return;
      }
      case "each":
        this.#each(step);
        return;
      case "if": {
        const test = this.#test(step.test);
        code.block(`if (${test})`, () => this.steps(step.body));
        if (step.otherwise.length > 0) code.block("else", () => this.steps(step.otherwise));
        return;
      }
      case "while": {
        const count = code.name("count");
        code.block(`for (idx ${count} = 0; ${count} < ${step.most}; ${count}++)`, () => {
          code.line(`if (!${this.#test(step.test)}) break;`);
          this.steps(step.body);
        });
      }
    }
  }

  #each({ counter, from, to, body }: Extract<Step, { kind: "each" }>): void {
    const em = this.#wide;
    const [lo, hi] = this.#bounds(from, to);
    this.#code.block("", () => {
      const name = em.counter(counter);
      this.#code.line(`idx ${name} = ${lo};`);
      em.vec = counter;
      em.block(`if (${name} + ${em.lanes} <= ${hi})`, () => {
        const values = body.flatMap(({ stores }) => stores.map(({ value }) => value));
        em.hoist(values, counter, em.all);
        em.block(`for (; ${name} + ${em.lanes} <= ${hi}; ${name} += ${em.lanes})`, () => {
          for (const { stores } of body) em.block("", () => emitStores(em, stores, em.all));
        });
      });
      em.vec = null;
      this.#code.block(`for (; ${name} < ${hi}; ${name}++)`, () => {
        for (const step of body) this.#assign(step);
      });
    });
  }
}

/** Lanes of registers for single values: 128 bits. */
const narrowLanes = (dtype: FloatScalar): number => 16 / laneBytes(dtype);

export function emitRoutine(outer: VectorEmitter, nest: RoutineNest, { options, share }: CFile): Units {
  const loops = live(nest.loops);
  if (product(loops) === 0) return { count: 0, grain: 1 };
  const { code } = outer;
  const { offsets, elements } = routineLayout(nest);
  const w = code.name("w");
  if (nest.scratch !== undefined) {
    code.line(
      `${nest.dtype} *const ${w} = ${outer.pointer(nest.scratch, 0)}${loops.length > 0 ? ` + thread * ${elements}` : ""};`,
    );
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
  const operands = withTiles(outer.operands, nest);
  const em = new VectorEmitter(code, outer.lanes, pointer, operands);
  const lanes = Math.min(outer.lanes, narrowLanes(nest.dtype));
  if (lanes < options.lanes / 2) share(`lanes ${lanes}`, "registers", () => lanesText(lanes));
  const emitter = new RoutineEmitter(em, new VectorEmitter(code, lanes, pointer, operands));
  if (loops.length > 0) return emitOuter(em, loops, () => emitter.steps(nest.body));
  emitter.steps(nest.body);
  return UNDIVIDED;
}
