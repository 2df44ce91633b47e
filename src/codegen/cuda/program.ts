/**
 * @file A placed program as CUDA text and rows of commands. Steps that do the same in every run are one row, which a device
 * takes as one graph; loops and branches that depend on data, and loops that are too long to be written out, stay scripts
 * and are run by the host command by command. Copies to the host's memory are commands for streams of their own: what is not
 * waited for within a row is waited for at its end. So are collectives in flight (exchange.ts).
 *
 *   steps   k  k  loop of 8  k   while x > 0   k  k       copies
 *   parts   └──── row ───────┘   └─ script ─┘  └─── row ───────┘
 */
import { at } from "../../base/invariant.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import type { Kernel } from "../../kernel/loops.ts";
import { Flights } from "../flights.ts";
import { isTransfer, type PlacedCopy, type PlacedStep, type PlacedTransfer, statementsOf } from "../placed.ts";
import { callOf, int, type Statement } from "../script.ts";
import { driveScript, readsData, type Action as ScriptAction } from "../script-run.ts";
import type { CudaOptions } from "./description.ts";
import { aroundOf, collectiveOf, type ExchangeCommand, endsOf, exchangeOf, type IndexCommand } from "./exchange.ts";
import { CudaLibrary, type LaunchCode } from "./library.ts";
import { FACTORS } from "./tensor-types.ts";

/** Of the widest load. */
const VECTOR_BYTES = 16;
/** Commands of one step up to which it is written out. */
const MOST_COMMANDS = 4096;

/** Addresses are bytes from the arena's start. */
export type Command =
  | LaunchCommand
  | { readonly kind: "copy"; readonly to: number; readonly from: number; readonly bytes: number }
  /** A word of 32 bits. */
  | { readonly kind: "store"; readonly at: number; readonly value: number }
  | ExchangeCommand<LaunchCommand>
  /** What comes now waits for the exchange of a slot. */
  | { readonly kind: "landed"; readonly slot: number }
  | IndexCommand
  /** Half of a copy from or to the host's memory. */
  | { readonly kind: "transfer"; readonly step: PlacedTransfer };

export interface LaunchCommand {
  readonly kind: "launch";
  readonly code: LaunchCode;
  /** Where the matrices of the code's maps start. */
  readonly matrices: readonly number[];
  readonly addresses: readonly number[];
}

export type CudaPart =
  | { readonly kind: "row"; readonly commands: readonly Command[] }
  | { readonly kind: "script"; readonly script: readonly Statement[] };

export interface CudaProgram {
  readonly text: string;
  /** Distinct functions. */
  readonly functions: number;
  /** Of every step, then the copies; neighbouring rows are one unless steps are to be run one by one. */
  readonly parts: readonly CudaPart[];
  /** Those of a kernel at addresses. */
  commands(kernel: Kernel, addresses: readonly number[]): readonly Command[];
}

export interface CudaEmitOptions {
  readonly options: CudaOptions;
  /** Every step is a part of its own. */
  readonly stepwise: boolean;
}

export function emitCudaProgram(
  steps: readonly PlacedStep[],
  copies: readonly PlacedCopy[],
  { options, stepwise }: CudaEmitOptions,
): CudaProgram {
  const library = new CudaLibrary(options);
  const moved = copies.map(({ from, to, bytes }): Statement => ({ kind: "copy", from: int(from), to: int(to), bytes }));
  const [rows, parts] = [new Rows(library), [] as CudaPart[]];
  for (const step of [...steps, { kernel: null, script: moved }]) {
    const part = rows.partOf(step);
    const last = parts[parts.length - 1];
    if (!stepwise && part.kind === "row" && last?.kind === "row") {
      parts[parts.length - 1] = { kind: "row", commands: [...last.commands, ...part.commands] };
    } else parts.push(part);
  }
  return {
    text: library.text,
    functions: library.count,
    parts,
    commands: (kernel, addresses) => commandsOf(library, kernel, addresses),
  };
}

