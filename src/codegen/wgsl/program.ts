/**
 * @file A placed program as WGSL modules and rows of commands. Steps that do the same in every run are one row, for which everything
 * but the commands themselves is made once; loops and branches that depend on data, and loops that are too long to be written out, stay
 * scripts, and the host turns them into commands while they run.
 *
 *   steps   k  k  loop of 8  k   while x > 0   k  k       copies
 *   parts   └──── row ───────┘   └─ script ─┘  └─── row ───────┘
 */
import { type PlacedCopy, type PlacedStep, statementsOf } from "../placed.ts";
import { int, type Statement } from "../script.ts";
import { type Action, driveScript, readsData } from "../script-run.ts";
import type { WebgpuOptions } from "./description.ts";
import { type Dispatch, WgslLibrary } from "./library.ts";

/** Commands of one step up to which it is written out. */
const MOST_COMMANDS = 4096;

export type Command =
  | Dispatch
  /** A word of 32 bits at an address of the arena. */
  | { readonly kind: "store"; readonly at: number; readonly value: number };

export type WebgpuPart =
  | { readonly kind: "row"; readonly commands: readonly Command[] }
  | { readonly kind: "script"; readonly script: readonly Statement[] };

export interface WebgpuProgram {
  readonly library: WgslLibrary;
  /** Of every step, then the copies; neighbouring rows are one unless steps are to be run one by one. */
  readonly parts: readonly WebgpuPart[];
}

/** What an action of a script is on the device. */
export function commandsOf(library: WgslLibrary, action: Exclude<Action, { kind: "load" }>): readonly Command[] {
  if (action.kind === "store") return [action];
  // collectives are done when they are begun
  if (action.kind === "wait") return [];
  if (action.kind === "copy") return library.copy(action.to, action.from, action.bytes);
  return library.dispatches(action.kernel, action.addresses);
}

/** Throws `TargetUnsupported` where a kernel needs more than the device can bind. */
export function emitWebgpuProgram(
  steps: readonly PlacedStep[],
  copies: readonly PlacedCopy[],
  { options, stepwise }: { readonly options: WebgpuOptions; readonly stepwise: boolean },
): WebgpuProgram {
  const library = new WgslLibrary(options);
  const moved = copies.map(({ from, to, bytes }): Statement => ({ kind: "copy", from: int(from), to: int(to), bytes }));
  const parts: WebgpuPart[] = [];
  for (const statements of [...steps.map((step) => statementsOf(step, "webgpu")), moved]) {
    const part = partOf(library, statements);
    const last = parts[parts.length - 1];
    if (!stepwise && part.kind === "row" && last?.kind === "row") {
      parts[parts.length - 1] = { kind: "row", commands: [...last.commands, ...part.commands] };
    } else parts.push(part);
  }
  return { library, parts };
}

/** A step as a row where it has one that is not too long. */
function partOf(library: WgslLibrary, script: readonly Statement[]): WebgpuPart {
  if (readsData(script)) return { kind: "script", script };
  const commands: Command[] = [];
  driveScript(
    script,
    (action) => {
      if (commands.length <= MOST_COMMANDS) commands.push(...commandsOf(library, action));
    },
    () => 0,
  );
  return commands.length <= MOST_COMMANDS ? { kind: "row", commands } : { kind: "script", script };
}
