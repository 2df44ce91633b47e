/**
 * @file Adding an element type, on copies of the sources. With its row alone, the type checker names every place that must
 * decide about it, and what needs no decision works; with those places, and nothing else, every operation on it has the
 * bits of the interpreter on every target (docs/adding-a-type.md).
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type * as Api from "../src/api/index.ts";
import type * as Types from "../src/kernel/dtype.ts";
import type { DType } from "../src/kernel/dtype.ts";
import type * as Check from "./support/kernel-check.ts";
import type * as Samples from "./support/kernel-samples.ts";
import { ROOT } from "./support/project.ts";
import { copyWith, PLACES, ROW, TEST_PLACES } from "./support/sixteen-bits.ts";
import type * as Targets from "./support/targets.ts";

/** Of the copies, not of the sources: a name that is no element type there. */
const X16 = "x16" as DType;

/** Files in which the type checker reports an error, each once. */
function reported(folder: string): readonly string[] {
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder, "--pretty", "false"], {
    cwd: folder,
    encoding: "utf8",
  });
  return [...new Set([...stdout.matchAll(/^(\S+)\(\d+,\d+\): error/gm)].map(([, path = ""]) => path))].sort();
}

const from = <T>(folder: string, path: string): Promise<T> =>
  import(/* @vite-ignore */ pathToFileURL(join(folder, path)).href) as Promise<T>;

const folders: string[] = [];
const copied = (edits: Parameters<typeof copyWith>[0]): string => {
  const folder = copyWith(edits);
  folders.push(folder);
  return folder;
};

afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

describe("a row of an element type alone", () => {
  let folder = "";

  beforeAll(() => {
    folder = copied(ROW);
  });

  it("is a type error wherever the type must be decided about, and nowhere else", () => {
    const places = [...new Set(PLACES.map(({ path }) => path))].sort();
    expect(reported(folder)).toEqual(places);
    const page = readFileSync(join(ROOT, "docs", "adding-a-type.md"), "utf8");
    for (const place of places) expect(page).toContain(`](../${place})`);
  });

  it("is all that the host's arrays and the oracles need", async () => {
    const { storedNumber, typeOf, DTYPES } = await from<typeof Types>(folder, "src/kernel/dtype.ts");
    expect(DTYPES).toContain("x16");
    expect(storedNumber(X16, 1 + 2 ** -7 + 2 ** -8)).toBe(1 + 2 ** -6);
    // Just above the middle: rounding to f32 first makes it the middle, which goes to the even number.
    expect(storedNumber(X16, 1 + 2 ** -8 + 2 ** -30)).toBe(1);
    expect(typeOf(X16).round(Number.NaN)).toBeNaN();
    const { tensor } = await from<typeof Api>(folder, "src/api/index.ts");
    const x = tensor(
      [
        [1, Math.PI],
        [-0.1, 300],
      ],
      { dtype: X16 },
    );
    expect(x.data()).toEqual(Uint16Array.of(0x3f80, 0x4049, 0xbdcd, 0x4396));
    expect(x.toArray()).toEqual([
      [1, 3.140625],
      [-0.10009765625, 300],
    ]);
  });

  it("is refused by name where kernels are made, never taken for another type", async () => {
    const { asStored } = await from<typeof import("../src/kernel/stored.ts")>(folder, "src/kernel/stored.ts");
    const wasm = await from<typeof import("../src/codegen/wasm/elements.ts")>(folder, "src/codegen/wasm/elements.ts");
    const native = await from<typeof import("../src/codegen/native/elements.ts")>(
      folder,
      "src/codegen/native/elements.ts",
    );
    expect(() => asStored(X16, { kind: "const", dtype: "f32", value: 0 })).toThrow(/x16/);
    for (const { elementForm, STORAGE_TYPES } of [wasm, native]) {
      expect(() => elementForm(X16)).toThrow(/x16/);
      expect(STORAGE_TYPES).not.toContain(X16);
    }
    const { typeOf } = await from<typeof Types>(folder, "src/kernel/dtype.ts");
    expect(() => typeOf("x8" as DType)).toThrow(/x8/);
    const { compile, tensor } = await from<typeof Api>(folder, "src/api/index.ts");
    const twice = compile((x: Api.Tensor) => x.add(x), { target: "wasm" });
    expect(() => twice(tensor([1], { dtype: X16 }))).toThrow(/x16/);
  });
});

describe("a row and the places that the type checker names", () => {
  let folder = "";

  beforeAll(() => {
    folder = copied([...ROW, ...PLACES, ...TEST_PLACES]);
  });

  it("are all that the type checker asks for", () => {
    expect(reported(folder)).toEqual([]);
  });

  it("give every operation the bits of the interpreter on every target", async () => {
    const { kernelOps, kernelSamples } = await from<typeof Samples>(folder, "tests/support/kernel-samples.ts");
    const { check, runAll } = await from<typeof Check>(folder, "tests/support/kernel-check.ts");
    const { plainTargets } = await from<typeof Targets>(folder, "tests/support/targets.ts");
    for (const tested of plainTargets.slice(0, 2).filter(({ missing }) => missing === null)) {
      const { description } = tested.target();
      const samples = kernelOps
        .flatMap((op) => kernelSamples(op, description))
        .filter(({ kernel }) => kernel.operands.some(({ dtype }) => dtype === X16));
      expect(samples.length).toBeGreaterThan(200);
      const outcome = runAll(tested, samples);
      for (const sample of samples) {
        try {
          check(sample, outcome.get(sample) ?? []);
        } catch (error) {
          throw new Error(`${sample.name} on ${tested.name}`, { cause: error });
        }
      }
    }
  });

  it("train with it: fewer bytes, and the same bits fused or not", async () => {
    const { compile, plan, tensor, valueAndGrad } = await from<typeof Api>(folder, "src/api/index.ts");
    const data = (n: number, scale: number): Float32Array =>
      Float32Array.from({ length: n }, (_, i) => Math.sin(i) * scale);
    const step = (w: Api.Tensor, x: Api.Tensor): readonly [Api.Tensor, Api.Tensor] => {
      const [loss, dw] = valueAndGrad((v: Api.Tensor) => x.matmul(v).tanh().square().mean())(w);
      return [loss, w.sub(dw.mul(0.5))];
    };
    const inputs = (dtype: DType): readonly [Api.Tensor, Api.Tensor] => [
      tensor(data(64 * 48, 0.1), { shape: [64, 48], dtype }),
      tensor(data(32 * 64, 1), { shape: [32, 64], dtype }),
    ];
    const [loss, w] = compile(step, { target: "wasm" })(...inputs(X16));
    const [lossOne, wOne] = step(...inputs(X16));
    expect([loss.item(), w.data()]).toEqual([lossOne.item(), wOne.data()]);
    const [wanted, wantedW] = step(...inputs("f32"));
    expect(Math.abs(loss.item() / wanted.item() - 1)).toBeLessThan(0.02);
    expect(w.data()).toBeInstanceOf(Uint16Array);
    expect(wantedW.data()).toBeInstanceOf(Float32Array);
    const arenaOf = (dtype: DType): number => plan(step, { target: "wasm" })(...inputs(dtype)).arenaBytes;
    expect(arenaOf(X16)).toBeLessThan(0.75 * arenaOf("f32"));
  });
});
