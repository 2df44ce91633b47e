/**
 * @file A plain blocked f32 matrix product around the micro-kernel, for choosing block sizes. C = A·B, row-major,
 * square.
 *
 *   for jc over columns, NC at a time
 *     for ic over rows, MC at a time
 *       for pc over the depth, KC at a time
 *         pack A[ic…, pc…] into row panels          MC · KC elements, stay in the second-level cache
 *         for jr over the block's columns, NR at a time
 *           pack B[pc…, jr…] into one column panel  KC · NR elements, stay in the first-level cache
 *           for ir over the row panels: micro-kernel on C[ic + ir…, jr…], adding to it when pc > 0
 *
 *   node bench/blocked-product.ts [size …]          commands for Node 20: see bench/micro-kernel.ts
 *
 * Prints GFLOP/s for each MC and KC, then for each NC at the best of those, after checking elements of C bit for bit.
 * The loops down to jr are JavaScript, a call of WebAssembly for each column panel; rows and columns may end anywhere
 * but the size must be a multiple of NR and of 4. Findings: docs/decisions/0004-wasm-products.md.
 */
import { Code, ModuleBuilder, OP } from "../src/codegen/wasm/encoder.ts";
import { detectFeatures } from "../src/codegen/wasm/features.ts";
import { addMicroKernel, columnsOf, tileOf } from "../src/codegen/wasm/micro-kernel.ts";

interface Blocks {
  readonly mc: number;
  readonly kc: number;
  readonly nc: number;
}

interface Parts {
  /** Rows of A from `source`, `stride` bytes apart, into panels at `target`; rows missing in the last are left. */
  packA(source: number, stride: number, rows: number, depth: number, target: number): void;
  /** NR columns of B from `source`, `stride` bytes apart, into one panel. */
  packB(source: number, stride: number, depth: number, target: number): void;
  /** The micro-kernel on `count` row panels, one below the other. */
  panels(a: number, b: number, depth: number, c: number, stride: number, accumulate: number, count: number): void;
  kernel(a: number, b: number, depth: number, c: number, stride: number, accumulate: number): void;
}

const FLOAT = 4;
const LANES = 4;

function addPackA(module: ModuleBuilder, mr: number): number {
  const code = new Code(["i32", "i32", "i32", "i32", "i32"]);
  const [source, stride, rows, depth, target] = [0, 1, 2, 3, 4] as const;
  const inPanel = code.local("i32");
  const [from, to, end] = [code.local("i32"), code.local("i32"), code.local("i32")];
  const fourElements = (): void => {
    for (let lane = 0; lane < LANES; lane++)
      code
        .get(to)
        .get(from)
        .memory("load", 0)
        .memory("store32_lane", lane * mr * FLOAT, lane);
    code.increment(from, LANES * FLOAT).increment(to, LANES * mr * FLOAT);
  };
  const oneRow = (): void => {
    code.get(source).tee(from).get(depth).i32Const(FLOAT).op(OP.i32Mul).op(OP.i32Add).set(end);
    code.get(target).get(inPanel).i32Const(FLOAT).op(OP.i32Mul).op(OP.i32Add).set(to);
    code.repeat(fourElements, () => code.get(from).get(end).op(OP.i32Ne));
    code.get(source).get(stride).op(OP.i32Add).set(source);
    code.increment(rows, -1).increment(inPanel, 1);
    code
      .get(inPanel)
      .i32Const(mr)
      .op(OP.i32Eq)
      .if(null, () => {
        code.i32Const(0).set(inPanel);
        code
          .get(target)
          .get(depth)
          .i32Const(mr * FLOAT)
          .op(OP.i32Mul)
          .op(OP.i32Add)
          .set(target);
      });
  };
  code.repeat(oneRow, () => code.get(rows));
  return module.add(code);
}

function addPackB(module: ModuleBuilder, nr: number): number {
  const code = new Code(["i32", "i32", "i32", "i32"]);
  const [source, stride, depth, target] = [0, 1, 2, 3] as const;
  const oneRow = (): void => {
    for (let byte = 0; byte < nr * FLOAT; byte += LANES * FLOAT)
      code.get(target).get(source).memory("load", byte).memory("store", byte);
    code.get(source).get(stride).op(OP.i32Add).set(source);
    code.increment(target, nr * FLOAT).increment(depth, -1);
  };
  code.repeat(oneRow, () => code.get(depth));
  return module.add(code);
}

