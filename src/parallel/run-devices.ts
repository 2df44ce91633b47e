/**
 * @file Devices of one process: each is a thread that runs the same module of the user's, with its own memories and its own plan. They exchange
 * through one block of memory that all share (mailbox.ts); this thread starts them, waits for their results, and ends all when one fails.
 *
 *   runDevices(module, { devices: 2 })
 *     start thread 0, 1 ── what they are, the block, input ──→ onDevice(…) runs
 *     onMessage         ←── tell(…) ────────────────────────    …
 *     results[rank]     ←── done ───────────────────────────    returned
 *     reject, end all   ←── failed, or the thread is gone ──    threw
 */
import { type AbortSignalLike, requireSignal } from "../api/event-loop.ts";
import { currentHost } from "../api/host.ts";
import { TidemarkError } from "../base/errors.ts";
import type { ModuleThread, ModuleThreads } from "../runtime/devices.ts";
import { type PageWorker, pageThread } from "../runtime/page-threads.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import {
  type DeviceMessage,
  type DeviceStart,
  isDeviceMessage,
  lifeName,
  marked,
  type SentFailure,
} from "./device-messages.ts";
import { announceFailure, blockBytes } from "./mailbox.ts";
import { requirePlain } from "./plain-data.ts";

/** Options of `runDevices`. */
export interface RunDevicesOptions {
  /** How many. */
  readonly devices: number;
  /** What every device is given: plain data, of which each gets a copy. */
  readonly input?: unknown;
  /** Is called with what devices `tell`, and the rank of who did. */
  readonly onMessage?: (message: unknown, rank: number) => void;
  /** Aborts it: all devices end, and the promise is rejected with the code `Aborted`. */
  readonly signal?: AbortSignalLike;
}

/** A module by its address, `new URL("./device.js", import.meta.url)`, or a function that starts a web worker with it. */
export type DeviceModule = string | { readonly href: string } | ((rank: number) => PageWorker);

const OPTIONS: OptionKinds<RunDevicesOptions> = {
  devices: "anything",
  input: "anything",
  onMessage: "a function",
  signal: "anything",
};

const EXAMPLE = 'runDevices(new URL("./device.js", import.meta.url), { devices: 4 })';
const MOST_DEVICES = 1024;

function requireModule(module: unknown): void {
  const { href } = (module ?? {}) as { readonly href?: unknown };
  if (typeof module === "string" || typeof module === "function" || typeof href === "string") return;
  fail("InvalidArgument", `runDevices: the module is ${describe(module)}`, `give its address: ${EXAMPLE}`);
}

function requireRequest(module: unknown, options: RunDevicesOptions): void {
  requireModule(module);
  requireOptions("runDevices", options, OPTIONS);
  const { devices, input, signal } = options;
  if (!Number.isInteger(devices) || devices < 1 || devices > MOST_DEVICES) {
    fail(
      "InvalidArgument",
      `runDevices: devices is ${describe(devices)}`,
      `give a whole number from 1 to ${MOST_DEVICES}`,
    );
  }
  requireSignal("runDevices", signal);
  requirePlain("runDevices", "input", input);
}

/** The block of the devices, shared where there are several. */
function newBlock(devices: number, threads: ModuleThreads): ArrayBuffer {
  const bytes = blockBytes(devices);
  if (devices === 1) return new ArrayBuffer(bytes);
  const missing = typeof SharedArrayBuffer === "undefined" ? "this engine shares no memory between threads" : null;
  const why = threads.notShared() ?? missing;
  if (why !== null) {
    const help = "serve the page with these headers (docs/devices.md), or take one device";
    fail("TargetUnsupported", `runDevices: ${devices} devices share memory, and ${why}`, help);
  }
  return new SharedArrayBuffer(bytes) as unknown as ArrayBuffer;
}

function startThread(module: DeviceModule, rank: number, threads: ModuleThreads): ModuleThread {
  if (typeof module === "function") {
    const worker = module(rank);
    if (typeof worker?.postMessage === "function" && typeof worker.addEventListener === "function")
      return pageThread(worker);
    fail(
      "InvalidArgument",
      `runDevices: the function gave ${describe(worker)}`,
      "give a web worker; in Node the module's address",
    );
  }
  const thread = threads.start(typeof module === "string" ? module : module.href);
  return typeof thread === "string"
    ? fail("TargetUnsupported", `runDevices: ${thread}`, 'import "tidemark/node"')
    : thread;
}

/** What a device that threw did, in words. */
function failureOf(rank: number, size: number, error: SentFailure, state: string): TidemarkError {
  const { message, where, cause } = error;
  const summary = `rank ${rank} of ${size}: ${message}\n  ${state}; the other devices are ended too`;
  const help = cause ? "error.cause is what it threw, with its stack" : "throw an Error: it says where it was thrown";
  return Object.assign(new TidemarkError("DeviceFailed", summary, { where, help }), { cause });
}

let lastRun = 0;

