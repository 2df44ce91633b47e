/** @file Which target `auto` takes where there is a GPU beside the processor, and what can be planned for a GPU that is not here. */
import { describe, expect, it } from "vitest";
import { fastestFor, plainHost, targetOf } from "../src/api/host.ts";
import { matmul, plan, spec, type Tensor } from "../src/api/index.ts";
import "../src/api/methods.ts";
import { TidemarkError } from "../src/base/errors.ts";
import { webgpuDescription } from "../src/codegen/wgsl/description.ts";
import { cudaNamed } from "../src/node/cuda/public.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import { chooseTarget } from "../src/runtime/choose-target.ts";
import type { Target, TargetAnswer, TargetRequest } from "../src/runtime/device.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { flattenArguments, traceFlat } from "../src/trace/function.ts";

const NO_DRIVER = /no CUDA d/;
/** A description of a GPU, whether or not there is one. */
const described = (request: TargetRequest): TargetAnswer => cudaNamed({ ...request, isPlanned: true });
const host = { ...plainHost(), targets: { native: nativeTarget, cuda: described } };

const productOf = (n: number) => {
  const fn = (x: Tensor, y: Tensor): Tensor => matmul(x, y);
  return traceFlat(fn as never, flattenArguments(fn as never, [spec([n, n]), spec([n, n])]));
};

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return error instanceof TidemarkError ? `${error.code}: ${error.summary}` : String(error);
  }
  return "nothing thrown";
}

describe("auto", () => {
  it("takes the GPU for large products and the processor for small ones, with both times", () => {
    const auto = chooseTarget(host, "auto");
    const [small, large] = [fastestFor(productOf(8), auto), fastestFor(productOf(2048), auto)];
    expect([small.target.description.name, large.target.description.name]).toEqual(["native", "cuda"]);
    expect(large.note).toMatch(/^predicted: [\d.e+-]+ ms on cuda, [\d.e+-]+ on native/);
    expect(large.instead?.("the device is gone").note).toBe("native, not cuda: the device is gone");
  });

  it("weighs WebGPU too once it has been waited for, and takes the next one where a program cannot be loaded", () => {
    const options = { storageBuffers: 8, bindingBytes: 2 ** 27, bufferBytes: 2 ** 28, sharedBytes: 2 ** 14 };
    const rest = { fma: true, exactly: false, rounding: null };
    const on = (isSoftware: boolean): Target => ({
      ...wasmTarget(),
      description: webgpuDescription({ ...options, ...rest, isSoftware }),
    });
    const auto = (isSoftware: boolean, cuda: boolean) => {
      const targets = { native: nativeTarget, ...(cuda ? { cuda: described } : {}), webgpu: () => on(isSoftware) };
      return fastestFor(productOf(2048), chooseTarget({ ...host, targets }, "auto"));
    };
    expect(auto(false, false).note).toMatch(/^predicted: [\d.e+-]+ ms on webgpu, [\d.e+-]+ on native/);
    expect([auto(false, false).name, auto(true, false).name, auto(false, true).name]).toEqual([
      "webgpu",
      "native",
      "cuda",
    ]);
    const next = auto(false, true).instead?.("the driver is gone");
    expect([next?.name, next?.note]).toEqual(["webgpu", "webgpu, not cuda: the driver is gone"]);
    expect(next?.instead?.("it needs f64").note).toBe("native, not webgpu: it needs f64");
  });

  it("takes the GPU where threads are asked for, which are the processor's", () => {
    const auto = chooseTarget(host, "auto", { threads: 2 });
    expect(auto.target.threads).toBe(2);
    expect(fastestFor(productOf(2048), auto).target.description.name).toBe("cuda");
  });

  it("leaves out GPUs that are not there, also for plans", () => {
    const absent = { ...host, targets: { native: nativeTarget, cuda: cudaNamed } };
    if (typeof cudaNamed({}) === "string")
      expect(chooseTarget(absent, "auto", { isPlanned: true }).fastest).toBeUndefined();
  });

  it("is the processor where nothing is known of the program", () => {
    expect(targetOf({ target: "auto" }, host).target.description.name).toBe("native");
  });

  it("asks no GPU about times where there is none", () => {
    const { fastest } = chooseTarget({ ...host, targets: { native: nativeTarget } }, "auto");
    expect(fastest).toBeUndefined();
  });
});

describe("products", () => {
  it("in tf32 are refused by targets that have no tensor cores", () => {
    expect(codeOf(() => chooseTarget(host, "wasm", { products: "tf32" }))).toBe(
      "TargetUnsupported: wasm multiplies in f32, not in tf32",
    );
    expect(chooseTarget(host, "cuda", { products: "tf32" }).target.description.arithmetic.name).toMatch(/tf32/);
  });

  it("that do not exist are an error", () => {
    const wrong = () => plan((x: Tensor) => x.sum(), { target: "wasm", products: "f8" as never });
    expect(codeOf(wrong)).toBe('InvalidArgument: plan: products is the string "f8"');
    const both = () => plan((x: Tensor) => x.sum(), { target: wasmTarget(), products: "f32" });
    expect(codeOf(both)).toMatch(/^InvalidArgument: plan: products is f32, and the target is an object/);
  });
});

describe.skipIf(typeof cudaNamed({}) !== "string")("without a GPU", () => {
  it("programs are planned for an H200 and not run", () => {
    const { target, note } = chooseTarget(host, "cuda");
    expect(note).toMatch(/^planned for an H200: /);
    expect(codeOf(() => target.allocate())).toMatch(NO_DRIVER);
    expect(codeOf(() => chooseTarget({ ...host, targets: { cuda: cudaNamed } }, "cuda"))).toMatch(NO_DRIVER);
  });
});

it("threads are not for a GPU", () => {
  expect(cudaNamed({ threads: 4 })).toBe("cuda runs on all multiprocessors: leave threads out, which is 4");
});
