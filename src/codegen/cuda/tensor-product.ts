/**
 * @file A product on tensor cores as CUDA. A block computes a tile of the result. Two groups of warps multiply, the others
 * fill shared memory: they evaluate the sides of the product element by element, round, and write rows along the depth,
 * whatever the order in memory is. A left side that is a matrix across the depth is brought by the copy engine as it is, and
 * read into registers from there. Stages of shared memory go round between them, each with two barriers:
 *
 *   producers   global ──→ registers ──→ round ──→ stage 0  stage 1  stage 2 …      wait until empty, fill, say full
 *   consumers                                      wgmma    wgmma                   wait until full, multiply, say empty
 *
 * At the end the sums go through shared memory once more, so that neighbouring threads store neighbouring elements; all
 * threads take part in what is computed from them. Sums of parts of the depth go to the workspace, and a second launch adds them in order.
 */
import { at } from "../../base/invariant.ts";
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  linearIndex,
  modIndex,
  rangeOf,
  scaleIndex,
  varIndex,
} from "../../kernel/index-math.ts";
import type { ContractNest, Operand, Store } from "../../kernel/loops.ts";
import { below, counter, Memories, Replacement } from "../block/counters.ts";
import { memoriesIn } from "../block/print-c.ts";
import { type Dialect, type Place, StatementPrinter } from "../block/print-c-like.ts";
import { type Launch, loop, type Statement, storing, where } from "../block/program.ts";
import { withSpanGuards } from "../block/span.ts";
import { CCode } from "../native/c-code.ts";
import { live } from "../units.ts";
import type { TensorMap } from "./copied-maps.ts";
import { CUDA_DIALECT, TENSOR_DIALECT, vectorCopy } from "./dialect.ts";
import { ACROSS_ROW, acrossMap } from "./tensor-across.ts";
import { type TensorPlan, TILE_DEPTH, TILE_ROWS } from "./tensor-plan.ts";
import { type Side, SideReads } from "./tensor-reads.ts";
import { type Alignment, neighbours, placeOf } from "./tensor-side.ts";
import {
  CONSUMERS,
  DESCRIPTOR_FORM,
  declareStages,
  SHORT_FORM,
  setBarriers,
  sharedBytesOf,
  stageBytes,
  tileOrder,
} from "./tensor-stages.ts";
import { ALONG, wgmmaName } from "./tensor-text.ts";
import { type FactorType, ROW_BYTES } from "./tensor-types.ts";

/** Floats after each row of the tile of sums: rows of neighbouring threads in different banks. */
const PADDING = 8;
/** Of a thread that fills shared memory, and of one that multiplies: together what a multiprocessor has for 256 of each. */
const [PRODUCER_REGISTERS, CONSUMER_REGISTERS] = [96, 160];
/** Rows of a column whose results a thread computes together: all are read before any is stored. */
const TOGETHER = 4;

const PRODUCT_DIALECT: Dialect = { ...TENSOR_DIALECT, copy: vectorCopy };

export interface TensorText {
  /** Parameters and body. */
  readonly text: string;
  readonly operands: readonly number[];
  readonly grid: readonly LoopVar[];
  readonly threads: number;
  /** Of shared memory that the launch asks for. */
  readonly sharedBytes: number;
  /** The left side, where the copy engine brings it. */
  readonly maps?: readonly TensorMap[];
}

/** The name that memories have in the text. */
const WORDS = { global: "global", shared: "shared", register: "own", local: "own" } as const;

/** Four neighbours along the depth, to an address of shared memory. */
function storeText(factors: FactorType, to: string, four: readonly string[]): string {
  if (factors === "tf32") return `store_tf32(${to}, ${four.join(", ")});`;
  const pair = (first: number): string => `${factors}_factors(${four.slice(first, first + 2).join(", ")})`;
  return `store_pairs(${to}, ${pair(0)}, ${pair(2)});`;
}

