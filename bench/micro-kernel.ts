/**
 * @file Speed of the matrix-product micro-kernel for each tile, so that the choice in `tileOf` can be repeated.
 *
 *   node bench/micro-kernel.ts                                              Node 22.18 or newer
 *   npx rolldown bench/micro-kernel.ts -p node --file dist/bench.mjs &&     Node 20, which cannot run TypeScript
 *     node --experimental-wasm-relaxed-simd dist/bench.mjs
 *
 * Words after the command choose among the lines: `f32 fma`. Each figure is the best of several runs over panels of
 * depth 256: one row panel (everything in the first-level cache) and 48 row panels (in the second-level cache).
 *
 * Last result, GFLOP/s in L1 on one core of an AMD EPYC (Zen 4), Node 20.20 / 24.21:
 *
 *                   4x2 *        5x2          2x4          3x3          6x2
 *   f32 mul-add   45.7  48.7   47.7  48.2   45.6  48.4   42.1  42.9   29.1  29.2   6x2 and larger: spilled
 *   f64 mul-add   22.8  24.2   23.8  23.9   23.0  24.3   21.0  21.4   14.5  14.4
 *   i32           45.6  46.1   46.0  44.6   45.4  45.2   40.9  42.8   32.8  34.5
 *
 *                   6x2 *        5x2          3x3          4x2          4x3
 *   f32 fma       57.6  57.5   55.1  55.3   54.5  54.2   54.1  54.3   27.2  27.1   4x3 and larger: spilled
 *   f64 fma       28.9  28.8   27.5  27.5   27.2  27.1   27.1  26.9   13.6  13.6
 *
 * So 6x2 wins by 5 % with fused multiply-add. Without, 5x2 is 4 % ahead of 4x2 in Node 20 and level with it in Node 24;
 * 4x2 is taken, because 4 divides the shapes that people use.
 */
import { Code, ModuleBuilder } from "../src/codegen/wasm/encoder.ts";
import { detectFeatures } from "../src/codegen/wasm/features.ts";
import { addMicroKernel, columnsOf, type Tile, tileOf } from "../src/codegen/wasm/micro-kernel.ts";
import { bytesOf, elementsIn, elementWriter, type ProductType } from "../src/kernel/dtype.ts";

const DEPTH = 256;
const RUNS = 12;
const FLOPS_PER_RUN = 1e8;
const PAGES = 64;
const [B, A, C] = [0, 65_536, 2_097_152];

const TILES: readonly Tile[] = [
  [8, 1],
  [3, 2],
  [4, 2],
  [5, 2],
  [6, 2],
  [7, 2],
  [3, 3],
  [4, 3],
  [2, 4],
  [3, 4],
  [2, 5],
  [1, 8],
].map(([rows = 0, vectors = 0]) => ({ rows, vectors }));

type Drive = (times: number, panels: number) => void;

/** `drive(times, panels)`: the kernel on each of the row panels in turn, over and over; no JavaScript in between. */
function driver(dtype: ProductType, fma: boolean, tile: Tile): Drive {
  const module = new ModuleBuilder();
  const kernel = addMicroKernel(module, dtype, fma, tile);
  const code = new Code(["i32", "i32"]);
  const [times, panels] = [0, 1];
  const left = code.local("i32");
  const a = code.local("i32");
  const onePanel = (): void => {
    code
      .get(a)
      .i32Const(B)
      .i32Const(DEPTH)
      .i32Const(C)
      .i32Const(columnsOf(dtype, tile) * bytesOf(dtype))
      .i32Const(0);
    code
      .call(kernel)
      .increment(left, -1)
      .increment(a, DEPTH * tile.rows * bytesOf(dtype));
  };
  const allPanels = (): void => {
    code.get(panels).set(left).i32Const(A).set(a);
    code.repeat(onePanel, () => code.get(left)).increment(times, -1);
  };
  code.repeat(allPanels, () => code.get(times));
  module.export("drive", module.add(code));
  const memory = new WebAssembly.Memory({ initial: PAGES });
  fillWithOrdinaryNumbers(memory, dtype);
  const compiled = new WebAssembly.Module(module.finish(PAGES));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports.drive as Drive;
}

/** Zeros would do for the time of most instructions, subnormal numbers would not. */
function fillWithOrdinaryNumbers(memory: WebAssembly.Memory, dtype: ProductType): void {
  const numbers = elementsIn(dtype, memory.buffer as ArrayBuffer, 0, memory.buffer.byteLength / bytesOf(dtype));
  const write = elementWriter(dtype);
  for (let i = 0; i < numbers.length; i++) numbers[i] = write((i % 17) - 8);
}

function gigaflops(drive: Drive, dtype: ProductType, tile: Tile, panels: number): number {
  const flops = 2 * tile.rows * columnsOf(dtype, tile) * DEPTH * panels;
  const times = Math.ceil(FLOPS_PER_RUN / flops);
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) {
    const start = performance.now();
    drive(times, panels);
    best = Math.min(best, performance.now() - start);
  }
  return (flops * times) / best / 1e6;
}

function main(wanted: readonly string[]): void {
  const { relaxedMadd } = detectFeatures();
  console.log(
    `node ${process.version}, relaxed multiply-add: ${relaxedMadd}; GFLOP/s in L1, in L2; * is tileOf's choice`,
  );
  for (const dtype of ["f32", "f64", "i32"] as const) {
    for (const fma of relaxedMadd && dtype !== "i32" ? [false, true] : [false]) {
      for (const tile of TILES) {
        const names = [dtype, fma ? "fma" : "mul-add", `${tile.rows}x${tile.vectors}`];
        if (!wanted.every((word) => names.includes(word))) continue;
        const drive = driver(dtype, fma, tile);
        const figures = [1, 48].map((panels) => gigaflops(drive, dtype, tile, panels).toFixed(1).padStart(6));
        const chosen = JSON.stringify(tileOf(dtype, fma)) === JSON.stringify(tile) ? " *" : "";
        console.log(`${names.map((name) => name.padEnd(8)).join("")}${figures.join("")}${chosen}`);
      }
    }
  }
}

main(process.argv.slice(2));
