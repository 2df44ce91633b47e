/**
 * @file Attention on tensor cores: the text of its CUDA functions, compiled for the processor and run thread by thread
 * (support/cuda-warps.ts), against the reference meaning.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { at } from "../src/base/invariant.ts";
import { cudaDescription } from "../src/codegen/cuda/description.ts";
import { CudaLibrary } from "../src/codegen/cuda/library.ts";
import type { AnyOp } from "../src/ir/op.ts";
import { tensorType } from "../src/ir/type.ts";
import { attend, attendBackward } from "../src/ops/attend.ts";
import { onProcessor, WARPS_HEADER } from "./support/cuda-warps.ts";
import { kernelSample } from "./support/kernel-samples.ts";
import { patience } from "./support/patience.ts";

const OPTIONS = { multiprocessors: 132, bytes: 2 ** 37, fma: true, products: "tf32" } as const;
const compiler = ["c++", "g++"].find((name) => spawnSync(name, ["--version"]).status === 0);
const f32 = (...shape: number[]) => tensorType("f32", shape);

/** Two heads of queries for one of keys, ends of blocks, widths that are not those of instructions. */
const [q, k, v] = [f32(1, 2, 66, 20), f32(1, 1, 130, 20), f32(1, 1, 130, 16)];
const rows = f32(1, 2, 66);
const attrs = { scale: 0.25, causal: true, window: 90, rate: 0 };
const bias = f32(1, 1, 1, 130);

/** The range of a length: of 130 keys some are left out, and a whole block of them. */
const length = tensorType("i32", [1]);
const LENGTHS = [30, 60] as const;

const SAMPLES: readonly (readonly [AnyOp, readonly ReturnType<typeof f32>[]])[] = [
  [attend, [q, k, v, bias]],
  [attend, [q, k, v, length]],
  [attendBackward, [q, k, v, rows, rows, f32(1, 2, 66, 16), bias]],
  [attendBackward, [q, k, v, rows, rows, f32(1, 2, 66, 16), length]],
];

/** C++ that reads the inputs of a kernel, launches its functions and writes its results. */
function programOf(library: CudaLibrary, sample: ReturnType<typeof kernelSample>): string {
  const launches = library.launches(sample.kernel, true);
  const { operands } = sample.kernel;
  const lines = operands.map(({ elements, role, dtype }, i) => {
    const read = role === "in" ? ` read_all(p${i}, sizeof p${i});` : "";
    return `static ${dtype === "i32" ? "int" : "float"} p${i}[${elements}] __attribute__((aligned(16)));${read}`;
  });
  for (const { name, blocks, threads, operands: given } of launches) {
    lines.push(`launch(${blocks}, ${threads}, [] { ${name}(${given.map((i) => `p${i}`).join(", ")}); });`);
  }
  for (const i of sample.outputs) lines.push(`write_all(p${i}, sizeof p${i});`);
  return `${WARPS_HEADER}\n${onProcessor(library.text)}\nint main() {\n${lines.join("\n")}\n}\n`;
}

function run(text: string, input: Uint8Array): Float32Array {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-warps-"));
  try {
    const [source, program] = [join(folder, "kernel.cpp"), join(folder, "kernel")];
    writeFileSync(source, text);
    const compiled = spawnSync(compiler ?? "c++", ["-O1", "-w", "-std=c++17", source, "-o", program]);
    expect(compiled.stderr.toString()).toBe("");
    const { status, stdout } = spawnSync(program, { input, maxBuffer: 2 ** 26 });
    expect(status).toBe(0);
    return new Float32Array(new Uint8Array(stdout).buffer);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.skipIf(compiler === undefined).each(SAMPLES)(
  "runs as its text says, up to the rounding of tf32: $0.name",
  { timeout: patience(60_000) },
  (op, inputs) => {
    const range = inputs.map((type) => (type === length ? LENGTHS : ([-1, 1] as const)));
    const sample = kernelSample(op, { inputs, attrs, range }, cudaDescription(OPTIONS));
    expect(sample.kernel.operands.some(({ role }) => role === "scratch")).toBe(false);
    const input = Buffer.concat(
      sample.kernel.operands.flatMap(({ role }, i) => {
        const data = sample.storage()[i] as Float32Array;
        return role === "in" ? [Buffer.from(data.buffer, data.byteOffset, data.byteLength)] : [];
      }),
    );
    const got = run(programOf(new CudaLibrary(OPTIONS), sample), input);
    const reference = op.evaluate({
      inputs: sample.inputs.map((x) => Float64Array.from(x as Float32Array)),
      ...{ inTypes: inputs, outTypes: sample.outTypes, attrs: attrs as never, regions: [], run: () => [] },
    });
    let start = 0;
    for (const want of reference) {
      const own = got.subarray(start, start + want.length);
      start += want.length;
      const scale = want.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
      const worst = want.reduce((a, b, i) => Math.max(a, Math.abs(b - at(own, i))), 0);
      expect(worst / scale).toBeLessThan(2e-3);
    }
    expect(start).toBe(got.length);
  },
);
