/**
 * @file Matrix products of the target `native` beside OpenBLAS on one thread, in one run: the two alternate on the same
 * matrices and the best run of each counts, so that other work on the machine slows neither more than the other.
 *
 *   npx rolldown bench/native-product.ts -p node --external koffi --file node_modules/.cache/native-product.mjs &&
 *     node node_modules/.cache/native-product.mjs [f32|f64] [nn|tn|nt|tt] [64|100x20x300 …]
 *
 * Needs libopenblas.so.0 (Debian: libopenblas0-pthread) and koffi. Prints GFLOP/s and their ratio for each product, then the
 * least and the mean ratio. Fused multiply-add is on, so elements are compared to rounding.
 */
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { invariant } from "../src/base/invariant.ts";
import { tensorType } from "../src/ir/type.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import { compileTo, systemCompiler } from "../src/node/native/compiler.ts";
import { matmul } from "../src/ops/matmul.ts";
import { floats, type LoadedKernel, loadKernel, seconds } from "./native-kernel.ts";

type Type = "f32" | "f64";
type Size = readonly [m: number, n: number, k: number];

const SIZES = [
  64, 65, 80, 96, 100, 127, 128, 160, 200, 255, 256, 300, 333, 384, 500, 512, 513, 700, 777, 1000, 1024, 1100,
];
const LARGE = [1536, 2000, 2048];
/** The least number of runs of each, and the seconds for more of them. */
const RUNS = 8;
const PATIENCE = 1;
/** Operations of a run, at least. */
const RUN_FLOPS = 2e8;

/** OpenBLAS called `count` times from C, so that neither side pays for calls from JavaScript. */
const DRIVER = (c: string, name: string): string => `
void ${name}(int, int, int, int, int, int, ${c}, const ${c} *, int, const ${c} *, int, ${c}, ${c} *, int);
void many_${name}(int count, int ta, int tb, int m, int n, int k, const ${c} *a, const ${c} *b, ${c} *c) {
  for (int i = 0; i < count; i++)
    ${name}(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1, a, ta ? m : k, b, tb ? k : n, 0, c, n);
}`;

type Many = (count: number, ta: number, tb: number, m: number, n: number, k: number, ...at: readonly bigint[]) => void;
interface Koffi {
  load(path: string): { func(name: string, result: string, args: readonly string[]): Many };
  address(of: ArrayBufferView): bigint;
}

process.env.OPENBLAS_NUM_THREADS = "1";
const koffi = createRequire(import.meta.url)("koffi") as Koffi;

function openblas(dtype: Type): Many {
  const compiler = systemCompiler();
  if (typeof compiler === "string") throw new Error(compiler);
  const [c, name] = dtype === "f32" ? ["float", "cblas_sgemm"] : ["double", "cblas_dgemm"];
  const path = join(tmpdir(), `tidemark-${name}-${process.pid}.so`);
  const withBlas = { ...compiler, flags: [...compiler.flags, "-Wl,--no-as-needed", "-l:libopenblas.so.0"] };
  compileTo(withBlas, DRIVER(c as string, name as string), path);
  const types = [...new Array<string>(6).fill("int"), ...new Array<string>(3).fill("void *")];
  const many = koffi.load(path).func(`many_${name}`, "void", types);
  rmSync(path);
  return many;
}

/** `count` products one after the other, as one program. */
function load(dtype: Type, [m, n, k]: Size, ta: boolean, tb: boolean, count: number): LoadedKernel {
  const sides = [ta ? [k, m] : [m, k], tb ? [n, k] : [k, n]].map((shape) => tensorType(dtype, shape));
  return loadKernel(matmul, sides, { ta, tb }, count);
}

/** Best times for one product, Tidemark's and OpenBLAS's, and Tidemark's workspace. */
function race(dtype: Type, size: Size, ta: boolean, tb: boolean, blas: Many): readonly [number, number, number] {
  const [m, n, k] = size;
  const count = Math.min(256, Math.ceil(RUN_FLOPS / (2 * m * n * k)));
  const { machine, addresses, workspaceBytes } = load(dtype, size, ta, tb, count);
  const result = new (dtype === "f32" ? Float32Array : Float64Array)(m * n + 16);
  const { buffer, byteOffset } = floats(machine, "f32", 0, 1);
  const base = koffi.address(new Uint8Array(buffer, 0, 1)) + BigInt(byteOffset);
  const [a, b] = addresses.map((at) => base + BigInt(at)) as [bigint, bigint];
  const c = koffi.address(result);
  const aligned = c + ((64n - (c % 64n)) % 64n);
  let [ours, theirs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const until = process.hrtime.bigint() + BigInt(PATIENCE * 1e9);
  for (let run = 0; run < RUNS || process.hrtime.bigint() < until; run++) {
    ours = Math.min(ours, seconds(() => machine.run()) / count);
    theirs = Math.min(theirs, seconds(() => blas(count, +ta, +tb, m, n, k, a, b, aligned)) / count);
  }
  const mine = floats(machine, dtype, addresses[2] as number, m * n);
  const first = Number(aligned - c) / bytesOf(dtype);
  const tolerance = (dtype === "f32" ? 1e-5 : 1e-13) * Math.sqrt(k);
  mine.forEach((x, i) => {
    const want = result[first + i] as number;
    invariant(Math.abs(x - want) <= tolerance, () => `element ${i} is ${x}, not ${want}`);
  });
  return [ours, theirs, workspaceBytes];
}

function main(words: readonly string[]): void {
  const types = (["f32", "f64"] as const).filter((t) => words.includes(t));
  const forms = ["nn", "tn", "nt", "tt"].filter((f) => words.includes(f));
  const asked = words.filter((w) => /^\d/.test(w)).map((w) => w.split("x").map(Number));
  const sizes = (asked.length > 0 ? asked : [...SIZES, ...LARGE].map((n) => [n])).map(
    ([m = 1, n = m, k = m]): Size => [m, n, k],
  );
  const ratios: number[] = [];
  console.log(`${readFileSync("/proc/cpuinfo", "utf8").match(/model name\s*: (.*)/)?.[1] ?? ""}, one thread, GFLOP/s`);
  for (const dtype of types.length > 0 ? types : (["f32"] as const)) {
    const blas = openblas(dtype);
    for (const size of sizes) {
      for (const form of forms.length > 0 ? forms : ["nn", "tn", "nt", "tt"]) {
        const [ours, theirs, scratch] = race(dtype, size, form[0] === "t", form[1] === "t", blas);
        const speed = (t: number): string => ((2 * size[0] * size[1] * size[2]) / t / 1e9).toFixed(1).padStart(7);
        ratios.push(theirs / ours);
        const workspace = `${(scratch / 1024).toFixed(0)} KiB`.padStart(9);
        console.log(
          `${dtype} ${form} ${size.join("x").padEnd(15)} native ${speed(ours)}  OpenBLAS ${speed(theirs)}  ratio ${(theirs / ours).toFixed(2)}${workspace}`,
        );
      }
    }
  }
  const mean = Math.exp(ratios.reduce((sum, r) => sum + Math.log(r), 0) / ratios.length);
  console.log(`least ratio ${Math.min(...ratios).toFixed(2)}, mean ${mean.toFixed(2)} over ${ratios.length} products`);
}

main(process.argv.slice(2));
