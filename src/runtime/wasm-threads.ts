/**
 * @file A program on WebAssembly that several threads run. Its memory is shared: the arena, then the words of the team. The
 * caller's thread computes too and waits only for pieces that a worker holds, so a run completes with all workers, with some
 * that come late, or with none.
 *
 * A thread that may not sleep (that of a page) looks at the word instead, no longer than a piece takes: a call of a compiled
 * function holds such a thread anyway, and programs that take long belong into a worker, which may sleep. Reasons and
 * figures: docs/decisions/0025-wasm-threads.md.
 */
import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { MODE, TEAM } from "../codegen/wasm/team.ts";
import { type ArenaMemory, allocated, type Machine } from "./target.ts";
import { instanceOf, moduleFrom } from "./wasm-module.ts";
import { endedWorker, type SharedProgram, startWorkers, summon } from "./workers.ts";

const word = (name: keyof typeof TEAM): number => TEAM[name] / 4;

/** Whether the thread at hand may sleep. */
function mayBlock(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
}

function failure(what: string): TidemarkError {
  return new TidemarkError("TargetUnsupported", `a run on threads was lost: ${what}`, {
    help: "compile the function again, with `threads: 1` if this goes on; what was donated to it is gone",
  });
}

/** The words of a team, and what is read off them. */
class Team {
  readonly #program: SharedProgram;
  readonly #words: Int32Array;
  #lost: TidemarkError | null = null;

  constructor(program: SharedProgram) {
    this.#program = program;
    this.#words = new Int32Array(program.memory.buffer, program.team);
    // Before the first call nothing is there to be taken.
    Atomics.store(this.#words, word("claim"), -1);
    Atomics.store(this.#words, word("mayBlock"), mayBlock() ? 1 : 0);
  }

  /** Throws if a piece can never be finished, since who held it is gone. */
  check(): void {
    const length = Atomics.load(this.#words, word("failed"));
    const ended = endedWorker(this.#program.threads);
    if (length === 0 && ended === null) return;
    const bytes = new Uint8Array(this.#program.memory.buffer, this.#program.team + TEAM.message, length);
    throw failure(length > 0 ? `a worker failed (${String.fromCharCode(...bytes)})` : `${ended}`);
  }

  run(program: () => void): void {
    if (this.#lost) throw this.#lost;
    this.#dismissOthers();
    try {
      this.check();
      Atomics.store(this.#words, word("mode"), MODE.running);
      summon(this.#program);
      program();
      Atomics.store(this.#words, word("mode"), MODE.idle);
    } catch (error) {
      // Workers may still be at pieces of it: this arena is theirs now.
      this.#lost = error instanceof TidemarkError ? error : failure(String(error));
      this.dismiss();
      throw this.#lost;
    }
  }

  /** Sends workers home. */
  dismiss(): void {
    Atomics.store(this.#words, word("mode"), MODE.leave);
    Atomics.notify(this.#words, word("turn"));
  }

  /** Workers stay with a program for a moment after its run; the next one has need of them at once. */
  #dismissOthers(): void {
    const last = latest?.deref();
    if (last === this) return;
    last?.dismiss();
    latest = new WeakRef(this);
  }
}

let latest: WeakRef<Team> | undefined;

/** What there is to load: a module for several threads. */
export interface ThreadedModule {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly functions: number;
  readonly pages: number;
  readonly team: number;
  /** Of the arena. */
  readonly height: number;
}

/** A memory of this size for good. */
function fixedMemory(buffer: ArrayBuffer, bytes: number): ArenaMemory {
  const reserve = (wanted: number): void => invariant(wanted <= bytes, () => `${wanted} of ${bytes} bytes`);
  return { buffer, start: 0, bytes, reserve };
}

export function loadThreads({ bytes, functions, pages, team, height }: ThreadedModule, threads: number): Machine {
  const module = moduleFrom(bytes);
  const memory = allocated(height, () => new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }));
  const members = new Team({ module, memory, team, threads });
  const env = { memory, check: () => members.check() };
  const { exports } = instanceOf(module, env);
  startWorkers(threads);
  const run = exports.run as () => void;
  return {
    moduleBytes: bytes.length,
    kernelFunctions: functions,
    memory: fixedMemory(memory.buffer, height),
    run: () => members.run(run),
    step: (i) => invariant(false, () => `step ${i} of a program that runs as one`),
    close: () => members.dismiss(),
  };
}
