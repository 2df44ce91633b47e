/** @file The command line with `--target native`. */
import { describe, expect, it } from "vitest";
import { main } from "../src/cli/main.ts";
import { plainTargets, type TestedTarget } from "./support/targets.ts";

/** The JSON that a command prints. */
async function figuresOf(...argv: readonly string[]): Promise<Record<string, unknown>> {
  let out = "";
  const io = {
    out: (text: string) => {
      out += text;
    },
    err: () => {},
  };
  expect(await main([...argv, "--json"], io)).toBe(0);
  return JSON.parse(out) as Record<string, unknown>;
}

const native = plainTargets[1] as TestedTarget;

describe.skipIf(native.missing)("--target native", () => {
  it("trains as on WebAssembly, to rounding, on one thread and on two", async () => {
    const run = (...more: string[]): Promise<Record<string, unknown>> =>
      figuresOf("bench", "mlp", "--steps", "3", ...more);
    const one = await run("--target", "native");
    const two = await run("--target", "native", "--threads", "2");
    const auto = await run("--target", "auto");
    const wasm = await run();
    expect([one.target, two.target, auto.target, wasm.target]).toEqual(["native", "native", "native", "wasm"]);
    expect([one.threads, two.threads]).toEqual([1, 2]);
    expect(two.stateHash).toBe(one.stateHash);
    expect(auto.stateHash).toBe(one.stateHash);
    const apart = (one.losses as number[]).map((loss, i) => Math.abs(loss - ((wasm.losses as number[])[i] as number)));
    expect(Math.max(...apart)).toBeLessThan(1e-3);
  });

  it("plans with the rates of native", async () => {
    const there = await figuresOf("plan", "mlp");
    const here = await figuresOf("plan", "mlp", "--target", "native");
    expect(here).toMatchObject({ target: "native", persistentBytes: there.persistentBytes });
    expect(here.predictedMs).toBeLessThan(there.predictedMs as number);
  });

  it("is there for the doctor", async () => {
    const { targets } = await figuresOf("doctor");
    expect(targets).toContainEqual(expect.objectContaining({ name: "native", available: true }));
  });
});
