/**
 * @file Memory of a WebGPU device: one buffer of the bytes of the largest arena in it, and a little more, since a part that is bound has
 * at least one word also where an operand has no elements. Devices write and read whole words of four bytes: arenas start at multiples of
 * 256, and nothing else lies in the last word of a value.
 */
import { grouped } from "../../base/errors.ts";
import { invariant } from "../../base/invariant.ts";
import { arenaRefused, type DeviceMemory } from "../device.ts";
import type { GpuContext } from "./context.ts";
import { type GpuBuffer, USAGE } from "./gpu.ts";

const WORD = 4;
/** Bytes after the arena. */
export const SLACK = 256;
/** Bytes that one write fills. */
const FILL_BYTES = 2 ** 20;

const wordsUp = (bytes: number): number => Math.ceil(bytes / WORD) * WORD;
const wordsDown = (bytes: number): number => Math.floor(bytes / WORD) * WORD;

/** A buffer that may be replaced by a larger one. */
class Allocation {
  buffer: GpuBuffer | null = null;

  destroy(): void {
    this.buffer?.destroy();
    this.buffer = null;
  }
}

/** The device has memory back that no program can reach any more. */
const unreachable = new FinalizationRegistry<Allocation>((allocation) => allocation.destroy());

export class GpuMemory implements DeviceMemory {
  readonly readInto = null;
  readonly #context: GpuContext;
  readonly #most: number;
  readonly #allocation = new Allocation();
  /** That were asked for, and those of the buffer once the line is there. */
  #bytes = 0;
  #size = 0;

  /** `most`: bytes of the largest buffer of the device. */
  constructor(context: GpuContext, most: number) {
    this.#context = context;
    this.#most = most;
    unreachable.register(this, this.#allocation, this);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get allocatedBytes(): number {
    return this.#bytes === 0 ? 0 : this.#bytes + SLACK;
  }

  /** Of now, for tasks of the line; another one after it has grown. */
  get buffer(): GpuBuffer {
    const { buffer } = this.#allocation;
    invariant(buffer !== null, () => "nothing is reserved");
    return buffer;
  }

  reserve(bytes: number): void {
    const { line } = this.#context;
    if (bytes <= this.#bytes) return;
    const size = wordsUp(bytes) + SLACK;
    if (size > this.#most) {
      throw arenaRefused(
        `an arena of ${grouped(bytes)} bytes: the largest buffer of the device has ${grouped(this.#most)}`,
      );
    }
    if (line.failure !== null) throw line.failure;
    this.#bytes = bytes;
    line.submit(() => this.#grow(size));
  }

  #grow(size: number): void {
    const { device } = this.#context;
    const old = this.#allocation.buffer;
    const larger = this.#context.arena(size);
    if (old) {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(old, 0, larger, 0, this.#size);
      device.queue.submit([encoder.finish()]);
      old.destroy();
    }
    this.#allocation.buffer = larger;
    this.#size = size;
  }

  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void {
    invariant(address % WORD === 0, () => `${bytes} bytes are written at ${address}`);
    const staged = new Uint8Array(wordsUp(bytes));
    fill(staged.subarray(0, bytes));
    if (bytes === 0) return;
    const { line, device } = this.#context;
    line.submit(() => device.queue.writeBuffer(this.buffer, address, staged));
  }

  async read(address: number, bytes: number): Promise<Uint8Array> {
    if (bytes === 0) return new Uint8Array(0);
    const from = wordsDown(address);
    const { line } = this.#context;
    const whole = await line.ask(() => this.#context.read(this.buffer, from, wordsUp(address + bytes) - from));
    return whole.length === bytes ? whole : whole.slice(address - from, address - from + bytes);
  }

  fill(address: number, bytes: number, value: number): void {
    for (let done = 0; done < bytes; done += FILL_BYTES) {
      const some = Math.min(FILL_BYTES, bytes - done);
      this.write(address + done, some, (into) => into.fill(value));
    }
  }

  /** By way of another buffer: a device does not copy within one. */
  copy(to: number, from: number, bytes: number): void {
    const { line, device } = this.#context;
    const size = wordsUp(bytes);
    line.submit(() => {
      const between = device.createBuffer({ size, usage: USAGE.copyFrom | USAGE.copyTo });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(this.buffer, from, between, 0, size);
      encoder.copyBufferToBuffer(between, 0, this.buffer, to, size);
      device.queue.submit([encoder.finish()]);
      between.destroy();
    });
  }

  /** After what was submitted and asked for so far. */
  close(): void {
    unreachable.unregister(this);
    this.#bytes = 0;
    this.#context.line.submit(() => this.#allocation.destroy());
  }
}
