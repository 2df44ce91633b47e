/** @file Memory of a device that the host reads and writes as its own: the engine's, or the process's. */
import type { DeviceMemory } from "./device.ts";

export abstract class HostMemory implements DeviceMemory {
  /** Of now: growing may replace it. */
  abstract readonly buffer: ArrayBuffer;
  /** Where in the buffer arenas start. */
  abstract readonly start: number;
  abstract readonly bytes: number;
  abstract reserve(bytes: number): void;

  get allocatedBytes(): number {
    return this.buffer.byteLength;
  }

  bytesAt(address: number, bytes: number): Uint8Array {
    return new Uint8Array(this.buffer, this.start + address, bytes);
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    fill(this.bytesAt(address, bytes));
  }

  readInto(address: number, into: Uint8Array): void {
    into.set(this.bytesAt(address, into.length));
  }

  read(address: number, bytes: number): Promise<Uint8Array> {
    return Promise.resolve(this.bytesAt(address, bytes).slice());
  }

  fill(address: number, bytes: number, value: number): void {
    this.bytesAt(address, bytes).fill(value);
  }

  copy(to: number, from: number, bytes: number): void {
    this.bytesAt(to, bytes).set(this.bytesAt(from, bytes));
  }
}
