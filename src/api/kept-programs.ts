/**
 * @file The programs of one compiled function, for the shapes that it was called with lately. They run in turn in one arena,
 * whose size is that of the largest, and share what persists at its bottom (runtime/arena.ts). The program that was not asked
 * for longest is dropped when there are too many; state stays, and the program is made again when it is needed.
 * Contract and reasons: docs/decisions/0029-one-budget-for-one-function.md.
 */
import { TidemarkError } from "../base/errors.ts";
import { Recent } from "../base/recent.ts";
import type { SourceProgram } from "../compiler/request.ts";
import { Arena } from "../runtime/arena.ts";
import { type ChosenTarget, madeFor, madeLater } from "../runtime/choose-target.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { currentHost, fastestFor, targetOf } from "./host.ts";
import type { LoadedProgram } from "./program.ts";
import type { CompileRequest } from "./request.ts";

/** What a compiled function holds. */
export interface Usage {
  readonly programs: number;
  /** Of the arena that its programs run in. */
  readonly arenaBytes: number;
}

/** What a compiled function holds, and what it has done so far. */
export interface Stats extends Usage {
  /** Of the device or the process: whole pages on WebAssembly. */
  readonly allocatedBytes: number;
  /** Of the file that values are moved to, as the system has it; 0 where there is none. */
  readonly spillBytes: number;
  readonly calls: number;
  /** Programs that were planned, or whose plans were read from the cache. */
  readonly planned: number;
  /** Programs whose code was made and loaded. */
  readonly compiled: number;
  /** Programs that made room for others. */
  readonly dropped: number;
}

interface Entry {
  readonly program: LoadedProgram;
}

export class KeptPrograms<E extends Entry> {
  readonly name: string;
  readonly #request: CompileRequest;
  readonly #entries: Recent<string, E>;
  #chosen: ChosenTarget | undefined;
  #arena: Arena | undefined;
  #disposed = false;
  readonly counts = { calls: 0, planned: 0, compiled: 0, dropped: 0 };
  readonly #listeners: (() => void)[] = [];

  /** `name` is the function's, for messages. */
  constructor(name: string, request: CompileRequest) {
    this.name = request.name ?? name;
    this.#request = request;
    this.#entries = new Recent(request.programs, ({ program }) => {
      this.counts.dropped++;
      program.close();
    });
  }

  get target(): ChosenTarget {
    this.#chosen ??= targetOf(this.#request, currentHost());
    return this.#chosen;
  }

  /** Before the first program is made: with `auto` its times decide among several targets. */
  settle(source: SourceProgram): void {
    if (this.#entries.size === 0) this.#take(fastestFor(source, this.target));
  }

  find(key: string): E | undefined {
    if (this.#disposed) {
      throw new TidemarkError("Disposed", `${this.name} was disposed of and cannot be called again`, {
        where: sourceLocation(),
        help: "compile the function again, or call dispose() later; tensors that it returned stay readable",
      });
    }
    return this.#entries.find(key);
  }

  /** Without using it. */
  peek(key: string): E | undefined {
    return this.#entries.peek(key);
  }

  add(key: string, entry: E): E {
    this.counts.compiled++;
    return this.#entries.add(key, entry);
  }

  /**
   * Puts a program in place of another for the same arguments, between two calls; closes it where that is not kept any more, and
   * returns false.
   */
  replace(key: string, earlier: E, next: E): boolean {
    const isKept = !this.#disposed && this.#entries.peek(key) === earlier;
    if (isKept) this.#entries.replace(key, next);
    (isKept ? earlier : next).program.close();
    return isKept;
  }

  /** The same program, described otherwise; undefined where it is not kept any more. */
  change(key: string, changed: (entry: E) => E): E | undefined {
    const entry = this.#entries.peek(key);
    const next = entry && changed(entry);
    if (next) this.#entries.replace(key, next);
    return next;
  }

  /**
   * Goes on with the programs of another, on its target and in its arena, between two calls; the other is disposed of. Tensors that live
   * in the arena of this one go on in arrays of their own until the next call writes them.
   */
  takeOver(other: KeptPrograms<E>): void {
    if (!this.#disposed) {
      if (this.#arena) other.arena.takeConstants(this.#arena);
      this.#dropAll();
      for (const [key, entry] of [...other.#entries.entries()]) {
        other.#entries.delete(key);
        this.#entries.add(key, entry);
      }
      [this.#arena, other.#arena] = [other.#arena, this.#arena];
      this.#chosen = other.#chosen;
      this.counts.planned += other.counts.planned;
      this.counts.compiled += other.counts.compiled;
    }
    other.dispose();
  }

  /** Not to make room for others. */
  #dropAll(): void {
    const { dropped } = this.counts;
    while (this.#entries.dropOldest());
    this.counts.dropped = dropped;
  }

  /** Is called when the function is disposed of. */
  onDispose(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Loads a program for the target. With `auto` the first one decides: where it cannot be loaded, the function is for what comes
   * next. Later ones go where the first went, since results must not change their bits.
   */
  load<T>(make: (chosen: ChosenTarget) => T): T {
    if (this.#entries.size > 0) return make(this.target);
    return madeFor(this.target, (chosen) => make(this.#take(chosen)));
  }

  /** The same for the first program, which takes a while. */
  loadLater<T>(make: (chosen: ChosenTarget) => Promise<T>): Promise<T> {
    return madeLater(this.target, (chosen) => make(this.#take(chosen)));
  }

  #take(chosen: ChosenTarget): ChosenTarget {
    if (chosen !== this.#chosen) this.#arena = undefined;
    this.#chosen = chosen;
    return chosen;
  }

  /** What programs run in. */
  get arena(): Arena {
    const { memory, results } = this.#request;
    this.#arena ??= new Arena(this.target.target.allocate(memory.budgetBytes), results === "borrowed");
    return this.#arena;
  }

  usage(): Usage {
    return { programs: this.#entries.size, arenaBytes: this.#arena?.memory.bytes ?? 0 };
  }

  stats(): Stats {
    const allocatedBytes = this.#arena?.memory.allocatedBytes ?? 0;
    const files = [...this.#entries.values()].map(({ program }) => program.spillBytes);
    return { ...this.usage(), allocatedBytes, spillBytes: Math.max(0, ...files), ...this.counts };
  }

  /** Frees code and arenas; tensors in them go on in arrays of their own. */
  dispose(): void {
    this.#disposed = true;
    for (const listener of this.#listeners.splice(0)) listener();
    this.#dropAll();
    this.#arena?.clear();
    this.#arena = undefined;
  }
}
