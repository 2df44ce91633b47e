/**
 * @file A product on tensor cores whose sides the copy engine brings. It copies boxes of rows along the depth from memory to
 * shared memory and rounds them to tf32 on the way, as `cvt.rn.tf32.f32` does, so one thread of a block fills stages and two
 * groups of warps multiply. A side whose memory does not follow the depth is transposed into the workspace first.
 *
 *   one thread   memory ──→ stage 0  stage 1  stage 2 …      wait until empty, ask for two boxes
 *   consumers               wgmma    wgmma                   wait until full, multiply, say empty
 *
 * Blocks stay: each takes every n-th tile, and stages of the next tile are filled while sums of the last one are stored. These
 * are in registers, two neighbours of a row to a thread; threads exchange so that each has four, which are read and stored at once:
 *
 *   columns     0 1  2 3  4 5  6 7              columns     0 1 2 3  4 5 6 7
 *   row y       t0   t1   t2   t3       ──→     row y       t0       t2
 *   row y + 8   t0   t1   t2   t3               row y + 8   t1       t3
 *
 * A left side across the depth comes in boxes as it is, and consumers read it into registers (tensor-across.ts), whose rows are
 * others.
 *
 * The bits are those of tensor-product.ts: the same numbers are added in the same order.
 */
import { at, invariant } from "../../base/invariant.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  linearIndex,
  modIndex,
  scaleIndex,
  varIndex,
} from "../../kernel/index-math.ts";
import type { ContractNest, Operand, Store } from "../../kernel/loops.ts";
import { below, counter, Memories, Replacement } from "../block/counters.ts";
import { certainLoads, type Load, loadKey, replaceLoads } from "../block/loads.ts";
import { memoriesIn } from "../block/print-c.ts";
import { type CopyText, type Dialect, type Place, StatementPrinter } from "../block/print-c-like.ts";
import { type Element, type Launch, type Statement, storing, where } from "../block/program.ts";
import { CCode } from "../native/c-code.ts";
import { live, product } from "../units.ts";
import { formOf, instructionStep, mapOf, type TensorMap } from "./copied-maps.ts";
import { type CopiedPlan, callsIn, changedSides } from "./copied-plan.ts";
import { CUDA_DIALECT, halfVector, TENSOR_DIALECT, vectorCopy } from "./dialect.ts";
import { acrossRow } from "./tensor-across.ts";
import { type TensorPlan, TILE_DEPTH, TILE_ROWS } from "./tensor-plan.ts";
import { inFours, isFourFloat } from "./tensor-side.ts";
import {
  ACROSS_FORM,
  CONSUMERS,
  DESCRIPTOR_FORM,
  declareStages,
  setBarriers,
  sharedBytesOf,
  stageBytes,
  tileOrder,
} from "./tensor-stages.ts";
import { wgmmaName } from "./tensor-text.ts";
import { ROW_BYTES, rowElements } from "./tensor-types.ts";

/** A group of warps, of which one thread works: groups can leave registers to each other. */
const PRODUCERS = 128;
const PRODUCER_REGISTERS = 40;
const CONSUMER_REGISTERS = 232;
/** Fours of a thread whose results are computed together: all are read before any is stored. Fewer where they are many. */
const TOGETHER = 4;
const MANY = 3;
/** Calls for one sum up to which every batch has code of its own; more would not fit into the cache of instructions. */
const MOST_WRITTEN_OUT = 24;

export interface CopiedText {
  /** Parameters and body; maps come before pointers. */
  readonly text: string;
  readonly maps: readonly TensorMap[];
  readonly operands: readonly number[];
  readonly blocks: number;
  readonly threads: number;
  readonly sharedBytes: number;
}

/** Reads and writes four at once. */
const copyVector = (copy: CopyText): string | null => {
  const { to, from } = copy.memories;
  if (to.scope !== "global") return from.scope === "global" ? (halfVector(copy) ?? vectorCopy(copy)) : vectorCopy(copy);
  if (copy.count !== 4) return null;
  const parts = Array.from({ length: copy.count }, (_, i) => `(&${copy.from})[${i}]`);
  if (bytesOf(to.dtype) === 4) return `*(float4 *)&${copy.to} = make_float4(${parts.join(", ")});`;
  const [a, b, c, d] = parts;
  return `*(uint2 *)&${copy.to} = make_uint2(${to.dtype}_pair(${a}, ${b}), ${to.dtype}_pair(${c}, ${d}));`;
};

const copyOf = (to: Element, from: Element): Statement => ({ kind: "copy", to, from, count: 4 });

const COPIED_DIALECT: Dialect = { ...TENSOR_DIALECT, copy: copyVector };

