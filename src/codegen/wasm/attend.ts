/**
 * @file Attention as WebAssembly: the stages of kernel/attend.ts one after the other, each as the code of its nest, on tiles
 * in a thread's own workspace; behind them are the panels of products.
 */
import { at } from "../../base/invariant.ts";
import { attendByHeads, attendStages } from "../../kernel/attend.ts";
import type { AttendStages, Repeat, Stage } from "../../kernel/attend-stages.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import type { Index } from "../../kernel/expr.ts";
import type { AttendNest, ContractNest, Operand } from "../../kernel/loops.ts";
import { type AttendLayout, attendLayout, hasHeadsFor, productsOf, unitsOf } from "../cpu/attend.ts";
import { type AddressNumber, addressesOf } from "../operand-addresses.ts";
import { product, UNDIVIDED, type Units } from "../units.ts";
import { SINGLE } from "./addresses.ts";
import { contractScratch } from "./blocking.ts";
import { emitContract } from "./contract.ts";
import { emitSplit } from "./emit-loops.ts";
import type { EmitOptions } from "./emit-options.ts";
import { OP } from "./encoder.ts";
import { emitMap } from "./nests.ts";
import { emitReduce } from "./reduce.ts";
import { VectorEmitter } from "./vector.ts";

/** Elements of one thread's tiles, and of its panels. */
function threadWorkspace({ stages, elements }: AttendLayout, fma: boolean): readonly [tiles: number, panels: number] {
  const panels = productsOf(stages).map(({ dtype, rows, cols, depth }) =>
    contractScratch(dtype, fma, [rows.extent, cols.extent, depth.extent]),
  );
  return [elements, Math.ceil(Math.max(0, ...panels) / 16) * 16];
}

/** Units of whole heads where there are enough for all threads: fewer products. */
function wasmStages(nest: AttendNest, operands: readonly Operand[], threads: number): AttendStages {
  const isOwnType = operands[at(nest.stores, 0).operand]?.dtype === nest.dtype;
  const byHeads = nest.backward !== null && isOwnType && hasHeadsFor(nest, threads);
  return byHeads ? attendByHeads(nest, operands.length) : attendStages(nest, operands.length);
}

/** Elements of the workspace operand. */
export function attendScratch(
  nest: AttendNest,
  operands: readonly Operand[],
  { fma, threads = 1 }: EmitOptions,
): number {
  const layout = attendLayout(wasmStages(nest, operands, threads));
  const [tiles, panels] = threadWorkspace(layout, fma);
  return unitsOf(layout.stages).count === 0 ? 0 : threads * (tiles + panels);
}

export interface AttendOptions extends EmitOptions {
  /** The function that computes tiles of a product of so many rows. */
  micro(nest: ContractNest): number;
  readonly addressNumber: AddressNumber;
}

class AttendEmitter {
  readonly em: VectorEmitter;
  readonly outer: VectorEmitter;
  readonly options: AttendOptions;
  readonly layout: AttendLayout;
  readonly operands: readonly Operand[];
  /** Address of the panels. */
  readonly panels: number;

  constructor(outer: VectorEmitter, nest: AttendNest, operands: readonly Operand[], options: AttendOptions) {
    const { code, share } = outer;
    this.outer = outer;
    this.options = options;
    this.layout = attendLayout(wasmStages(nest, operands, options.threads ?? 1));
    const { offsets } = this.layout;
    const [tiles, panels] = threadWorkspace(this.layout, options.fma);
    const bytes = bytesOf(nest.dtype);
    const w = code.local("i32");
    code.get(options.addressNumber(nest.scratch ?? 0, 0));
    if (share) {
      code
        .get(share.thread)
        .i32Const((tiles + panels) * bytes)
        .op(OP.i32Mul)
        .op(OP.i32Add);
    }
    code.set(w);
    this.panels = code.local("i32");
    code
      .get(w)
      .i32Const(tiles * bytes)
      .op(OP.i32Add)
      .set(this.panels);
    const known = new Map(addressesOf(nest).map(({ operand, offset }) => [operand, offset]));
    /** The address is computed where it is asked for: what was computed elsewhere may not have run. */
    const beyond = (local: number, by: number): number => {
      const made = code.local("i32");
      code.get(local).i32Const(by).op(OP.i32Add).set(made);
      return made;
    };
    const address = (operand: number, offset: number): number => {
      const tile = offsets[operand - operands.length];
      if (tile !== undefined) return beyond(w, (tile + offset) * bytes);
      const from = known.get(operand) ?? 0;
      const local = options.addressNumber(operand, from);
      return offset === from ? local : beyond(local, (offset - from) * bytesOf(at(operands, operand).dtype));
    };
    this.operands = [...operands, ...offsets.map((): Operand => ({ dtype: nest.dtype, elements: 0, role: "scratch" }))];
    this.em = new VectorEmitter(code, outer.lanes, address);
  }

