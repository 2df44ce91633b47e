/**
 * @file Each nest of a kernel as one WebAssembly function. Its parameters are addresses: one for each operand and
 * constant element offset that it uses, so that nests which differ only in where their data lies share one function (an
 * unrolled network of a thousand layers has the code of a few, a concatenation of a hundred equal parts that of one).
 */
import { invariant } from "../../base/invariant.ts";
import type { Kernel, Nest } from "../../kernel/loops.ts";
import { Interner } from "../intern.ts";
import { isWide, nestKey, type Slot, slotNumbers, slotsOf } from "../slots.ts";
import { emitContract } from "./contract.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import { addMicroKernel } from "./micro-kernel.ts";
import { emitMap, emitScan, emitScatter } from "./nests.ts";
import { emitReduce } from "./reduce.ts";
import { emitShuffle } from "./shuffle.ts";
import { VectorEmitter } from "./vector.ts";

export interface KernelFunction {
  readonly fn: number;
  readonly slots: readonly Slot[];
}

export interface EmitOptions {
  /** Use relaxed SIMD's fused multiply-add in products. */
  readonly fma: boolean;
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
    const slot = slotNumbers(slots);
    const text = nestKey(kernel, nest, slots, slot);
    const known = this.#byText.get(text);
    if (known) return { fn: known.fn, slots };
    const code = new Code(slots.map(() => "i32" as const));
    this.#emitNest(code, kernel, nest, slot);
    const made = { fn: this.#module.add(code), slots };
    this.#byText.set(text, made);
    return made;
  }

  #emitNest(code: Code, kernel: Kernel, nest: Nest, slot: (operand: number, offset: number) => number): void {
    const em = new VectorEmitter(code, new Interner(), isWide(kernel, nest) ? 2 : 4, slot);
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
