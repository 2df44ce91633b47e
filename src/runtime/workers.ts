/**
 * @file Workers that help to run programs: started from text when first asked for, shared by all programs, and never in the
 * way of a process that wants to end. The core knows neither Node's workers nor the browser's; who does says how to start
 * one (`provideWorkers`). In a page they are found through `globalThis`, if the page is isolated from other origins: memory
 * is shared between threads only there.
 *
 *   page or process                           worker 1, 2, …
 *     load  ── module, memory, number ──→       an instance of the program on the same memory
 *     help  ────────────────────────────→       takes pieces (codegen/wasm/team.ts) until nothing has happened for a while
 *     drop  ────────────────────────────→       forgets the program, which nobody can run any more
 *     end   ────────────────────────────→       ends, and all that it has forgotten is free
 *
 * Invariant: a thread's number is that of one worker at a time, since workspace goes by it: worker i is thread i of every
 * program, and another takes its place only when it is dead.
 */
import { MESSAGE_BYTES, TEAM } from "../codegen/wasm/team.ts";

/** A running worker. */
export interface WorkerThread {
  post(message: unknown): void;
  /** Why it is gone, or null. Known at once where a thread can be asked, without a turn of the event loop. */
  ended(): string | null;
}

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
  if (!Worker || !Blob || !URL) return "there are no workers here; in Node they come with tidemark/node";
  if (crossOriginIsolated !== true) {
    return "the page is not cross-origin isolated (headers COOP same-origin and COEP require-corp)";
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

let starter: WorkerStarter = pageWorkers();

/** Makes workers known; those of another kind are left to themselves. */
export function provideWorkers(provided: WorkerStarter): void {
  if (starter === provided) return;
  starter = provided;
  pool = [];
}

/** Why no worker can be started, or null. */
export const noWorkers = (): string | null => (typeof starter === "string" ? starter : null);

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
    const env = { memory: program.memory, check() {} };
    program.instance ??= new WebAssembly.Instance(program.module, { env });
    program.instance.exports.help(program.thread, message.help);
  } catch (error) {
    fail(words, error);
  }
  Atomics.compareExchange(words, ${TEAM.present / 4} + program.thread, message.request, 0);
});
`;

/** What a worker needs of a program. */
export interface SharedProgram {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
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

let pool: PoolWorker[] = [];

const numbers = new WeakMap<object, number>();
/** The last number that was given to a program, a memory or a request. */
let last = 0;

/**
 * Engines do not count shared memory as something that a thread holds, so an idle worker may keep what it has forgotten for
 * as long as it lives. It does not live on for more than this.
 */
const MOST_FORGOTTEN_BYTES = 64 * 2 ** 20;

/** A program that is collected is forgotten by the workers too. */
const abandonedPrograms = new FinalizationRegistry<number>((number) => {
  for (const worker of pool) if (worker.known.delete(number)) worker.thread.post({ drop: number });
});

interface MemorySize {
  readonly number: number;
  /** When it was last seen. */
  bytes: number;
}

const sizes = new WeakMap<WebAssembly.Memory, MemorySize>();

const abandonedMemories = new FinalizationRegistry<MemorySize>(({ number, bytes }) => {
  for (const [i, worker] of pool.entries()) {
    if (!worker.known.delete(number) || typeof starter === "string") continue;
    worker.forgottenBytes += bytes;
    if (worker.forgottenBytes <= MOST_FORGOTTEN_BYTES) continue;
    worker.thread.post({ end: true });
    pool[i] = startWorker(starter);
  }
});

const newNumber = (): number => {
  last += 1;
  return last;
};

/** Of no other program, and never 0. */
export function numberOf(program: SharedProgram): number {
  const known = numbers.get(program);
  if (known !== undefined) return known;
  const number = newNumber();
  numbers.set(program, number);
  abandonedPrograms.register(program, number);
  return number;
}

function sizeOf(memory: WebAssembly.Memory): MemorySize {
  const size = sizes.get(memory) ?? { number: newNumber(), bytes: 0 };
  if (!sizes.has(memory)) {
    sizes.set(memory, size);
    abandonedMemories.register(memory, size);
  }
  size.bytes = memory.buffer.byteLength;
  return size;
}

function startWorker(start: Exclude<WorkerStarter, string>): PoolWorker {
  return { thread: start(WORKER_TEXT), known: new Set(), request: 0, program: 0, forgottenBytes: 0 };
}

/** Workers 1 to threads − 1, started where they are not yet; every program is helped by the same ones. */
export function startWorkers(threads: number): void {
  if (typeof starter === "string") return;
  while (pool.length < threads - 1) pool.push(startWorker(starter));
}

/** Asks the workers that are not on a program to help with it. */
export function summon(program: SharedProgram, threads: number): void {
  startWorkers(threads);
  const { module, memory } = program;
  const [number, size] = [numberOf(program), sizeOf(memory)];
  const present = new Int32Array(memory.buffer, TEAM.present, threads);
  for (let thread = 1; thread < threads; thread++) {
    const worker = pool[thread - 1];
    // It is there, or on its way.
    if (!worker || (worker.program === number && Atomics.load(present, thread) === worker.request)) continue;
    worker.program = number;
    worker.request = newNumber();
    Atomics.store(present, thread, worker.request);
    if (!worker.known.has(number)) {
      worker.known.add(number).add(size.number);
      worker.thread.post({ load: number, module, memory, thread });
    }
    worker.thread.post({ help: number, request: worker.request });
  }
}

/** Why one of the first workers is gone, or null. Another takes its place. */
export function endedWorker(threads: number): string | null {
  for (let i = 0; i < Math.min(threads - 1, pool.length); i++) {
    const worker = pool[i];
    const why = worker?.thread.ended() ?? null;
    if (!worker || why === null || typeof starter === "string") continue;
    pool[i] = startWorker(starter);
    return `worker ${i + 1}: ${why}`;
  }
  return null;
}