/** The code of all kernels of a script, wherever their operands will be. */
function addKernels(library: CudaLibrary, statements: readonly Statement[]): void {
  for (const statement of statements) {
    const call = callOf(statement);
    for (const kernel of call ? launchedBy(call.kernel) : []) {
      for (const aligned of [true, false]) library.launches(kernel, aligned);
    }
    if (statement.kind === "while") addKernels(library, statement.body);
    if (statement.kind === "if") addKernels(library, [...statement.then, ...statement.else]);
  }
}

/** The kernels that are launched for one. */
function launchedBy(kernel: Kernel): readonly Kernel[] {
  const nest = collectiveOf(kernel);
  if (!nest) return [kernel];
  const around = aroundOf(kernel, nest);
  return around ? [around.before, around.after] : [];
}

/** The steps of a program as rows, where they have one that is not too long. */
class Rows {
  readonly #library: CudaLibrary;
  /** Begun in one step and waited for in another, or both in each turn of a loop. */
  readonly #flights = new Flights();

  constructor(library: CudaLibrary) {
    this.#library = library;
  }

  partOf(step: PlacedStep): CudaPart {
    if (isTransfer(step)) return { kind: "row", commands: [{ kind: "transfer", step }] };
    const script = statementsOf(step, "cuda");
    const row = readsData(script) ? null : this.#rowOf(script);
    if (row) return row;
    addKernels(this.#library, script);
    return { kind: "script", script };
  }

  /** What a script does in every run; null where that is too long. */
  #rowOf(script: readonly Statement[]): CudaPart | null {
    const commands: Command[] = [];
    const add = (command: Command): void => {
      if (commands.length <= MOST_COMMANDS) commands.push(command);
    };
    driveScript(
      script,
      (action) => this.#commandsOf(action).forEach(add),
      () => 0,
    );
    return commands.length <= MOST_COMMANDS ? { kind: "row", commands } : null;
  }

  /** A collective that a stream carries out makes progress by itself, so nothing tests it. */
  #commandsOf(action: Exclude<ScriptAction, { kind: "load" }>): readonly Command[] {
    if (action.kind === "wait") return [{ kind: "landed", slot: this.#flights.end(action.flight) }];
    if (action.kind !== "kernel") return [action];
    const { kernel, addresses, flight } = action;
    return commandsOf(this.#library, kernel, addresses, flight ? this.#flights.begin(flight) : null);
  }
}

function commandsOf(
  library: CudaLibrary,
  kernel: Kernel,
  addresses: readonly number[],
  slot: number | null = null,
): readonly Command[] {
  const nest = collectiveOf(kernel);
  if (!nest) return launchesOf(library, kernel, addresses);
  const ends = endsOf(nest, addresses);
  if (nest.what === "device_index") return [{ kind: "device_index", group: nest.group, at: ends.to }];
  const around = aroundOf(kernel, nest);
  const [before, after] = around
    ? [around.before, around.after].map((one) => launchesOf(library, one, addresses))
    : [[], []];
  return [{ kind: "exchange", exchange: exchangeOf(nest), ...ends, before: before ?? [], after: after ?? [], slot }];
}

function launchesOf(library: CudaLibrary, kernel: Kernel, addresses: readonly number[]): readonly LaunchCommand[] {
  const aligned = addresses.every((address) => address % VECTOR_BYTES === 0);
  return library.launches(kernel, aligned).flatMap((code): readonly LaunchCommand[] => {
    const [a, b] = (code.skipIfAliased ?? []).map((operand) => at(addresses, operand));
    if (a !== undefined && a === b) return [];
    const matrices = (code.maps ?? []).map(
      ({ operand, offset, factors }) => at(addresses, operand) + bytesOf(FACTORS[factors].storage) * offset,
    );
    return [{ kind: "launch", code, matrices, addresses: code.operands.map((operand) => at(addresses, operand)) }];
  });
}
