/**
 * @file The work of a loop body, counted in vector operations. Targets compute several elements at once, and what
 * does not depend on the innermost counter they compute before the loop; a count that ignores either is off by a factor
 * of four or more. So a body is counted in parts, for the counter that is in the lanes:
 *
 *   for i: for j:  y[i, j] = tanh(s[i]) · x[i, j]        each register of j: load x, mul, store y (each)
 *                                                        ahead of the loop: load s, tanh          (entry)
 *
 * An expression counts once, however often it is used: code generation keeps shared values.
 */
import type { Bound, Expr, Index, LoopVar, ScalarFn } from "../../kernel/expr.ts";
import { rangeOf } from "../../kernel/index-math.ts";
import type { Store } from "../../kernel/loops.ts";
import { laneStep } from "./lanes.ts";

/** Vector operations of a loop, in weights. */
export interface BodyCount {
  /** For each register of the innermost loop. */
  readonly each: number;
  /** For each iteration, which may be several registers: counting, testing, moving pointers on. */
  readonly iteration: number;
  /** Ahead of it. */
  readonly entry: number;
}

/** In units of an addition of two registers; fitted to measured kernels, see docs/decisions/0014-cost-model.md. */
export const WEIGHT = {
  simple: 1,
  divide: 4,
  root: 4,
  /** Minimum and maximum: NaN and signed zeros take several instructions. */
  extreme: 6,
  pick: 2,
  convert: 3,
  /** An operand that is a constant: engines load it again in every iteration. */
  constant: 1.3,
  access: 0.5,
  /** A load or store lane by lane, walking along memory. */
  scattered: 4,
  /** The same in leaps: neighbours in time are not in one cache line. */
  leaping: 16,
  /** Moving a pointer on. */
  bump: 0.4,
  /** An operation on the integers of an index. */
  index: 0.3,
  /** A test of bounds for a register, and for each of its lanes. */
  guard: 3,
  laneGuard: 4,
  /** Counting, testing and jumping back. */
  iteration: 1.4,
  /** Factor on operations of a body that has more values than registers: they are stored and loaded again. */
  spilled: 3,
  /** Starting a loop. */
  entry: 4,
  /** A pointer made ahead of a loop. */
  pointer: 2,
};

/** Lanes of a register of 32-bit elements. */
export const LANES = 4;
/** Elements of a cache line. */
const LINE = 16;
/** Operations of a body whose values mostly stay in registers. */
const IN_REGISTERS = 200;

const CLASSES: Readonly<Partial<Record<ScalarFn, keyof typeof WEIGHT>>> = {
  div: "divide",
  sqrt: "root",
  min: "extreme",
  max: "extreme",
  pick: "pick",
  convert: "convert",
};

/** Which counters an expression depends on; answers are kept for the life of the counter. */
export class Dependence {
  readonly #exprs = new Map<Expr, ReadonlySet<LoopVar>>();
  readonly #accumulated = new Map<Expr, boolean>();

  ofIndex(index: Index): ReadonlySet<LoopVar> {
    const found = new Set<LoopVar>();
    for (const { atom } of index.terms) {
      if (atom.kind === "var") found.add(atom);
      else for (const v of atom.kind === "value" ? this.of(atom.expr) : this.ofIndex(atom.of)) found.add(v);
    }
    return found;
  }

  of(expr: Expr): ReadonlySet<LoopVar> {
    const known = this.#exprs.get(expr);
    if (known) return known;
    const found = new Set<LoopVar>();
    const add = (vars: Iterable<LoopVar>): void => {
      for (const v of vars) found.add(v);
    };
    if (expr.kind === "load" || expr.kind === "index") add(this.ofIndex(expr.index));
    else if (expr.kind === "call") for (const arg of expr.args) add(this.of(arg));
    else if (expr.kind === "guard") {
      for (const bound of expr.bounds) add(this.ofIndex(bound.index));
      add(this.of(expr.then));
      add(this.of(expr.otherwise));
    }
    this.#exprs.set(expr, found);
    return found;
  }

  /** Whether the accumulator of a reduction is below: such a value is never known ahead of the loop. */
  onAccumulator(expr: Expr): boolean {
    const known = this.#accumulated.get(expr);
    if (known !== undefined) return known;
    const below =
      expr.kind === "acc" ||
      (expr.kind === "call" && expr.args.some((arg) => this.onAccumulator(arg))) ||
      (expr.kind === "guard" && (this.onAccumulator(expr.then) || this.onAccumulator(expr.otherwise)));
    this.#accumulated.set(expr, below);
    return below;
  }

  /** Coefficient of a counter, or null when it is under a division or in an index known at run time. */
  coefficient(index: Index, v: LoopVar | null): number | null {
    if (!v) return 0;
    let coef = 0;
    for (const { atom, coef: c } of index.terms) {
      if (atom === v) coef = c;
      else if (
        atom.kind === "value" ? this.of(atom.expr).has(v) : atom.kind !== "var" && this.ofIndex(atom.of).has(v)
      ) {
        return null;
      }
    }
    return coef;
  }
}

const isPowerOfTwo = (n: number): boolean => Number.isInteger(Math.log2(n));

/** The share of iterations in which bounds hold. */
function likelihood(bounds: readonly Bound[]): number {
  return bounds.reduce((share, { index, lo, hi }) => {
    const [least, greatest] = rangeOf(index);
    const met = Math.min(hi, greatest + 1) - Math.max(lo, least);
    return share * Math.min(1, Math.max(0, met / (greatest - least + 1)));
  }, 1);
}

