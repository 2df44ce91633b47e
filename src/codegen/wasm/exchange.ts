/**
 * @file Collectives as WebAssembly: the module is cut there. At each it calls the host, which exchanges with the other devices and returns when
 * that is done; what the number of a call means is data beside the code:
 *
 *   module   env.exchange(3, to, from)          exchanges[3] = { what: all_reduce, storage: f32, elements: 1024, group, … }
 *
 * The call is an import and not the end of a function, so it may stand in loops and branches, and one call of `run` is still one run.
 * Where threads share the program it is the caller's alone, like everything that is not shared.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { CollectiveNest } from "../../kernel/collective.ts";
import { groupSize } from "../../kernel/device-group.ts";
import type { Kernel } from "../../kernel/loops.ts";
import { isKernel, isTransfer, type PlacedStep } from "../placed.ts";
import { type Int, someKernel } from "../script.ts";
import type { Code, ModuleBuilder } from "./encoder.ts";

/** What the host does at a call: a nest without its operands. */
export interface Exchange
  extends Pick<CollectiveNest, "what" | "combine" | "group" | "pairs" | "root" | "elements" | "storage"> {
  /** Where it is in the plan and in the user's text. */
  readonly place: string;
}

const isCollective = ({ nests }: Kernel): boolean => nests[0]?.kind === "collective";

/** Whether a step has collectives. */
function connects(step: PlacedStep): boolean {
  if (isTransfer(step)) return false;
  return isKernel(step) ? isCollective(step.kernel) : someKernel(step.script, isCollective);
}

/** The collectives of a program, by the numbers of their calls. */
export class Exchanges {
  readonly list: Exchange[] = [];
  readonly #fn: number;
  #place = "";

  /** @param module without functions yet */
  constructor(module: ModuleBuilder) {
    this.#fn = module.importFunction("exchange", ["i32", "i32", "i32"]);
  }

  /** For steps with collectives; null for most programs, which import nothing. */
  static of(module: ModuleBuilder, steps: readonly PlacedStep[]): Exchanges | null {
    return steps.some(connects) ? new Exchanges(module) : null;
  }

  /** What follows is of a step, whose place messages name. */
  enter(place: string): void {
    this.#place = place;
  }

  /** A call; `push` writes an address of the memory. */
  call(code: Code, nest: CollectiveNest, addresses: readonly Int[], push: (address: Int) => void): void {
    const { to, read, what, group } = nest;
    const [target, source] = [at(addresses, to), at(addresses, read?.operand ?? to)];
    if (groupSize(group) === 1) {
      invariant(what === "device_index", () => `${what} on the only device of a group is a copy`);
      push(target);
      code.i32Const(0).i32Store();
      return;
    }
    const { combine, pairs, root, elements, storage } = nest;
    const number = this.list.push({ what, combine, group, pairs, root, elements, storage, place: this.#place }) - 1;
    code.i32Const(number);
    push(target);
    push(source);
    code.call(this.#fn);
  }
}
