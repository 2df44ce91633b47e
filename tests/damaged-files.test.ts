/**
 * @file Damaged files of every kind: each is read, or refused by an error that says what is wrong, in bounded memory; and files that are made to harm.
 * Some here; thousands in damaged-files-all.test.ts (`npm run test:slow`).
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { compile, loadNpz, loadShards, spec, type Tensor } from "../src/api/index.ts";
import { readOnnx } from "../src/exchange/onnx/index.ts";
import { readPt2 } from "../src/exchange/pt2/index.ts";
import { readModel } from "../src/node/index.ts";
import { entriesOfFile } from "../src/view/read-file.ts";
import * as write from "./onnx/write.ts";
import { problemsOf } from "./support/changed-programs.ts";
import { damaged, KINDS, problemWith } from "./support/damage.ts";

const SOME = 60;

describe("damaged files", () => {
  it.each(KINDS.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
    for (const file of kind.files) expect(() => kind.read(file)).not.toThrow();
    for (let seed = 0; seed < SOME; seed++) {
      expect(problemWith(kind, damaged(kind, seed)), `${kind.name}, seed ${seed}`).toBe(null);
    }
  });
});

/** A pickle of protocol 4 from instructions. */
const pickle = (...parts: readonly (number | string)[]): Uint8Array =>
  Uint8Array.from([
    0x80,
    4,
    ...parts.flatMap((part) => (typeof part === "number" ? [part] : [...new TextEncoder().encode(part)])),
  ]);

describe("files that are made to harm", () => {
  const snapshot = (bytes: Uint8Array): unknown => entriesOfFile("x.pickle", bytes);

  it("pickles that call are refused, and nothing is executed", () => {
    const mark = join(tmpdir(), `harm-${process.pid}`);
    // c os\\nsystem\\n ( V touch … \\n t R .
    const calls = pickle("cos\nsystem\n", "(", `Vtouch ${mark}\n`, "tR.");
    expect(() => snapshot(calls)).toThrow(/GLOBAL/);
    expect(() => snapshot(pickle("\x8c\x02os\x8c\x06system\x93".replaceAll("\x93", "")))).toThrow();
    expect(existsSync(mark)).toBe(false);
  });

  it("pickles that contain themselves, or one list a million times, end", () => {
    // ] memoized, appended to itself
    expect(() => snapshot(pickle("]", 0x94, "h", 0, "a."))).toThrow(/snapshot/);
    // lists of ten of the list before, ten deep
    const deep: (number | string)[] = ["]", 0x94];
    for (let n = 0; n < 10; n++) {
      deep.push("(");
      for (let k = 0; k < 10; k++) deep.push("h", n);
      deep.push("l", 0x94);
    }
    expect(() => snapshot(pickle(...deep, "."))).toThrow(/snapshot/);
  });

  it("archives that unpack to more than they say, or out of their folder, are refused", () => {
    const bomb = deflateRawSync(new Uint8Array(2 ** 24));
    const entry = zipOf([{ name: "a.npy", method: 8, data: bomb, size: 64 }]);
    expect(() => loadNpz(entry)).toThrow("an entry is longer than the archive says");
    const honest = zipOf([{ name: "a.npy", method: 8, data: bomb, size: 2 ** 24 }]);
    expect(() => loadNpz(honest)).toThrow();
    expect(() =>
      readPt2(zipOf([{ name: "../x/models/model.json", method: 0, data: new Uint8Array(2), size: 2 }])),
    ).toThrow();
  });

  it("paths that leave the folder are refused", async () => {
    const folder = mkdtempSync(join(tmpdir(), "harm-"));
    for (const location of ["../secret", "/etc/hostname", "a/../../secret", "C:\\secret"]) {
      const weight = { name: "w", type: write.FLOAT, shape: [1], data: [], external: { location } };
      const file = write.model({
        nodes: [{ kind: "Add", inputs: ["x", "w"], outputs: ["y"] }],
        weights: [weight],
        inputs: [one("x")],
        outputs: [one("y")],
      });
      writeFileSync(join(folder, "model.onnx"), file);
      await expect(readModel(join(folder, "model.onnx"))).rejects.toThrow(/folder|outside|location/);
    }
    const index = new TextEncoder().encode(JSON.stringify({ weight_map: { a: "../secret.safetensors" } }));
    await expect(loadShards(index, () => new Blob([]))).rejects.toThrow();
    rmSync(folder, { recursive: true });
  });

  it("functions that call others twice, forty deep, are refused", () => {
    const calls = (name: string) => [
      { kind: name, domain: "mine", inputs: ["v"], outputs: ["h"] },
      { kind: name, domain: "mine", inputs: ["h"], outputs: ["o"] },
    ];
    const functions = Array.from({ length: 40 }, (_, i) => ({
      ...{ name: `f${i}`, domain: "mine", inputs: ["v"], outputs: ["o"] },
      nodes: i === 0 ? [{ kind: "Identity", inputs: ["v"], outputs: ["o"] }] : calls(`f${i - 1}`),
    }));
    const nodes = [{ kind: "f39", domain: "mine", inputs: ["x"], outputs: ["y"] }];
    const model = readOnnx(write.model({ nodes, functions, inputs: [one("x")], outputs: [one("y")] }));
    expect(() => model.apply(model.params, model.specs())).toThrow("more than 500,000 nodes");
  });

  it("loops in loops are not written out", () => {
    const scalar = (name: string, type: number): write.ValueParts => ({ name, type, shape: [] });
    const loop = (depth: number): { nodes: write.NodeParts[]; weights: write.TensorParts[] } => {
      const name = (text: string): string => `${text}${depth}`;
      const inner = depth === 0 ? { nodes: [{ kind: "Identity", inputs: ["v0"], outputs: ["o0"] }] } : loop(depth - 1);
      const body = write.graph({
        ...inner,
        inputs: [scalar(name("i"), write.INT64), scalar(name("c"), write.BOOL), one(name("v"))],
        nodes: [...inner.nodes, { kind: "Identity", inputs: [name("c")], outputs: [name("d")] }],
        outputs: [scalar(name("d"), write.BOOL), one(depth === 0 ? "o0" : `r${depth - 1}`)],
      });
      const from = `v${depth + 1}`;
      const node = {
        kind: "Loop",
        inputs: [name("n"), "", from],
        outputs: [name("r")],
        attributes: { body: { graph: body } },
      };
      return { nodes: [node], weights: [{ name: name("n"), type: write.INT64, shape: [], data: [64] }] };
    };
    const file = write.model({ ...loop(5), inputs: [one("v6")], outputs: [one("r5")] });
    const model = readOnnx(file);
    const planned = compile((x: Tensor) => model.apply(model.params, [x])).program(spec([1]));
    expect(planned.arenaBytes).toBeLessThan(4096);
  });

  it("graphs that need themselves are refused", () => {
    const loop = write.model({
      nodes: [
        { kind: "Add", inputs: ["x", "b"], outputs: ["a"] },
        { kind: "Add", inputs: ["a", "x"], outputs: ["b"] },
      ],
      inputs: [one("x")],
      outputs: [one("b")],
    });
    const model = readOnnx(loop);
    expect(() => model.apply(model.params, model.specs())).toThrow();
  });
});

