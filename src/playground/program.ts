/**
 * @file A planned program that can be sent from one worker to another: its code and a table of addresses. A plan is
 * data, so planner and trainer can be in different workers, and training continues while the next plan is made.
 *
 *   planner   model ─→ plans ─→ code, addresses ──╮
 *   trainer                                       ╰─→ one memory: state │ batch │ constants │ the rest of the arena
 */

import type { PlainBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { elementsIn } from "../kernel/dtype.ts";
import { allocated } from "../runtime/device.ts";
import type { Elements } from "../runtime/executable.ts";
import { instanceOf, moduleFrom } from "../runtime/wasm-module.ts";
import type { Batch } from "./model.ts";

/** No fused multiply-add, which not every engine has, so that every engine computes the same bits. */
export const FMA = false;

/** The address and type of a parameter. */
export interface Place {
  readonly address: number;
  readonly type: TensorType;
}

export interface SentProgram {
  readonly code: PlainBytes;
  /** Pages of the memory that the code imports. */
  readonly pages: number;
  readonly arenaBytes: number;
  /** Leaves of the state in order: after a run the next state has the same addresses. */
  readonly state: readonly Place[];
  readonly batch: readonly Place[];
  readonly constants: readonly (Place & { readonly data: Elements })[];
  readonly loss: Place;
}

/** An instance of a sent program with a state in it. */
export class RunningProgram {
  readonly program: SentProgram;
  readonly #memory: WebAssembly.Memory;
  readonly #run: () => void;

  constructor(program: SentProgram, state: readonly Elements[]) {
    this.program = program;
    const { pages, code, arenaBytes } = program;
    this.#memory = allocated(arenaBytes, () => new WebAssembly.Memory({ initial: pages, maximum: pages }));
    const { exports } = instanceOf(moduleFrom(code), { memory: this.#memory });
    this.#run = exports.run as () => void;
    program.state.forEach((place, i) => {
      this.#at(place).set(at(state, i));
    });
    for (const constant of program.constants) this.#at(constant).set(constant.data);
  }

  /** One step; the loss. */
  step(batch: Batch): number {
    this.program.batch.forEach((place, i) => {
      this.#at(place).set(at(batch, i));
    });
    this.#run();
    return at(this.#at(this.program.loss), 0);
  }

  /** Views of the state in memory, valid until the next step. */
  state(): readonly Elements[] {
    return this.program.state.map((place) => this.#at(place));
  }

  #at({ type, address }: Place): Elements {
    return elementsIn(type.dtype, this.#memory.buffer, address, elementsOf(type.shape));
  }
}
