/**
 * @file What both forms of Winograd's convolution have in common as WebAssembly: the workspace, stretches of strips, and rows of the
 * image with what lies around them (codegen/cpu/winograd-plane.ts).
 */
import type { Expr, LoopVar } from "../../kernel/expr.ts";
import type { ContractNest, Operand } from "../../kernel/loops.ts";
import { UNIT } from "../cpu/counters.ts";
import type { Strips } from "../cpu/winograd-choice.ts";
import { ONE, type Plane, type Run, runOf } from "../cpu/winograd-plane.ts";
import { SINGLE, VECTOR } from "./addresses.ts";
import { type ContractOptions, ContractPanels } from "./contract-panels.ts";
import { OP } from "./encoder.ts";
import type { Tile } from "./micro-kernel.ts";
import type { VectorEmitter } from "./vector.ts";
import type { WinogradFunctions } from "./winograd-functions.ts";
import { threadBytes } from "./winograd-plan.ts";

const FLOAT = 4;

export interface WinogradParts extends ContractOptions {
  readonly functions: WinogradFunctions;
  /** The function of a tile of sums. */
  kernel(tile: Tile): number;
}

/** A stretch of strips of one piece of one image: locals. */
export interface Stretch {
  /** Its first strip. */
  readonly strip: number;
  /** Rows of tiles, from and to. */
  readonly q0: number;
  readonly q1: number;
  readonly image: number;
  readonly piece: number;
  /** Tiles of a row. */
  readonly across: number;
}

/** A sum of locals, each times a number of bytes. */
type Terms = readonly (readonly [local: number, by: number])[];

export abstract class WinogradLoops<
  P extends Strips & { readonly parts: Readonly<Record<string, number>> },