class CopiedPrinter {
  readonly #nest: ContractNest;
  readonly #plan: TensorPlan;
  readonly #copied: CopiedPlan;
  readonly #code = new CCode();
  readonly #printer: StatementPrinter;
  readonly #memories: Memories;
  readonly #names: readonly string[];
  readonly #part: LoopVar;
  readonly #rowTile: LoopVar;
  readonly #colTile: LoopVar;
  readonly #thread = counter("thread", CONSUMERS);
  readonly #batch: LoopVar;
  /** Sums as they are added up; after the exchange; what loads of four bring, by key; what stores of four take. */
  readonly #added: number;
  readonly #sums: number;
  readonly #loads: ReadonlyMap<string, { readonly memory: number; readonly load: Load }>;
  readonly #stored: readonly number[];
  readonly #together: number;
  /** One code for all batches: sums move up in the registers. */
  readonly #isLoop: boolean;
  readonly #statements: Statement[] = [];

  constructor(given: ContractNest, operands: readonly Operand[], plan: TensorPlan, copied: CopiedPlan) {
    const nest = copied.isChanged ? changedSides(given) : given;
    this.#nest = nest;
    this.#plan = plan;
    this.#copied = copied;
    this.#memories = new Memories(operands);
    this.#part = counter("part", plan.parts);
    this.#rowTile = counter("row_tile", Math.ceil(nest.rows.extent / TILE_ROWS));
    this.#colTile = counter("col_tile", Math.ceil(nest.cols.extent / copied.cols));
    const loads = certainLoads(this.#results).filter((e) => isFourFloat(e.storage) && inFours(e.index, nest.cols));
    this.#together = loads.length + this.#results.length > MANY ? TOGETHER / 2 : TOGETHER;
    this.#isLoop = callsIn(this.#results) > MOST_WRITTEN_OUT;
    this.#batch = counter("batch", copied.cols / 8 / this.#together);
    const local = (): number => this.#memories.add({ scope: "local", dtype: "f32", elements: 4 * this.#together });
    this.#added = this.#memories.add({ scope: "register", dtype: "f32", elements: copied.cols / 2 });
    this.#sums = local();
    this.#loads = new Map(loads.map((e) => [loadKey(e), { memory: local(), load: e }]));
    this.#stored = this.#results.map(local);
    this.#names = this.#memories.list.map(({ scope }, i) =>
      i === this.#added ? "sum" : this.#code.name(scope === "global" ? "global" : "own"),
    );
    const place: Place = (memory, index) => `${at(this.#names, memory)}[${index}]`;
    const launch: Launch = { grid: this.#grid, thread: this.#thread, memories: this.#memories.list, body: [] };
    this.#printer = new StatementPrinter(COPIED_DIALECT, this.#code, launch, place);
  }

  /** What is made of a sum, or the sum itself where it is that of a part. */
  get #results(): readonly Store[] {
    const { rows, cols, stores, scratch } = this.#nest;
    if (this.#plan.parts === 1) return stores;
    const order = this.#copied.isChanged ? [this.#part, cols, rows] : [this.#part, rows, cols];
    const index = linearIndex(
      order.map(varIndex),
      order.map(({ extent }) => extent),
    );
    return [{ operand: scratch, index, value: { kind: "acc", dtype: "f32" } }];
  }

  get #grid(): readonly LoopVar[] {
    return live([this.#part, ...tileOrder(this.#nest, this.#rowTile, this.#colTile)]);
  }

  get #stageBytes(): number {
    return stageBytes(this.#copied.cols);
  }

  /** A left side across the depth that tensor cores do not take from shared memory. */
  get #throughRegisters(): boolean {
    return this.#copied.left.isAcross && this.#plan.factors === "tf32";
  }

  /** Steps of the plan as stages, whose rows may be longer. */
  #stagesOf(steps: number): number {
    return Math.ceil((steps * TILE_DEPTH) / rowElements(this.#plan.factors));
  }

  /** For every tile of the block: where it is, and how many steps its part has. */
  #tiles(body: () => void): void {
    const { parts } = this.#plan;
    const [steps, partSteps] = [this.#stagesOf(this.#plan.steps), this.#stagesOf(this.#plan.partSteps)];
    this.#code.block(`for (int tile = blockIdx.x; tile < ${product(this.#grid)}; tile += gridDim.x)`, () => {
      this.#printer.splitBlock(this.#grid, "(idx)tile");
      const first = this.#printer.index(scaleIndex(varIndex(this.#part), partSteps));
      this.#code.line(`const int first = ${parts > 1 ? first : 0}, steps = min(${partSteps}, ${steps} - first);`);
      body();
    });
  }

