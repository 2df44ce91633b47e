/** @file The WGSL modules of a program: launches with equal text are one module, wherever their data is. */
import { at } from "../../base/invariant.ts";
import type { DType } from "../../kernel/dtype.ts";
import { load } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import type { Kernel } from "../../kernel/loops.ts";
import type { DeviceClass, Launch } from "../block/program.ts";
import { blockProgram } from "../block/schedule.ts";
import { type ArenaPart, bindingsOf } from "./bindings.ts";
import { deviceClass, type WebgpuOptions } from "./description.ts";
import { operandsOf, printWgsl, type UsedOperand, type WgslModule } from "./launch.ts";

/** A text, and what it is bound to. */
export interface GpuModuleText {
  readonly text: string;
  /** Parts of the arena. */
  readonly parts: number;
  /** Then a buffer of the elements at which operands start. */
  readonly hasShifts: boolean;
}

/** One launch of a module. */
export interface Dispatch {
  readonly kind: "dispatch";
  /** The number of its text. */
  readonly module: number;
  /** Parts of the arena that it is given, in the order of its bindings. */
  readonly parts: readonly ArenaPart[];
  /** Then so many numbers: the elements at which operands start in their parts. */
  readonly shifts: readonly number[];
  /** Blocks along two axes. */
  readonly blocks: readonly [number, number];
}

type Numbered = Pick<Dispatch, "module" | "blocks">;

/** A launch of a kernel and its texts, by what they depend on beside it. */
interface Printed {
  readonly launch: Launch;
  readonly operands: readonly UsedOperand[];
  readonly modules: Map<string, Numbered>;
}

/** A kernel that copies elements: words where it can. */
function copyKernel(dtype: DType, elements: number): Kernel {
  const i = { kind: "var", name: "i", extent: elements } as const;
  const index = varIndex(i);
  return {
    operands: [
      { dtype, elements, role: "in" },
      { dtype, elements, role: "out" },
    ],
    nests: [{ kind: "map", loops: [i], stores: [{ operand: 1, index, value: load(dtype, 0, index) }] }],
  };
}

const WORD_BYTES = 4;

export class WgslLibrary {
  readonly #options: WebgpuOptions;
  readonly #device: DeviceClass;
  readonly #modules: GpuModuleText[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #kernels = new Map<Kernel, readonly Printed[]>();
  readonly #copies = new Map<string, Kernel>();

  constructor(options: WebgpuOptions) {
    this.#options = options;
    this.#device = deviceClass(options);
  }

  /** The modules so far; a dispatch has the number of one. */
  get modules(): readonly GpuModuleText[] {
    return this.#modules;
  }

  dispatches(kernel: Kernel, addresses: readonly number[]): readonly Dispatch[] {
    return this.#printed(kernel).flatMap((printed) => {
      const [a, b] = (printed.launch.skipIfAliased ?? []).map((operand) => at(addresses, operand));
      return a !== undefined && a === b ? [] : [this.#dispatch(printed, addresses)];
    });
  }

  /** A copy within the arena; the two ends do not overlap. WebGPU itself copies only from one buffer to another. */
  copy(to: number, from: number, bytes: number): readonly Dispatch[] {
    const inWords = [to, from, bytes].every((number) => number % WORD_BYTES === 0);
    const key = `${inWords} ${bytes}`;
    const kernel = this.#copies.get(key) ?? copyKernel(inWords ? "i32" : "bool", inWords ? bytes / WORD_BYTES : bytes);
    this.#copies.set(key, kernel);
    return this.dispatches(kernel, [from, to]);
  }

  #printed(kernel: Kernel): readonly Printed[] {
    const known = this.#kernels.get(kernel);
    if (known) return known;
    const made = blockProgram(kernel, this.#device).launches.map((launch) => {
      return { launch, operands: operandsOf(launch), modules: new Map() };
    });
    this.#kernels.set(kernel, made);
    return made;
  }

  #dispatch({ launch, operands, modules }: Printed, addresses: readonly number[]): Dispatch {
    const spans = operands.map((used) => ({ ...used, address: at(addresses, used.operand) }));
    const { ranges, shifts, ...layout } = bindingsOf(spans, this.#options);
    const key = JSON.stringify(layout);
    const known = modules.get(key) ?? this.#module(printWgsl(launch, layout, this.#options.exactly), ranges, shifts);
    modules.set(key, known);
    return { kind: "dispatch", module: known.module, parts: ranges, shifts, blocks: known.blocks };
  }

  #module({ text, dispatch }: WgslModule, ranges: readonly ArenaPart[], shifts: readonly number[]): Numbered {
    const module = this.#numbers.get(text) ?? this.#modules.length;
    if (module === this.#modules.length) {
      this.#modules.push({ text, parts: ranges.length, hasShifts: shifts.length > 0 });
      this.#numbers.set(text, module);
    }
    return { module, blocks: dispatch };
  }
}
