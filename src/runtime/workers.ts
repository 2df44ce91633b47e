/**
 * @file Workers that help to run programs: started from text when first asked for, shared by all programs, and never in the
 * way of a process that wants to end. How one is started is part of the host (host.ts): `tidemark/node` has Node's worker
 * threads; in a page they are found through `globalThis`, if the page is isolated from other origins, since memory is shared
 * between threads only there.
 *
 *   page or process                           worker 1, 2, …
 *     load  ── module, memory, number ──→       an instance of the program on the same memory
 *     help  ────────────────────────────→       takes pieces (codegen/wasm/team.ts) until nothing has happened for a while
 *     drop  ────────────────────────────→       forgets the program, which was collected
 *     end   ────────────────────────────→       ends, and all that it has forgotten is free
 *
 * Invariant: a thread's number is that of one worker at a time, since workspace goes by it: worker i is thread i of every
 * program, and another takes its place only when it is dead.
 */
import { MESSAGE_BYTES, TEAM } from "../codegen/wasm/team.ts";

/** A running worker. */
export interface WorkerThread {
  post(message: unknown): void;
  /** Why it is gone, or null. Known at once where a thread can be asked, without waiting for the event loop. */
  ended(): string | null;
  /** Of its heap, when it last did something; missing where the host cannot tell. */
  heapBytes?(): number;
}

/** Why threads of a page share no memory. */
export const NOT_ISOLATED = "the page is not cross-origin isolated (headers COOP same-origin and COEP require-corp)";

/** Starts a worker whose text has `listen(handler)`, for what is posted to it, and `close()`; or says why not. */
export type WorkerStarter = ((text: string) => WorkerThread) | string;

interface PageScope {
  readonly crossOriginIsolated?: boolean;
  readonly Worker?: new (url: string) => PageWorker;
  readonly Blob?: new (parts: readonly string[], options: { readonly type: string }) => object;
  readonly URL?: { createObjectURL(blob: object): string };
}

interface PageWorker {
  postMessage(message: unknown): void;
  addEventListener(kind: "error", listener: (event: { readonly message?: string }) => void): void;
}

/** Web workers, where there are any. */
export function pageWorkers(scope = globalThis as unknown as PageScope): WorkerStarter {
  const { Worker, Blob, URL, crossOriginIsolated } = scope;
  if (!Worker || !Blob || !URL || crossOriginIsolated === undefined) {
    return "there are no workers here; in Node, Deno and Bun they come with tidemark/node";
  }
  if (crossOriginIsolated !== true) {
    return NOT_ISOLATED;
  }
  return (text) => {
    const listen = "const listen = (handler) => { onmessage = (event) => handler(event.data); };\n";
    const worker = new Worker(URL.createObjectURL(new Blob([listen, text], { type: "text/javascript" })));
    let ended: string | null = null;
    worker.addEventListener("error", (event) => {
      ended = event.message ?? "its text could not be loaded";
    });
    return { post: (message) => worker.postMessage(message), ended: () => ended };
  };
}

/** A failure is written where the caller, who may be waiting, finds it. */
const WORKER_TEXT = `
const programs = new Map();
const fail = (words, error) => {
  const text = String(error).slice(0, ${MESSAGE_BYTES});
  const bytes = new Uint8Array(words.buffer, ${TEAM.message});
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i) & 127;
  Atomics.store(words, ${TEAM.failed / 4}, text.length);
  Atomics.notify(words, ${TEAM.done / 4});
};
listen((message) => {
  if (message.end) close();
  if (message.drop !== undefined) programs.delete(message.drop);
  if (message.load !== undefined) programs.set(message.load, message);
  const program = programs.get(message.help);
  if (!program) return;
  const words = new Int32Array(program.memory.buffer);
  try {
    const env = { memory: program.memory, check() {}, exchange() {} };
    program.instance ??= new WebAssembly.Instance(program.module, { env });
    program.instance.exports.help(program.thread, message.help);
  } catch (error) {
    fail(words, error);
  }
  Atomics.compareExchange(words, ${TEAM.present / 4} + program.thread, message.request, 0);
});
`;

/** A `WebAssembly.Memory`, in types that do not need the page's: a user's project may be without them. */
interface SharedMemory {
  readonly buffer: ArrayBuffer;
}

/** What a worker needs of a program: a `WebAssembly.Module` and its memory. */
export interface SharedProgram {
  readonly module: object;
  readonly memory: SharedMemory;
}

interface PoolWorker {
  readonly thread: WorkerThread;
  /** Numbers of the programs and of the memories that it knows. */
  readonly known: Set<number>;
  /** What it was asked last, and for which program. */
  request: number;
  program: number;
  /** Of memories that it knows no more. */
  forgottenBytes: number;
}

/**
 * Engines do not count shared memory as something that a thread holds, so an idle worker may keep what it has forgotten for
 * as long as it lives. It does not live on for more than this.
 */
