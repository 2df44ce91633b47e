/** @file Block programs as WGSL: text of kernels, and that every kernel without types that WGSL lacks has a text. */
import { describe, expect, it } from "vitest";
import type { DeviceClass } from "../src/codegen/block/program.ts";
import { blockProgram } from "../src/codegen/block/schedule.ts";
import { wgslPrelude } from "../src/codegen/wgsl/dialect.ts";
import { printWgsl, separateLayout, type WgslModule } from "../src/codegen/wgsl/launch.ts";
import { tensorType } from "../src/ir/type.ts";
import type { Kernel } from "../src/kernel/loops.ts";
import { sum } from "../src/ops/broadcast.ts";
import { add, lt } from "../src/ops/elementwise.ts";
import { matmul } from "../src/ops/matmul.ts";
import { largeSamples, loweringFor } from "./support/blocks.ts";
import { kernelOps, kernelSample, kernelSamples } from "./support/kernel-samples.ts";

/** What every adapter has: 16 KiB of shared memory. */
const ADAPTER: DeviceClass = { threads: 256, lanes: 32, sharedBytes: 16 * 1024, multiprocessors: 16, fma: false };
const traits = loweringFor(ADAPTER);
const f32 = (...shape: number[]) => tensorType("f32", shape);

const modulesOf = (kernel: Kernel): readonly WgslModule[] =>
  blockProgram(kernel, ADAPTER).launches.map((launch) => printWgsl(launch, separateLayout(launch), false));

/** The modules of a kernel, without the functions that all of them have. */
const textOf = (kernel: Kernel): string =>
  modulesOf(kernel)
    .map(({ text }) => text.replace(wgslPrelude(false), ""))
    .join("\n");

/** Products in registers that a compiler may fuse with the sum that they are added to. */
function bareProducts(text: string): readonly string[] {
  const products = new Set([...text.matchAll(/let (t_\d+): f32 = \([^()]* \* [^()]*\);/g)].map(([, name]) => name));
  const kept = [...text.matchAll(/(?:register|local)_\d+\[[^\]]*\] = (\w+);/g)];
  return kept.flatMap(([line, value]) => (products.has(value) ? [line] : []));
}

describe("kernels as WGSL", () => {
  it.each([
    ["add", kernelSample(add, { inputs: [f32(1000), f32(1000)], attrs: {} }, traits).kernel],
    ["lt", kernelSample(lt, { inputs: [f32(1000), f32(1000)], attrs: {} }, traits).kernel],
    ["sum", kernelSample(sum, { inputs: [f32(100, 700)], attrs: { axes: [1] } }, traits).kernel],
    [
      "matmul",
      kernelSample(matmul, { inputs: [f32(300, 200), f32(200, 400)], attrs: { ta: false, tb: false } }, traits).kernel,
    ],
  ])("%s", async (name, kernel) => {
    await expect(textOf(kernel)).toMatchFileSnapshot(`goldens/wgsl/${name}.wgsl`);
  });

  it("are there for every operation on types that WGSL has, and for no other type", () => {
    const samples = [...kernelOps.flatMap((op) => kernelSamples(op, traits)), ...largeSamples(traits)];
    let printed = 0;
    for (const { kernel } of samples) {
      if (kernel.operands.some(({ dtype, elements }) => dtype === "f64" && elements > 0)) continue;
      for (const { text } of modulesOf(kernel)) {
        expect(text).not.toMatch(/\b(f64|i64|idx|u8)\b/);
        expect(bareProducts(text)).toEqual([]);
        printed += 1;
      }
    }
    expect(printed).toBeGreaterThan(700);
    const double = kernelSample(add, { inputs: [0, 1].map(() => tensorType("f64", [4])), attrs: {} }, traits).kernel;
    expect(() => modulesOf(double)).toThrow("WGSL has no f64");
  });

  it("number blocks along two axes where one has too few", () => {
    const { kernel } = kernelSample(add, { inputs: [f32(1), f32(1)], attrs: {} }, traits);
    const [launch] = blockProgram(kernel, ADAPTER).launches;
    if (!launch) throw new Error("no launch");
    const block = { kind: "var", name: "block", extent: 200_003 } as const;
    const long = { ...launch, grid: [block] };
    const { dispatch, text } = printWgsl(long, separateLayout(long), false);
    expect(dispatch).toEqual([50_001, 4]);
    expect(text).toContain("if (block >= 200003) { return; }");
  });
});
