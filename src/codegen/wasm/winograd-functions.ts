/**
 * @file The transforms of Winograd's convolution (codegen/cpu/winograd-arithmetic.ts) as functions of WebAssembly. A module has
 * each that it uses once. Addresses, distances between rows (`ld`) and between positions (`step`) are in bytes; registers
 * have four lanes, and whole ones are read and written.
 *
 * The lanes hold tiles next to each other for images and sums, and rows of the result for weights; for the gradient to weights
 * they hold channels on both sides.
 */
import { at } from "../../base/invariant.ts";
import {
  type Axis,
  gradientAxis,
  imageAxis,
  type RegisterOps,
  sumAxis,
  weightAxis,
  weightSumAxis,
} from "../cpu/winograd-arithmetic.ts";
import { SPAN, TILE } from "../cpu/winograd-choice.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import { splatConstant } from "./scalar.ts";

const REGISTER = 16;
const LANES = 4;

const list = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);

/** Registers are locals; each operation sets a new one. */
class RegisterCode implements RegisterOps<number> {
  readonly code: Code;

  constructor(code: Code) {
    this.code = code;
  }

  /** What is on the stack as a new local. */
  keep(): number {
    const local = this.code.local("v128");
    this.code.set(local);
    return local;
  }

  add = (a: number, b: number): number => {
    this.code.get(a).get(b).simd("f32x4_add");
    return this.keep();
  };

  sub = (a: number, b: number): number => {
    this.code.get(a).get(b).simd("f32x4_sub");
    return this.keep();
  };

  scale = (a: number, numerator: number, denominator: number): number => {
    const factor = splatConstant("f32", Math.fround(numerator / denominator));
    this.code.get(a).v128Const(factor).simd("f32x4_mul");
    return this.keep();
  };

  /** Lanes of two registers, the second's from 4 on. */
  shuffle(a: number, b: number, lanes: readonly number[]): number {
    this.code
      .get(a)
      .get(b)
      .shuffle(lanes.flatMap((lane) => list(4).map((byte) => 4 * lane + byte)));
    return this.keep();
  }

  load(address: number, offset = 0): number {
    this.code.get(address).memory("load", offset);
    return this.keep();
  }

  /** `count` registers, `step` (a local) bytes apart from the address on the stack on; `step` null: one behind the other. */
  loads(count: number, step: number | null): readonly number[] {
    const { code } = this;
    const from = code.local("i32");
    code.set(from);
    return list(count).map((i) => {
      if (step === null) return this.load(from, i * REGISTER);
      if (i > 0) code.get(from).get(step).op(OP.i32Add).set(from);
      return this.load(from);
    });
  }

  /** Stores registers, `step` (a local) bytes apart from the address on the stack on. */
  stores(values: readonly number[], step: number): void {
    const { code } = this;
    const to = code.local("i32");
    code.set(to);
    for (const [i, value] of values.entries()) {
      if (i > 0) code.get(to).get(step).op(OP.i32Add).set(to);
      code.get(to).get(value).memory("store", 0);
    }
  }

  /** Columns of four registers as registers. */
  transposed(rows: readonly number[]): readonly number[] {
    const [r0, r1, r2, r3] = rows as [number, number, number, number];
    const [low, high] = [
      [0, 4, 1, 5],
      [2, 6, 3, 7],
    ] as const;
    return [low, high].flatMap((pairs) => {
      const [x, y] = [this.shuffle(r0, r1, pairs), this.shuffle(r2, r3, pairs)];
      return [this.shuffle(x, y, [0, 1, 4, 5]), this.shuffle(x, y, [2, 3, 6, 7])];
    });
  }

  /** An axis of columns and then of rows: `given(j)` are the registers of column j; `put(i, row)` takes row i of the result. */
  twice(axis: Axis, columns: number, given: (j: number) => readonly number[], put: Put): void {
    const first = list(columns).map((j) => axis(this, given(j)));
    for (const i of list(at(first, 0).length))
      put(
        i,
        axis(
          this,
          first.map((column) => at(column, i)),
        ),
      );
  }
}

type Put = (row: number, values: readonly number[]) => void;

