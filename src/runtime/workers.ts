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
 * Invariant: a thread's number is that of one worker at a time, since workspace goes by it. While `present` of a program
 * names a worker that lives, no other is asked to help under this number.
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
const fail = ({ memory, team }, error) => {
  const text = String(error).slice(0, ${MESSAGE_BYTES});
  const bytes = new Uint8Array(memory.buffer, team + ${TEAM.message});
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i) & 127;
  const words = new Int32Array(memory.buffer, team);
  Atomics.store(words, ${TEAM.failed / 4}, text.length);
  Atomics.notify(words, ${TEAM.done / 4});
};
listen((message) => {
  if (message.end) close();
  if (message.drop !== undefined) programs.delete(message.drop);
  if (message.load !== undefined) programs.set(message.load, message);
  const program = programs.get(message.help);
  if (!program) return;
  try {
    const env = { memory: program.memory, check() {} };
    program.instance ??= new WebAssembly.Instance(program.module, { env });
    program.instance.exports.help(program.thread);
  } catch (error) {
    fail(program, error);
  }
  Atomics.store(new Int32Array(program.memory.buffer, program.team), ${TEAM.present / 4} + program.thread, 0);
});
`;

/** What a worker needs of a program. */
export interface SharedProgram {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** Address of the team's words. */
  readonly team: number;
  readonly threads: number;
}

interface PoolWorker {
  readonly thread: WorkerThread;
  /** Never 0, and of no other worker: what a program has in `present` while this one is there. */
  readonly serial: number;
  /** Numbers of the programs that it knows. */
  readonly known: Set<number>;
  /** Of programs that it knows no more. */
  forgottenBytes: number;
}

let pool: PoolWorker[] = [];

/** Serial numbers of workers that died; what they had in `present` says nothing. */
const dead = new Set<number>();

const numbers = new WeakMap<SharedProgram, number>();
let programs = 0;

/**
 * Engines do not count shared memory as something that a thread holds, so an idle worker may keep what it has forgotten for
 * as long as it lives. It does not live on for more than this.
 */
const MOST_FORGOTTEN_BYTES = 64 * 2 ** 20;

interface Abandoned {
  readonly number: number;
  readonly bytes: number;
}

/** A program that is collected is forgotten by the workers too. */
const abandoned = new FinalizationRegistry<Abandoned>(({ number, bytes }) => {
  for (const [i, worker] of pool.entries()) {
    if (!worker.known.delete(number) || typeof starter === "string") continue;
    worker.thread.post({ drop: number });
    worker.forgottenBytes += bytes;
    if (worker.forgottenBytes <= MOST_FORGOTTEN_BYTES) continue;
    worker.thread.post({ end: true });
    pool[i] = startWorker(starter);
  }
});

function numberOf(program: SharedProgram): number {
  const known = numbers.get(program);
  if (known !== undefined) return known;
  programs += 1;
  numbers.set(program, programs);
  abandoned.register(program, { number: programs, bytes: program.memory.buffer.byteLength });
  return programs;
}

let serials = 0;

function startWorker(start: Exclude<WorkerStarter, string>): PoolWorker {
  serials += 1;
  return { thread: start(WORKER_TEXT), serial: serials, known: new Set(), forgottenBytes: 0 };
}

/** Workers 1 to threads − 1, started where they are not yet; every program is helped by the same ones. */
export function startWorkers(threads: number): void {
  if (typeof starter === "string") return;
  while (pool.length < threads - 1) pool.push(startWorker(starter));
}

/** Asks the workers that are not on a program to help with it. */
export function summon(program: SharedProgram): void {
  startWorkers(program.threads);
  const number = numberOf(program);
  const present = new Int32Array(program.memory.buffer, program.team + TEAM.present, program.threads);
  for (let thread = 1; thread < program.threads; thread++) {
    const worker = pool[thread - 1];
    const there = Atomics.load(present, thread);
    if (!worker || (there !== 0 && !dead.has(there))) continue;
    Atomics.store(present, thread, worker.serial);
    if (!worker.known.has(number)) {
      worker.known.add(number);
      const { module, memory, team } = program;
      worker.thread.post({ load: number, module, memory, team, thread });
    }
    worker.thread.post({ help: number });
  }
}

/** Why one of the first workers is gone, or null. Another takes its place. */
export function endedWorker(threads: number): string | null {
  for (let i = 0; i < Math.min(threads - 1, pool.length); i++) {
    const worker = pool[i];
    const why = worker?.thread.ended() ?? null;
    if (!worker || why === null || typeof starter === "string") continue;
    dead.add(worker.serial);
    pool[i] = startWorker(starter);
    return `worker ${i + 1}: ${why}`;
  }
  return null;
}
