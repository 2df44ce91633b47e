/**
 * @file Attention on tensor cores, as CUDA. A block of threads is a block of 64 queries, or keys: four warps of sixteen
 * rows each. Tiles of both sides go to shared memory, rounded; products of blocks are `mma` instructions, whose sums stay in
 * registers, and what follows is computed where they are:
 *
 *   a thread's sums   rows 16 · warp + lane div 4 (+ 8), columns 8 n + 2 · (lane mod 4) (+ 1)
 *
 * The sums of one product are the left side of the next. In tf32 an instruction sums over eight keys in any order, so the pair of
 * neighbouring columns that a thread has serves as keys number t and t + 4, and the right side is read in that order. Where
 * queries, keys and values are bf16 or f16 in memory, so are all factors; then a thread has the pairs that an instruction
 * of sixteen keys takes from it.
 *
 *   forward   queries against keys:     s = q·kᵀ      p      o += p·v
 *   dq        queries against keys:     s, g·vᵀ       d      dq += d·k
 *   dk, dv    keys against queries:     sᵀ, v·gᵀ      p, d   dv += pᵀ·g    dk += dᵀ·q
 *
 * Blocks, limits and the order of blocks are those of kernel/attend.ts; the order of sums within a block, and exp, are the
 * device's own. Bits depend on shapes alone.
 */
import { at } from "../../base/invariant.ts";
import { ATTEND_BLOCK } from "../../kernel/attend-stages.ts";
import { isFloatScalar, laneBytes } from "../../kernel/dtype.ts";
import { type Bound, constant, type Expr, type Index, type LoopVar } from "../../kernel/expr.ts";
import { addIndex, constIndex, divIndex, modIndex, scaleIndex, varIndex, ZERO } from "../../kernel/index-math.ts";
import type { AttendNest, Operand, Store } from "../../kernel/loops.ts";
import { log } from "../../kernel/math.ts";
import { add, div, eq, pick } from "../../kernel/scalar-ops.ts";
import { below, counter, Memories, Replacement } from "../block/counters.ts";
import { memoriesIn } from "../block/print-c.ts";
import { type Place, StatementPrinter } from "../block/print-c-like.ts";
import { type Launch, loop, type Statement, storing, where } from "../block/program.ts";
import { CCode } from "../native/c-code.ts";
import { live, product } from "../units.ts";
import { attendFactors, EACH, roundUp, TileForm } from "./attend-tiles.ts";
import { CUDA_DIALECT, TENSOR_DIALECT } from "./dialect.ts";
import type { TensorText } from "./tensor-product.ts";
import type { Alignment } from "./tensor-side.ts";

const THREADS = 128;
const LEAST_DEPTH = 16;
const MOST_DEPTH = 128;

/** Whether attention is computed on tensor cores: by its extents and type, and without dropout. */
export function isTensorAttend({ dtype, rows, cols, depth, width, weight }: AttendNest): boolean {
  const wide = [depth.extent, width.extent];
  return (
    weight === null &&
    isFloatScalar(dtype) &&
    laneBytes(dtype) === 4 &&
    Math.min(rows.extent, cols.extent) >= ATTEND_BLOCK &&
    Math.min(...wide) >= LEAST_DEPTH &&
    Math.max(...wide) <= MOST_DEPTH
  );
}

/** A tile of shared memory: 64 rows of one side. */
interface Tile {
  readonly name: string;
  readonly inside: LoopVar;
  readonly expr: Expr;
  readonly along: LoopVar;
}

/** Sums of a thread in registers, 64 columns or those of a side. */
interface Sums {
  readonly memory: number;
  readonly name: string;
  readonly columns: number;
}

type Role = "forward" | "queries" | "keys";

class AttendPrinter {
  readonly nest: AttendNest;
  readonly role: Role;
  readonly code: CCode = new CCode();
  readonly memories: Memories;
  readonly printer: StatementPrinter;
  readonly names: string[] = [];
  readonly thread: LoopVar = counter("thread", THREADS);
  readonly block: LoopVar;
  readonly grid: readonly LoopVar[];
  readonly own: LoopVar;
  readonly other: LoopVar;
  /** Number of a block of the other side. */
  readonly step: LoopVar;
  readonly statements: Statement[] = [];
  /** Floats of shared memory. */
  #shared = 0;

