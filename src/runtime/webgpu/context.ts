/**
 * @file One WebGPU device as this process uses it: the order of its work, its pipelines, the buffers that results are read through, and
 * the layouts of bindings.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { arenaRefused } from "../device.ts";
import { COMPUTE, type GpuBuffer, type GpuDevice, type GpuLayout, type GpuPipeline, MAP_READ, USAGE } from "./gpu.ts";
import { DeviceLine } from "./line.ts";

/** Runs that a device has at a time: more make it slower, fewer leave it idle while the next is encoded. */
const MOST_RUNS = 2;
/** Bytes; buffers for reading are had in powers of two from here, and so many are kept. */
const SMALLEST_READ = 2 ** 12;
const MOST_KEPT = 8;

const deviceLost = (reason: string): TidemarkError =>
  new TidemarkError("DeviceLost", `the WebGPU device was lost: ${reason}`, {
    help: "ask for a new target with `await webgpu()`, compile for it, and go on from the last saved state",
  });

/** A module and the layout of its bindings. */
export interface Pipeline {
  readonly pipeline: GpuPipeline;
  readonly layout: GpuLayout;
}

interface ReadBuffer {
  readonly buffer: GpuBuffer;
  readonly bytes: number;
}

export class GpuContext {
  readonly device: GpuDevice;
  readonly line = new DeviceLine();
  readonly #pipelines = new Map<string, Promise<Pipeline>>();
  readonly #layouts = new Map<string, readonly [bindings: GpuLayout, pipeline: GpuLayout]>();
  #free: ReadBuffer[] = [];
  #runs: Promise<unknown>[] = [];

  constructor(device: GpuDevice) {
    this.device = device;
    void device.lost.then(({ message, reason }) => this.line.fail(deviceLost(message || reason)));
  }

  /** Layout of so many storage buffers, then maybe of a uniform one. */
  #layout(parts: number, hasShifts: boolean): readonly [bindings: GpuLayout, pipeline: GpuLayout] {
    const key = `${parts} ${hasShifts}`;
    const known = this.#layouts.get(key);
    if (known) return known;
    const entry = (binding: number, type: string) => ({ binding, visibility: COMPUTE, buffer: { type } });
    const storage = Array.from({ length: parts }, (_, i) => entry(i, "storage"));
    const entries = hasShifts ? [...storage, entry(parts, "uniform")] : storage;
    const bindings = this.device.createBindGroupLayout({ entries });
    const made = [bindings, this.device.createPipelineLayout({ bindGroupLayouts: [bindings] })] as const;
    this.#layouts.set(key, made);
    return made;
  }

  /** The pipeline of a text: compiled beside others, once. */
  pipeline(text: string, parts: number, hasShifts: boolean): Promise<Pipeline> {
    const known = this.#pipelines.get(text);
    if (known) return known;
    const made = this.#compile(text, parts, hasShifts);
    made.catch(() => this.#pipelines.delete(text));
    this.#pipelines.set(text, made);
    return made;
  }

  async #compile(text: string, parts: number, hasShifts: boolean): Promise<Pipeline> {
    const [layout, whole] = this.#layout(parts, hasShifts);
    const compute = { module: this.device.createShaderModule({ code: text }), entryPoint: "main" };
    return { layout, pipeline: await this.device.createComputePipelineAsync({ layout: whole, compute }) };
  }

  /** A buffer for an arena; that there is no room for it is known later. */
  arena(bytes: number): GpuBuffer {
    this.device.pushErrorScope("out-of-memory");
    const usage = USAGE.storage | USAGE.copyFrom | USAGE.copyTo;
    const buffer = this.device.createBuffer({ size: bytes, usage });
    void this.device.popErrorScope().then(
      (error) => {
        if (!error) return;
        this.line.fail(arenaRefused(`an arena of ${grouped(bytes)} bytes cannot be had: ${error.message}`));
      },
      () => undefined,
    );
    return buffer;
  }

  /** Waits until the device has room for one more run. */
  async room(): Promise<void> {
    while (this.#runs.length >= MOST_RUNS) await this.#runs[0];
  }

  /** What was submitted so far is one run. */
  started(): void {
    const run = this.device.queue.onSubmittedWorkDone().catch(() => undefined);
    this.#runs.push(run);
    void run.then(() => {
      this.#runs = this.#runs.filter((other) => other !== run);
    });
  }

  /** Bytes of a buffer after everything that was submitted; both numbers are multiples of four. */
  async read(from: GpuBuffer, address: number, bytes: number): Promise<Uint8Array> {
    const { device } = this;
    const read = this.#readBuffer(bytes);
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, address, read.buffer, 0, bytes);
    device.queue.submit([encoder.finish()]);
    try {
      await read.buffer.mapAsync(MAP_READ);
    } catch (error) {
      // buffers for reading can always be mapped while there is a device, which may say so only later
      throw this.line.failure ?? deviceLost(error instanceof Error ? error.message : String(error));
    }
    const got = new Uint8Array(read.buffer.getMappedRange()).slice(0, bytes);
    read.buffer.unmap();
    if (this.#free.length < MOST_KEPT) this.#free.push(read);
    else read.buffer.destroy();
    return got;
  }

  #readBuffer(bytes: number): ReadBuffer {
    const free = this.#free.find(
      (buffer) => buffer.bytes >= bytes && buffer.bytes <= 4 * Math.max(bytes, SMALLEST_READ),
    );
    if (free) {
      this.#free = this.#free.filter((buffer) => buffer !== free);
      return free;
    }
    const size = Math.max(SMALLEST_READ, 2 ** Math.ceil(Math.log2(bytes)));
    return { buffer: this.device.createBuffer({ size, usage: USAGE.mapRead | USAGE.copyTo }), bytes: size };
  }
}
