/**
 * @file Reductions as C. The order of additions is that of kernel/loops.ts, also after fusion and for every width of
 * registers: across the lanes of the last counter (sixteen partial sums, eight of f64), or down sequential sums with the
 * kept counter in the lanes; long ones in blocks.
 */

import { invariant } from "../../base/invariant.ts";
import { laneBytes } from "../../kernel/dtype.ts";
import type { LoopVar } from "../../kernel/expr.ts";
import type { ReduceNest } from "../../kernel/loops.ts";
import { BLOCK_TERMS, blockElements, identityOf, usesBlockSums } from "../../kernel/loops.ts";
import { live, UNDIVIDED, type Units } from "../units.ts";
import { emitOuter, emitStores } from "./emit-loops.ts";
import type { Context, VectorEmitter } from "./emitter.ts";
import { laneType } from "./options.ts";
import { combineText, constantText } from "./scalar.ts";

/** Registers of a tile of columns that is summed down at once. */
const TILE = 8;
/** Accumulators side by side, where the order makes no difference and one would wait for itself. */
const CHAINS = 4;

/** Accumulators in an array of registers, and for long sums the block sums and totals (see ReduceNest). */
class Accumulators {
  readonly acc: string;
  readonly #em: VectorEmitter;
  readonly #nest: ReduceNest;
  readonly #count: number;
  readonly #levels: { readonly blockSum: string; readonly total: string; readonly flushes: string } | null;

