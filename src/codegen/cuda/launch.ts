/**
 * @file One launch of a block program as a CUDA function. Blocks are numbered along one axis; threads are CUDA's, so a phase is
 * straight code with a barrier after it, registers are arrays of a thread and locals arrays of a phase:
 *
 *   extern "C" __global__ void __launch_bounds__(256) tide_launch_3(f32 *global_1, f32 *global_2) {
 *     __shared__ __align__(16) f32 shared_3[1056];
 *     f32 register_4[64];
 *     const idx thread_5 = threadIdx.x;
 *     …
 *     __syncthreads();
 */
import { at } from "../../base/invariant.ts";
import { memoriesIn } from "../block/print-c.ts";
import { type Dialect, type Place, StatementPrinter } from "../block/print-c-like.ts";
import type { Launch, Memory, Part, Statement } from "../block/program.ts";
import { CCode } from "../native/c-code.ts";
import { CUDA_DIALECT } from "./dialect.ts";

const statementsIn = (parts: readonly Part[]): readonly Statement[] =>
  parts.flatMap((part) => (part.kind === "phase" ? part.body : statementsIn(part.body)));

const typeText = ({ dtype }: Memory): string => CUDA_DIALECT.element(dtype).type;

export interface LaunchText {
  /** Parameters and body. */
  readonly text: string;
  /** The operands that the parameters point to. */
  readonly operands: readonly number[];
}

class LaunchPrinter {
  readonly #launch: Launch;
  readonly #code = new CCode();
  readonly #printer: StatementPrinter;
  readonly #names: readonly string[];

  constructor(launch: Launch, dialect: Dialect) {
    this.#launch = launch;
    this.#names = launch.memories.map(({ scope }) => this.#code.name(scope));
    const place: Place = (memory, index) => `${at(this.#names, memory)}[${index}]`;
    this.#printer = new StatementPrinter(dialect, this.#code, launch, place);
  }

  #declare(scope: Memory["scope"], used: ReadonlySet<number>): void {
    const before = scope === "shared" ? "__shared__ __align__(16) " : "";
    this.#launch.memories.forEach((memory, i) => {
      if (memory.scope !== scope || !used.has(i)) return;
      this.#code.line(`${before}${typeText(memory)} ${at(this.#names, i)}[${memory.elements}];`);
    });
  }

  /** `isLast`: nothing comes after it, in no iteration. */
  #part(part: Part, isLast: boolean): void {
    if (part.kind === "repeat") {
      this.#printer.loop(part, () => {
        for (const inner of part.body) this.#part(inner, false);
      });
      return;
    }
    this.#code.block("", () => {
      this.#declare("local", memoriesIn(part.body));
      this.#printer.statements(part.body);
    });
    if (!isLast) this.#code.line("__syncthreads();");
  }

  print(): LaunchText {
    const { body, grid, memories, thread } = this.#launch;
    const all = memoriesIn(statementsIn(body));
    this.#declare("shared", all);
    this.#declare("register", all);
    const { constant, index } = CUDA_DIALECT;
    this.#code.line(constant(index, this.#printer.counter(thread), "threadIdx.x"));
    this.#printer.splitBlock(grid, "(idx)blockIdx.x");
    body.forEach((part, i) => {
      this.#part(part, i === body.length - 1);
    });
    const used = memories.flatMap((memory, i) => (memory.scope === "global" && all.has(i) ? [{ memory, i }] : []));
    const params = used.map(({ memory, i }) => `${typeText(memory)} *${at(this.#names, i)}`);
    return {
      text: `(${params.join(", ")}) {\n${this.#code.lines.join("\n")}\n}\n`,
      operands: used.map(({ memory }) => memory.operand),
    };
  }
}

export const printLaunch = (launch: Launch, dialect: Dialect): LaunchText => new LaunchPrinter(launch, dialect).print();