const one = (name: string): write.ValueParts => ({ name, type: write.FLOAT, shape: [1] });

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly data: Uint8Array;
  /** What the archive says that it has unpacked. */
  readonly size: number;
}

/** An archive that says what it is told to. */
function zipOf(entries: readonly Entry[]): Uint8Array {
  const parts: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const { name, method, data, size } of entries) {
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(20, 4);
    head.writeUInt16LE(method, 8);
    head.writeUInt32LE(data.length, 18);
    head.writeUInt32LE(size, 22);
    head.writeUInt16LE(name.length, 26);
    const row = Buffer.alloc(46);
    row.writeUInt32LE(0x02014b50, 0);
    row.writeUInt16LE(20, 6);
    row.writeUInt16LE(method, 10);
    row.writeUInt32LE(data.length, 20);
    row.writeUInt32LE(size, 24);
    row.writeUInt16LE(name.length, 28);
    row.writeUInt32LE(at, 42);
    parts.push(head, Buffer.from(name), Buffer.from(data));
    central.push(row, Buffer.from(name));
    at += 30 + name.length + data.length;
  }
  const length = central.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(length, 12);
  end.writeUInt32LE(at, 16);
  return Uint8Array.from(Buffer.concat([...parts, ...central, end]));
}

describe("programs and configs with wrong descriptions", () => {
  it("are read, or refused with a clear error", () => {
    expect(problemsOf(Array.from({ length: 30 }, (_, i) => i))).toEqual([]);
  });
});
