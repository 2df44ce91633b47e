/** @file The calibration on disk: written, found again, and ignored where it does not belong or makes no sense. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type MachineFile, machineModel, machinePath, ratesText, storeModel } from "./machine.ts";
import { main } from "./main.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-cache-"));
const before = process.env.TIDEMARK_CACHE;

beforeAll(() => {
  process.env.TIDEMARK_CACHE = join(folder, "cache");
});
afterAll(() => {
  if (before === undefined) delete process.env.TIDEMARK_CACHE;
  else process.env.TIDEMARK_CACHE = before;
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => rmSync(join(folder, "cache"), { recursive: true, force: true }));

async function tidemark(...argv: readonly string[]): Promise<{ code: number; out: string; err: string }> {
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

/** The model and what was said about it. */
const path = (): string => machinePath() as string;

function read(): { readonly found: ReturnType<typeof machineModel>; readonly said: readonly string[] } {
  const said: string[] = [];
  return { found: machineModel((text) => said.push(text)), said };
}

/** A calibration of this machine with one rate that is easy to recognise. */
function keep(): MachineFile {
  expect(storeModel({ ...read().found.costs, productRate: 123e9 }, new Date(0))).toBeNull();
  return JSON.parse(readFileSync(path(), "utf8")) as MachineFile;
}

const write = (value: unknown): void => writeFileSync(path(), JSON.stringify(value));

describe("the calibration on disk", () => {
  it("is found again where it was made", () => {
    expect(read().found).toMatchObject({ costModel: "default", date: null });
    expect(keep()).toMatchObject({ version: 1, date: "1970-01-01T00:00:00.000Z", node: process.versions.node });
    const { found, said } = read();
    expect(found).toMatchObject({ costModel: "calibrated", date: "1970-01-01T00:00:00.000Z" });
    expect(found.costs.productRate).toBe(123e9);
    expect(ratesText(found.costs)).toContain("products 123.0 GFLOP/s");
    expect(said).toEqual([]);
    // nothing is left beside it
    expect(readdirSync(join(folder, "cache"))).toHaveLength(1);
  });

  it("is not that of another processor, another Node or another target", () => {
    const file = keep();
    for (const other of [{ cpu: "abacus" }, { node: "3.1.4" }, { target: "paper" }]) {
      write({ ...file, ...other });
      expect(read()).toMatchObject({ found: { costModel: "default" }, said: [] });
    }
    write({ ...file, node: `${process.versions.node.split(".")[0]}.999.0` });
    expect(read().found.costModel).toBe("calibrated");
  });

  it("is ignored with one line where it is broken or hostile", () => {
    const file = keep();
    const rates = (wrong: object): unknown => ({ ...file, rates: { ...file.rates, ...wrong } });
    const texts = [
      "",
      JSON.stringify(file).slice(0, 100),
      "null",
      "[]",
      '{"__proto__": {"version": 1}}',
      JSON.stringify({ ...file, version: 2 }),
      JSON.stringify({ ...file, rates: null }),
      JSON.stringify({ ...file, cpu: 7 }),
      JSON.stringify({ ...file, date: "x".repeat(1000) }),
      JSON.stringify(rates({ productRate: -1 })),
      JSON.stringify(rates({ productRate: 0 })),
      JSON.stringify(rates({ byteRate: null })),
      JSON.stringify(rates({ callSeconds: "1" })),
      JSON.stringify(rates({ arithmeticRate: 1e300 })).replace("1e+300", "1e999"),
      JSON.stringify({ ...file, more: "x".repeat(100_000) }),
    ];
    for (const text of texts) {
      writeFileSync(path(), text);
      const { found, said } = read();
      expect(found, text.slice(0, 200)).toMatchObject({ costModel: "default" });
      expect(said).toHaveLength(1);
      expect(said[0]).toMatch(/^\S+ is ignored: .*; tidemark calibrate writes a new one\n$/);
    }
  });

  it("counts for nothing in a folder that others can write, and is not kept there", () => {
    keep();
    chmodSync(join(folder, "cache"), 0o777);
    const { found, said } = read();
    expect(found.costModel).toBe("default");
    expect(said.join()).toMatch(/is ignored: .*others can write to it \(mode 777; chmod 700\)/);
    expect(storeModel(found.costs, new Date(0))).toMatch(/others can write to it/);
    chmodSync(join(folder, "cache"), 0o700);
    expect(read().found.costModel).toBe("calibrated");
  });

  it("may be a folder, which is ignored too", () => {
    mkdirSync(path(), { recursive: true });
    const { found, said } = read();
    expect(found.costModel).toBe("default");
    expect(said).toHaveLength(1);
    expect(storeModel(found.costs, new Date(0))).not.toBeNull();
    expect(readdirSync(join(folder, "cache"))).toHaveLength(1);
  });
});

describe("tidemark calibrate", () => {
  it("keeps what it measured, and plan and doctor use it", async () => {
    const graph = join(folder, "twice.ir");
    writeFileSync(graph, "func twice(x: f32[64,64]) {\n  y: f32[64,64] = matmul(x, x)\n  return y\n}\n");
    const plain = await tidemark("plan", graph, "--json");
    expect(JSON.parse(plain.out)).toMatchObject({ costModel: "default" });
    const { code, out } = await tidemark("calibrate", "--quick", "--json");
    expect(code).toBe(0);
    const { kept, model, samples } = JSON.parse(out) as Record<string, unknown>;
    expect(kept).toBe(path());
    expect(model).toMatchObject({ productRate: expect.any(Number) as number });
    expect((samples as unknown[]).length).toBeGreaterThan(10);
    const calibrated = await tidemark("plan", graph, "--json");
    expect(calibrated.err).toBe("");
    expect(JSON.parse(calibrated.out)).toMatchObject({ costModel: "calibrated" });
    expect((await tidemark("doctor")).out).toMatch(/speed +calibrated \d{4}-\d\d-\d\d: products/);
  });

  it("goes on where the folder cannot be written, and says so", async () => {
    writeFileSync(join(folder, "file"), "");
    process.env.TIDEMARK_CACHE = join(folder, "file", "below");
    try {
      const { code, out, err } = await tidemark("calibrate", "--quick");
      expect(code).toBe(0);
      expect(out).toContain("products");
      expect(err).toMatch(
        /^the rates are not stored: .*below: a part of the path is not a folder; set TIDEMARK_CACHE to another folder\n$/,
      );
    } finally {
      process.env.TIDEMARK_CACHE = join(folder, "cache");
    }
    expect(existsSync(path())).toBe(false);
  });

  it("explains itself", async () => {
    expect((await tidemark("calibrate", "--help")).out).toContain("TIDEMARK_CACHE");
    expect((await tidemark("--help")).out).toContain("calibrate");
  });
});
