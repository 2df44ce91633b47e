/**
 * @file Structural numbering of expressions within one function: equal expressions get one number, so that they are
 * computed once. Also answers which loop counters an expression depends on.
 */
import { at } from "../base/invariant.ts";
import type { Bound, Expr, Index, LoopVar } from "../kernel/expr.ts";

/** Stands for the accumulator among the counters that an expression depends on. */
export const ACCUMULATOR: LoopVar = { kind: "var", name: "acc", extent: 0 };

interface Entry {
  readonly expr: Expr;
  readonly vars: ReadonlySet<LoopVar>;
}

export class Interner {
  readonly #ids = new Map<Expr, number>();
  readonly #byKey = new Map<string, number>();
  readonly #entries: Entry[] = [];
  readonly #indexVars = new Map<string, ReadonlySet<LoopVar>>();

  id(expr: Expr): number {
    const known = this.#ids.get(expr);
    if (known !== undefined) return known;
    const key = this.#key(expr);
    let id = this.#byKey.get(key);
    if (id === undefined) {
      id = this.#entries.push({ expr, vars: this.#varsOf(expr) }) - 1;
      this.#byKey.set(key, id);
    }
    this.#ids.set(expr, id);
    return id;
  }

  /** Loop counters below an expression, those inside indices and run-time indices too. */
  of(expr: Expr): ReadonlySet<LoopVar> {
    return at(this.#entries, this.id(expr)).vars;
  }

  ofIndex(index: Index): ReadonlySet<LoopVar> {
    const key = this.indexKey(index);
    let vars = this.#indexVars.get(key);
    if (!vars) {
      const found = new Set<LoopVar>();
      for (const { atom } of index.terms) {
        if (atom.kind === "var") found.add(atom);
        else if (atom.kind === "value") for (const v of this.of(atom.expr)) found.add(v);
        else for (const v of this.ofIndex(atom.of)) found.add(v);
      }
      vars = found;
      this.#indexVars.set(key, vars);
    }
    return vars;
  }

  /** Like `index.key`, with run-time indices named by the structure of their expressions. */
  indexKey(index: Index): string {
    const atoms = index.terms.map(({ atom, coef }) => {
      if (atom.kind === "var") return `${coef}*${atom.name}`;
      if (atom.kind === "value") return `${coef}*$${this.id(atom.expr)}`;
      return `${coef}*(${this.indexKey(atom.of)})${atom.kind === "div" ? "/" : "%"}${atom.by}`;
    });
    return `${atoms.join("+")}+${index.offset}`;
  }

  #key(expr: Expr): string {
    switch (expr.kind) {
      case "const":
        return `c${expr.dtype}:${Object.is(expr.value, -0) ? "-0" : String(expr.value)}`;
      case "load":
        return `l${expr.operand}${expr.dtype}[${this.indexKey(expr.index)}]`;
      case "index":
        return `i[${this.indexKey(expr.index)}]`;
      case "call":
        return `${expr.fn}:${expr.dtype}(${expr.args.map((a) => this.id(a)).join()})`;
      case "guard":
        return `g(${expr.bounds.map((b) => this.#boundKey(b)).join()})${this.id(expr.then)},${this.id(expr.otherwise)}`;
      case "acc":
        return "acc";
    }
  }

  #boundKey(b: Bound): string {
    return `${this.indexKey(b.index)}:${b.lo}:${b.hi}`;
  }

  #varsOf(expr: Expr): ReadonlySet<LoopVar> {
    const found = new Set<LoopVar>();
    if (expr.kind === "acc") found.add(ACCUMULATOR);
    const addAll = (vars: ReadonlySet<LoopVar>): void => {
      for (const v of vars) found.add(v);
    };
    if (expr.kind === "load" || expr.kind === "index") addAll(this.ofIndex(expr.index));
    else if (expr.kind === "call") for (const arg of expr.args) addAll(this.of(arg));
    else if (expr.kind === "guard") {
      for (const b of expr.bounds) addAll(this.ofIndex(b.index));
      addAll(this.of(expr.then));
      addAll(this.of(expr.otherwise));
    }
    return found;
  }
}

/** The counter's coefficient, or null when it also occurs under a division or in a run-time index. */
export function linearCoefficient(interner: Interner, index: Index, v: LoopVar | null): number | null {
  if (!v) return 0;
  let coef = 0;
  for (const term of index.terms) {
    if (term.atom === v) coef = term.coef;
    else if (
      term.atom.kind === "value"
        ? interner.of(term.atom.expr).has(v)
        : term.atom.kind !== "var" && interner.ofIndex(term.atom.of).has(v)
    ) {
      return null;
    }
  }
  return coef;
}
