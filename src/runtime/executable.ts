/**
 * @file A program in a WebAssembly memory: one instance, one arena. Reading and writing of values by address, and a run
 * that calls into the module once and allocates nothing.
 */
import { TidemarkError } from "../base/errors.ts";
import { contractScratch } from "../codegen/wasm/contract.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, PAGE, pagesOf } from "../codegen/wasm/program.ts";
import type { Graph } from "../ir/graph.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import type { LowerTraits } from "../lower/lower.ts";
import { type AssembleOptions, assemble, type ChosenProgram } from "./assemble.ts";
import type { PlacedProgram } from "./assembler.ts";

export type Elements = Float32Array | Float64Array | Int32Array | Uint8Array;

/** What products on WebAssembly need, with or without fused multiply-add. */
export function wasmTraits(fma: boolean = detectFeatures().relaxedMadd): LowerTraits {
  return { contractScratch: (dtype, m, n, k) => contractScratch(dtype, fma, m, n, k) };
}

/** Of a WebAssembly memory with addresses of 32 bits. */
export const LARGEST_ARENA_BYTES = 65536 * PAGE;

/** The elements of a value at an address of an arena. */
export function elementsAt(buffer: ArrayBuffer, type: TensorType, address: number): Elements {
  const elements = elementsOf(type.shape);
  switch (type.dtype) {
    case "f32":
      return new Float32Array(buffer, address, elements);
    case "f64":
      return new Float64Array(buffer, address, elements);
    case "i32":
      return new Int32Array(buffer, address, elements);
    case "bool":
      return new Uint8Array(buffer, address, elements);
  }
}

export class Executable<P extends PlacedProgram = PlacedProgram> {
  readonly placed: P;
  readonly moduleBytes: number;
  /** Distinct kernel functions in the module. */
  readonly kernelFunctions: number;
  readonly #memory: WebAssembly.Memory;
  readonly #exports: Readonly<Record<string, unknown>>;
  readonly #run: () => void;

  constructor(placed: P, fma: boolean, stepwise = false) {
    this.placed = placed;
    const { height } = placed.plan;
    if (pagesOf(height) * PAGE > LARGEST_ARENA_BYTES) {
      throw new TidemarkError(
        "TargetUnsupported",
        `the arena of ${height} bytes is beyond the 4 GiB of a WebAssembly memory`,
        {
          help: "use smaller batches",
        },
      );
    }
    const { bytes, functions } = emitProgram(placed.kernels, placed.copies, height, { fma, stepwise });
    this.moduleBytes = bytes.length;
    this.kernelFunctions = functions;
    const pages = pagesOf(height);
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory: this.#memory } });
    this.#exports = instance.exports;
    this.#run = instance.exports.run as () => void;
  }

  /** Traced graph in, ready to run out. */
  static from(
    graph: Graph,
    options: AssembleOptions & { readonly stepwise?: boolean } = {},
  ): Executable<ChosenProgram> {
    const fma = detectFeatures().relaxedMadd;
    return new Executable(assemble(graph, wasmTraits(fma), options), fma, options.stepwise ?? false);
  }

  /** The elements at an address, in the arena itself: gone with the next run. */
  view(type: TensorType, address: number): Elements {
    return elementsAt(this.#memory.buffer, type, address);
  }

  write(type: TensorType, address: number, data: Elements): void {
    this.view(type, address).set(data);
  }

  run(): void {
    this.#run();
  }

  /** Runs kernel by kernel, calling `after` in between; only for programs made `stepwise`. */
  runStepwise(after: (kernel: number) => void): void {
    this.placed.kernels.forEach((_, i) => {
      (this.#exports[`step${i}`] as () => void)();
      after(i);
    });
    const bytes = new Uint8Array(this.#memory.buffer);
    for (const copy of this.placed.copies) bytes.copyWithin(copy.to, copy.from, copy.from + copy.bytes);
  }

  /** Overwrites everything that does not survive between runs, to show that nothing depends on it. */
  poison(): void {
    const bytes = new Uint8Array(this.#memory.buffer);
    const { plan } = this.placed;
    const kept = plan.problem.buffers.filter((b) => b.kind === "persistent");
    const saved = kept.map((b) => bytes.slice(plan.offsets[b.id], (plan.offsets[b.id] ?? 0) + b.bytes));
    bytes.fill(0xff);
    for (const [i, b] of kept.entries()) bytes.set(saved[i] as Uint8Array, plan.offsets[b.id]);
  }
}
