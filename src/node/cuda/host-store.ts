/**
 * @file The host's memory beside a device's: pinned, so that copies run while kernels do. Values of programs wait there for their
 * next use, and state may stay there between runs. The programs of one arena share it, and it is as large as the largest of them
 * needs; it goes back to the system with the last one that holds it.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import type { DeviceMemory } from "../../runtime/device.ts";
import type { CudaContext } from "./context.ts";

/** Of a copy within it, and of what is seen of it at once. */
const PIECE_BYTES = 2 ** 26;

const refused = (bytes: number): TidemarkError =>
  new TidemarkError("TargetUnsupported", `${grouped(bytes)} bytes of pinned memory cannot be had of the host`, {
    help: "raise memory so that less is moved, leave spill out, or end other programs",
  });

/** Pinned memory, which may be replaced by more of it. */
class Pinned {
  readonly #context: CudaContext;
  address = 0n;
  bytes = 0;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  /** Keeps what is in it. */
  grow(bytes: number): void {
    const { driver } = this.#context;
    const out = new BigUint64Array(1);
    if (!driver.tryAllocate("cuMemHostAlloc", out, bytes, 0)) throw refused(bytes);
    const address = at([...out], 0);
    this.#context.wait();
    for (let from = 0; from < this.bytes; from += PIECE_BYTES) {
      const piece = Math.min(PIECE_BYTES, this.bytes - from);
      driver.hostView(address + BigInt(from), piece).set(driver.hostView(this.address + BigInt(from), piece));
    }
    this.free();
    this.address = address;
    this.bytes = bytes;
  }

  free(): void {
    if (this.bytes === 0) return;
    const { driver, stream } = this.#context;
    driver.release("cuStreamSynchronize", stream);
    driver.release("cuMemFreeHost", this.address);
    this.bytes = 0;
  }
}

/** The system has memory back that no program can reach any more. */
const unreachable = new FinalizationRegistry<Pinned>((pinned) => pinned.free());

/** What has such a store while some program holds it. */
export interface HasHostStore {
  host: HostStore | null;
}

export class HostStore implements DeviceMemory {
  readonly #context: CudaContext;
  readonly #pinned: Pinned;
  readonly #owner: HasHostStore;
  #holds = 0;
  /** Ends the hold of whom it was given to as a memory. */
  #release: (() => void) | null = null;

  private constructor(context: CudaContext, owner: HasHostStore) {
    this.#context = context;
    this.#pinned = new Pinned(context);
    this.#owner = owner;
    unreachable.register(this, this.#pinned);
  }

  /** The store of an arena, with room for so many bytes. */
  static of(owner: HasHostStore, context: CudaContext, bytes: number): HostStore {
    const store = owner.host ?? new HostStore(context, owner);
    store.reserve(bytes);
    owner.host = store;
    return store;
  }

  /** Keeps it until the function that is returned is called. */
  hold(): () => void {
    this.#holds += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      if (this.#holds > 0) return;
      this.#owner.host = null;
      this.#pinned.free();
    };
  }

  /** For what persists in it: there until it is closed, whichever programs come and go. */
  asMemory(): HostStore {
    this.#release ??= this.hold();
    return this;
  }

  close(): void {
    this.#release?.();
    this.#release = null;
  }

  get bytes(): number {
    return this.#pinned.bytes;
  }

  get allocatedBytes(): number {
    return this.#pinned.bytes;
  }

  /** Of its first byte; another one after it has grown. */
  get address(): bigint {
    return this.#pinned.address;
  }

  reserve(bytes: number): void {
    if (bytes > this.bytes) this.#pinned.grow(bytes);
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    if (bytes > 0) fill(this.#settled(address, bytes));
  }

  async read(address: number, bytes: number): Promise<Uint8Array> {
    return bytes === 0 ? new Uint8Array(0) : this.#settled(address, bytes).slice();
  }

  readonly readInto = (address: number, into: Uint8Array): void => {
    if (into.length > 0) into.set(this.#settled(address, into.length));
  };

  fill(address: number, bytes: number, value: number): void {
    if (bytes > 0) this.#settled(address, bytes).fill(value);
  }

  copy(to: number, from: number, bytes: number): void {
    if (bytes > 0) this.#settled(to, bytes).set(this.#settled(from, bytes));
  }

  /** Bytes of it, once every copy is done. */
  #settled(address: number, bytes: number): Uint8Array {
    this.#context.wait();
    return this.#context.driver.hostView(this.address + BigInt(address), bytes);
  }
}
