/** @file Safetensors files in every type, written back in the types that they had, and checkpoints in several files. */
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fileInfo, load, loadBytes, save, saveBytes, tensor } from "../src/api/index.ts";
import { loadFile, saveFile } from "../src/node/index.ts";

const TYPES = {
  ...{ BOOL: 8, U8: 8, I8: 8, U16: 16, I16: 16, F16: 16, BF16: 16, U32: 32, I32: 32, F32: 32, U64: 64, I64: 64 },
  ...{ F64: 64, C64: 64, F8_E4M3: 8, F8_E5M2: 8, F8_E8M0: 8, F8_E4M3FNUZ: 8, F8_E5M2FNUZ: 8 },
  ...{ F6_E2M3: 6, F6_E3M2: 6, F4: 4 },
};

describe("files of every type", () => {
  it("are read and written bit by bit", () => {
    const tensors = Object.entries(TYPES).map(([type, bits], i) => {
      const bytes = Uint8Array.from({ length: (4 * bits) / 8 }, (_, k) => (37 * (i + 1) * (k + 1)) & 255);
      return [`t.${type}`, { type, shape: [2, 2], bytes }] as const;
    });
    const file = saveBytes(Object.fromEntries(tensors), { metadata: { from: "here" } });
    const read = loadBytes(file);
    expect(Object.keys(read).length).toBe(22);
    for (const [name, given] of tensors) expect(read[name]).toEqual(given);
    expect(saveBytes(read, { metadata: fileInfo(file).metadata })).toEqual(file);
    expect(() => load(file)).toThrow("which tensors cannot hold");
    expect(() => saveBytes({ x: { type: "F32", shape: [2], bytes: new Uint8Array(4) } })).toThrow("has 4 bytes");
  });

  it("have the types of the file that the tensors came from, every half and brain float exactly", () => {
    const halves = new Uint8Array(Uint16Array.from({ length: 65536 }, (_, i) => i).buffer);
    const whole = new Uint8Array(new BigInt64Array([-3n, 2n ** 31n - 1n]).buffer);
    const file = saveBytes({
      half: { type: "F16", shape: [65536], bytes: halves },
      brain: { type: "BF16", shape: [65536], bytes: halves },
      ids: { type: "I64", shape: [2], bytes: whole },
    });
    const types = Object.fromEntries(fileInfo(file).tensors.map(({ name, type }) => [name, type]));
    const back = loadBytes(save(load(file), { types }));
    expect(back.ids?.bytes).toEqual(whole);
    for (const [name, exponent] of [["half", 0x7c00] as const, ["brain", 0x7f80] as const]) {
      const bits = new Uint16Array((back[name]?.bytes ?? new Uint8Array(2)).slice().buffer);
      const wrong = [...bits].findIndex((b, i) => b !== i && (i & 0x7fff) <= exponent);
      expect(wrong).toBe(-1);
      // numbers that are none stay such
      expect([...bits].every((b, i) => (i & 0x7fff) <= exponent || (b & 0x7fff) > exponent)).toBe(true);
    }
  });

  it("round to the nearest, ties to even, and refuse whole numbers that do not fit", () => {
    const x = tensor([1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519, 65520, 2 ** -25, 3 * 2 ** -25]);
    const read = load(save({ x }, { types: { x: "F16" } }));
    expect(read.x?.toArray()).toEqual([1, 1 + 2 ** -9, 65504, Number.POSITIVE_INFINITY, 0, 2 ** -23]);
    const i = tensor([256], { dtype: "i32" });
    expect(() => save({ i }, { types: { i: "U8" } })).toThrow("which U8 cannot hold");
    expect(() => save({ i }, { types: { i: "F16" } })).toThrow("cannot be written as F16");
  });
});

describe("a checkpoint in several files", () => {
  const tree = { a: tensor([1, 2, 3]), b: [tensor([4], { dtype: "i32" }), tensor([5, 6])], c: tensor([true]) };

  it("is written with its index and read back, whole or in part", async () => {
    const folder = mkdtempSync(join(tmpdir(), "shards-"));
    const path = join(folder, "model.safetensors");
    await saveFile(path, tree, { shardBytes: 12, metadata: { step: "7" } });
    expect(readdirSync(folder).sort()).toEqual([
      "model-00001-of-00003.safetensors",
      "model-00002-of-00003.safetensors",
      "model-00003-of-00003.safetensors",
      "model.safetensors.index.json",
    ]);
    const index = `${path}.index.json`;
    const { weight_map, metadata } = JSON.parse(readFileSync(index, "utf8"));
    expect(weight_map.a).toBe("model-00001-of-00003.safetensors");
    expect(metadata.total_size).toBe(25);
    const back = await loadFile(index, tree);
    expect(back.b[1]?.toArray()).toEqual([5, 6]);
    expect(Object.keys(await loadFile(index)).sort()).toEqual(["a", "b.0", "b.1", "c"]);
    const part = await loadFile(index, { a: tensor([0, 0, 0]) }, { extra: "ignore" });
    expect(part.a.toArray()).toEqual([1, 2, 3]);
    await expect(loadFile(index, { z: tensor([0]) })).rejects.toThrow("the file lacks z");
  });

  it("with a damaged index is refused", async () => {
    const folder = mkdtempSync(join(tmpdir(), "shards-"));
    const index = join(folder, "model.safetensors.index.json");
    await saveFile(join(folder, "x.safetensors"), { w: tensor([1]) });
    const cases: Readonly<Record<string, string>> = {
      "{": "not JSON",
      "[]": "no weight_map",
      '{"weight_map":{"w":"../x.safetensors"}}': "no file beside it",
      '{"weight_map":{"w":"a/x.safetensors"}}': "no file beside it",
      '{"weight_map":{"w":7}}': "no file beside it",
      '{"weight_map":{"v":"x.safetensors"}}': "which lacks it",
      '{"weight_map":{"w":"gone.safetensors"}}': "cannot be read",
    };
    for (const [text, words] of Object.entries(cases)) {
      writeFileSync(index, text);
      await expect(loadFile(index)).rejects.toThrow(words);
    }
  });
});