/** Where a body runs: the counter in the lanes and the counter of the innermost loop (often the same). */
export interface Place {
  readonly lane: LoopVar | null;
  readonly inner: LoopVar | null;
  /** Addresses and bounds that the innermost counter does not change are computed ahead for every lane. */
  readonly panel?: boolean;
}

export class BodyCounter {
  readonly #dependence = new Dependence();
  readonly #place: Place;
  readonly #seen = new Set<Expr>();
  readonly #known = new Set<string>();
  #operations = 0;
  #each = 0;
  #iteration = WEIGHT.iteration;
  #entry = WEIGHT.entry;

  constructor(place: Place) {
    this.#place = place;
  }

  get count(): BodyCount {
    return { each: this.#each, iteration: this.#iteration, entry: this.#entry };
  }

  /** Adds simple operations for each register. */
  simple(operations: number): void {
    this.#each += operations * WEIGHT.simple;
  }

  store(store: Store): void {
    this.add(store.value);
    this.#access(store.index, 1, true);
  }

  /** An expression that is computed in a share of the iterations. */
  add(expr: Expr, share = 1): void {
    if (this.#seen.has(expr)) return;
    this.#seen.add(expr);
    const varies = this.#varies(expr);
    if (expr.kind === "load") this.#access(expr.index, share, varies);
    else if (expr.kind === "index") {
      const even = this.#across(expr.index) !== null;
      this.#index(expr.index, share * (even ? 1 : LANES), varies);
      this.#count(even ? WEIGHT.simple : WEIGHT.scattered, share, varies);
    } else if (expr.kind === "call") {
      const constants = expr.fn.startsWith("sh") ? 0 : expr.args.filter((arg) => arg.kind === "const").length;
      const own = expr.fn === "bitcast" ? 0 : WEIGHT[CLASSES[expr.fn] ?? "simple"];
      if (own > 0 && varies) this.#operations += 1;
      const factor = this.#operations > IN_REGISTERS ? WEIGHT.spilled : 1;
      this.#count(factor * (own + constants * WEIGHT.constant), share, varies);
      for (const arg of expr.args) this.add(arg, share);
    } else if (expr.kind === "guard") {
      this.#guard(expr.bounds, share, varies);
      this.add(expr.then, share * likelihood(expr.bounds));
      this.add(expr.otherwise, share);
    }
  }

  #varies(expr: Expr): boolean {
    const { inner } = this.#place;
    return inner === null || this.#dependence.onAccumulator(expr) || this.#dependence.of(expr).has(inner);
  }

  /** How much an index grows from lane to lane; null where that is not even, as in panels, which begin anywhere. */
  #across(index: Index): number | null {
    const { lane, panel = false } = this.#place;
    return laneStep(index, { counters: this.#dependence, vec: lane, multiple: panel ? 1 : LANES, lanes: LANES });
  }

  #count(weight: number, share: number, everyIteration: boolean): void {
    if (everyIteration) this.#each += weight * share;
    else this.#entry += weight;
  }

  /** A load or store: one operation where lanes are neighbours or equal, one for each lane otherwise. */
  #access(index: Index, share: number, varies: boolean): void {
    const { inner, panel = false } = this.#place;
    const [across, along] = [this.#across(index), this.#dependence.coefficient(index, inner)];
    const uneven = Math.abs(along ?? LINE) < LINE ? WEIGHT.scattered : WEIGHT.leaping;
    this.#count(across === 0 || across === 1 ? WEIGHT.access : uneven, share, varies);
    // a pointer that is moved on, or an address that is computed in every iteration; for each lane where they are uneven
    const walks = along !== null && (across !== null || panel);
    const times = across === null ? LANES : 1;
    if (walks) {
      this.#entry += times * WEIGHT.pointer;
      if (varies) this.#iteration += times * WEIGHT.bump;
    }
    this.#index(index, times * share, varies && !walks);
  }

  /** Integer operations of an index, each part of it once. */
  #index(index: Index, share: number, everyIteration: boolean): void {
    for (const { atom, coef } of index.terms) {
      this.#count((coef === 1 ? 1 : 2) * WEIGHT.index, share, everyIteration);
      if (atom.kind === "value") this.add(atom.expr, share);
      else if (atom.kind !== "var") {
        const key = `${atom.kind}(${atom.of.key})${atom.by}`;
        if (this.#known.has(key)) continue;
        this.#known.add(key);
        this.#count((isPowerOfTwo(atom.by) ? 1 : 5) * WEIGHT.index, share, everyIteration);
        this.#index(atom.of, share, everyIteration);
      }
    }
  }

  /**
   * Bounds are tested once for a register where all lanes agree, at its two ends where they are in line, else for each
   * lane, which shares about a quarter of the work with its neighbours.
   */
  #guard(bounds: readonly Bound[], share: number, varies: boolean): void {
    const { lane, inner, panel = false } = this.#place;
    const coefs = bounds.map(({ index }) => this.#dependence.coefficient(index, lane));
    const laneByLane = coefs.includes(null);
    const tests = coefs.every((coef) => coef === 0) ? 1 : 2;
    const ahead = panel && inner !== null && bounds.every(({ index }) => !this.#dependence.ofIndex(index).has(inner));
    for (const { index } of bounds) {
      this.#index(index, share * (laneByLane ? LANES - 1 : tests), varies && (laneByLane || !ahead));
    }
    this.#count(laneByLane ? WEIGHT.laneGuard : tests * WEIGHT.guard, share, varies);
  }
}