const MOST_FORGOTTEN_BYTES = 64 * 2 ** 20;

interface MemorySize {
  readonly number: number;
  /** When it was last seen. */
  bytes: number;
}

function startWorker(start: Exclude<WorkerStarter, string>): PoolWorker {
  return { thread: start(WORKER_TEXT), known: new Set(), request: 0, program: 0, forgottenBytes: 0 };
}

/** A group of threads that programs of one memory run on (wasm-threads.ts). */
interface Dismissable {
  dismiss(): void;
}

/** The workers of a host, for all programs that run on several threads. */
export class WorkerPool {
  readonly #find: () => WorkerStarter;
  #starter: WorkerStarter | undefined;
  #workers: PoolWorker[] = [];
  readonly #numbers = new WeakMap<object, number>();
  readonly #sizes = new WeakMap<SharedMemory, MemorySize>();
  /** The last number that was given to a program, a memory or a request. */
  #lastNumber = 0;
  #lastTeam: WeakRef<Dismissable> | undefined;

  /** A program that is collected is forgotten by the workers too. */
  readonly #abandonedPrograms = new FinalizationRegistry<number>((number) => {
    for (const worker of this.#workers) if (worker.known.delete(number)) worker.thread.post({ drop: number });
  });

  readonly #abandonedMemories = new FinalizationRegistry<MemorySize>(({ number, bytes }) => {
    const start = this.#start();
    for (const [i, worker] of this.#workers.entries()) {
      if (!worker.known.delete(number) || typeof start === "string") continue;
      worker.forgottenBytes += bytes;
      if (worker.forgottenBytes <= MOST_FORGOTTEN_BYTES) continue;
      worker.thread.post({ end: true });
      this.#workers[i] = startWorker(start);
    }
  });

  /** `find` is called when workers are first asked for: an import must not look at the page. */
  constructor(find: () => WorkerStarter) {
    this.#find = find;
  }

  #start(): WorkerStarter {
    this.#starter ??= this.#find();
    return this.#starter;
  }

  /** Why no worker can be started, or null. */
  get missing(): string | null {
    const start = this.#start();
    return typeof start === "string" ? start : null;
  }

  /** Of the heaps of all workers, where they can be asked. */
  get heapBytes(): number {
    return this.#workers.reduce((sum, { thread }) => sum + (thread.heapBytes?.() ?? 0), 0);
  }

  #newNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /** Of no other program, and never 0. */
  numberOf(program: SharedProgram): number {
    const known = this.#numbers.get(program);
    if (known !== undefined) return known;
    const number = this.#newNumber();
    this.#numbers.set(program, number);
    this.#abandonedPrograms.register(program, number);
    return number;
  }

  #sizeOf(memory: SharedMemory): MemorySize {
    const size = this.#sizes.get(memory) ?? { number: this.#newNumber(), bytes: 0 };
    if (!this.#sizes.has(memory)) {
      this.#sizes.set(memory, size);
      this.#abandonedMemories.register(memory, size);
    }
    size.bytes = memory.buffer.byteLength;
    return size;
  }

  /** Starts workers 1 to threads − 1 where they do not run yet; every program is helped by the same ones. */
  start(threads: number): void {
    const start = this.#start();
    if (typeof start === "string") return;
    while (this.#workers.length < threads - 1) this.#workers.push(startWorker(start));
  }

  /** Asks the workers that are not on a program to help with it. */
  summon(program: SharedProgram, threads: number): void {
    this.start(threads);
    const { module, memory } = program;
    const [number, size] = [this.numberOf(program), this.#sizeOf(memory)];
    const present = new Int32Array(memory.buffer, TEAM.present, threads);
    for (let thread = 1; thread < threads; thread++) {
      const worker = this.#workers[thread - 1];
      // It is there, or on its way.
      if (!worker || (worker.program === number && Atomics.load(present, thread) === worker.request)) continue;
      worker.program = number;
      worker.request = this.#newNumber();
      Atomics.store(present, thread, worker.request);
      if (!worker.known.has(number)) {
        worker.known.add(number).add(size.number);
        worker.thread.post({ load: number, module, memory, thread });
      }
      worker.thread.post({ help: number, request: worker.request });
    }
  }

  /** Why one of the first workers has ended, or null. Another takes its place. */
  endedWorker(threads: number): string | null {
    const start = this.#start();
    for (let i = 0; i < Math.min(threads - 1, this.#workers.length); i++) {
      const worker = this.#workers[i];
      const why = worker?.thread.ended() ?? null;
      if (!worker || why === null || typeof start === "string") continue;
      this.#workers[i] = startWorker(start);
      return `worker ${i + 1}: ${why}`;
    }
    return null;
  }

  /** Workers stay with a memory for a moment after a run; a team in another memory needs them at once. */
  handTo(team: Dismissable): void {
    const last = this.#lastTeam?.deref();
    if (last === team) return;
    last?.dismiss();
    this.#lastTeam = new WeakRef(team);
  }
}