  emit(): Units {
    const { em, outer, layout } = this;
    const { code } = em;
    const { share } = outer;
    const { starts, count } = unitsOf(layout.stages);
    layout.stages.programs.forEach(({ units, body }, p) => {
      const [from, to] = [at(starts, p), at(starts, p) + product(units)];
      if (from === to) return;
      const [unit, end, number] = [code.local("i32"), code.local("i32"), code.local("i32")];
      code.i32Const(from).set(unit).i32Const(to).set(end);
      if (share) {
        this.#raise(unit, () => code.get(share.lo));
        this.#lower(end, () => code.get(share.hi));
      }
      code.while(
        () => code.get(unit).get(end).op(OP.i32LtS),
        () => {
          em.scope(() => {
            code.get(unit).i32Const(from).op(OP.i32Sub).set(number);
            emitSplit(em, number, units);
            this.stages(body);
          });
          code.increment(unit, 1);
        },
      );
    });
    return share ? { count, grain: 1 } : UNDIVIDED;
  }

  /** Sets a local to a value where that is greater. */
  #raise(local: number, value: () => void): void {
    const { code } = this.em;
    const other = code.local("i32");
    value();
    code.tee(other).get(local).op(OP.i32GtS);
    code.if(null, () => code.get(other).set(local));
  }

  #lower(local: number, value: () => void): void {
    const { code } = this.em;
    const other = code.local("i32");
    value();
    code.tee(other).get(local).op(OP.i32LtS);
    code.if(null, () => code.get(other).set(local));
  }

  stages(stages: readonly Stage[]): void {
    for (const stage of stages) {
      if (stage.kind === "repeat") this.repeat(stage);
      else this.em.scope(() => this.nest(stage));
    }
  }

  repeat({ counter, first, last, from, to, body }: Repeat): void {
    const { em } = this;
    const { code } = em;
    const [local, end] = [code.local("i32"), code.local("i32")];
    const index = (of: Index) => () => em.emitIndex(of, SINGLE);
    em.vec = null;
    code.i32Const(first).set(local).i32Const(last).set(end);
    if (from) this.#raise(local, index(from));
    for (const other of to) this.#lower(end, index(other));
    em.vars.set(counter, local);
    code.while(
      () => code.get(local).get(end).op(OP.i32LtS),
      () => {
        em.scope(() => this.stages(body));
        code.increment(local, 1);
      },
    );
  }

  nest(nest: Exclude<Stage, Repeat>): void {
    const { em, operands, options } = this;
    if (nest.kind === "contract") {
      const { fma } = options;
      emitContract(em, nest, operands, { micro: options.micro(nest), fma, scratch: this.panels });
    } else if (nest.kind === "reduce") emitReduce(em, nest, operands);
    else emitMap(em, nest as never, operands);
  }
}

export function emitAttend(
  em: VectorEmitter,
  nest: AttendNest,
  operands: readonly Operand[],
  options: AttendOptions,
): Units {
  if (nest.scratch === undefined) return UNDIVIDED;
  return new AttendEmitter(em, nest, operands, options).emit();
}