> extends ContractPanels {
  readonly plan: P;
  readonly operands: readonly Operand[];
  readonly winograd: WinogradParts;
  readonly #base: number;
  readonly #offsets: ReadonlyMap<string, number>;

  constructor(
    em: VectorEmitter,
    nest: ContractNest,
    operands: readonly Operand[],
    { plan, parts }: { plan: P; parts: WinogradParts },
  ) {
    super(em, nest, parts);
    this.plan = plan;
    this.operands = operands;
    this.winograd = parts;
    this.#base = em.code.local("i32");
    let offset = 0;
    this.#offsets = new Map(
      Object.entries(plan.parts).map(([name, elements]) => {
        const at = offset;
        offset += FLOAT * elements;
        return [name, at];
      }),
    );
  }

  i32(): number {
    return this.em.code.local("i32");
  }

  /** Sets the address of this thread's workspace. */
  setWorkspace(): void {
    const { code, share } = this.em;
    code.get(this.parts.scratch);
    if (share) code.get(share.thread).i32Const(threadBytes(this.plan.parts)).op(OP.i32Mul).op(OP.i32Add);
    code.set(this.#base);
    const one = this.i32();
    code.i32Const(1).set(one);
    this.em.vars.set(UNIT, one);
  }

  /** Leaves the address of a part of the workspace on the stack, plus a sum. */
  address(part: string, terms: Terms = []): void {
    const { code } = this.em;
    code
      .get(this.#base)
      .i32Const(this.#offsets.get(part) ?? 0)
      .op(OP.i32Add);
    this.plus(terms);
  }

  /** Adds a sum to what is on the stack. */
  plus(terms: Terms): void {
    const { code } = this.em;
    for (const [local, by] of terms) code.get(local).i32Const(by).op(OP.i32Mul).op(OP.i32Add);
  }

  /** Fills a part of the workspace with zeros. */
  clear(part: string): void {
    const { code } = this.em;
    this.address(part);
    code
      .i32Const(0)
      .i32Const(FLOAT * (this.plan.parts[part] ?? 0))
      .memoryFill();
  }

  /** local = what `push` leaves on the stack. */
  setTo(local: number, push: () => void): number {
    push();
    this.em.code.set(local);
    return local;
  }

  /**
   * Walks units [lo, hi) in groups of `panels`: `body` is given the number of a group and [first, end) in it.
   */
  groups(panels: number, count: number, body: (group: number, first: number, end: number) => void): void {
    const { code, share } = this.em;
    const [unit, hi, group, first, end] = [this.i32(), this.i32(), this.i32(), this.i32(), this.i32()];
    if (share) code.get(share.lo).set(unit).get(share.hi).set(hi);
    else code.i32Const(0).set(unit).i32Const(count).set(hi);
    code.while(
      () => code.get(unit).get(hi).op(OP.i32LtS),
      () =>
        this.em.scope(() => {
          code.get(unit).i32Const(panels).op(OP.i32DivU).tee(group);
          code.i32Const(-panels).op(OP.i32Mul).get(unit).op(OP.i32Add).tee(first);
          code.get(hi).op(OP.i32Add).get(unit).op(OP.i32Sub).tee(end).i32Const(panels).op(OP.i32GtS);
          code.if(null, () => code.i32Const(panels).set(end));
          code.get(unit).get(end).op(OP.i32Add).get(first).op(OP.i32Sub).set(unit);
          body(group, first, end);
        }),
    );
  }

  /** Runs `body` for stretches of strips [strip0, strip1). */
  stretches(strip0: number, strip1: number, body: (stretch: Stretch) => void): void {
    const { code } = this.em;
    const { tiles, pieces, across: most } = this.plan;
    const [each, wide] = tiles;
    const [strip, row, q0, q1] = [this.i32(), this.i32(), this.i32(), this.i32()];
    const [image, piece, across] = [this.i32(), this.i32(), this.i32()];
    code.get(strip0).set(strip);
    code.while(
      () => code.get(strip).get(strip1).op(OP.i32LtS),
      () =>
        this.em.scope(() => {
          code.get(strip).i32Const(each).op(OP.i32DivU).tee(row);
          code.i32Const(-each).op(OP.i32Mul).get(strip).op(OP.i32Add).tee(q0);
          code.get(strip1).op(OP.i32Add).get(strip).op(OP.i32Sub).tee(q1).i32Const(each).op(OP.i32GtS);
          code.if(null, () => code.i32Const(each).set(q1));
          code.get(row).i32Const(pieces).op(OP.i32DivU).tee(image);
          code.i32Const(-pieces).op(OP.i32Mul).get(row).op(OP.i32Add).set(piece);
          code.i32Const(most).set(across);
          code
            .get(piece)
            .i32Const(pieces - 1)
            .op(OP.i32Eq);
          code.if(null, () => code.i32Const(wide - (pieces - 1) * most).set(across));
          body({ strip, q0, q1, image, piece, across });
          code.get(strip).get(q1).op(OP.i32Add).get(q0).op(OP.i32Sub).set(strip);
        }),
    );
  }

  /**
   * Writes positions 0 … W+1 of row `z` of the image to the address in `row`. What is outside of the runs is zero and stays so:
   * it is not written where the row is inside of the image, and cleared with the rest of the row where it is not.
   */
  imageRow(plane: Plane, z: number, row: number): void {
    const { em } = this;
    const { code } = em;
    const { x, y, tap, slides } = plane;
    const last = y.extent - 1;
    const [py, ty] = [this.i32(), this.i32()];
    em.vars.set(y, py);
    em.vars.set(tap, ty);
    code.get(z).i32Const(1).op(OP.i32Sub).tee(py).i32Const(0).op(OP.i32LtS);
    code.if(null, () => code.i32Const(0).set(py));
    code.get(py).i32Const(last).op(OP.i32GtS);
    code.if(null, () => code.i32Const(last).set(py));
    code.get(z).i32Const(1).op(OP.i32Sub).get(py).op(OP.i32Sub).i32Const(slides).op(OP.i32Mul);
    code.i32Const(1).op(OP.i32Add).set(ty);
    const zeros = (from: number, count: number): void => {
      code
        .get(row)
        .i32Const(FLOAT * from)
        .op(OP.i32Add)
        .i32Const(0)
        .i32Const(FLOAT * count)
        .memoryFill();
    };
    const parts = [
      { ...runOf(em.interner, plane.middle, x), counter: x, at: 1 },
      ...plane.ends.map((expr, i) => ({
        ...runOf(em.interner, expr, ONE),
        counter: ONE,
        at: i === 0 ? 0 : x.extent + 1,
      })),
    ];
    code
      .get(z)
      .i32Const(last + 2)
      .op(OP.i32GtS);
    code.if(
      null,
      () => zeros(0, x.extent + 2),
      () => {
        for (const part of parts) {
          if (part.from >= part.to) continue;
          em.vec = null;
          em.emitBounds(part.bounds, SINGLE);
          code.if(
            null,
            () => em.scope(() => this.run(part.counter, part, { row, at: part.at })),
            () => zeros(part.at + part.from, part.to - part.from),
          );
        }
      },
    );
  }

  /** Writes an expression over the columns `x` to the address in `row`, as many as there are. */
  wholeRow(expr: Expr, x: LoopVar, row: number): void {
    this.em.scope(() => this.run(x, { expr, bounds: [], from: 0, to: x.extent }, { row, at: 0 }));
  }

  /** Elements [from, to) of a row, which begins `at` elements behind the address in `row`. */
  run(x: LoopVar, { expr, from, to }: Run, { row, at }: { readonly row: number; readonly at: number }): void {
    const { em } = this;
    const { code } = em;
    const [column, target] = [this.i32(), this.i32()];
    code.i32Const(from).set(column);
    code
      .get(row)
      .i32Const(FLOAT * (at + from))
      .op(OP.i32Add)
      .set(target);
    const single = x.extent === 1;
    em.vec = single ? null : x;
    if (!single) em.vars.set(x, column);
    em.countUses([expr]);
    em.dropPointers();
    if (!single) {
      em.preparePointers([expr], [], x);
      em.hoist([expr], x, [VECTOR]);
    }
    for (const stride of [em.lanes, 1]) {
      if (to - from < stride) continue;
      code.while(
        () =>
          code
            .get(column)
            .i32Const(to - stride)
            .op(OP.i32LeS),
        () => {
          em.scope(() => {
            code.get(target);
            em.emit(expr, stride === 1 ? SINGLE : VECTOR);
            if (stride === 1) code.memory("store32_lane", 0, 0);
            else code.memory("store", 0);
          });
          em.bumpPointers(stride);
          code.increment(column, stride).increment(target, FLOAT * stride);
        },
      );
    }
    em.vec = null;
  }
}