  readonly aligned: Alignment;
  readonly form: TileForm;

  constructor(nest: AttendNest, operands: readonly Operand[], role: Role, aligned: Alignment) {
    this.nest = nest;
    this.role = role;
    this.aligned = aligned;
    this.form = new TileForm(attendFactors(nest));
    const isKeys = role === "keys";
    [this.own, this.other] = isKeys ? [nest.cols, nest.rows] : [nest.rows, nest.cols];
    this.block = counter("block", Math.ceil(this.own.extent / ATTEND_BLOCK));
    this.step = counter("step", Math.ceil(this.other.extent / ATTEND_BLOCK));
    this.grid = live([...nest.batch, ...(isKeys ? [] : [nest.group]), this.block]);
    this.memories = new Memories(operands);
    for (const { scope } of this.memories.list) this.names.push(this.code.name(scope));
    const place: Place = (memory, index) => `${at(this.names, memory)}[${index}]`;
    const launch: Launch = { grid: this.grid, thread: this.thread, memories: this.memories.list, body: [] };
    this.printer = new StatementPrinter(TENSOR_DIALECT, this.code, launch, place);
  }

  line(text: string): void {
    this.code.line(text);
  }

  print(statements: readonly Statement[]): void {
    this.statements.push(...statements);
    this.printer.statements(statements);
  }

  /** Registers of a thread. */
  registers(word: string, elements: number): Sums {
    const memory = this.memories.add({ scope: "register", dtype: "f32", elements });
    const name = this.code.name(word);
    this.names.push(name);
    this.line(`f32 ${name}[${elements}];`);
    return { memory, name, columns: (elements / EACH) * 8 };
  }

  /** Shared memory from its next free float on. */
  shared(word: string, elements: number): { readonly memory: number; readonly name: string } {
    const memory = this.memories.add({ scope: "shared", dtype: "f32", elements });
    const name = this.code.name(word);
    this.names.push(name);
    this.line(`f32 *const ${name} = (f32 *)raw + ${this.#shared};`);
    this.#shared += elements;
    return { memory, name };
  }

  tile(word: string, along: LoopVar, inside: LoopVar, expr: Expr): Tile {
    const { name } = this.shared(word, ATTEND_BLOCK * this.form.pitch(inside.extent));
    return { name, along, inside, expr };
  }

  // ---- places -------------------------------------------------------------------------------------------------------

  /** Row of a thread's sum number e in its block, and its column. */
  placeOf(e: Index): readonly [row: Index, col: Index] {
    const t = varIndex(this.thread);
    const lane = modIndex(t, 32);
    const row = addIndex(
      scaleIndex(divIndex(t, 32), 16),
      divIndex(lane, 4),
      scaleIndex(modIndex(divIndex(e, 2), 2), 8),
    );
    const col = addIndex(scaleIndex(divIndex(e, 4), 8), scaleIndex(modIndex(lane, 4), 2), modIndex(e, 2));
    return [row, col];
  }

  at(block: LoopVar, within: Index): Index {
    return addIndex(scaleIndex(varIndex(block), ATTEND_BLOCK), within);
  }

  /** For every sum of a thread; `body` has its number and place. */
  each(columns: number, body: (e: Index, row: Index, col: Index) => readonly Statement[]): void {
    const e = counter(this.code.name("e"), (columns / 8) * EACH);
    this.print(loop(e, body(varIndex(e), ...this.placeOf(varIndex(e))), true));
  }

  set({ memory }: Sums, index: Index, value: Expr): Statement {
    return storing({ operand: memory, index, value });
  }

  zero({ name, columns }: Sums): void {
    this.line("#pragma unroll");
    this.line(`for (int e = 0; e < ${(columns / 8) * EACH}; e++) ${name}[e] = 0.0f;`);
  }

  // ---- tiles --------------------------------------------------------------------------------------------------------