/** for (local = 0; local < limit; local += by). */
function loop(code: Code, limit: () => void, by: number, body: (local: number) => void): void {
  const [local, end] = [code.local("i32"), code.local("i32")];
  limit();
  code.set(end).i32Const(0).set(local);
  code.while(
    () => code.get(local).get(end).op(OP.i32LtS),
    () => {
      body(local);
      code.increment(local, by);
    },
  );
}

/** Leaves base + local · by on the stack. */
const plus = (code: Code, base: number, local: number, by: number): Code =>
  by === 1
    ? code.get(base).get(local).op(OP.i32Add)
    : code.get(base).get(local).i32Const(by).op(OP.i32Mul).op(OP.i32Add);

const parameters = (count: number): "i32"[] => new Array<"i32">(count).fill("i32");

/**
 * (p, ld, tiles, v, step, rows): a row of tiles from six rows of an image; position ξ of tile t goes to v + ξ · step + 4 t.
 * Columns first, into `rows`: six of them, ld apart.
 *
 *   five registers of a row   0 1 2 3 | 4 5 6 7 | …    →    0 4 8 12   1 5 9 13   2 6 …   3 7 …   4 8 …   5 9 …    d0 to d5
 */
function imageCode(): Code {
  const code = new Code(parameters(6));
  const [p, ld, tiles, v, step, rows] = [0, 1, 2, 3, 4, 5] as const;
  const ops = new RegisterCode(code);
  const columns = (): Code =>
    code
      .get(tiles)
      .i32Const(TILE * 4)
      .op(OP.i32Mul)
      .i32Const(8)
      .op(OP.i32Add);
  loop(code, columns, REGISTER, (x) => {
    plus(code, p, x, 1);
    const made = imageAxis(ops, ops.loads(SPAN, ld));
    plus(code, rows, x, 1);
    ops.stores(made, ld);
  });
  const [row, to] = [code.local("i32"), code.local("i32")];
  loop(
    code,
    () => code.get(tiles),
    LANES,
    (t) => {
      plus(code, rows, t, TILE * 4).set(row);
      plus(code, v, t, 4).set(to);
      loop(
        code,
        () => code.i32Const(SPAN),
        1,
        () => {
          code.get(row);
          const r = ops.loads(5, null);
          const d = [...ops.transposed(r.slice(0, 4)), ...ops.transposed(r.slice(1)).slice(0, 2)];
          code.get(to);
          ops.stores(imageAxis(ops, d), step);
          code.get(row).get(ld).op(OP.i32Add).set(row);
          plus(code, to, step, SPAN).set(to);
        },
      );
    },
  );
  return code;
}

/**
 * (w, tap, count, u, step): registers of weights, tap t of number c at w + t · tap + 16 c; position ξ of it goes to
 * u + ξ · step + 16 c. Flipped weights start at their last tap and have a negative `tap`.
 */
function weightsCode(): Code {
  const code = new Code(parameters(5));
  const [w, tap, count, u, step] = [0, 1, 2, 3, 4] as const;
  const ops = new RegisterCode(code);
  const to = code.local("i32");
  loop(
    code,
    () => code.get(count),
    1,
    (c) => {
      plus(code, w, c, REGISTER);
      const taps = ops.loads(9, tap);
      plus(code, u, c, REGISTER).set(to);
      ops.twice(
        weightAxis,
        3,
        (j) => [0, 1, 2].map((i) => at(taps, 3 * i + j)),
        (_, row) => {
          code.get(to);
          ops.stores(row, step);
          plus(code, to, step, SPAN).set(to);
        },
      );
    },
  );
  return code;
}

/**
 * (m, step, tiles, o, ld): position ξ of tile t at m + ξ · step + 4 t; four rows of results, the four of each tile next to each
 * other.
 */
function sumsCode(): Code {
  const code = new Code(parameters(5));
  const [m, step, tiles, o, ld] = [0, 1, 2, 3, 4] as const;
  const ops = new RegisterCode(code);
  const [down, to, from] = [code.local("i32"), code.local("i32"), code.local("i32")];
  code.get(step).i32Const(SPAN).op(OP.i32Mul).set(down);
  loop(
    code,
    () => code.get(tiles),
    LANES,
    (t) => {
      plus(code, m, t, 4).set(from);
      plus(code, o, t, TILE * 4).set(to);
      ops.twice(
        sumAxis,
        SPAN,
        (j) => {
          plus(code, from, step, j);
          return ops.loads(SPAN, down);
        },
        (_, row) => {
          for (const [k, value] of ops.transposed(row).entries())
            code
              .get(to)
              .get(value)
              .memory("store", k * REGISTER);
          code.get(to).get(ld).op(OP.i32Add).set(to);
        },
      );
    },
  );
  return code;
}

