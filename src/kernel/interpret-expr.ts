/**
 * @file Tests only. Evaluates expressions. A DAG is compiled once into a flat list of steps over numbered registers, children first,
 * so that every distinct object is computed once per element and shared objects stay shared:
 *
 *   exp(x) · exp(x)      r0      load x
 *                        r1…     the steps of exp
 *                        r9      mul r8 r8
 *
 * Numbers live in a Float64Array, which holds every f32, f64, i32 and bool exactly; i64 values in a BigInt64Array, which
 * also wraps them. The two sides of a guard are separate lists, run only when chosen: a value first computed inside a
 * side is not available outside of it and is compiled again there.
 */
import { at, invariant } from "../base/invariant.ts";
import { type DType, elementReader, isBig, longOf, type TypedArray, typeOf } from "./dtype.ts";
import type { Expr, Index } from "./expr.ts";
import { bigCompare, bigFn, bitcast, converter, numberFn, type Scalar } from "./interpret-scalar.ts";

/** The values that expressions refer to: counters by name, operands, and the accumulator. */
export interface Environment {
  readonly buffers: readonly TypedArray[];
  /** Storage types of the operands that are stored to. */
  readonly types: readonly DType[];
  readonly counters: Map<string, { value: number }>;
  readonly acc: { value: Scalar };
  /** Where an operand's element is in its buffer, asked before each load; default: at its number. */
  readonly locate?: (operand: number, element: number) => number;
}

export function environment(buffers: readonly TypedArray[], types: readonly DType[]): Environment {
  return { buffers, types, counters: new Map(), acc: { value: 0 } };
}

/** The cell of a counter, made when first asked for. */
export function counterCell(env: Environment, name: string): { value: number } {
  const cell = env.counters.get(name) ?? { value: 0 };
  env.counters.set(name, cell);
  return cell;
}

type Step = () => void;

/** The steps of one list, and the registers of expressions that are computed in it. */
interface Block {
  readonly steps: Step[];
  readonly computed: Map<Expr, number>;
  readonly outer: Block | null;
}

/** Compiled expressions. `run` evaluates them for the present counters; then `value` and `address` read results. */
export class Program {
  readonly #env: Environment;
  readonly #top: Block = { steps: [], computed: new Map(), outer: null };
  // Registers are allocated after all roots are compiled, before the first run.
  #numbers: Float64Array = new Float64Array(0);
  #bigs: BigInt64Array = new BigInt64Array(0);
  #registers = 0;

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Compiles an expression; returns a reader of its value after `run`. */
  value(expr: Expr): () => Scalar {
    const register = this.#compile(expr, this.#top);
    return isBig(expr.dtype) ? () => this.#bigs[register] as bigint : () => this.#numbers[register] as number;
  }

  /** As `value`, for types that are numbers. */
  number(expr: Expr): () => number {
    invariant(!isBig(expr.dtype), () => "an i64 is not a number");
    const register = this.#compile(expr, this.#top);
    return () => this.#numbers[register] as number;
  }

  /** Compiles an index; the reader works it out from the counters and the run-time values of the last `run`. */
  address(index: Index): () => number {
    return this.#index(index, this.#top);
  }

  run(): void {
    if (this.#numbers.length < this.#registers) {
      this.#numbers = new Float64Array(this.#registers);
      this.#bigs = new BigInt64Array(this.#registers);
    }
    runSteps(this.#top.steps);
  }

  #compile(expr: Expr, block: Block): number {
    for (let b: Block | null = block; b; b = b.outer) {
      const register = b.computed.get(expr);
      if (register !== undefined) return register;
    }
    const register = expr.kind === "call" ? this.#call(expr, block) : this.#leaf(expr, block);
    block.computed.set(expr, register);
    return register;
  }

