/**
 * @file Whether blocks of products fit the second-level cache of processors that have a smaller one than this machine's: valgrind counts
 * the lines that such a cache would miss, for the blocks of a cache of a mebibyte and for those of its own size. The same on every machine.
 *
 *   npx rolldown bench/cache-misses.ts -p node --external koffi --file node_modules/.cache/cache-misses.mjs &&
 *     node node_modules/.cache/cache-misses.mjs [512x512x512 …]
 *
 * Needs valgrind and a C compiler for x86-64. Code has registers of 8 lanes: valgrind knows none of 16. Some seconds for each row.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { at, invariant } from "../src/base/invariant.ts";
import { nativeDescription } from "../src/codegen/native/description.ts";
import type { NativeOptions } from "../src/codegen/native/options.ts";
import { emitNativeProgram } from "../src/codegen/native/program.ts";
import type { PlacedKernel } from "../src/codegen/placed.ts";
import { Build } from "../src/ir/build.ts";
import { tensorType } from "../src/ir/type.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import { lowerNode } from "../src/lower/lower.ts";
import { matmul } from "../src/ops/matmul.ts";

const PLAIN: NativeOptions = { lanes: 8, fma: true, threads: 1 };
const FLAGS = [
  "-w",
  "-std=gnu11",
  "-O3",
  "-mavx2",
  "-mfma",
  "-ffp-contract=off",
  "-fno-math-errno",
  "-fno-trapping-math",
];
const FURTHER = ["-fwrapv", "-fno-strict-aliasing"];
const CACHES = [512 * 1024, 256 * 1024];

/** A program of C that computes one product. */
function programOf([m = 1, n = 1, k = 1]: readonly number[], options: NativeOptions): string {
  const b = new Build("product");
  const [left, right] = [b.param(tensorType("f32", [m, k])), b.param(tensorType("f32", [k, n]))];
  b.call(matmul, [left, right], { ta: false, tb: false });
  const { kernel } = lowerNode(at(b.nodes, 0), nativeDescription(options));
  let top = 0;
  const addresses = kernel.operands.map(({ elements, dtype }) => {
    const start = top;
    top += Math.ceil((elements * bytesOf(dtype)) / 64 + 1) * 64;
    return start;
  });
  const kernels: readonly PlacedKernel[] = [{ kernel, addresses }];
  const { text } = emitNativeProgram(kernels, [], options);
  const bytes = Math.ceil(top / 4096 + 1) * 4096;
  return `${text}
#include <stdlib.h>
int main(void) {
  u8 *arena = aligned_alloc(4096, ${bytes});
  memset(arena, 0, ${bytes});
  tidemark_run(tidemark_open(), arena);
  return 0;
}
`;
}

function run(command: string, args: readonly string[]): string {
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 2 ** 24 });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? stderr.split("\n", 3).join("\n")}`);
  return stderr;
}

/** Lines that a second-level cache of so many bytes would miss. */
function misses(size: readonly number[], options: NativeOptions, cache: number): number {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-misses-"));
  try {
    const [source, program] = [join(folder, "product.c"), join(folder, "product")];
    writeFileSync(source, programOf(size, options));
    run("cc", [...FLAGS, ...FURTHER, source, "-o", program, "-lm", "-lpthread"]);
    const levels = ["--I1=32768,8,64", "--D1=32768,8,64", `--LL=${cache},8,64`];
    const told = run("valgrind", [
      ...["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null", ...levels, program],
    ]);
    const count = /LLd misses: +([\d,]+)/.exec(told)?.[1];
    invariant(count, () => told);
    return Number(count.replaceAll(",", ""));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const wanted = process.argv.slice(2);
console.log("| product | second-level cache | lines missed, blocks of 1 MiB | of its size | ratio |");
console.log("| --- | ---: | ---: | ---: | ---: |");
for (const name of wanted.length > 0 ? wanted : ["512x512x512"]) {
  const size = name.split("x").map(Number);
  for (const cache of CACHES) {
    const [usual, own] = [PLAIN, { ...PLAIN, secondCache: cache }].map((options) => misses(size, options, cache));
    invariant(usual && own, () => "no misses");
    const numbers = [usual, own].map((n) => n.toLocaleString("en-US"));
    console.log(`| ${name} | ${cache / 1024} KiB | ${numbers.join(" | ")} | ${(own / usual).toFixed(2)} |`);
  }
}
