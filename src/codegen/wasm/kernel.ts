/**
 * @file Each nest of a kernel as one WebAssembly function. Its parameters are addresses: one for each operand and
 * constant element offset that it uses, so that nests which differ only in the addresses of their data share one function (an
 * unrolled network of a thousand layers has the code of a few, a concatenation of a hundred equal parts that of one).
 */
import { InternalError } from "../../base/invariant.ts";
import type { ProductType } from "../../kernel/dtype.ts";
import type { ContractNest, Kernel, Nest } from "../../kernel/loops.ts";
import { longRows } from "../cpu/short-rows.ts";
import {
  type AddressNumber,
  addressesOf,
  addressNumbers,
  isWide,
  nestKey,
  type OperandAddress,
} from "../operand-addresses.ts";
import { UNDIVIDED, type Units, workOf } from "../units.ts";
import { emitAttend } from "./attend.ts";
import { emitContract } from "./contract.ts";
import type { EmitOptions } from "./emit-options.ts";
import { Code, type ModuleBuilder, OP } from "./encoder.ts";
import { addMicroKernel, type Tile, tileOf } from "./micro-kernel.ts";
import { emitMap, emitScan, emitScatter } from "./nests.ts";
import { emitReduce } from "./reduce.ts";
import { emitRoutine } from "./routine.ts";
import { emitShuffle } from "./shuffle.ts";
import { addSortFunctions, emitSort, type SortFunctions } from "./sort.ts";
import { emitStaged } from "./staged.ts";
import { VectorEmitter } from "./vector.ts";
import { emitWinograd } from "./winograd.ts";
import { WinogradFunctions } from "./winograd-functions.ts";
import { planWinograd, planWinogradWeights } from "./winograd-plan.ts";
import { emitWinogradWeights } from "./winograd-weights.ts";

export interface KernelFunction {
  readonly fn: number;
  readonly addresses: readonly OperandAddress[];
  /** Where threads share the program: the function then takes, after the addresses, units [lo, hi) and its thread's number. */
  readonly units: Units | null;
  /** Scalar operations of one call, roughly: whether it is worth sharing. */
  readonly work: number;
}

/** Emits the nests of kernels into a module, each distinct one once. */
export class KernelLibrary {
  readonly #module: ModuleBuilder;
  readonly #options: EmitOptions;
  readonly #byText = new Map<string, KernelFunction>();
  readonly #byKernel = new Map<Kernel, readonly KernelFunction[]>();
  readonly #micro = new Map<string, number>();
  #sort: SortFunctions | null = null;
  #winograd: WinogradFunctions | null = null;

  constructor(module: ModuleBuilder, options: EmitOptions) {
    this.#module = module;
    this.#options = options;
  }

  get count(): number {
    return this.#byText.size;
  }

  /** The calls that run a kernel, one for each nest. */
  functions(kernel: Kernel): readonly KernelFunction[] {
    const known = this.#byKernel.get(kernel);
    if (known) return known;
    const made = kernel.nests.map((nest) => this.#function(kernel, nest));
    this.#byKernel.set(kernel, made);
    return made;
  }

  #function(kernel: Kernel, written: Nest): KernelFunction {
    const lanes = isWide(kernel, written) ? 2 : 4;
    const nest = longRows(written, lanes);
    const addresses = addressesOf(nest);
    const addressNumber = addressNumbers(addresses);
    const text = nestKey(kernel, nest, addresses, addressNumber);
    const known = this.#byText.get(text);
    if (known) return { ...known, addresses };
    const n = addresses.length;
    const share = (this.#options.threads ?? 1) > 1 ? { lo: n, hi: n + 1, thread: n + 2 } : null;
    const code = new Code([...addresses.map(() => "i32" as const), ...(share ? (["i32", "i32", "i32"] as const) : [])]);
    const em = new VectorEmitter(code, lanes, addressNumber, share);
    const units = this.#emitNest(em, kernel, nest, addressNumber);
    const made = { fn: this.#module.add(code), addresses, units: share && units, work: workOf(nest) };
    this.#byText.set(text, made);
    return made;
  }

  #emitNest(em: VectorEmitter, kernel: Kernel, nest: Nest, addressNumber: AddressNumber): Units {
    const { code } = em;
    switch (nest.kind) {
      case "map": {
        if (!nest.skipIfAliased) return emitMap(em, nest, kernel.operands);
        const [a, b] = nest.skipIfAliased;
        let units = UNDIVIDED;
        code.get(addressNumber(a, 0)).get(addressNumber(b, 0)).op(OP.i32Ne);
        code.if(null, () => {
          units = emitMap(em, nest, kernel.operands);
        });
        return units;
      }
      case "reduce":
        return emitReduce(em, nest, kernel.operands);
      case "scan":
        return emitScan(em, nest, kernel.operands);
      case "scatter":
        return emitScatter(em, nest, kernel.operands);
      case "contract": {
        return this.#emitContract(em, kernel, nest, addressNumber);
      }
      case "shuffle":
        emitShuffle(em, nest, addressNumber(nest.operand, 0));
        return UNDIVIDED;
      case "collective":
        throw new InternalError(`${nest.what} without a communicator`);
      case "sort":
        this.#sort ??= addSortFunctions(this.#module);
        return emitSort(em, nest, kernel.operands, { functions: this.#sort, addressNumber });
      case "staged":
        return emitStaged(em, nest, kernel.operands, addressNumber);
      case "attend": {
        const micro = (product: ContractNest): number => this.#microKernel(product);
        return emitAttend(em, nest, kernel.operands, { ...this.#options, micro, addressNumber });
      }
      case "routine":
        return emitRoutine(em, nest, kernel.operands, addressNumber);
    }
  }

  #emitContract(em: VectorEmitter, { operands }: Kernel, nest: ContractNest, addressNumber: AddressNumber): Units {
    const { fma } = this.#options;
    const parts = { micro: this.#microKernel(nest), fma, scratch: addressNumber(nest.scratch, 0) };
    const isEmpty = [nest.rows, nest.cols, ...nest.batch].some((v) => v.extent === 0);
    const forward = isEmpty ? null : planWinograd(nest, this.#options);
    const weights = isEmpty || forward ? null : planWinogradWeights(nest, this.#options);
    if (!forward && !weights) return emitContract(em, nest, operands, parts);
    this.#winograd ??= new WinogradFunctions(this.#module);
    const kernel = (tile: Tile): number => this.#tileFunction("f32", tile);
    const given = { ...parts, functions: this.#winograd, kernel };
    if (forward) return emitWinograd(em, nest, operands, { plan: forward, parts: given });
    return weights ? emitWinogradWeights(em, nest, operands, { plan: weights, parts: given }) : UNDIVIDED;
  }

  /** The function that computes tiles of a product. */
  #microKernel({ dtype, rows }: ContractNest): number {
    return this.#tileFunction(dtype, tileOf(dtype, this.#options.fma, rows.extent));
  }

  #tileFunction(dtype: ProductType, tile: Tile): number {
    const key = `${dtype} ${JSON.stringify(tile)}`;
    const made = this.#micro.get(key) ?? addMicroKernel(this.#module, dtype, this.#options.fma, tile);
    this.#micro.set(key, made);
    return made;
  }
}