  constructor(em: VectorEmitter, nest: ReduceNest, count: number) {
    const { code } = em;
    this.#em = em;
    this.#nest = nest;
    this.#count = count;
    this.acc = code.name("acc");
    this.#levels = usesBlockSums(nest)
      ? { blockSum: code.name("middle"), total: code.name("total"), flushes: code.name("turns") }
      : null;
    const arrays = this.#levels ? [this.acc, this.#levels.blockSum, this.#levels.total] : [this.acc];
    for (const array of arrays) {
      code.line(`${em.type(nest.dtype)} ${array}[${count}];`);
      this.#each((u) => `${array}[${u}] = ${this.#identity()};`);
    }
    if (this.#levels) code.line(`int ${this.#levels.flushes} = 0;`);
  }

  #identity(): string {
    return constantText(this.#nest.dtype, identityOf(this.#nest.combine, this.#nest.dtype), this.#em.lanes);
  }

  #each(text: (u: string) => string): void {
    if (this.#count === 1) this.#em.code.line(text("0"));
    else this.#em.code.line(`for (int u = 0; u < ${this.#count}; u++) { ${text("u")} }`);
  }

  combine(a: string, b: string): string {
    return combineText(this.#nest, a, b, this.#em.lanes);
  }

  #into(target: string, source: string): void {
    this.#each((u) => {
      const joined = this.combine(`${target}[${u}]`, `${source}[${u}]`);
      return `${target}[${u}] = ${joined}; ${source}[${u}] = ${this.#identity()};`;
    });
  }

  /** Combines all accumulators into the first `count`, which start the next round. */
  join(count: number): void {
    for (let u = count; u < this.#count; u++) {
      const target = `${this.acc}[${u % count}]`;
      this.#em.code.line(`${target} = ${this.combine(target, `${this.acc}[${u}]`)};`);
      this.#em.code.line(`${this.acc}[${u}] = ${this.#identity()};`);
    }
  }

  get hasBlockSums(): boolean {
    return this.#levels !== null;
  }

  /** Elements of the last counter from one flush to the next. */
  get run(): number {
    return blockElements(this.#nest);
  }

  flush(): void {
    if (!this.#levels) return;
    const { blockSum, total, flushes } = this.#levels;
    this.#into(blockSum, this.acc);
    this.#em.code.block(`if (++${flushes} % ${BLOCK_TERMS} == 0)`, () => this.#into(total, blockSum));
  }

  /** Leaves the totals where the accumulators were. */
  finish(): void {
    if (!this.#levels) return;
    const { blockSum, total } = this.#levels;
    this.#into(total, blockSum);
    this.#each((u) => `${this.acc}[${u}] = ${total}[${u}];`);
  }
}

export function emitReduce(em: VectorEmitter, nest: ReduceNest): Units {
  if (nest.loops.some((v) => v.extent === 0)) return { count: 0, grain: 1 };
  return nest.order === "interleaved" ? emitAcross(em, nest) : emitDown(em, nest);
}

// ---- across the lanes -------------------------------------------------------------------------------------------------

function emitAcross(em: VectorEmitter, nest: ReduceNest): Units {
  const outer = live(nest.loops);
  const one = (): void => emitOneAcross(em, nest);
  if (outer.length > 0) return emitOuter(em, outer, one);
  one();
  return UNDIVIDED;
}

/** The loop over the last counter: in rounds of `wide` elements, which are four groups and lie in some registers. */
interface Rounds {
  readonly last: LoopVar;
  readonly group: number;
  readonly wide: number;
  readonly registers: number;
}

function roundsOf(em: VectorEmitter, nest: ReduceNest): Rounds {
  const last = nest.reduce.at(-1);
  invariant(last, () => "a reduction without counters");
  const group = 16 / laneBytes(nest.dtype);
  const wide = group * 4;
  return { last, group, wide, registers: Math.max(1, wide / em.lanes) };
}

function emitOneAcross(em: VectorEmitter, nest: ReduceNest): void {
  const rounds = roundsOf(em, nest);
  const { last } = rounds;
  const sums = new Accumulators(em, nest, rounds.registers * chainsOf(nest, last, rounds.wide));
  em.vec = last;
  em.multiple = em.lanes;
  if (nest.reduce.every((v) => v.extent > 0)) {
    em.loops(live(nest.reduce.slice(0, -1)), () => {
      em.hoist([nest.body], last, em.all);
      emitLast(em, nest, sums, rounds);
    });
  }
  em.multiple = 1;
  sums.finish();
  const acc = joinLanes(em, nest, sums, rounds);
  em.vec = null;
  em.bind({ kind: "acc", dtype: nest.dtype }, acc);
  emitStores(em, nest.stores, em.first(1));
}

/** The greatest and the least are the same in any order. */
function chainsOf(nest: ReduceNest, last: LoopVar, wide: number): number {
  const exact = nest.combine === "max" || nest.combine === "min";
  return exact && last.extent >= 2 * CHAINS * wide ? CHAINS : 1;
}

/** The last counter: whole rounds of `wide` elements, folded where long, then what is left. */
function emitLast(em: VectorEmitter, nest: ReduceNest, sums: Accumulators, rounds: Rounds): void {
  const { code } = em;
  const { last, wide } = rounds;
  const whole = last.extent - (last.extent % wide);
  const round = (name: string, rounds = 1): void => {
    for (let u = 0; u * em.lanes < rounds * wide; u++) {
      // where a register is wider than a round, which no machine here has, only the first lanes are meant
      const ctx = em.first(Math.min(em.lanes, wide));
      const at = code.name("r");
      em.block("", () => {
        code.line(`const idx ${at} = ${name}${u === 0 ? "" : ` + ${u * em.lanes}`};`);
        em.vars.set(last, at);
        const sum = `${sums.acc}[${u}]`;
        code.line(`${sum} = ${sums.combine(sum, em.emit(nest.body, ctx))};`);
      });
    }
  };
  const { run } = sums;
  let from = 0;
  const chains = chainsOf(nest, last, wide);
  if (chains > 1) {
    from = last.extent - (last.extent % (chains * wide));
    const name = code.name("r");
    em.block(`for (idx ${name} = 0; ${name} < ${from}; ${name} += ${chains * wide})`, () => round(name, chains));
    sums.join(Math.max(1, wide / em.lanes));
  }
  if (sums.hasBlockSums && last.extent >= run) {
    from = last.extent - (last.extent % run);
    const [start, name] = [code.name("run"), code.name("r")];
    em.block(`for (idx ${start} = 0; ${start} < ${from}; ${start} += ${run})`, () => {
      em.block(`for (idx ${name} = ${start}; ${name} < ${start} + ${run}; ${name} += ${wide})`, () => round(name));
      sums.flush();
    });
  }
  if (whole > from) {
    const name = code.name("r");
    em.block(`for (idx ${name} = ${from}; ${name} < ${whole}; ${name} += ${wide})`, () => round(name));
  }
  if (last.extent > whole) emitRest(em, nest, sums, rounds);
  // A fold ends the range of the last counter, also where a whole run has just ended.
  sums.flush();
}

/** Elements beyond the last whole round: by groups into the first group of accumulators, then one by one into the first of all. */
function emitRest(em: VectorEmitter, nest: ReduceNest, sums: Accumulators, { last, wide, group }: Rounds): void {
  const { code } = em;
  const count = last.extent % wide;
  const whole = last.extent - count;
  const lane = laneType(nest.dtype);
  const [rest, first] = [code.name("rest"), code.name("first")];
  em.block("", () => {
    code.line(`${lane} ${rest}[${Math.ceil(count / em.lanes) * em.lanes}], ${first}[${em.lanes}];`);
    for (let at = 0; at < count; at += em.lanes) {
      em.block("", () => {
        code.line(`const idx ${em.counter(last)} = ${whole + at};`);
        const value = em.emit(nest.body, em.first(Math.min(em.lanes, count - at)));
        const name = code.name("t");
        code.line(`const ${em.type(nest.dtype)} ${name} = ${value};`);
        code.line(`memcpy(${rest} + ${at}, &${name}, sizeof ${name});`);
      });
    }
    code.line(`memcpy(${first}, ${sums.acc}, sizeof ${sums.acc}[0]);`);
    const grouped = count - (count % group);
    for (let at = 0; at < grouped; at += group) {
      for (let l = 0; l < group; l++) combineLanes(em, nest, `${first}[${l}]`, `${rest}[${at + l}]`);
    }
    for (let at = grouped; at < count; at++) combineLanes(em, nest, `${first}[0]`, `${rest}[${at}]`);
    code.line(`memcpy(${sums.acc}, ${first}, sizeof ${sums.acc}[0]);`);
  });
}

/** One scalar of C combined with another: in lane 0 of registers, which are what the functions take. */
function combineLanes(em: VectorEmitter, nest: ReduceNest, target: string, source: string): void {
  const { code } = em;
  const infix = { add: "+", mul: "*", or: "|", and: "&" }[nest.combine as "add"];
  if (infix) {
    code.line(`${target} = ${target} ${infix} ${source};`);
    return;
  }
  const of = `${em.type(nest.dtype)}_of`;
  code.line(`${target} = ${combineText(nest, `${of}(${target})`, `${of}(${source})`, em.lanes)}[0];`);
}

/** ((q0+q1)+(q2+q3)) over four groups, then across the lanes of a group; a register with the sum in lane 0. */
function joinLanes(em: VectorEmitter, nest: ReduceNest, sums: Accumulators, { registers, group }: Rounds): string {
  const { code, lanes } = em;
  const type = em.type(nest.dtype);
  const joined = (a: string, b: string): string => {
    const name = code.name("sum");
    code.line(`const ${type} ${name} = ${sums.combine(a, b)};`);
    return name;
  };
  /** Every lane with the one `by` further on. */
  const across = (a: string, by: number): string => {
    const name = code.name("moved");
    const order = Array.from({ length: lanes }, (_, l) => (l + by) % lanes).join(", ");
    code.line(`const ${type} ${name} = __builtin_shufflevector(${a}, ${a}, ${order});`);
    return joined(a, name);
  };
  const acc = (i: number): string => `${sums.acc}[${i}]`;
  // registers of one group, or of several groups joined within a register
  const parts = Math.max(1, group / lanes);
  const halves = Array.from({ length: parts }, (_, part) => {
    const groups = Array.from({ length: Math.max(1, registers / parts) }, (_, q) => acc(q * parts + part));
    const [a = "", b = "", c = "", d = ""] = groups;
    if (groups.length === 4) return joined(joined(a, b), joined(c, d));
    if (groups.length === 2) return joined(across(a, group), across(b, group));
    return across(across(a, group), 2 * group);
  });
  const [first = "", second] = halves;
  if (second) return across(joined(first, second), 1);
  return group === 4 ? across(across(first, 2), 1) : across(first, 1);
}

// ---- down the columns -------------------------------------------------------------------------------------------------

/** Sequential sums, with the last kept counter in the lanes. */
function emitDown(em: VectorEmitter, nest: ReduceNest): Units {
  const outer = live(nest.loops);
  const across = outer.pop() ?? null;
  em.vec = across;
  if (!across) {
    emitTile(em, nest, { column: null, count: 1, ctx: em.first(1) });
    return UNDIVIDED;
  }
  if (outer.length > 0) return emitOuter(em, outer, () => emitColumns(em, nest, across, false));
  emitColumns(em, nest, across, true);
  return { count: across.extent, grain: em.lanes * TILE };
}

/** Tiles of several registers, then registers, then what is left. */
function emitColumns(em: VectorEmitter, nest: ReduceNest, across: LoopVar, shared: boolean): void {
  const { code, lanes } = em;
  em.multiple = lanes;
  const { extent } = across;
  const tiles = extent - (extent % (lanes * TILE));
  const whole = extent - (extent % lanes);
  const columns = (from: number, to: number, step: number): void => {
    if (to <= from) return;
    const name = code.name("column");
    const [start, end] = shared && from === 0 ? ["lo", `(hi < ${to} ? hi : ${to})`] : [String(from), String(to)];
    em.block(`for (idx ${name} = ${start}; ${name} < ${end}; ${name} += ${step * lanes})`, () =>
      emitTile(em, nest, { column: name, count: step, ctx: em.all }),
    );
  };
  columns(0, tiles, TILE);
  if (extent === tiles) return;
  const rest = (): void => {
    columns(tiles === 0 && shared ? 0 : tiles, whole, 1);
    const last: Tile = { column: String(whole), count: 1, ctx: em.first(extent - whole) };
    if (extent > whole) em.block("", () => emitTile(em, nest, last));
  };
  if (shared) em.block(`if (hi == ${extent})`, rest);
  else rest();
}

/** `count` registers of columns from `column` on. */
interface Tile {
  readonly column: string | null;
  readonly count: number;
  readonly ctx: Context;
}

function emitTile(em: VectorEmitter, nest: ReduceNest, { column, count, ctx }: Tile): void {
  const { code } = em;
  const across = em.vec;
  const sums = new Accumulators(em, nest, count);
  const each = (body: (sum: string) => void): void => {
    const run = (u: string): void => {
      if (across && column !== null) {
        code.line(`const idx ${em.counter(across)} = ${column}${u === "0" ? "" : ` + ${u} * ${em.lanes}`};`);
      }
      body(`${sums.acc}[${u}]`);
    };
    if (count === 1) em.block("", () => run("0"));
    else {
      code.line(`#pragma GCC unroll ${count}`);
      em.block(`for (int u = 0; u < ${count}; u++)`, () => run("u"));
    }
  };
  const iteration = (): void => each((sum) => code.line(`${sum} = ${sums.combine(sum, em.emit(nest.body, ctx))};`));
  const counters = live(nest.reduce);
  const inner = counters.pop() ?? null;
  if (nest.reduce.every((v) => v.extent > 0)) {
    em.loops(counters, () => {
      if (!inner) {
        iteration();
        return;
      }
      emitIterations(em, inner, sums, iteration);
    });
  }
  sums.finish();
  each((sum) => {
    em.bind({ kind: "acc", dtype: nest.dtype }, sum);
    emitStores(em, nest.stores, ctx);
  });
}

/** The innermost reduce counter, with a flush into the block sums after every run and at the end. */
function emitIterations(em: VectorEmitter, inner: LoopVar, sums: Accumulators, iteration: () => void): void {
  if (!sums.hasBlockSums) {
    em.loop(inner, iteration);
    return;
  }
  const { run } = sums;
  const [start, name] = [em.code.name("run"), em.code.name("r")];
  const whole = inner.extent - (inner.extent % run);
  const emitRun = (from: string, to: string): void => {
    em.vars.set(inner, name);
    em.block(`for (idx ${name} = ${from}; ${name} < ${to}; ${name}++)`, iteration);
  };
  if (whole > 0) {
    em.block(`for (idx ${start} = 0; ${start} < ${whole}; ${start} += ${run})`, () => {
      emitRun(start, `${start} + ${run}`);
      sums.flush();
    });
  }
  if (inner.extent > whole) emitRun(String(whole), String(inner.extent));
  sums.flush();
}
