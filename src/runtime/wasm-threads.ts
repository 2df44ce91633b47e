/**
 * @file Programs on WebAssembly that several threads run. Their memory is shared: the words of the team, then the arena. The
 * caller's thread computes too and waits only for pieces that a worker holds, so a run completes with all workers, with some
 * that come late, or with none.
 *
 * A thread that may not sleep (that of a page) looks at the word instead, no longer than a piece takes: a call of a compiled
 * function holds such a thread anyway, and programs that take long belong into a worker, which may sleep. Reasons and
 * figures: docs/decisions/0025-wasm-threads.md.
 */
import { TidemarkError } from "../base/errors.ts";
import { MODE, TEAM } from "../codegen/wasm/team.ts";
import type { SharedProgram, WorkerPool } from "./workers.ts";

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
  return new TidemarkError("TargetUnsupported", `a run on several threads failed: ${what}`, {
    help: "compile the function again, with `threads: 1` if it happens again; tensors that were donated to it are lost",
  });
}

/** The threads that run the programs of one memory, in turn. */
export class Team {
  readonly #threads: number;
  readonly #workers: WorkerPool;
  /** At the bottom of the memory, which stays where it is when it grows. */
  readonly #words: Int32Array;
  #lost: TidemarkError | null = null;

  constructor(memory: WebAssembly.Memory, threads: number, workers: WorkerPool) {
    this.#threads = threads;
    this.#workers = workers;
    this.#words = new Int32Array(memory.buffer);
    // Before the first call nothing is there to be taken.
    Atomics.store(this.#words, word("claim"), -1);
    Atomics.store(this.#words, word("mayBlock"), mayBlock() ? 1 : 0);
    workers.start(threads);
  }

  /** Throws if a piece can never be finished, since the worker that took it has ended. */
  check(): void {
    const length = Atomics.load(this.#words, word("failed"));
    const ended = this.#workers.endedWorker(this.#threads);
    if (length === 0 && ended === null) return;
    const bytes = new Uint8Array(this.#words.buffer, TEAM.message, length);
    throw failure(length > 0 ? `a worker failed (${String.fromCharCode(...bytes)})` : `${ended}`);
  }

  run(program: SharedProgram, run: () => void): void {
    if (this.#lost) throw this.#lost;
    this.#workers.handTo(this);
    try {
      this.check();
      Atomics.store(this.#words, word("mode"), MODE.running);
      this.#change(this.#workers.numberOf(program));
      this.#workers.summon(program, this.#threads);
      run();
      Atomics.store(this.#words, word("mode"), MODE.idle);
    } catch (error) {
      // Workers may still be at pieces of it: this arena is theirs now.
      this.#lost = error instanceof TidemarkError ? error : failure(String(error));
      this.dismiss();
      throw this.#lost;
    }
  }

  /** Workers that stayed with another program of this memory come to this one. */
  #change(program: number): void {
    if (Atomics.exchange(this.#words, word("program"), program) === program) return;
    Atomics.notify(this.#words, word("call"));
  }

  /** Sends workers home. */
  dismiss(): void {
    Atomics.store(this.#words, word("mode"), MODE.leave);
    Atomics.notify(this.#words, word("call"));
  }
}
