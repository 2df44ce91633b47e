/** @file Tests of feature detection, on the engine at hand and on engines that are made up. */
import { setFlagsFromString } from "node:v8";
import { afterEach, describe, expect, it, vi } from "vitest";
import { detectFeatures, probeFeatures } from "./features.ts";

type Numbers = Float32Array | Float64Array;

/** An engine that accepts modules as told and computes x · x + y with `madd`: x at byte 0, y at 8, the result at 16. */
function stubEngine(accepts: readonly boolean[], madd: (x: number, y: number, round: (n: number) => number) => number) {
  const answers = [...accepts];
  let calls = 0;
  class Memory {
    readonly buffer = new ArrayBuffer(64);
  }
  class Instance {
    readonly exports: Readonly<Record<string, () => void>>;
    constructor(_module: unknown, { env }: { env: { memory: Memory } }) {
      const single = calls++ === 0;
      const all: Numbers = single ? new Float32Array(env.memory.buffer) : new Float64Array(env.memory.buffer);
      const at = (byte: number): number => byte / all.BYTES_PER_ELEMENT;
      const result = madd(all[0] ?? 0, all[at(8)] ?? 0, single ? Math.fround : (n) => n);
      this.exports = { probe: () => void all.fill(result, at(16), at(32)) };
    }
  }
  vi.stubGlobal("WebAssembly", { Memory, Instance, Module: class {}, validate: () => answers.shift() ?? false });
}

const roundsTwice = (x: number, y: number, round: (n: number) => number): number => round(round(x * x) + y);
/** x = 1 + ε: the exact result is ε². */
const roundsOnce = (x: number): number => (x - 1) ** 2;

describe("features", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("of every supported engine include vectors", () => {
    expect(probeFeatures().simd).toBe(true);
  });

  it("are asked for once", () => {
    const first = detectFeatures();
    stubEngine([false], roundsTwice);
    expect(detectFeatures()).toBe(first);
    expect(probeFeatures()).toEqual({ simd: false, relaxedMadd: false });
  });

  it("include multiply-add where it rounds once", () => {
    stubEngine([true, true, true], roundsOnce);
    expect(probeFeatures()).toEqual({ simd: true, relaxedMadd: true });
  });

  it("leave multiply-add out where it rounds twice or where one type lacks it", () => {
    stubEngine([true, true, true], roundsTwice);
    expect(probeFeatures()).toEqual({ simd: true, relaxedMadd: false });
    stubEngine([true, true, false], roundsOnce);
    expect(probeFeatures()).toEqual({ simd: true, relaxedMadd: false });
  });

  it("change with the engine's flags, so they are not guessed from versions", () => {
    const before = probeFeatures();
    // Node 20 has it behind this flag; the engines that do not know the flag have it without.
    if (!before.relaxedMadd) setFlagsFromString("--experimental-wasm-relaxed-simd");
    expect(probeFeatures().simd).toBe(before.simd);
    expect(probeFeatures().relaxedMadd).toBe(hasFusedHardware());
  });
});

/** V8 refuses nothing: without fused hardware it multiplies, then adds. Every x64 since 2013 and every arm64 fuses. */
function hasFusedHardware(): boolean {
  return process.arch === "arm64" || process.arch === "x64";
}