function addPanels(module: ModuleBuilder, kernel: number, mr: number): number {
  const code = new Code(["i32", "i32", "i32", "i32", "i32", "i32", "i32"]);
  const [a, b, depth, c, stride, accumulate, count] = [0, 1, 2, 3, 4, 5, 6] as const;
  const onePanel = (): void => {
    for (const parameter of [a, b, depth, c, stride, accumulate]) code.get(parameter);
    code.call(kernel);
    code
      .get(a)
      .get(depth)
      .i32Const(mr * FLOAT)
      .op(OP.i32Mul)
      .op(OP.i32Add)
      .set(a);
    code.get(c).get(stride).i32Const(mr).op(OP.i32Mul).op(OP.i32Add).set(c);
    code.increment(count, -1);
  };
  code.while(() => code.get(count), onePanel);
  return module.add(code);
}

class BlockedProduct {
  readonly #mr: number;
  readonly #nr: number;
  readonly #n: number;
  readonly #parts: Parts;
  readonly #bytes: Uint8Array;
  readonly #addresses: { readonly a: number; readonly b: number; readonly c: number; readonly scratch: number };
  readonly matrices: { readonly a: Float32Array; readonly b: Float32Array; readonly c: Float32Array };

  constructor(n: number, fma: boolean) {
    const tile = tileOf("f32", fma);
    this.#mr = tile.rows;
    this.#nr = columnsOf("f32", tile);
    this.#n = n;
    const matrixBytes = n * n * FLOAT;
    this.#addresses = { a: 0, b: matrixBytes, c: 2 * matrixBytes, scratch: 3 * matrixBytes };
    const pages = Math.ceil((3 * matrixBytes + 4 * 2 ** 20) / 65_536);
    const memory = new WebAssembly.Memory({ initial: pages });
    this.#bytes = new Uint8Array(memory.buffer);
    const matrix = (byte: number): Float32Array => new Float32Array(memory.buffer, byte, n * n);
    this.matrices = { a: matrix(0), b: matrix(matrixBytes), c: matrix(2 * matrixBytes) };
    for (const [i, m] of [this.matrices.a, this.matrices.b].entries())
      for (let j = 0; j < m.length; j++) m[j] = Math.sin(j * (i + 1));
    const module = new ModuleBuilder();
    const kernel = addMicroKernel(module, "f32", fma);
    module.export("kernel", kernel);
    module.export("packA", addPackA(module, this.#mr));
    module.export("packB", addPackB(module, this.#nr));
    module.export("panels", addPanels(module, kernel, this.#mr));
    const compiled = new WebAssembly.Module(module.finish(pages));
    this.#parts = new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Parts;
  }

  scratchBytes({ mc, kc }: Blocks): number {
    return (mc * kc + kc * this.#nr + this.#mr * this.#nr) * FLOAT;
  }

  run(blocks: Blocks): void {
    const n = this.#n;
    const { a } = this.#addresses;
    for (let jc = 0; jc < n; jc += blocks.nc) {
      for (let ic = 0; ic < n; ic += blocks.mc) {
        for (let pc = 0; pc < n; pc += blocks.kc) {
          const [rows, depth] = [Math.min(blocks.mc, n - ic), Math.min(blocks.kc, n - pc)];
          this.#parts.packA(a + (ic * n + pc) * FLOAT, n * FLOAT, rows, depth, this.#addresses.scratch);
          const columns = Math.min(blocks.nc, n - jc);
          for (let jr = 0; jr < columns; jr += this.#nr) this.#columnPanel(blocks, ic, pc, jc + jr);
        }
      }
    }
  }

  #columnPanel({ mc, kc }: Blocks, ic: number, pc: number, jr: number): void {
    const n = this.#n;
    const { b, c, scratch } = this.#addresses;
    const [rows, depth] = [Math.min(mc, n - ic), Math.min(kc, n - pc)];
    const panel = scratch + mc * kc * FLOAT;
    this.#parts.packB(b + (pc * n + jr) * FLOAT, n * FLOAT, depth, panel);
    const target = c + (ic * n + jr) * FLOAT;
    const accumulate = pc > 0 ? 1 : 0;
    const full = Math.floor(rows / this.#mr);
    this.#parts.panels(scratch, panel, depth, target, n * FLOAT, accumulate, full);
    const left = rows - full * this.#mr;
    if (left > 0) {
      const lastPanel = scratch + full * this.#mr * depth * FLOAT;
      this.#lastRows(lastPanel, panel, depth, target + full * this.#mr * n * FLOAT, accumulate, left, mc * kc);
    }
  }

  /** Fewer rows than a tile has: through a tile in scratch memory, of which only the rows that exist are copied. */
  #lastRows(a: number, b: number, depth: number, c: number, accumulate: number, rows: number, aLength: number): void {
    const rowBytes = this.#nr * FLOAT;
    const tile = this.#addresses.scratch + (aLength + depth * this.#nr) * FLOAT;
    const stride = this.#n * FLOAT;
    for (let r = 0; r < rows; r++)
      if (accumulate) this.#bytes.copyWithin(tile + r * rowBytes, c + r * stride, c + r * stride + rowBytes);
    this.#parts.kernel(a, b, depth, tile, rowBytes, accumulate);
    for (let r = 0; r < rows; r++)
      this.#bytes.copyWithin(c + r * stride, tile + r * rowBytes, tile + (r + 1) * rowBytes);
  }
}

/** Elements of C against sequential sums; with fused multiply-add, against a tolerance. */
function check(n: number, { a, b, c }: BlockedProduct["matrices"], fma: boolean): void {
  for (let sample = 0; sample < 64; sample++) {
    const [i, j] = [(sample * 97) % n, (sample * 53) % n];
    let sum = 0;
    for (let k = 0; k < n; k++) sum = Math.fround(sum + Math.fround(a[i * n + k]! * b[k * n + j]!));
    const found = c[i * n + j]!;
    if (fma ? Math.abs(found - sum) > 1e-5 * n : found !== sum)
      throw new Error(`n = ${n}: c[${i}, ${j}] is ${found} instead of ${sum}`);
  }
}

function gigaflops(n: number, product: BlockedProduct, blocks: Blocks): number {
  const repeats = Math.max(1, Math.round(4e7 / n ** 3));
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++) {
    const start = performance.now();
    for (let i = 0; i < repeats; i++) product.run(blocks);
    best = Math.min(best, performance.now() - start);
  }
  return (2 * n ** 3 * repeats) / best / 1e6;
}

function report(n: number, fma: boolean): void {
  const product = new BlockedProduct(n, fma);
  product.run({ mc: 48, kc: 64, nc: 64 });
  check(n, product.matrices, fma);
  let best = { speed: 0, blocks: { mc: 0, kc: 0, nc: n } };
  const depths = [128, 192, 256, 384, 512, 1024].filter((kc, i) => i === 0 || kc <= n);
  console.log(
    `${n}³ ${fma ? "fma" : "mul-add"}${" ".repeat(8)}${depths.map((kc) => `KC ${kc}`.padStart(16)).join("")}`,
  );
  for (const mc of [24, 48, 96, 144, 192, 288]) {
    const cells = depths.map((kc) => {
      const blocks = { mc, kc, nc: n };
      const speed = gigaflops(n, product, blocks);
      if (speed > best.speed && product.scratchBytes(blocks) <= 2 ** 19) best = { speed, blocks };
      return `${speed.toFixed(1)} (${Math.ceil(product.scratchBytes(blocks) / 1024)}K)`.padStart(16);
    });
    console.log(`  MC ${String(mc).padEnd(14)}${cells.join("")}`);
  }
  const { mc, kc } = best.blocks;
  const widths = [64, 128, 256, 512, 1024].filter((nc) => nc <= n);
  const cells = widths.map((nc) => `NC ${nc}: ${gigaflops(n, product, { mc, kc, nc }).toFixed(1)}`);
  console.log(`  MC ${mc}, KC ${kc}:  ${cells.join("  ")}`);
}

const sizes = process.argv.slice(2).map(Number);
for (const fma of detectFeatures().relaxedMadd ? [false, true] : [false])
  for (const n of sizes.length > 0 ? sizes : [64, 128, 256, 512, 1024]) report(n, fma);