  /** Fills a tile of a block, rounded; beyond the ends it is zero. */
  fill(tile: Tile, block: LoopVar): void {
    const { name, along, inside, expr } = tile;
    const width = roundUp(inside.extent, this.form.unit);
    const each =
      inside.extent === width && isAlong(expr, inside)
        ? this.form.together(expr, { along, depth: inside, aligned: this.aligned })
        : 1;
    const element = counter(this.code.name("element"), (ATTEND_BLOCK * width) / each);
    const index = this.printer.counter(element);
    const row = this.at(block, divIndex(varIndex(element), width / each));
    const column = scaleIndex(modIndex(varIndex(element), width / each), each);
    const places = new Replacement(
      new Map([
        [along, row],
        [inside, column],
      ]),
    );
    const bounds = [...below(row, along.extent), ...below(column, inside.extent)];
    const pitch = this.form.pitch(inside.extent) * this.form.perWord;
    const place = `${index} / ${width / each} * ${pitch} + ${index} % ${width / each} * ${each}`;
    const value = this.registers("value", 1);
    const then = places.expr(expr);
    this.line("#pragma unroll 8");
    this.code.block(`for (idx ${index} = threadIdx.x; ${index} < ${element.extent}; ${index} += ${THREADS})`, () => {
      if (each > 1 && then.kind === "load") {
        const inside = bounds.map((bound) => `${this.printer.index(bound.index)} < ${bound.hi}`).join(" && ");
        const from = `&${at(this.names, then.operand)}[${this.printer.index(then.index)}]`;
        for (const line of this.form.vectorText({ from, inside, each, name, place })) this.line(line);
        this.statements.push(this.set(value, ZERO, then));
        return;
      }
      this.print([this.set(value, ZERO, guarded(then, bounds))]);
      this.line(this.form.elementText(name, place, `${value.name}[0]`));
    });
  }

  /** sums = own · otherᵀ of two tiles. */
  pairs(sums: Sums, own: Tile, other: Tile): void {
    this.zero(sums);
    const depth = roundUp(own.inside.extent, this.form.unit);
    const extents = `<${depth}, ${this.form.pitch(own.inside.extent)}>`;
    this.line(`pair_products_${this.form.factors}${extents}(${sums.name}, ${own.name}, ${other.name});`);
  }

  weigh(sums: Sums, p: Sums, { name, inside }: Tile): void {
    const extents = `<${sums.columns}, ${this.form.pitch(inside.extent)}>`;
    this.line(`weighted_sums_${this.form.factors}${extents}(${sums.name}, ${p.name}, ${name});`);
  }

  // ---- scores -------------------------------------------------------------------------------------------------------

  /** Counters of the nest for a row of the own block and a column of the other. */
  counters(row: Index, col: Index): Map<LoopVar, Index> {
    return new Map([
      [this.own, this.at(this.block, row)],
      [this.other, this.at(this.step, col)],
    ]);
  }

  /** Scores in place of products: -∞ beyond the ends. */
  score(sums: Sums): void {
    this.each(ATTEND_BLOCK, (e, row, col) => {
      const places = this.counters(row, col);
      const then = new Replacement(places, this.memories.read(sums.memory, e)).expr(this.nest.score);
      const bounds = [this.own, this.other].flatMap((v) => below(places.get(v) as Index, v.extent));
      return [this.set(sums, e, guarded(then, bounds, Number.NEGATIVE_INFINITY))];
    });
  }

  /** Loops over the blocks of the other side that the limits leave, all threads waiting for each other before and after tiles change. */
  steps(body: () => void): void {
    const { nest, role, step } = this;
    const [least, most] = nest.sees;
    const isKeys = role === "keys";
    const [down, up] = isKeys ? [most && scaleIndex(most, -1), least && scaleIndex(least, -1)] : [least, most];
    const blocks = nest.length && divIndex(addIndex(nest.length, constIndex(ATTEND_BLOCK - 1)), ATTEND_BLOCK);
    const name = this.printer.counter(step);
    const text = (index: Index): string => `(int)(${this.printer.index(index)})`;
    const by = (index: Index, more = 0): string =>
      text(addIndex(varIndex(this.block), divIndex(addIndex(index, constIndex(more)), ATTEND_BLOCK)));
    const from = down === null ? "0" : `max(0, ${by(down)})`;
    let to = up === null ? String(step.extent) : `min(${step.extent}, ${by(up, ATTEND_BLOCK - 1 + ATTEND_BLOCK)})`;
    if (blocks && !isKeys) to = `min(${to}, ${text(blocks)})`;
    // a block of keys beyond the length has no queries
    if (blocks && isKeys) to = `${text(varIndex(this.block))} < ${text(blocks)} ? ${to} : 0`;
    const [lo, hi] = [this.code.name("from"), this.code.name("to")];
    this.line(`const idx ${lo} = ${from}, ${hi} = ${to};`);
    this.code.block(`for (idx ${name} = ${lo}; ${name} < ${hi}; ${name}++)`, () => {
      this.line("__syncthreads();");
      body();
    });
  }

