/**
 * @file The built-in programs start from the numbers that the benchmark of other libraries starts from, bit for bit. The
 * hashes are of that benchmark's own arrays: parameters in their order, then inputs and targets of the batch.
 */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { typeText } from "../../ir/type.ts";
import { storageOf, type Tensor } from "../../trace/tensor.ts";
import { flatten } from "../../trace/tree.ts";
import { ALL_PROGRAMS, type AnyProgram, BUILT_IN, LARGE } from "./built-in.ts";
import { classIds, hash01, uniform } from "./data.ts";

const EXPECTED: readonly (readonly [name: string, params: number, paramsHash: string, batchHash: string])[] = [
  ["mlp", 6, "b6efe31f3aeb7dc015be3e6104345acf", "d1a0a9c87f9a02a7a3344a770054b56f"],
  ["cnn", 8, "289b7e4bc801ff2720e8b491c1dfd04b", "0391eaac0ccc0fd56535fc3b5f6543e2"],
  ["lstm", 5, "d5205420426fba5c9372bd6177cc2568", "a87f0b849b01a187cd176bcb1b9b2c32"],
  ["gpt", 53, "872ca704e6588bf2d2d91c440db9056f", "499d3339d811d10441e53e99719db5fd"],
  ["chain64", 128, "eebfdf647786fdeef8472b720fa29799", "fe4d2bccacc08170dc4ae3f43c081f06"],
  ["chain256", 512, "031f01e84669d90741da94f78594720f", "fe4d2bccacc08170dc4ae3f43c081f06"],
];

function hashOf(tensors: readonly Tensor[]): string {
  const hash = createHash("sha256");
  for (const x of tensors) {
    const { buffer, byteOffset, byteLength } = storageOf(x).read();
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  }
  return hash.digest("hex").slice(0, 32);
}

describe("the generator", () => {
  it("gives the numbers of the benchmark", () => {
    expect([0, 1, 2].map((i) => hash01(i, 10001))).toEqual([
      0.8403573611285537, 0.37659908062778413, 0.837335133459419,
    ]);
    expect([...uniform([3], 10001, 1).data()]).toEqual([0.6807147264480591, -0.24680183827877045, 0.6746702790260315]);
    expect([...classIds(3, 10002, 10)]).toEqual([5, 3, 2]);
  });
});

describe("built-in programs", () => {
  it.each(EXPECTED)("%s starts from the numbers of the benchmark", (name, count, paramsHash, batchHash) => {
    const program = BUILT_IN.find((p) => p.name === name) as AnyProgram;
    const { params } = program.init() as { params: object };
    const { leaves } = flatten(params, "params");
    expect(leaves).toHaveLength(count);
    expect(hashOf(leaves)).toBe(paramsHash);
    expect(hashOf(program.batch())).toBe(batchHash);
  });

  it("have distinct names, and steps named like them", () => {
    const names = ALL_PROGRAMS.map((program) => program.name);
    expect(new Set(names).size).toBe(names.length);
    expect(ALL_PROGRAMS.map((program) => program.step.name)).toEqual(names);
    expect(EXPECTED.map(([name]) => name)).toEqual(BUILT_IN.map((program) => program.name));
  });

  it.each(BUILT_IN.map((program) => [program.name, program] as const))("%s has specs of its values", (_, program) => {
    const types = (args: readonly unknown[]): readonly string[] => flatten(args, "args").leaves.map(typeText);
    expect(types(program.specs?.() ?? [])).toEqual(types([program.init(), ...program.batch()]));
  });
});

describe("large programs", () => {
  // of the published models: torchvision's resnet50, He et al. 2016, Radford et al. 2019, Ronneberger et al. 2015
  it.each([
    ["resnet50", 25_557_032],
    ["resnet1001", 10_328_154],
    ["gpt2-small", 124_439_808],
    ["unet", 31_030_658],
  ])("%s has %i parameters", (name, count) => {
    const [state] = LARGE.find((program) => program.name === name)?.specs?.() ?? [];
    const { leaves } = flatten((state as { params: object }).params, "params");
    expect(leaves.reduce((sum, leaf) => sum + leaf.elements, 0)).toBe(count);
    expect(() => leaves[0]?.data()).toThrow("is a spec: it has a type and no elements");
  });
});