/**
 * Runs a module on so many devices, each a worker of this process with its own memory and its own plan, and gives what their {@link onDevice}
 * functions return, in the order of ranks. Their programs on a mesh, compiled for `wasm`, exchange through memory that the workers share. One
 * that throws or is gone ends all. A page has to be isolated from other origins; where a bundler is to see the worker, give a
 * function, `() => new Worker(new URL("./device.ts", import.meta.url), { type: "module" })`. In Node, import `tidemark/node`.
 *
 * @throws Rejects with InvalidArgument for a module or options that are none, and input that cannot be copied;
 * TargetUnsupported where threads or shared memory are missing; DeviceFailed where a device threw or is gone;
 * Aborted
 *
 * @memory That of the devices together: each has an arena of its own and a copy of `input`.
 *
 * @example
 * // run, throws DeviceFailed
 * // there is no device.js here
 * import "tidemark/node";
 * import { runDevices } from "tidemark/parallel";
 *
 * const sums = await runDevices(new URL("./device.js", import.meta.url), { devices: 2, input: { steps: 100 } });
 */
export async function runDevices<R = unknown>(module: DeviceModule, options: RunDevicesOptions): Promise<readonly R[]> {
  requireRequest(module, options);
  const { threads } = currentHost().devices;
  lastRun += 1;
  return new DeviceRun<R>(options, threads, newBlock(options.devices, threads)).run(module);
}

/** Devices from their start to their end. */
class DeviceRun<R> {
  readonly #options: RunDevicesOptions;
  readonly #threads: ModuleThreads;
  readonly #block: ArrayBuffer;
  /** Other pages of an origin have other names. */
  readonly #name = `${Date.now()} ${Math.random()} ${lastRun}`;
  readonly #running: ModuleThread[] = [];
  readonly #results = new Map<number, R>();
  /** Devices that failed because another one had. */
  readonly #followers = new Set<number>();
  #resolve: (results: readonly R[]) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  #isOver = false;

  constructor(options: RunDevicesOptions, threads: ModuleThreads, block: ArrayBuffer) {
    this.#options = options;
    this.#threads = threads;
    this.#block = block;
  }

  run(module: DeviceModule): Promise<readonly R[]> {
    const { devices, signal } = this.#options;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      if (signal?.aborted) return this.#abort();
      signal?.addEventListener("abort", this.#abort);
      try {
        for (let rank = 0; rank < devices; rank++) this.#start(module, rank);
      } catch (error) {
        this.#end();
        reject(error);
      }
    });
  }

  readonly #abort = (): void => {
    const { reason } = this.#options.signal ?? {};
    const why = reason instanceof Error ? `: ${reason.message}` : "";
    this.#fail(0, new TidemarkError("Aborted", `runDevices: it was aborted${why}`));
  };

  #start(module: DeviceModule, rank: number): void {
    const { devices: size, input } = this.#options;
    const thread = startThread(module, rank, this.#threads);
    this.#running.push(thread);
    thread.onMessage((message) => {
      if (isDeviceMessage(message)) this.#hear(rank, message);
    });
    thread.onEnd((why) => this.#gone(rank, why));
    const start: DeviceStart = marked({ run: this.#name, rank, size, block: this.#block, input });
    try {
      thread.post(start);
    } catch (error) {
      fail("InvalidArgument", `runDevices: input cannot be copied: ${String(error)}`, "give plain data");
    }
  }

  #hear(rank: number, message: DeviceMessage): void {
    if (this.#isOver) return;
    switch (message.told) {
      case "alive":
        void this.#threads.life?.gone(lifeName(this.#name, rank)).then(() => this.#gone(rank, "it was ended"));
        return;
      case "message":
        this.#pass(message.message, rank);
        return;
      case "done":
        this.#results.set(rank, message.result as R);
        if (this.#results.size === this.#options.devices) this.#finish();
        return;
      case "failed":
        // the one that failed first says so too, perhaps later
        if (message.follows) this.#followers.add(rank);
        else this.#fail(rank, failureOf(rank, this.#options.devices, message.error, message.state));
    }
  }

  /** A callback that throws ends all. */
  #pass(message: unknown, rank: number): void {
    try {
      this.#options.onMessage?.(message, rank);
    } catch (error) {
      this.#end();
      this.#reject(error);
    }
  }

  #finish(): void {
    const results = this.#running.map((_, rank) => this.#results.get(rank) as R);
    this.#end();
    this.#resolve(results);
  }

  /** A thread is not there any more. */
  #gone(rank: number, why: string): void {
    if (this.#isOver || this.#results.has(rank) || this.#followers.has(rank)) return;
    const summary = `rank ${rank} of ${this.#options.devices} did not return: ${why}; the other devices are ended too`;
    const help = "its module has to call onDevice(…), and to stay until that has returned";
    this.#fail(rank, new TidemarkError("DeviceFailed", summary, { help }));
  }

  #fail(rank: number, error: TidemarkError): void {
    if (this.#isOver) return;
    announceFailure(this.#block, { rank, text: error.summary }, this.#options.devices);
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#options.signal?.removeEventListener("abort", this.#abort);
    for (const thread of this.#running) thread.end();
  }
}