  #produce(): void {
    const { cols, stages } = this.#copied;
    const line = (text: string): void => this.#code.line(text);
    this.#code.block(`if (threadIdx.x == ${CONSUMERS})`, () => {
      line("u32 parity = 1, number = 0;");
      this.#tiles(() => {
        const [row, col] = [scaleIndex(varIndex(this.#rowTile), TILE_ROWS), scaleIndex(varIndex(this.#colTile), cols)];
        line(`const int row = ${this.#printer.index(row)}, col = ${this.#printer.index(col)};`);
        this.#code.block("for (int step = first; step < first + steps; step++)", () => {
          line("barrier_wait(empty + 8 * number, parity);");
          line(`const u32 stage = stages + number * ${this.#stageBytes};`);
          line(`barrier_expect(full + 8 * number, ${this.#stageBytes});`);
          this.#bring("left", { at: 0, place: "row", length: TILE_ROWS });
          this.#bring("right", { at: TILE_ROWS * ROW_BYTES, place: "col", length: cols });
          line(`if (++number == ${stages}) { number = 0; parity ^= 1; }`);
        });
      });
    });
  }

  /** One box, or boxes of a row's elements each where they lie across the depth. */
  #bring(
    side: "left" | "right",
    { at: start, place, length }: { readonly at: number; readonly place: string; readonly length: number },
  ): void {
    const depth = rowElements(this.#plan.factors);
    const bring = (from: number, first: string, second: string): void =>
      this.#code.line(`copy_box(stage + ${start + from}, &${side}, ${first}, ${second}, full + 8 * number);`);
    if (!this.#copied[side].isAcross) bring(0, `step * ${depth}`, place);
    else for (let at = 0; at < length; at += depth) bring(at * ROW_BYTES, `${place} + ${at}`, `step * ${depth}`);
  }

  #multiply(): void {
    const { cols, left, right, stages } = this.#copied;
    const line = (text: string): void => this.#code.line(text);
    const isOwn = this.#throughRegisters;
    line("const int group = threadIdx.x / 128;");
    line(`const idx ${this.#printer.counter(this.#thread)} = threadIdx.x;`);
    line("u32 parity = 0, number = 0, before = 0;");
    line(DESCRIPTOR_FORM);
    if (isOwn) line("u32 corner[4]; across_corners(corner, group);");
    else if (left.isAcross || right.isAcross) line(ACROSS_FORM);
    this.#tiles(() => {
      line(`f32 sum[${cols / 2}];`);
      if (this.#nest.start) this.#begin(this.#nest.start);
      this.#code.block("for (int step = 0; step < steps; step++)", () => {
        line("barrier_wait(full + 8 * number, parity);");
        line(`const u32 stage = stages + number * ${this.#stageBytes};`);
        if (isOwn) this.#stepAcross();
        else this.#step();
        line(`if (++number == ${stages}) { number = 0; parity ^= 1; }`);
      });
      if (!isOwn) {
        line('asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");');
        line("if (threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * before);");
      }
      this.#store();
    });
  }

  /** A step of which both sides are in shared memory: its stage is given back while the next one is multiplied. */
  #step(): void {
    const line = (text: string): void => this.#code.line(text);
    const { left } = this.#copied;
    line(`const u64 a = ${formOf(left)} | (u64)((stage + group * ${64 * ROW_BYTES}) >> 4);`);
    this.#wgmma((k) => `(sum, a + ${k * instructionStep(left)}`);
    line('asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");');
    line("if (step > 0 && threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * before);");
    line("before = number;");
  }

  /**
   * A step whose left side is read into registers, finished before they are written again: with a second set of them, read while the
   * first is multiplied, it is no faster, since the other group of warps multiplies meanwhile.
   */
  #stepAcross(): void {
    const line = (text: string): void => this.#code.line(text);
    line("u32 x[16];");
    line("#pragma unroll");
    line("for (int i = 0; i < 16; i++) x[i] = load_word(stage + i / 4 * 1024 + corner[i % 4]);");
    this.#wgmma((k) => `_own(sum, x + ${4 * k}`);
    line('asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");');
    line("if (threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * number);");
  }

  /** The instructions of a step; `start` is the end of their name and their first arguments. */
  #wgmma(start: (k: number) => string): void {
    const { cols, left, right } = this.#copied;
    const isOwn = this.#throughRegisters;
    const name = wgmmaName(cols, this.#plan.factors, [left.isAcross && !isOwn, right.isAcross]);
    this.#code.line(`const u64 b = ${formOf(right)} | (u64)((stage + ${TILE_ROWS * ROW_BYTES}) >> 4);`);
    this.#code.line('asm volatile("wgmma.fence.sync.aligned;" ::: "memory");');
    for (let k = 0; k < 4; k++) {
      const keep = k > 0 || this.#nest.start ? 1 : "step > 0";
      this.#code.line(`${name}${start(k)}, b + ${k * instructionStep(right)}, ${keep});`);
    }
    this.#code.line('asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");');
  }

  /** What sums start from: two neighbours of each of a thread's rows. */
  #begin(start: Expr): void {
    invariant(start.kind === "load", () => "sums start from a matrix");
    const pairs = Array.from({ length: this.#copied.cols / 8 }, (_, j) => j);
    const { rows, cols } = this.#nest;
    const col = (j: number): Index => {
      const inTile = addIndex(constIndex(8 * j), scaleIndex(modIndex(varIndex(this.#thread), 4), 2));
      return addIndex(scaleIndex(varIndex(this.#colTile), this.#copied.cols), inTile);
    };
    const statements = [constIndex(0), constIndex(1)].flatMap((lower, half) => {
      const row = this.#row(lower);
      const copies = pairs.flatMap((j) => {
        const from = { operand: start.operand, index: this.#at(row, col(j)).index(start.index) };
        const to = { operand: this.#added, index: constIndex(4 * j + 2 * half) };
        return where(below(col(j), cols.extent), [{ kind: "copy", to, from, count: 2 } as const]);
      });
      return where(below(row, rows.extent), copies);
    });
    this.#statements.push(...statements);
    this.#printer.statements(statements);
  }

  // ---- results ------------------------------------------------------------------------------------------------------

  /** Sums of a batch of fours, after the exchange between neighbours. */
  #exchange(): void {
    const own = at(this.#names, this.#sums);
    this.#code.line("const bool odd = threadIdx.x % 2;");
    for (let q = 0; q < this.#together; q++) {
      const sum = (i: number): string => `sum[${this.#isLoop ? "" : `${4 * this.#together} * batch + `}${4 * q + i}]`;
      this.#code.block("", () => {
        for (const i of [0, 1]) {
          this.#code.line(`const f32 other_${i} = __shfl_xor_sync(~0u, odd ? ${sum(i)} : ${sum(i + 2)}, 1);`);
        }
        for (const i of [0, 1]) {
          this.#code.line(`${own}[${4 * q + i}] = odd ? other_${i} : ${sum(i)};`);
          this.#code.line(`${own}[${4 * q + i + 2}] = odd ? ${sum(i + 2)} : other_${i};`);
        }
      });
    }
  }

  /** The upper or lower one of a thread's rows. */
  #row(lower: Index): Index {
    const thread = varIndex(this.#thread);
    const upper = addIndex(scaleIndex(divIndex(thread, 32), 16), divIndex(modIndex(thread, 32), 4));
    const inTile = this.#throughRegisters ? acrossRow(thread, lower) : addIndex(upper, scaleIndex(lower, 8));
    return addIndex(scaleIndex(varIndex(this.#rowTile), TILE_ROWS), inTile);
  }

  /** Row of a thread's fours, and the first column of one. */
  #place(q: number): { readonly row: Index; readonly col: Index } {
    const thread = varIndex(this.#thread);
    const lane = modIndex(thread, 32);
    const col = addIndex(
      scaleIndex(varIndex(this.#batch), 8 * this.#together),
      constIndex(8 * q),
      scaleIndex(divIndex(modIndex(lane, 4), 2), 4),
    );
    return {
      row: this.#row(modIndex(lane, 2)),
      col: addIndex(scaleIndex(varIndex(this.#colTile), this.#copied.cols), col),
    };
  }

  #at(row: Index, col: Index, acc: Expr | null = null): Replacement {
    return new Replacement(
      new Map([
        [this.#nest.rows, row],
        [this.#nest.cols, col],
      ]),
      acc,
    );
  }

  /** What one four reads, computes and writes. */
  #four(q: number): Readonly<Record<"before" | "after", readonly Statement[]>> & { readonly values: readonly Store[] } {
    const { row, col } = this.#place(q);
    const { isChanged } = this.#copied;
    const four = (memory: number): Element => ({ operand: memory, index: constIndex(4 * q) });
    const place = ({ operand, index }: Element): Element => ({ operand, index: this.#at(row, col).index(index) });
    return {
      before: [...this.#loads.values()].map(({ memory, load: from }) => copyOf(four(memory), place(from))),
      values: this.#results.flatMap((result, s) =>
        [0, 1, 2, 3].map((c) => {
          const index = constIndex(4 * q + c);
          const here = this.#at(row, addIndex(col, constIndex(c)), this.#memories.read(this.#sums, index));
          const to = isChanged
            ? { ...result, index: here.index(result.index) }
            : { operand: at(this.#stored, s), index };
          return { ...to, value: here.expr(this.#withVectors(result.value, 4 * q + c)) };
        }),
      ),
      after: isChanged ? [] : this.#results.map((result, s) => copyOf(place(result), four(at(this.#stored, s)))),
    };
  }

  /** Loads of four replaced by what they brought. */
  #withVectors(value: Expr, i: number): Expr {
    const brought = [...this.#loads].map(([key, { memory }]) => [key, load("f32", memory, constIndex(i))] as const);
    return replaceLoads(value, new Map(brought));
  }

  #store(): void {
    this.#code.line(this.#isLoop ? "#pragma unroll 1" : "#pragma unroll");
    this.#code.block(`for (int batch = 0; batch < ${this.#batch.extent}; batch++)`, () => {
      this.#code.line(`const idx ${this.#printer.counter(this.#batch)} = batch;`);
      for (const memory of [this.#sums, ...[...this.#loads.values()].map(({ memory }) => memory), ...this.#stored]) {
        this.#code.line(`f32 ${at(this.#names, memory)}[${4 * this.#together}];`);
      }
      this.#exchange();
      const { row } = this.#place(0);
      const list = where(below(row, this.#nest.rows.extent), this.#fours());
      this.#statements.push(...list);
      this.#printer.statements(list);
      if (!this.#isLoop) return;
      const [step, all] = [4 * this.#together, this.#copied.cols / 2];
      this.#code.line("#pragma unroll");
      this.#code.line(`for (int i = 0; i < ${all - step}; i++) sum[i] = sum[i + ${step}];`);
    });
  }

  /** All fours of a batch together, or one by one in a tile that may reach beyond the last column. */
  #fours(): readonly Statement[] {
    const { extent } = this.#nest.cols;
    // a last four that is not full has room behind its row
    const room = Math.ceil(extent / 4) * 4;
    const fours = Array.from({ length: this.#together }, (_, q) => this.#four(q));
    if (extent % this.#copied.cols === 0) {
      return [
        ...fours.flatMap(({ before }) => before),
        storing(...fours.flatMap(({ values }) => values)),
        ...fours.flatMap(({ after }) => after),
      ];
    }
    return fours.flatMap(({ before, values, after }, q) =>
      where(below(addIndex(this.#place(q).col, constIndex(3)), room), [...before, storing(...values), ...after]),
    );
  }

  print(): CopiedText {
    const { cols, stages } = this.#copied;
    declareStages(this.#code, stages, cols);
    setBarriers(this.#code, stages, 1);
    this.#code.block(`if (threadIdx.x >= ${CONSUMERS})`, () => {
      this.#code.line(`asm volatile("setmaxnreg.dec.sync.aligned.u32 ${PRODUCER_REGISTERS};");`);
      this.#produce();
    });
    this.#code.block("else", () => {
      this.#code.line(`asm volatile("setmaxnreg.inc.sync.aligned.u32 ${CONSUMER_REGISTERS};");`);
      this.#multiply();
    });
    const used = memoriesIn(this.#statements);
    const pointers = this.#memories.list.flatMap((memory, i) =>
      memory.scope === "global" && used.has(i) ? [{ memory, i }] : [],
    );
    const params = [
      "const __grid_constant__ TensorMap left",
      "const __grid_constant__ TensorMap right",
      ...pointers.map(({ memory, i }) => `${CUDA_DIALECT.element(memory.dtype).type} *${at(this.#names, i)}`),
    ];
    return {
      text: `(${params.join(", ")}) {\n${this.#code.lines.join("\n")}\n}\n`,
      maps: [
        mapOf(this.#nest, this.#copied, this.#copied.left, [TILE_ROWS, this.#plan.factors]),
        mapOf(this.#nest, this.#copied, this.#copied.right, [cols, this.#plan.factors]),
      ],
      operands: pointers.map(({ memory }) => memory.operand),
      blocks: Math.min(product(this.#grid), this.#copied.blocks),
      threads: CONSUMERS + PRODUCERS,
      sharedBytes: sharedBytesOf(stages, cols),
    };
  }
}

export const printCopiedProduct = (
  nest: ContractNest,
  operands: readonly Operand[],
  plan: TensorPlan,
  copied: CopiedPlan,
): CopiedText => new CopiedPrinter(nest, operands, plan, copied).print();
