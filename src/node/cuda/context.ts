/**
 * @file One CUDA device as this process uses it: its primary context, one stream in which everything happens in the order of
 * the calls, memory of the device, and pinned memory of the host that copies go through.
 */
import { at } from "../../base/invariant.ts";
import { type DeviceFacts, type Driver, deviceMemoryRefused } from "./driver.ts";

/** Numbers of `cuDeviceGetAttribute`. */
const MAJOR = 75;
const MINOR = 76;
const MULTIPROCESSORS = 16;
const SHARED_BYTES = 97;

/** Of a stream that does not wait for others, of events without and with times, of a capture by this thread. */
const NON_BLOCKING = 1;
const NO_TIMING = 2;
const THREAD_LOCAL = 1;
/** A capture during which libraries may do what they do once. */
const RELAXED = 2;

/** Of collectives, among the streams beside the kernels. */
const NETWORK = -1;

/** Milliseconds for which a device that others may keep waiting is asked without a pause, and those of a pause. */
const IMPATIENT = 1;
const PAUSE = 0.05;
const NEVER = new Int32Array(new SharedArrayBuffer(4));

const NAME_BYTES = 256;
const UUID_BYTES = 16;
/** Pinned memory is had in powers of two from here. */
const SMALLEST_BLOCK = 2 ** 16;
/** Of pinned memory in all, before the stream is waited for. */
const MOST_PINNED = 2 ** 27;

/** Host memory that copies run from and to beside the processor. */
export interface PinnedBlock {
  readonly address: bigint;
  readonly bytes: Uint8Array;
  /** Recorded after the last copy. */
  readonly event: bigint;
}

export class CudaContext {
  readonly driver: Driver;
  readonly facts: DeviceFacts;
  readonly stream: bigint;
  /** Which of all devices it is, wherever it is. */
  readonly uuid: Uint8Array;
  /** Throws where what the device waits for will not come; null where it waits for no other device. */
  watch: (() => void) | null = null;
  #watched: bigint | null = null;
  readonly #context: bigint;
  readonly #blocks: PinnedBlock[] = [];
  /** For copies beside the kernels, by queue. */
  readonly #copyStreams = new Map<number, bigint>();
  /** Blocks whose content is not read yet. */
  readonly #held = new Set<PinnedBlock>();
  #pinned = 0;

  /** @param number of the device, among those that this process sees */
  constructor(driver: Driver, number = 0) {
    this.driver = driver;
    const device = driver.int("cuDeviceGet", number);
    this.#context = driver.handle("cuDevicePrimaryCtxRetain", device);
    this.use();
    this.stream = driver.handle("cuStreamCreate", NON_BLOCKING);
    const name = new Uint8Array(NAME_BYTES);
    driver.call("cuDeviceGetName", name, NAME_BYTES, device);
    this.uuid = new Uint8Array(UUID_BYTES);
    driver.call("cuDeviceGetUuid_v2", this.uuid, device);
    const fact = (attribute: number): number => driver.int("cuDeviceGetAttribute", attribute, device);
    this.facts = {
      name: Buffer.from(name.subarray(0, name.indexOf(0))).toString("utf8"),
      bytes: this.memory().total,
      capability: 10 * fact(MAJOR) + fact(MINOR),
      multiprocessors: fact(MULTIPROCESSORS),
      sharedBytes: fact(SHARED_BYTES),
    };
  }

  /** Makes its calls those of this thread. */
  use(): void {
    this.driver.call("cuCtxSetCurrent", this.#context);
  }

  memory(): { readonly free: number; readonly total: number } {
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)];
    this.driver.call("cuMemGetInfo_v2", free, total);
    return { free: Number(free[0]), total: Number(total[0]) };
  }

  allocate(bytes: number): bigint {
    const out = new BigUint64Array(1);
    if (!this.driver.tryAllocate("cuMemAlloc_v2", out, bytes)) {
      throw deviceMemoryRefused(bytes, this.facts, this.memory().free);
    }
    return at([...out], 0);
  }

  wait(): void {
    if (!this.watch) {
      this.driver.call("cuStreamSynchronize", this.stream);
      return;
    }
    this.#watched ??= this.event();
    this.driver.call("cuEventRecord", this.#watched, this.stream);
    const started = performance.now();
    while (!this.isDone(this.#watched)) {
      if (performance.now() - started > IMPATIENT) Atomics.wait(NEVER, 0, 0, PAUSE);
    }
  }

  /** Whether everything before an event is done; throws where it never will be. */
  isDone(event: bigint): boolean {
    this.watch?.();
    return this.driver.isDone(event);
  }

  /** The stream in which collectives are, all of them: their order is then the same on every device. */
  get network(): bigint {
    return this.copyStream(NETWORK);
  }

  /** The stream of a queue of copies. */
  copyStream(queue: number): bigint {
    const stream = this.#copyStreams.get(queue) ?? this.driver.handle("cuStreamCreate", NON_BLOCKING);
    this.#copyStreams.set(queue, stream);
    return stream;
  }

  event(): bigint {
    return this.driver.handle("cuEventCreate", NO_TIMING);
  }

  /** One stream goes on when another has done what it was given so far. */
  follow(stream: bigint, other: bigint, event: bigint): void {
    this.driver.call("cuEventRecord", event, other);
    this.driver.call("cuStreamWaitEvent", stream, event, 0);
  }

  /** A block of at least so many bytes that no copy uses; it is the caller's until it is recorded or released. */
  pinned(bytes: number): PinnedBlock {
    const known = this.#blocks.find((block) => block.bytes.length >= bytes && this.#isFree(block));
    if (known) return known;
    if (this.#pinned + bytes > MOST_PINNED) {
      this.wait();
      const done = this.#blocks.find((block) => block.bytes.length >= bytes && this.#isFree(block));
      if (done) return done;
    }
    const size = Math.max(SMALLEST_BLOCK, 2 ** Math.ceil(Math.log2(bytes)));
    const address = this.driver.handle("cuMemHostAlloc", size, 0);
    const block = {
      address,
      bytes: this.driver.hostView(address, size),
      event: this.event(),
    };
    this.#pinned += size;
    this.#blocks.push(block);
    return block;
  }

  #isFree(block: PinnedBlock): boolean {
    return !this.#held.has(block) && this.isDone(block.event);
  }

  /** Everything so far uses a block; with `hold` it is not free before `release`. */
  record(block: PinnedBlock, hold = false): void {
    this.driver.call("cuEventRecord", block.event, this.stream);
    if (hold) this.#held.add(block);
  }

  release(block: PinnedBlock): void {
    this.#held.delete(block);
  }

  /** What `record` puts into the stream, as a graph that can be launched; `exchanges`: with the help of a library. */
  graphOf(record: () => void, exchanges = false): bigint {
    this.driver.call("cuStreamBeginCapture_v2", this.stream, exchanges ? RELAXED : THREAD_LOCAL);
    const out = new BigUint64Array(1);
    try {
      record();
    } catch (error) {
      // what went wrong first is said, and not that the graph has no end
      this.driver.release("cuStreamEndCapture", this.stream, out);
      throw error;
    }
    this.driver.call("cuStreamEndCapture", this.stream, out);
    const graph = at([...out], 0);
    const launchable = this.driver.handle("cuGraphInstantiateWithFlags", graph, 0);
    this.driver.call("cuGraphDestroy", graph);
    return launchable;
  }
}