  /** Stores a result of the own block's rows from sums. */
  result(store: Store, inside: LoopVar, sums: Sums, value: (e: Index) => Expr): void {
    this.each(sums.columns, (e, row, col) => {
      const place = this.at(this.block, row);
      const places = new Map([
        [this.own, place],
        [inside, col],
      ]);
      const bounds = [...below(place, this.own.extent), ...below(col, inside.extent)];
      return where(bounds, [storing(...new Replacement(places, value(e)).stores([store]))]);
    });
  }

  /** A value of each of a thread's two rows. */
  ofRows(word: string, expr: Expr): Sums {
    const made = this.registers(word, 2);
    const e = counter(this.code.name("r"), 2);
    const [row] = this.placeOf(scaleIndex(varIndex(e), 2));
    const place = this.at(this.block, row);
    const then = new Replacement(new Map([[this.own, place]])).expr(expr);
    const value = guarded(then, below(place, this.own.extent));
    this.print(loop(e, [this.set(made, varIndex(e), value)], true));
    return made;
  }

  // ---- kernels ------------------------------------------------------------------------------------------------------

  begin(): void {
    this.line("extern __shared__ __align__(16) char raw[];");
    this.line(`const idx ${this.printer.counter(this.thread)} = threadIdx.x;`);
    this.printer.splitBlock(this.grid, "(idx)(gridDim.x - 1 - blockIdx.x)");
  }

  forward(): void {
    const { nest, memories } = this;
    const q = this.tile("own", nest.rows, nest.depth, nest.q);
    const k = this.tile("keys", nest.cols, nest.depth, nest.k);
    const v = this.tile("values", nest.cols, nest.width, nest.v);
    const [o, s] = [this.registers("o", sumsOf(nest.width)), this.registers("s", sumsOf(ATTEND_BLOCK))];
    const [m, l] = [this.registers("m", 2), this.registers("l", 2)];
    this.zero(o);
    const none = CUDA_DIALECT.literal("f32", Number.NEGATIVE_INFINITY);
    this.line(`${m.name}[0] = ${m.name}[1] = ${none}; ${l.name}[0] = ${l.name}[1] = 0.0f;`);
    this.fill(q, this.block);
    this.steps(() => {
      this.fill(k, this.step);
      this.fill(v, this.step);
      this.line("__syncthreads();");
      this.pairs(s, q, k);
      this.score(s);
      this.softmax({ s, o, m, l }, none);
      this.weigh(o, s, v);
    });
    this.result(at(nest.stores, 0), nest.width, o, (e) => {
      const total = memories.read(l.memory, modIndex(divIndex(e, 2), 2));
      return div(memories.read(o.memory, e), pick(eq(total, 0), 1, total));
    });
    this.logsum(m, l);
  }

  /** Running maximum, sum and mean, and weights in place of scores. */
  softmax({ s, o, m, l }: Record<"s" | "o" | "m" | "l", Sums>, none: string): void {
    this.code.block("", () => {
      this.line(`f32 top[2] = { ${none}, ${none} }, part[2] = { 0.0f, 0.0f }, alpha[2], shift[2];`);
      this.line("#pragma unroll");
      this.line(`for (int e = 0; e < 32; e++) top[e >> 1 & 1] = fmaxf(top[e >> 1 & 1], ${s.name}[e]);`);
      this.line("#pragma unroll");
      this.code.block("for (int r = 0; r < 2; r++)", () => {
        this.line(`const f32 most = fmaxf(${m.name}[r], row_max(top[r]));`);
        this.line(`shift[r] = most == ${none} ? 0.0f : most;`);
        this.line(`alpha[r] = exp_device(${m.name}[r] - shift[r]);`);
        this.line(`${m.name}[r] = most;`);
      });
      this.line("#pragma unroll");
      this.code.block("for (int e = 0; e < 32; e++)", () => {
        this.line(`${s.name}[e] = exp_device(${s.name}[e] - shift[e >> 1 & 1]);`);
        this.line(`part[e >> 1 & 1] += ${s.name}[e];`);
      });
      this.line("#pragma unroll");
      this.line(`for (int r = 0; r < 2; r++) ${l.name}[r] = ${l.name}[r] * alpha[r] + row_sum(part[r]);`);
      this.line("#pragma unroll");
      this.line(`for (int e = 0; e < ${(o.columns / 8) * EACH}; e++) ${o.name}[e] *= alpha[e >> 1 & 1];`);
    });
  }