class TensorPrinter {
  readonly #nest: ContractNest;
  readonly #plan: TensorPlan;
  readonly #code = new CCode();
  readonly #printer: StatementPrinter;
  readonly #memories: Memories;
  readonly #names: readonly string[];
  readonly #left: Side;
  readonly #right: Side;
  readonly #sums: number;
  readonly #part: LoopVar;
  readonly #next: LoopVar;
  readonly #producer: LoopVar;
  readonly #thread: LoopVar;
  readonly #statements: Statement[] = [];
  readonly #reads: SideReads;

  constructor(given: ContractNest, operands: readonly Operand[], plan: TensorPlan, aligned: Alignment) {
    const nest = withSpanGuards(given);
    this.#nest = nest;
    this.#plan = plan;
    this.#memories = new Memories(operands);
    this.#part = counter("part", plan.parts);
    this.#next = counter("next", Math.min(plan.partSteps, plan.steps));
    this.#producer = counter("producer", plan.producers);
    this.#thread = counter("thread", CONSUMERS + plan.producers);
    const [part, next, producer] = [this.#part, this.#next, this.#producer];
    this.#reads = new SideReads({ nest, plan, memories: this.#memories, part, next, producer });
    this.#left = this.#side("row", nest.a, nest.rows, { length: TILE_ROWS, start: 0, aligned });
    const start = TILE_ROWS * ROW_BYTES;
    this.#right = this.#side("col", nest.b, nest.cols, { length: plan.cols, start, aligned });
    const pitch = plan.cols + PADDING;
    this.#sums = this.#memories.add({ scope: "shared", dtype: "f32", elements: TILE_ROWS * pitch });
    this.#names = this.#memories.list.map(({ scope }) => this.#code.name(WORDS[scope]));
    const place: Place = (memory, index) => `${at(this.#names, memory)}[${index}]`;
    const launch: Launch = { grid: this.#grid, thread: this.#producer, memories: this.#memories.list, body: [] };
    this.#printer = new StatementPrinter(PRODUCT_DIALECT, this.#code, launch, place);
  }

  #side(
    name: string,
    expr: Expr,
    along: LoopVar,
    { length, start, aligned }: Pick<Side, "length" | "start"> & { readonly aligned: Alignment },
  ): Side {
    const depth = this.#nest.split?.[1] ?? this.#nest.depth;
    const access = neighbours(expr, { along, depth, aligned });
    const { producers } = this.#plan;
    const chunks = access.deep ? length / (producers / 8) : Math.ceil((length * 2) / producers) * 4;
    const matrix = this.#plan.across && start === 0 && aligned(this.#plan.across.operand) ? this.#plan.across : null;
    return {
      ...{ expr, along, length, start, ...access },
      across: matrix && acrossMap(matrix, this.#nest),
      tile: counter(`${name}_tile`, Math.ceil(along.extent / length)),
      own: this.#memories.add({ scope: "local", dtype: "f32", elements: 4 * chunks }),
    };
  }

  get #grid(): readonly LoopVar[] {
    return live([this.#part, ...this.#nest.batch, ...tileOrder(this.#nest, this.#left.tile, this.#right.tile)]);
  }

  /** Of a row in a stage: a step has half as many bytes of halves, and half as many instructions. */
  get #rowBytes(): number {
    return this.#isShort ? ROW_BYTES / 2 : ROW_BYTES;
  }

  get #isShort(): boolean {
    return this.#plan.factors !== "tf32";
  }

  get #stageBytes(): number {
    return stageBytes(this.#plan.cols);
  }

  #emit(statements: readonly Statement[]): void {
    this.#statements.push(...statements);
    this.#printer.statements(statements);
  }

  // ---- producers ----------------------------------------------------------------------------------------------------

