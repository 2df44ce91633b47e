/**
 * @file Memory of a CUDA device: one allocation of exactly the bytes of the largest arena in it. Copies from and to the host
 * go through pinned blocks, in the order of the stream; long ones straight from and to the caller's array.
 */
import type { DeviceMemory } from "../../runtime/device.ts";
import type { CudaContext } from "./context.ts";
import type { HasHostStore, HostStore } from "./host-store.ts";

/** Bytes up to which a copy goes through pinned memory. */
const MOST_STAGED = 2 ** 24;

/** A piece of the device's memory, which may be replaced by a larger one. */
class Allocation {
  readonly #context: CudaContext;
  address = 0n;
  bytes = 0;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  /** Keeps what is in it. */
  grow(bytes: number): void {
    const { driver, stream } = this.#context;
    const larger = this.#context.allocate(bytes);
    if (this.bytes > 0) driver.call("cuMemcpyDtoDAsync_v2", larger, this.address, this.bytes, stream);
    this.free();
    this.address = larger;
    this.bytes = bytes;
  }

  free(): void {
    if (this.bytes === 0) return;
    const { driver, stream } = this.#context;
    driver.release("cuStreamSynchronize", stream);
    driver.release("cuMemFree_v2", this.address);
    this.bytes = 0;
  }
}

/** The device has memory back that no program can reach any more. */
const unreachable = new FinalizationRegistry<Allocation>((allocation) => allocation.free());

export class CudaMemory implements DeviceMemory, HasHostStore {
  /** Beside it, while some program moves values there. */
  host: HostStore | null = null;
  /** Called before it moves: others may know where it is. */
  readonly moves = new Set<() => void>();
  readonly #context: CudaContext;
  readonly #allocation: Allocation;

  constructor(context: CudaContext) {
    this.#context = context;
    this.#allocation = new Allocation(context);
    unreachable.register(this, this.#allocation, this);
  }

  get bytes(): number {
    return this.#allocation.bytes;
  }

  get allocatedBytes(): number {
    return this.#allocation.bytes;
  }

  /** Of the arena's first byte; another one after it has grown. */
  get address(): bigint {
    return this.#allocation.address;
  }

  reserve(bytes: number): void {
    if (bytes <= this.bytes) return;
    for (const moving of this.moves) moving();
    this.#allocation.grow(bytes);
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    const { driver, stream } = this.#context;
    const to = this.#at(address);
    if (bytes > MOST_STAGED) {
      const all = new Uint8Array(bytes);
      fill(all);
      driver.call("cuMemcpyHtoDAsync_v2", to, all, bytes, stream);
      // the array is the engine's again after this
      this.#context.wait();
      return;
    }
    const block = this.#context.pinned(bytes);
    fill(block.bytes.subarray(0, bytes));
    if (bytes > 0) driver.call("cuMemcpyHtoDAsync_v2", to, block.address, bytes, stream);
    this.#context.record(block);
  }

  readonly readInto = (address: number, into: Uint8Array): void => {
    const { driver, stream } = this.#context;
    if (into.length === 0) return;
    const from = this.#at(address);
    if (into.length > MOST_STAGED) {
      driver.call("cuMemcpyDtoHAsync_v2", into, from, into.length, stream);
      this.#context.wait();
      return;
    }
    const block = this.#context.pinned(into.length);
    driver.call("cuMemcpyDtoHAsync_v2", block.address, from, into.length, stream);
    this.#context.wait();
    into.set(block.bytes.subarray(0, into.length));
  };

  async read(address: number, bytes: number): Promise<Uint8Array> {
    const { driver, stream } = this.#context;
    const into = new Uint8Array(bytes);
    if (bytes === 0) return into;
    const block = this.#context.pinned(bytes);
    driver.call("cuMemcpyDtoHAsync_v2", block.address, this.#at(address), bytes, stream);
    this.#context.record(block, true);
    try {
      while (!this.#context.isDone(block.event)) await new Promise((resolve) => setImmediate(resolve));
      into.set(block.bytes.subarray(0, bytes));
      return into;
    } finally {
      this.#context.release(block);
    }
  }

  fill(address: number, bytes: number, value: number): void {
    const { driver, stream } = this.#context;
    if (bytes > 0) driver.call("cuMemsetD8Async", this.#at(address), value, bytes, stream);
  }

  copy(to: number, from: number, bytes: number): void {
    const { driver, stream } = this.#context;
    if (bytes > 0) driver.call("cuMemcpyDtoDAsync_v2", this.#at(to), this.#at(from), bytes, stream);
  }

  close(): void {
    unreachable.unregister(this);
    this.#allocation.free();
  }

  #at(address: number): bigint {
    return this.address + BigInt(address);
  }
}