  #emitNumber(block: Block, compute: () => number): number {
    const register = this.#registers++;
    block.steps.push(() => {
      this.#numbers[register] = compute();
    });
    return register;
  }

  #emit(block: Block, dtype: Expr["dtype"], compute: () => Scalar): number {
    if (!isBig(dtype)) return this.#emitNumber(block, compute as () => number);
    const register = this.#registers++;
    block.steps.push(() => {
      this.#bigs[register] = compute() as bigint;
    });
    return register;
  }

  #leaf(expr: Exclude<Expr, { kind: "call" }>, block: Block): number {
    switch (expr.kind) {
      case "const":
        return this.#constant(expr, block);
      case "acc": {
        const { acc } = this.#env;
        return this.#emit(block, expr.dtype, () => acc.value);
      }
      case "index": {
        const index = this.#index(expr.index, block);
        return this.#emitNumber(block, () => index() | 0);
      }
      case "load":
        return this.#load(expr, block);
      case "guard":
        return this.#guard(expr, block);
    }
  }

  #constant(expr: Extract<Expr, { kind: "const" }>, block: Block): number {
    const { dtype } = expr;
    if (isBig(dtype)) {
      const value = longOf(expr.value);
      return this.#emit(block, dtype, () => value);
    }
    // An integer may be given as unsigned; otherwise this is the conversion from f64.
    const { round, wrap } = typeOf(dtype);
    const value = round(wrap(Number(expr.value)));
    return this.#emitNumber(block, () => value);
  }

  #load(expr: Extract<Expr, { kind: "load" }>, block: Block): number {
    const buffer = at(this.#env.buffers, expr.operand);
    const index = this.#index(expr.index, block);
    const read = isBig(expr.dtype) ? (element: Scalar) => element : elementReader(expr.storage);
    const { locate } = this.#env;
    return this.#emit(block, expr.dtype, () => {
      const i = locate ? locate(expr.operand, index()) : index();
      const value = buffer[i];
      invariant(
        value !== undefined,
        () => `load of element ${i} of operand ${expr.operand}, which has ${buffer.length}`,
      );
      return read(value);
    });
  }

  #guard(expr: Extract<Expr, { kind: "guard" }>, block: Block): number {
    const bounds = expr.bounds.map(({ index, lo, hi }) => ({ index: this.#index(index, block), lo, hi }));
    const side = (root: Expr): { readonly steps: readonly Step[]; readonly slot: number } => {
      const inner: Block = { steps: [], computed: new Map(), outer: block };
      const register = this.#compile(root, inner);
      return { steps: inner.steps, slot: register };
    };
    const then = side(expr.then);
    const otherwise = side(expr.otherwise);
    const big = isBig(expr.dtype);
    return this.#emit(block, expr.dtype, () => {
      const chosen = bounds.every(({ index, lo, hi }) => lo <= index() && index() < hi) ? then : otherwise;
      runSteps(chosen.steps);
      return (big ? this.#bigs[chosen.slot] : this.#numbers[chosen.slot]) as Scalar;
    });
  }

  #call(expr: Extract<Expr, { kind: "call" }>, block: Block): number {
    const { fn, dtype } = expr;
    const registers = expr.args.map((arg) => this.#compile(arg, block));
    const [a = 0, b = 0, c = 0] = registers;
    const from = at(expr.args, 0).dtype;
    const read = (register: number, type: Expr["dtype"]): Scalar =>
      (isBig(type) ? this.#bigs[register] : this.#numbers[register]) as Scalar;
    switch (fn) {
      case "pick":
        return this.#emit(block, dtype, () => read((this.#numbers[a] as number) !== 0 ? b : c, dtype));
      case "bitcast": {
        const cast = bitcast(from, dtype);
        return this.#emit(block, dtype, () => cast(read(a, from)));
      }
      case "convert": {
        const convert = converter(from, dtype);
        return this.#emit(block, dtype, () => convert(read(a, from)));
      }
      case "wrap":
        return this.#emitNumber(block, () => Number(BigInt.asIntN(32, this.#bigs[a] as bigint)));
      case "extend":
        return this.#emit(block, "i64", () => BigInt(this.#numbers[a] as number));
    }
    if (isBig(dtype)) {
      const apply = bigFn(fn);
      return this.#emit(block, dtype, () => apply(this.#bigs[a] as bigint, this.#bigs[b] as bigint));
    }
    if (isBig(from)) {
      const compare = bigCompare(fn);
      return this.#emitNumber(block, () => compare(this.#bigs[a] as bigint, this.#bigs[b] as bigint));
    }
    const apply = numberFn(fn, from);
    const step = (): number => {
      const numbers = this.#numbers;
      return apply(numbers[a] as number, numbers[b] as number);
    };
    return this.#emitNumber(block, step);
  }

  /** Σ coef · atom + offset, with floor division: `of` is never negative in div and mod. */
  #index(index: Index, block: Block): () => number {
    const parts = index.terms.map(({ atom, coef }): (() => number) => {
      if (atom.kind === "var") {
        const cell = counterCell(this.#env, atom.name);
        return () => coef * cell.value;
      }
      if (atom.kind === "value") {
        const register = this.#compile(atom.expr, block);
        return () => coef * (this.#numbers[register] as number);
      }
      const of = this.#index(atom.of, block);
      const { by } = atom;
      if (atom.kind === "div") return () => coef * Math.floor(of() / by);
      return () => coef * (of() % by);
    });
    const { offset } = index;
    if (parts.length === 0) return () => offset;
    const [only] = parts;
    if (parts.length === 1 && only) return () => only() + offset;
    return () => {
      let sum = offset;
      for (const part of parts) sum += part();
      return sum;
    };
  }
}

function runSteps(steps: readonly Step[]): void {
  for (let i = 0; i < steps.length; i++) (steps[i] as Step)();
}

/** The value of one expression for given storage and counters. */
export function evaluate(
  expr: Expr,
  given: {
    readonly buffers?: readonly TypedArray[];
    readonly counters?: Readonly<Record<string, number>>;
    readonly acc?: Scalar;
  } = {},
): Scalar {
  const env = environment(given.buffers ?? [], []);
  for (const [name, value] of Object.entries(given.counters ?? {})) counterCell(env, name).value = value;
  env.acc.value = given.acc ?? 0;
  const program = new Program(env);
  const value = program.value(expr);
  program.run();
  return value();
}
