/**
 * @file A thread of Node's that copies between a shared memory and a file, one copy after the other, while the program goes on:
 *
 *   program     start ── wasm ── wait           counts what it has issued, and sleeps until `done` has come so far
 *   thread        └─ writeSync, readSync ─┘      counts what is done
 *
 * Counts wrap; only their differences are read.
 */
import { Worker } from "node:worker_threads";
import { TidemarkError } from "../base/errors.ts";

/** Words of the control array. */
const [ISSUED, DONE, CLOSING, ERROR] = [0, 1, 2, 3];
/** Numbers of a copy: whether it writes, the addresses in memory and file, bytes. */
const FIELDS = 4;

const TEXT = `const { workerData } = require("node:worker_threads");
const { readSync, writeSync } = require("node:fs");
const { file, memory, control, copies, limit, most } = workerData;
const PIECE = 1 << 20;
const still = new Int32Array(new SharedArrayBuffer(4));
let due = 0;
function pace(bytes) {
  if (limit <= 0) return;
  const now = performance.now();
  due = Math.max(due, now) + (1000 * bytes) / limit;
  Atomics.wait(still, 0, 0, due - now);
}
function copy(isWrite, address, at, bytes) {
  for (let from = 0; from < bytes; ) {
    const part = Math.min(PIECE, bytes - from);
    pace(part);
    const view = new Uint8Array(memory.buffer, address + from, part);
    const done = isWrite ? writeSync(file, view, 0, part, at + from) : readSync(file, view, 0, part, at + from);
    if (done === 0) throw Object.assign(new Error("end of file"), { errno: -5 });
    from += done;
  }
}
for (let done = 0; ; done = (done + 1) | 0) {
  while (Atomics.load(control, ${ISSUED}) === done && !Atomics.load(control, ${CLOSING})) Atomics.wait(control, ${ISSUED}, done);
  if (Atomics.load(control, ${CLOSING})) break;
  const first = ((done >>> 0) % most) * ${FIELDS};
  try {
    if (Atomics.load(control, ${ERROR}) === 0) copy(...copies.subarray(first, first + ${FIELDS}));
  } catch (error) {
    Atomics.store(control, ${ERROR}, -(error.errno ?? -5));
  }
  Atomics.store(control, ${DONE}, (done + 1) | 0);
  Atomics.notify(control, ${DONE});
}
`;

/** A second between looks whether the thread still runs. */
const LOOK_MS = 1000;

export interface FileThreadOptions {
  readonly file: number;
  readonly memory: WebAssembly.Memory;
  /** Bytes a second; 0: no limit. */
  readonly limit: number;
  /** Copies that may be issued and not done. */
  readonly most: number;
}

export class FileThread {
  readonly #control = new Int32Array(new SharedArrayBuffer(16));
  readonly #copies: Float64Array;
  readonly #most: number;
  readonly #worker: Worker;

  constructor({ file, memory, limit, most }: FileThreadOptions) {
    this.#most = 2 ** Math.ceil(Math.log2(Math.max(1, most)));
    this.#copies = new Float64Array(new SharedArrayBuffer(8 * FIELDS * this.#most));
    const workerData = { file, memory, limit, most: this.#most, control: this.#control, copies: this.#copies };
    this.#worker = new Worker(TEXT, { eval: true, execArgv: [], workerData });
    this.#worker.unref();
  }

  /** Begins a copy; its number, to wait for. */
  start(isWrite: boolean, address: number, at: number, bytes: number): number {
    const number = Atomics.load(this.#control, ISSUED);
    this.#copies.set([Number(isWrite), address, at, bytes], ((number >>> 0) % this.#most) * FIELDS);
    Atomics.store(this.#control, ISSUED, (number + 1) | 0);
    Atomics.notify(this.#control, ISSUED);
    return number;
  }

  wait(number: number): void {
    for (;;) {
      const done = Atomics.load(this.#control, DONE);
      if (((done - number) | 0) > 0) return;
      if (Atomics.wait(this.#control, DONE, done, LOOK_MS) === "timed-out") this.#check();
    }
  }

  #check(): void {
    if (this.#worker.performance.eventLoopUtilization().idle >= 0 || this.#worker.threadId !== -1) return;
    throw new TidemarkError("StorageError", "spill: the thread that copies has ended", { help: "compile it again" });
  }

  /** The error number since it was asked last, or 0. */
  error(): number {
    return Atomics.exchange(this.#control, ERROR, 0);
  }

  close(): void {
    Atomics.store(this.#control, CLOSING, 1);
    Atomics.add(this.#control, ISSUED, 1);
    Atomics.notify(this.#control, ISSUED);
  }
}
