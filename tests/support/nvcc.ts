/** @file nvcc, where there is one: CUDA text compiles, and how many bytes its functions move to memory for want of registers. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const nvcc = ["/usr/local/bin/nvcc", "/usr/local/cuda/bin/nvcc"].find((path) => existsSync(path));
if (!nvcc) console.warn("CUDA text is not compiled: no nvcc");

export const hasNvcc = nvcc !== undefined;

const FLAGS = [
  "-cubin",
  "-gencode",
  "arch=compute_90a,code=sm_90a",
  "-w",
  "--fmad=false",
  "--std=c++17",
  "-Xptxas",
  "-v",
];

/** What nvcc says of a text; throws where it refuses. */
export function saidOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-cuda-"));
  try {
    const source = join(folder, "all.cu");
    writeFileSync(source, text);
    const { status, stderr } = spawnSync(nvcc ?? "", [...FLAGS, source, "-o", `${source}bin`], { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr.slice(0, 2000));
    return stderr;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Bytes of each function of a text. */
export const spillsOf = (text: string): readonly number[] =>
  [...saidOf(text).matchAll(/(\d+) bytes spill stores/g)].map(([, bytes]) => Number(bytes));
