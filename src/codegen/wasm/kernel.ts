/**
 * @file Each nest of a kernel as one WebAssembly function. Its parameters are addresses: one for each operand and
 * constant element offset that it uses, so that nests which differ only in where their data lies share one function (an
 * unrolled network of a thousand layers has the code of a few, a concatenation of a hundred equal parts that of one).
 */
import { invariant } from "../../base/invariant.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { type Expr, walkExpr } from "../../kernel/expr.ts";
import type { Kernel, Nest } from "../../kernel/loops.ts";
import { nestExprs } from "../../kernel/loops.ts";
import { printNest } from "../../kernel/print.ts";
import { emitContract } from "./contract.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import { Interner } from "./intern.ts";
import { addMicroKernel } from "./micro-kernel.ts";
import { emitMap, emitScan, emitScatter } from "./nests.ts";
import { emitReduce } from "./reduce.ts";
import { laneBytes } from "./scalar.ts";
import { emitShuffle } from "./shuffle.ts";
import { VectorEmitter } from "./vector.ts";

/** An address that a kernel's function takes: element `offset` of an operand. */
export interface Slot {
  readonly operand: number;
  readonly offset: number;
}

export interface KernelFunction {
  readonly fn: number;
  readonly slots: readonly Slot[];
}

export interface EmitOptions {
  /** Use relaxed SIMD's fused multiply-add in products. */
  readonly fma: boolean;
}

/** All expressions of a nest, and indices of stores as expressions. */
function allExprs(nest: Nest): readonly Expr[] {
  const { atStore, elsewhere } = nestExprs(nest);
  return [...atStore, ...elsewhere];
}

function slotsOf(nest: Nest): readonly Slot[] {
  const slots = new Map<string, Slot>();
  const add = (operand: number, offset: number): void => {
    slots.set(`${operand}+${offset}`, { operand, offset });
  };
  const seen = new Set<Expr>();
  for (const expr of allExprs(nest))
    walkExpr(
      expr,
      (e) => {
        if (e.kind === "load") add(e.operand, e.index.offset);
      },
      seen,
    );
  if ("stores" in nest) for (const store of nest.stores) add(store.operand, store.index.offset);
  if (nest.kind === "contract") add(nest.scratch, 0);
  if (nest.kind === "scatter") add(nest.operand, nest.index.offset);
  if (nest.kind === "shuffle") add(nest.operand, 0);
  if (nest.kind === "map" && nest.unlessSame) for (const operand of nest.unlessSame) add(operand, 0);
  return [...slots.values()];
}

/** Two lanes as soon as anything in the nest is 64 bits wide. */
function lanesOf(kernel: Kernel, nest: Nest): 4 | 2 {
  let wide = false;
  const seen = new Set<Expr>();
  for (const expr of allExprs(nest))
    walkExpr(
      expr,
      (e) => {
        if (laneBytes(e.dtype) === 8) wide = true;
      },
      seen,
    );
  const stored = "stores" in nest ? nest.stores.map((s) => s.operand) : [];
  if (
    stored.some((i) => {
      const o = kernel.operands[i];
      return o && laneBytes(o.dtype) === 8;
    })
  )
    wide = true;
  return wide ? 2 : 4;
}

/** Emits the nests of kernels into a module, each distinct one once. */
export class KernelLibrary {
  readonly #module: ModuleBuilder;
  readonly #options: EmitOptions;
  readonly #byText = new Map<string, KernelFunction>();
  readonly #micro = new Map<string, number>();

  constructor(module: ModuleBuilder, options: EmitOptions) {
    this.#module = module;
    this.#options = options;
  }

  get count(): number {
    return this.#byText.size;
  }

  /** The calls that run a kernel, one for each nest. */
  functions(kernel: Kernel): readonly KernelFunction[] {
    return kernel.nests.map((nest) => this.#function(kernel, nest));
  }

  #function(kernel: Kernel, nest: Nest): KernelFunction {
    const slots = slotsOf(nest);
    const number = new Map(slots.map((s, i) => [`${s.operand}+${s.offset}`, i]));
    const slot = (operand: number, offset: number): number => {
      const local = number.get(`${operand}+${offset}`);
      invariant(local !== undefined, () => `no slot for operand ${operand} + ${offset}`);
      return local;
    };
    const types = slots.map((s) => kernel.operands[s.operand]?.dtype).join();
    const text = `${types}\n${printNest(nest, (operand, offset) => `s${slot(operand, offset)}`)}`;
    const known = this.#byText.get(text);
    if (known) return { fn: known.fn, slots };
    const code = new Code(slots.map(() => "i32" as const));
    this.#emitNest(code, kernel, nest, slot);
    const made = { fn: this.#module.add(code), slots };
    this.#byText.set(text, made);
    return made;
  }

  #emitNest(code: Code, kernel: Kernel, nest: Nest, slot: (operand: number, offset: number) => number): void {
    const em = new VectorEmitter(code, new Interner(), lanesOf(kernel, nest), slot);
    switch (nest.kind) {
      case "map":
        if (nest.unlessSame) {
          const [a, b] = nest.unlessSame;
          code
            .get(slot(a, 0))
            .get(slot(b, 0))
            .op(OP.i32Ne)
            .if(null, () => emitMap(em, nest, kernel.operands));
        } else emitMap(em, nest, kernel.operands);
        return;
      case "reduce":
        emitReduce(em, nest, kernel.operands);
        return;
      case "scan":
        emitScan(em, nest, kernel.operands);
        return;
      case "scatter":
        emitScatter(em, nest, kernel.operands);
        return;
      case "contract": {
        const { dtype } = nest;
        invariant(dtype === "f32" || dtype === "f64" || dtype === "i32", () => `no products of ${dtype}`);
        let micro = this.#micro.get(dtype);
        if (micro === undefined) {
          micro = addMicroKernel(this.#module, dtype, this.#options.fma);
          this.#micro.set(dtype, micro);
        }
        emitContract(em, nest, kernel.operands, { micro, fma: this.#options.fma, scratch: slot(nest.scratch, 0) });
        return;
      }
      case "shuffle":
        emitShuffle(em, nest, slot(nest.operand, 0));
    }
  }
}

/** Bytes from an operand's start to a slot. */
export function slotBytes(kernel: Kernel, slot: Slot): number {
  const operand = kernel.operands[slot.operand];
  invariant(operand, () => `kernel has no operand ${slot.operand}`);
  return slot.offset * bytesOf(operand.dtype);
}
