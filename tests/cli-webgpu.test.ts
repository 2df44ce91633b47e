/** @file The command line with `--target webgpu`, on a driver without a GPU (support/webgpu-here.ts). */
import { describe, expect, it, vi } from "vitest";
import { main } from "../src/cli/main.ts";
import { gpuHere, missingGpu } from "./support/webgpu-here.ts";

vi.mock("../src/node/webgpu.ts", async (original) => {
  const { nodeGpu } = await original<typeof import("../src/node/webgpu.ts")>();
  // the package is in a folder of its own, where commands would not find it
  return { nodeGpu: (from?: string) => (from === undefined ? gpuHere() : nodeGpu(from)) };
});

const PROGRAM = new URL("fixtures/line-program.ts", import.meta.url).pathname;

async function command(...argv: readonly string[]) {
  let [out, err] = ["", ""];
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  return { code: await main(argv, io), out, err };
}

const figuresOf = async (...argv: readonly string[]): Promise<Record<string, unknown>> => {
  const { code, out, err } = await command(...argv, "--json");
  expect([code, err]).toEqual([0, expect.any(String)]);
  return JSON.parse(out) as Record<string, unknown>;
};

describe.skipIf(missingGpu !== null)("--target webgpu", () => {
  it("is there for the doctor, with the adapter's name", async () => {
    const { targets } = await figuresOf("doctor");
    const [state] = (targets as { name: string }[]).filter(({ name }) => name === "webgpu");
    expect(state).toEqual({ name: "webgpu", available: true, note: expect.stringContaining("llvmpipe") });
  });

  it("trains with the losses and the state of WebAssembly, and plans with rates of its own", async () => {
    const run = (target: string) => figuresOf("bench", PROGRAM, "--steps", "3", "--target", target);
    const [gpu, wasm] = [await run("webgpu"), await run("wasm")];
    expect(gpu).toMatchObject({ target: "webgpu", losses: wasm.losses, stateHash: wasm.stateHash });
    const planned = await figuresOf("plan", PROGRAM, "--target", "webgpu");
    expect(planned.predictedMs).toBeGreaterThan(wasm.predictedMs as number);
  });

  it("is weighed by `auto` against the others, and is slower where there is no GPU", async () => {
    const { code, err } = await command("plan", PROGRAM, "--target", "auto");
    expect(code).toBe(0);
    expect(err).toMatch(/^predicted: [\d.e+-]+ ms on webgpu, [\d.e+-]+ on (native|wasm)/m);
  });

  it("times no single kernels, and says so before anything runs", async () => {
    const { code, err } = await command("bench", PROGRAM, "--target", "webgpu", "--profile");
    expect(code).toBe(1);
    expect(err).toContain("TargetUnsupported: bench: webgpu times no single kernels, and --profile needs that");
  });
});