  /** Rounds a producer's elements and writes them to a stage, four along the depth at a time. */
  #put(side: Side): void {
    const { producers } = this.#plan;
    const own = at(this.#names, side.own);
    const chunks = (this.#memories.list[side.own]?.elements ?? 0) / 4;
    const store = (to: string, elements: readonly number[]): void =>
      this.#code.line(
        storeText(
          this.#plan.factors,
          to,
          elements.map((e) => `${own}[${e}]`),
        ),
      );
    const [rowBytes, place] = [this.#rowBytes, this.#isShort ? "swizzled_short" : "swizzled"];
    if (side.deep) {
      for (let i = 0; i < chunks; i++) {
        const to = `stage + ${side.start + i * (producers / 8) * rowBytes} + ${place}(id / 8, id % 8)`;
        store(
          to,
          [0, 1, 2, 3].map((c) => 4 * i + c),
        );
      }
      return;
    }
    const warps = producers / 32;
    for (let unit = 0; 4 * unit < chunks; unit++) {
      const inside = (unit + 1) * warps * 16 <= side.length ? "" : `if (id / 32 < ${side.length / 16 - unit * warps})`;
      this.#code.block(inside, () => {
        for (let e = 0; e < 4; e++) {
          const element = `${place}(id / 64 * 32 + ${8 * e} + id % 8, id / 32 % 2 * 4 + id % 32 / 8)`;
          const to = `stage + ${side.start + unit * warps * 16 * rowBytes} + ${element}`;
          store(
            to,
            [0, 1, 2, 3].map((r) => 4 * (4 * unit + r) + e),
          );
        }
      });
    }
  }

  /** Asks for the boxes of the left side, 32 rows wide: one thread does, and the barrier counts the bytes. */
  #bring(): void {
    const row = this.#printer.index(scaleIndex(varIndex(this.#left.tile), TILE_ROWS));
    const part = this.#printer.index(scaleIndex(varIndex(this.#part), this.#plan.partSteps));
    this.#code.block("if (id == 0)", () => {
      this.#code.line(`barrier_expect(full + 8 * number, ${TILE_ROWS * ROW_BYTES});`);
      for (let box = 0; box < TILE_ROWS / 32; box++) {
        const place = `${row} + ${32 * box}, (${part} + step) * ${TILE_DEPTH}`;
        this.#code.line(`copy_box(stage + ${box * 32 * ROW_BYTES}, &left, ${place}, full + 8 * number);`);
      }
    });
  }

  #produce(): void {
    const { stages } = this.#plan;
    const line = (text: string): void => this.#code.line(text);
    line(`asm volatile("setmaxnreg.dec.sync.aligned.u32 ${PRODUCER_REGISTERS};");`);
    // after registers are given back: consumers wait for these before they come here
    if (this.#nest.start) line("__syncthreads();");
    line(`const int id = threadIdx.x - ${CONSUMERS};`);
    line(`const idx ${this.#printer.counter(this.#producer)} = id;`);
    for (const { own } of this.#left.across ? [this.#right] : [this.#left, this.#right]) {
      line(`f32 ${at(this.#names, own)}[${this.#memories.list[own]?.elements}];`);
    }
    line("u32 parity = 1, number = 0;");
    this.#code.block("for (int step = -1; step < steps; step++)", () => {
      line(`const u32 stage = stages + number * ${this.#stageBytes};`);
      line(`const idx ${this.#printer.counter(this.#next)} = first + step + 1;`);
      this.#code.block("if (step >= 0)", () => {
        line("barrier_wait(empty + 8 * number, parity);");
        if (this.#left.across) this.#bring();
        else this.#put(this.#left);
      });
      if (!this.#left.across)
        this.#code.block("if (step + 1 < steps)", () => this.#emit(this.#reads.fetch(this.#left)));
      this.#code.block("if (step >= 0)", () => {
        this.#put(this.#right);
        line('asm volatile("fence.proxy.async.shared::cta;" ::: "memory");');
        line("__syncwarp();");
        line("if (threadIdx.x % 32 == 0) barrier_arrive(full + 8 * number);");
        line(`if (++number == ${stages}) { number = 0; parity ^= 1; }`);
      });
      this.#code.block("if (step + 1 < steps)", () => this.#emit(this.#reads.fetch(this.#right)));
    });
  }

  // ---- consumers ----------------------------------------------------------------------------------------------------

  /** Where the sums of a thread are in the tile of sums. */
  #ownSums(): void {
    const pitch = this.#plan.cols + PADDING;
    const row = this.#left.across ? ACROSS_ROW : "threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4";
    const place = `(group * 64 + ${row}) * ${pitch} + threadIdx.x % 4 * 2`;
    this.#code.line(`f32 *own = ${at(this.#names, this.#sums)} + ${place};`);
  }

  /** Each pair of a thread's sums, and its place. */
  #eachPair(text: (pair: string, place: string) => string): void {
    const below = (this.#left.across ? 4 : 8) * (this.#plan.cols + PADDING);
    this.#code.line("#pragma unroll");
    this.#code.block(`for (int j = 0; j < ${this.#plan.cols / 8}; j++)`, () => {
      this.#code.line(text("sum + 4 * j", "own + 8 * j"));
      this.#code.line(text("sum + 4 * j + 2", `own + ${below} + 8 * j`));
    });
  }

  #multiply(): void {
    const { cols, width, stages } = this.#plan;
    const line = (text: string): void => this.#code.line(text);
    line(`asm volatile("setmaxnreg.inc.sync.aligned.u32 ${CONSUMER_REGISTERS};");`);
    line(`const int group = threadIdx.x / 128;`);
    line(`f32 sum[${cols / 2}];`);
    this.#ownSums();
    if (this.#nest.start) {
      this.#eachPair(
        (pair, place) => `{ const float2 v = *(float2 *)(${place}); (${pair})[0] = v.x; (${pair})[1] = v.y; }`,
      );
      line("__syncthreads();");
    }
    line("u32 parity = 0, number = 0, before = 0;");
    line(this.#isShort ? SHORT_FORM : DESCRIPTOR_FORM);
    const name = wgmmaName(width, this.#plan.factors, ALONG);
    if (this.#left.across) line("u32 corner[4]; across_corners(corner, group);");
    // few steps would be written out, with an address in a register for each
    line("#pragma unroll 1");
    this.#code.block("for (int step = 0; step < steps; step++)", () => {
      line("barrier_wait(full + 8 * number, parity);");
      line(`const u32 stage = stages + number * ${this.#stageBytes};`);
      if (this.#left.across) {
        this.#multiplyAcross();
        return;
      }
      line(`const u64 a = form | (u64)((stage + group * ${64 * this.#rowBytes}) >> 4);`);
      line(`const u64 b = form | (u64)((stage + ${this.#right.start}) >> 4);`);
      line('asm volatile("wgmma.fence.sync.aligned;" ::: "memory");');
      for (let k = 0; k < this.#rowBytes / 32; k++) {
        const keep = k > 0 || this.#nest.start ? 1 : "step > 0";
        for (let col = 0; col < cols; col += width) {
          line(`${name}(sum + ${col / 2}, a + ${2 * k}, b + ${2 * k + (col * this.#rowBytes) / 16}, ${keep});`);
        }
      }
      line('asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");');
      line('asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");');
      line("if (step > 0 && threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * before);");
      line("before = number;");
      line(`if (++number == ${stages}) { number = 0; parity ^= 1; }`);
    });
    line('asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");');
    if (this.#nest.within || this.#nest.span) {
      line("#pragma unroll");
      line(`for (int i = 0; i < ${cols / 2}; i++) sum[i] = steps == 0 ? 0 : sum[i];`);
    }
    line(`asm volatile("bar.sync 2, ${CONSUMERS};" ::: "memory");`);
    this.#eachPair((pair, place) => `*(float2 *)(${place}) = make_float2((${pair})[0], (${pair})[1]);`);
  }

  /** One step with the left side in registers: its four corners of 8 × 4 for each depth of 8. */
  #multiplyAcross(): void {
    const { cols, width, stages } = this.#plan;
    const line = (text: string): void => this.#code.line(text);
    line(`const u64 b = form | (u64)((stage + ${this.#right.start}) >> 4);`);
    line("u32 x[16];");
    line("#pragma unroll");
    line("for (int i = 0; i < 16; i++) x[i] = load_word(stage + i / 4 * 1024 + corner[i % 4]);");
    line('asm volatile("wgmma.fence.sync.aligned;" ::: "memory");');
    for (let k = 0; k < 4; k++) {
      for (let col = 0; col < cols; col += width) {
        const keep = k > 0 || this.#nest.start ? 1 : "step > 0";
        line(`wgmma_${width}_own(sum + ${col / 2}, x + ${4 * k}, b + ${2 * k + (col * ROW_BYTES) / 16}, ${keep});`);
      }
    }
    line('asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");');
    line('asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");');
    line("if (threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * number);");
    line(`if (++number == ${stages}) { number = 0; parity ^= 1; }`);
  }

  /** After all sums are in shared memory: what is made of them, by all threads. */
  #finish(): void {
    this.#code.line("__syncthreads();");
    this.#emit(this.#everywhere((row, col, place) => this.#stores(row, col, place)));
  }

  /** Before everything else, by all threads: what sums start from. */
  #begin(start: Expr): void {
    const { rows, cols } = this.#nest;
    const value = (row: Index, col: Index): Expr =>
      new Replacement(
        new Map([
          [rows, row],
          [cols, col],
        ]),
      ).expr(start);
    this.#emit(this.#everywhere((row, col, index) => [{ operand: this.#sums, index, value: value(row, col) }]));
    this.#code.line("__syncthreads();");
  }

  /** Stores for every sum of the tile, by all threads. */
  #everywhere(storesOf: (row: Index, col: Index, place: Index) => readonly Store[]): readonly Statement[] {
    const { cols, producers } = this.#plan;
    const warps = (CONSUMERS + producers) / 32;
    const [segment, group] = [counter("segment", cols / 32), counter("group", TILE_ROWS / warps / TOGETHER)];
    const thread = varIndex(this.#thread);
    const c = addIndex(scaleIndex(varIndex(segment), 32), modIndex(thread, 32));
    const col = addIndex(scaleIndex(varIndex(this.#right.tile), cols), c);
    const all = Array.from({ length: TOGETHER }, (_, i) => {
      const r = addIndex(scaleIndex(varIndex(group), warps * TOGETHER), constIndex(i * warps), divIndex(thread, 32));
      const row = addIndex(scaleIndex(varIndex(this.#left.tile), TILE_ROWS), r);
      const place = addIndex(scaleIndex(placeOf(this.#left, r), cols + PADDING), placeOf(this.#right, c));
      return { row, stores: storesOf(row, col, place) };
    });
    const inCols = below(col, this.#nest.cols.extent);
    const { row: last } = at(all, TOGETHER - 1);
    const inside = below(last, this.#nest.rows.extent);
    const together = where([...inCols, ...inside], [storing(...all.flatMap(({ stores }) => stores))]);
    const beyond = inside.map(({ index, hi }): Bound => ({ index, lo: hi, hi: rangeOf(index)[1] + 1 }));
    const alone = all.flatMap(({ row, stores }) => where(below(row, this.#nest.rows.extent), [storing(...stores)]));
    const body = [...together, ...(beyond.length > 0 ? where([...inCols, ...beyond], alone) : [])];
    return loop(segment, loop(group, body));
  }

  /** What one sum becomes, or the sum itself where it is that of a part. */
  #stores(row: Index, col: Index, place: Index): readonly Store[] {
    const { rows, cols, batch, stores, scratch } = this.#nest;
    const acc = this.#memories.read(this.#sums, place);
    const counters = new Map([
      [rows, row],
      [cols, col],
    ]);
    if (this.#plan.parts === 1) return new Replacement(counters, acc).stores(stores);
    const all = [this.#part, ...batch, rows, cols];
    const index = linearIndex(
      [varIndex(this.#part), ...batch.map(varIndex), row, col],
      all.map((v) => v.extent),
    );
    return [{ operand: scratch, index, value: acc }];
  }

  /** From which step to which there is anything to add: this part's, and of those what is not zero for the whole tile. */
  #limits(): void {
    const { steps, partSteps, parts } = this.#plan;
    const line = (text: string): void => this.#code.line(text);
    const text = (index: Index): string => this.#printer.index(index);
    const before = text(scaleIndex(varIndex(this.#part), partSteps));
    const all = parts > 1 ? `${steps} - ${before} < ${partSteps} ? ${steps} - ${before} : ${partSteps}` : steps;
    line(`int first = 0, end = ${all};`);
    for (const { rows, cols, depth, constant } of this.#nest.within ?? []) {
      // the corner of the tile at which the half-space reaches furthest along the depth
      const corner = (side: Side, coef: number): Index => {
        const far = coef < 0 ? side.length - 1 : 0;
        return scaleIndex(addIndex(scaleIndex(varIndex(side.tile), side.length), constIndex(far)), coef);
      };
      const edge = addIndex(corner(this.#left, rows), corner(this.#right, cols), constIndex(constant));
      const step = `(${depth > 0 ? `-(${text(edge)})` : text(edge)} >> ${Math.log2(TILE_DEPTH)}) - (${before})`;
      if (depth > 0) line(`end = min(end, (int)(${step}) + 1);`);
      else line(`first = max(first, (int)(${step}));`);
    }
    const { span } = this.#nest;
    const stepOf = (index: Index): string => `((int)(${text(index)}) >> ${Math.log2(TILE_DEPTH)}) - (int)(${before})`;
    if (span) line(`first = max(first, ${stepOf(span.from)});`);
    if (span) line(`end = min(end, ${stepOf(addIndex(span.to, constIndex(-1)))} + 1);`);
    line("const int steps = max(0, end - first);");
  }

  print(): TensorText {
    const { cols, producers, stages } = this.#plan;
    const line = (text: string): void => this.#code.line(text);
    declareStages(this.#code, stages, cols);
    line(`f32 *${at(this.#names, this.#sums)} = (f32 *)(raw + (stages - shared_address(raw)));`);
    this.#printer.splitBlock(this.#grid, "(idx)blockIdx.x");
    this.#limits();
    setBarriers(this.#code, stages, producers / 32 + (this.#left.across ? 1 : 0));
    line(`const idx ${this.#printer.counter(this.#thread)} = threadIdx.x;`);
    if (this.#nest.start) this.#begin(this.#nest.start);
    this.#code.block(`if (threadIdx.x >= ${CONSUMERS})`, () => {
      this.#produce();
      this.#finish();
    });
    this.#code.block("else", () => {
      this.#multiply();
      this.#finish();
    });
    return this.#finished();
  }

  #finished(): TensorText {
    const used = memoriesIn(this.#statements);
    const pointers = this.#memories.list.flatMap((memory, i) =>
      memory.scope === "global" && used.has(i) ? [{ memory, i }] : [],
    );
    const { producers, stages } = this.#plan;
    const { across } = this.#left;
    const params = [
      ...(across ? ["const __grid_constant__ TensorMap left"] : []),
      ...pointers.map(({ memory, i }) => `${CUDA_DIALECT.element(memory.dtype).type} *${at(this.#names, i)}`),
    ];
    return {
      text: `(${params.join(", ")}) {\n${this.#code.lines.join("\n")}\n}\n`,
      operands: pointers.map(({ memory }) => memory.operand),
      grid: this.#grid,
      threads: CONSUMERS + producers,
      sharedBytes: sharedBytesOf(stages, this.#plan.cols),
      ...(across ? { maps: [across] } : {}),
    };
  }
}

export function printTensorProduct(
  nest: ContractNest,
  operands: readonly Operand[],
  plan: TensorPlan,
  aligned: Alignment,
): TensorText {
  return new TensorPrinter(nest, operands, plan, aligned).print();
}