  /** Once for each row: by the first of the threads that have it. */
  logsum(m: Sums, l: Sums): void {
    const { nest, memories } = this;
    const r = counter(this.code.name("r"), 2);
    const [row, first] = this.placeOf(scaleIndex(varIndex(r), 2));
    const place = this.at(this.block, row);
    const value = add(memories.read(m.memory, varIndex(r)), log(memories.read(l.memory, varIndex(r))));
    const stores = new Replacement(new Map([[nest.rows, place]]), value).stores([at(nest.stores, 1)]);
    const bounds = [{ index: first, lo: 0, hi: 1 }, ...below(place, nest.rows.extent)];
    this.print(loop(r, where(bounds, [storing(...stores)]), true));
  }

  queries(): void {
    const { nest } = this;
    const { g, logsum, delta } = nest.backward as NonNullable<AttendNest["backward"]>;
    const q = this.tile("own", nest.rows, nest.depth, nest.q);
    const gs = this.tile("cotangents", nest.rows, nest.width, g);
    const k = this.tile("keys", nest.cols, nest.depth, nest.k);
    const v = this.tile("values", nest.cols, nest.width, nest.v);
    const dq = this.registers("dq", sumsOf(nest.depth));
    const [s, d] = [this.registers("s", sumsOf(ATTEND_BLOCK)), this.registers("d", sumsOf(ATTEND_BLOCK))];
    this.zero(dq);
    const [sums, deltas] = [this.ofRows("logsum", logsum), this.ofRows("delta", delta)];
    this.fill(q, this.block);
    this.fill(gs, this.block);
    const none = CUDA_DIALECT.literal("f32", Number.NEGATIVE_INFINITY);
    this.line(`for (int r = 0; r < 2; r++) if (${sums.name}[r] == ${none}) ${sums.name}[r] = 0.0f;`);
    this.steps(() => {
      this.fill(k, this.step);
      this.fill(v, this.step);
      this.line("__syncthreads();");
      this.pairs(s, q, k);
      this.score(s);
      this.pairs(d, gs, v);
      this.line("#pragma unroll");
      const p = `exp_device(${s.name}[e] - ${sums.name}[e >> 1 & 1])`;
      this.line(`for (int e = 0; e < 32; e++) ${d.name}[e] = ${p} * (${d.name}[e] - ${deltas.name}[e >> 1 & 1]);`);
      this.weigh(dq, d, k);
    });
    this.result(at(nest.stores, 0), nest.depth, dq, (e) => this.memories.read(dq.memory, e));
  }

  /** One value for each row of the other side's block, in shared memory. */
  columns(to: string, expr: Expr): void {
    const value = this.registers("value", EACH);
    const x = counter(this.code.name("x"), ATTEND_BLOCK);
    const place = this.at(this.step, varIndex(x));
    const then = new Replacement(new Map([[this.other, place]])).expr(expr);
    const made = guarded(then, below(place, this.other.extent));
    this.code.block(`if (threadIdx.x < ${ATTEND_BLOCK})`, () => {
      this.line(`const idx ${this.printer.counter(x)} = threadIdx.x;`);
      this.print([this.set(value, ZERO, made)]);
      this.line(`${to}[threadIdx.x] = ${value.name}[0];`);
    });
  }

