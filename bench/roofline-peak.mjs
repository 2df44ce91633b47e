/**
 * @file The peak multiply-add rate of one core of this machine: chains of fused multiply-adds in registers that never
 * wait for each other or for memory, in C, for this processor. No program reaches it; a product of matrices comes
 * close.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** As many chains as hide the latency of two units of four or five cycles; the empty assembly keeps them in registers. */
const CHAINS = 12;
const TURNS = 2e5;
const RUNS = 400;

/** Names and not an array: each is a register. */
const chains = (text, between) => Array.from({ length: CHAINS }, (_, c) => text(`a${c}`)).join(between);

const source = (lanes) => `
#include <stdio.h>
#include <time.h>
typedef float V __attribute__((vector_size(${4 * lanes})));
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main(void) {
  V x, y;
  for (int l = 0; l < ${lanes}; l++) { x[l] = 0.999f; y[l] = 0.001f * l; }
  V ${chains((a) => `${a} = y`, ", ")};
  double best = 1e9;
  for (int run = 0; run < ${RUNS}; run++) {
    double started = now();
    for (int i = 0; i < ${TURNS}; i++) {
      ${chains((a) => `${a} = ${a} * x + y;`, " ")}
      __asm__ volatile("" : ${chains((a) => `"+v"(${a})`, ", ")});
    }
    double took = now() - started;
    if (took < best) best = took;
  }
  printf("%g\\n", 2.0 * ${lanes} * ${CHAINS} * ${TURNS} / best);
}`;

/** Flops a second by register width, the best of 4, 8 and 16 lanes; a text where there is no compiler. */
export function registerPeak() {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-peak-"));
  const rates = [4, 8, 16].map((lanes) => {
    const [text, program] = [join(folder, `${lanes}.c`), join(folder, `${lanes}`)];
    writeFileSync(text, source(lanes));
    const flags = ["-O2", "-march=native", "-ffp-contract=fast"];
    const made = spawnSync("cc", [...flags, text, "-o", program], { encoding: "utf8" });
    if (made.status !== 0) return made.error ? String(made.error.code) : made.stderr.split("\n")[0];
    return Number(spawnSync(program, { encoding: "utf8" }).stdout);
  });
  rmSync(folder, { recursive: true });
  const found = rates.filter((rate) => typeof rate === "number" && rate > 0);
  return found.length > 0 ? Math.max(...found) : `cc: ${rates[0]}`;
}