/**
 * (p, ld, tiles, v, width, step): a row of tiles with channels in the lanes, element x of row i at p + i · ld + 16 x; position ξ of
 * tile t goes to v + ξ · step + t · width. `span` rows and columns are read.
 */
function tilesCode(axis: Axis, span: number): Code {
  const code = new Code(parameters(6));
  const [p, ld, tiles, v, width, step] = [0, 1, 2, 3, 4, 5] as const;
  const ops = new RegisterCode(code);
  const [from, to] = [code.local("i32"), code.local("i32")];
  loop(
    code,
    () => code.get(tiles),
    1,
    (t) => {
      plus(code, p, t, TILE * REGISTER).set(from);
      code.get(v).set(to);
      ops.twice(
        axis,
        span,
        (j) => {
          code
            .get(from)
            .i32Const(j * REGISTER)
            .op(OP.i32Add);
          return ops.loads(span, ld);
        },
        (_, row) => {
          code.get(to);
          ops.stores(row, step);
          plus(code, to, step, SPAN).set(to);
        },
      );
      code.get(v).get(width).op(OP.i32Add).set(v);
    },
  );
  return code;
}

/** (m, step, count, o): position ξ of channel c at m + ξ · step + 4 c; nine taps of it at o + 36 c. */
function weightSumsCode(): Code {
  const code = new Code(parameters(4));
  const [m, step, count, o] = [0, 1, 2, 3] as const;
  const ops = new RegisterCode(code);
  const [down, to, from] = [code.local("i32"), code.local("i32"), code.local("i32")];
  code.get(step).i32Const(SPAN).op(OP.i32Mul).set(down);
  loop(
    code,
    () => code.get(count),
    LANES,
    (c) => {
      plus(code, m, c, 4).set(from);
      plus(code, o, c, 36).set(to);
      ops.twice(
        weightSumAxis,
        SPAN,
        (j) => {
          plus(code, from, step, j);
          return ops.loads(SPAN, down);
        },
        (i, row) => {
          for (const [j, value] of row.entries()) {
            for (const lane of list(LANES))
              code
                .get(to)
                .get(value)
                .memory("store32_lane", 36 * lane + 4 * (3 * i + j), lane);
          }
        },
      );
    },
  );
  return code;
}

/** (from, ld, count, to): elements of four rows as `count` registers, the rows in the lanes; `count` is a multiple of four. */
function transposeCode(): Code {
  const code = new Code(parameters(4));
  const [from, ld, count, to] = [0, 1, 2, 3] as const;
  const ops = new RegisterCode(code);
  const target = code.local("i32");
  loop(
    code,
    () => code.get(count),
    LANES,
    (x) => {
      plus(code, from, x, 4);
      const rows = ops.loads(LANES, ld);
      plus(code, to, x, REGISTER).set(target);
      for (const [i, value] of ops.transposed(rows).entries()) {
        code
          .get(target)
          .get(value)
          .memory("store", i * REGISTER);
      }
    },
  );
  return code;
}

const CODES = {
  image: imageCode,
  weights: weightsCode,
  sums: sumsCode,
  tiles: () => tilesCode(imageAxis, SPAN),
  seen: () => tilesCode(gradientAxis, TILE),
  weightSums: weightSumsCode,
  transpose: transposeCode,
} as const;

export type WinogradFunction = keyof typeof CODES;

/** The functions of a module, each put there when it is first asked for. */
export class WinogradFunctions {
  readonly #module: ModuleBuilder;
  readonly #made = new Map<WinogradFunction, number>();

  constructor(module: ModuleBuilder) {
    this.#module = module;
  }

  number(name: WinogradFunction): number {
    const number = this.#made.get(name) ?? this.#module.add(CODES[name]());
    this.#made.set(name, number);
    return number;
  }
}
