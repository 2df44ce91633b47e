/**
 * @file Each nest of a kernel as one C function, equal nests once. A function takes the range of units of its outermost loop
 * to compute, the number of its thread, and one pointer for each operand and constant offset in use:
 *
 *   FUNCTION void tide_kernel_7(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2)
 */

import { at, InternalError } from "../../base/invariant.ts";
import type { Kernel, Nest } from "../../kernel/loops.ts";
import { longRows } from "../cpu/short-rows.ts";
import { addressesOf, addressNumbers, isWide, nestKey, type OperandAddress } from "../operand-addresses.ts";
import { type Units, workOf } from "../units.ts";
import { emitAttend } from "./attend.ts";
import { CCode } from "./c-code.ts";
import { emitContract } from "./contract.ts";
import { elementForm } from "./elements.ts";
import { type PointerName, VectorEmitter } from "./emitter.ts";
import { fileName } from "./names.ts";
import { emitMap, emitScan, emitScatter, emitShuffle } from "./nests.ts";
import { type CFile, lanesOf, type NativeOptions, type ShareFunction } from "./options.ts";
import { emitReduce } from "./reduce.ts";
import { emitRoutine } from "./routine.ts";
import { heading } from "./sections.ts";
import { emitSort } from "./sort.ts";
import { emitStaged } from "./staged.ts";

export interface NativeFunction {
  readonly name: string;
  readonly addresses: readonly OperandAddress[];
  /** Of each address: the C type it points to. */
  readonly types: readonly string[];
  readonly units: Units;
  /** Scalar operations of one call, roughly: whether it is worth sharing. */
  readonly work: number;
}

/** Functions of C that run kernels, for a program that calls them. */
export interface CLibrary {
  /** With the headings of sections (sections.ts); `rare` are the names of functions that hardly take time. */
  text(rare: ReadonlySet<string>): string;
  /** Distinct functions. */
  readonly count: number;
  /** The calls that run a kernel, in order. */
  functions(kernel: Kernel): readonly NativeFunction[];
}

function emitNest(em: VectorEmitter, nest: Nest, file: CFile): Units {
  switch (nest.kind) {
    case "map":
      if (nest.skipIfAliased) {
        const [a, b] = nest.skipIfAliased.map((operand) => em.pointer(operand, 0));
        em.code.line(`if ((void *)${a} == (void *)${b}) return;`);
      }
      return emitMap(em, nest, file);
    case "reduce":
      return emitReduce(em, nest);
    case "scan":
      return emitScan(em, nest);
    case "scatter":
      return emitScatter(em, nest);
    case "contract":
      return emitContract(em, nest, file);
    case "shuffle":
      return emitShuffle(em, nest);
    case "collective":
      throw new InternalError(`${nest.what} without a communicator`);
    case "sort":
      return emitSort(em, nest, file);
    case "staged":
      return emitStaged(em, nest, file);
    case "attend":
      return emitAttend(em, nest, file);
    case "routine":
      return emitRoutine(em, nest, file);
  }
}

/** Emits the nests of kernels, each distinct one once. */
export class NativeLibrary implements CLibrary {
  /** Names of functions by parameters and body: nests that differ only in how often they run are one function. */
  readonly #texts = new Map<string, string>();
  readonly #shared = new Map<string, string>();
  readonly #options: NativeOptions;
  readonly #byKey = new Map<string, NativeFunction>();
  readonly #byKernel = new Map<Kernel, readonly NativeFunction[]>();

  constructor(options: NativeOptions) {
    this.#options = options;
  }

  /** Shared definitions, then the functions. */
  text(rare: ReadonlySet<string> = new Set()): string {
    const functions = [...this.#texts].map(
      ([text, name]) => `${heading("function", rare.has(name))}FUNCTION void ${name}${text}`,
    );
    return [...this.#shared.values(), ...functions].join("\n");
  }

  get count(): number {
    return this.#texts.size;
  }

  /** The calls that run a kernel, one for each nest. */
  functions(kernel: Kernel): readonly NativeFunction[] {
    const known = this.#byKernel.get(kernel);
    if (known) return known;
    const made = kernel.nests.map((nest) => this.#function(kernel, nest));
    this.#byKernel.set(kernel, made);
    return made;
  }

  /** Adds a shared definition once. */
  readonly #share: ShareFunction = (name, kind, text) => {
    if (!this.#shared.has(name)) this.#shared.set(name, `${heading(kind)}${text()}`);
  };

  #function(kernel: Kernel, written: Nest): NativeFunction {
    const lanes = lanesOf(this.#options, isWide(kernel, written));
    const nest = longRows(written, lanes);
    const addresses = addressesOf(nest);
    const addressNumber = addressNumbers(addresses);
    const key = nestKey(kernel, nest, addresses, addressNumber);
    const known = this.#byKey.get(key);
    if (known) return { ...known, addresses };
    const types = addresses.map(({ operand }) => elementForm(at(kernel.operands, operand).dtype).c);
    const code = new CCode();
    const pointers = addresses.map(() => code.name("s"));
    const pointer: PointerName = (operand, offset) => at(pointers, addressNumber(operand, offset));
    const em = new VectorEmitter(code, lanes, pointer, kernel.operands);
    const units = emitNest(em, nest, { options: this.#options, share: this.#share });
    const params = types.map((type, i) => `${type} *${at(pointers, i)}`);
    const head = ["idx lo", "idx hi", "int thread", ...params].join(", ");
    const text = `(${head}) {\n${code.lines.join("\n")}\n}\n`;
    const name = this.#texts.get(text) ?? fileName(`kernel_${this.#texts.size}`);
    this.#texts.set(text, name);
    const made = { name, addresses, types, units, work: workOf(nest) };
    this.#byKey.set(key, made);
    return made;
  }
}