  keys(): void {
    const { nest } = this;
    const { g, logsum, delta } = nest.backward as NonNullable<AttendNest["backward"]>;
    const k = this.tile("own", nest.cols, nest.depth, nest.k);
    const v = this.tile("values", nest.cols, nest.width, nest.v);
    const q = this.tile("queries", nest.rows, nest.depth, nest.q);
    const gs = this.tile("cotangents", nest.rows, nest.width, g);
    const [sums, deltas] = [this.shared("logsum", ATTEND_BLOCK).name, this.shared("delta", ATTEND_BLOCK).name];
    const [dk, dv] = [this.registers("dk", sumsOf(nest.depth)), this.registers("dv", sumsOf(nest.width))];
    const [s, d] = [this.registers("s", sumsOf(ATTEND_BLOCK)), this.registers("d", sumsOf(ATTEND_BLOCK))];
    this.zero(dk);
    this.zero(dv);
    this.fill(k, this.block);
    this.fill(v, this.block);
    const none = CUDA_DIALECT.literal("f32", Number.NEGATIVE_INFINITY);
    const group = this.printer.counter(nest.group);
    this.code.block(`for (idx ${group} = 0; ${group} < ${nest.group.extent}; ${group}++)`, () => {
      this.steps(() => {
        this.fill(q, this.step);
        this.fill(gs, this.step);
        this.columns(sums, logsum);
        this.columns(deltas, delta);
        this.line("__syncthreads();");
        this.pairs(s, k, q);
        this.score(s);
        this.pairs(d, v, gs);
        this.line("#pragma unroll");
        this.code.block("for (int e = 0; e < 32; e++)", () => {
          this.line("const int x = (e >> 2) * 8 + (threadIdx.x & 3) * 2 + (e & 1);");
          this.line(`const f32 shift = ${sums}[x] == ${none} ? 0.0f : ${sums}[x];`);
          this.line(`${s.name}[e] = exp_device(${s.name}[e] - shift);`);
          this.line(`${d.name}[e] = ${s.name}[e] * (${d.name}[e] - ${deltas}[x]);`);
        });
        this.weigh(dv, s, gs);
        this.weigh(dk, d, q);
      });
    });
    this.result(at(nest.stores, 1), nest.depth, dk, (e) => this.memories.read(dk.memory, e));
    this.result(at(nest.stores, 2), nest.width, dv, (e) => this.memories.read(dv.memory, e));
  }

  finished(): TensorText {
    const used = memoriesIn(this.statements);
    const pointers = this.memories.list.flatMap((memory, i) =>
      memory.scope === "global" && used.has(i) ? [{ memory, i }] : [],
    );
    const params = pointers.map(({ memory, i }) => `${CUDA_DIALECT.element(memory.dtype).type} *${at(this.names, i)}`);
    return {
      text: `(${params.join(", ")}) {\n${this.code.lines.join("\n")}\n}\n`,
      operands: pointers.map(({ memory }) => memory.operand),
      grid: this.grid,
      threads: THREADS,
      sharedBytes: 4 * this.#shared,
    };
  }
}

/** Zero where bounds do not hold. */
const guarded = (then: Expr, bounds: readonly Bound[], otherwise = 0): Expr =>
  bounds.length === 0 ? then : { kind: "guard", dtype: "f32", bounds, then, otherwise: constant("f32", otherwise) };

/** Whether neighbours of a load lie along a counter. */
const isAlong = (expr: Expr, inside: LoopVar): boolean =>
  expr.kind === "load" && expr.index.terms.some(({ atom, coef }) => atom === inside && coef === 1);

/** Registers of a thread for 64 rows of so many columns. */
const sumsOf = (columns: number | LoopVar): number =>
  (roundUp(typeof columns === "number" ? columns : columns.extent, 8) / 8) * EACH;

function printRole(nest: AttendNest, operands: readonly Operand[], role: Role, aligned: Alignment): TensorText {
  const printer = new AttendPrinter(nest, operands, role, aligned);
  printer.begin();
  printer[role]();
  return printer.finished();
}

/** The launches of attention, one for each kind of unit. */
export function printTensorAttend(
  nest: AttendNest,
  operands: readonly Operand[],
  aligned: Alignment,
): readonly TensorText[] {
  const roles: readonly Role[] = nest.backward ? ["keys", "queries"] : ["forward"];
  const isEmpty = product([...nest.batch, nest.group]) === 0;
  return isEmpty ? [] : roles.map((role) => printRole(nest, operands, role, aligned));
}
