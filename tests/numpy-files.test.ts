/** @file NumPy's files: one that NumPy wrote, all types, both byte orders, round trips, and damage. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadNpy, loadNpz, saveNpy, saveNpz, TidemarkError, tensor } from "../src/api/index.ts";
import { loadFile, saveFile } from "../src/node/index.ts";

/**
 * Written by numpy 1.24: savez_compressed(f, a=arange(6, dtype='>i2').reshape(2, 3),
 * w=asfortranarray(arange(6, dtype='f4').reshape(2, 3)), h=array([0.5, -2], 'f2'))
 */
const COMPRESSED =
  "UEsDBC0AAAAIAAAAIQCQvN3C//////////8FABQAYS5ucHkBABAAjAAAAAAAAABSAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6XaaSuo6Cell9UUpSYF59flJIK" +
  "EndLzClOBYoXZyQWpAL5GkY6CsaaOgq1CmQDLgYGBkYGJgZmBhYGVgBQSwMELQAAAAgAAAAhAM4s4NP//////////wUAFAB3Lm5weQEAEACYAAAAAAAAAFYAAAAAAAAA" +
  "m+wX6hsQychQxlCtnpJanFykbqWgbpNmoq6joJ6WX1RSlJgXn1+UkgoSDykqTQUKF2ckFqQCuRpGOgrGmjoKtQrkAy4GMHBwYGBosAdiBxCHgWGBAwBQSwMELQAAAAgA" +
  "AAAhAAG9Dwj//////////wUAFABoLm5weQEAEACEAAAAAAAAAEgAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgbpNmpK6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBak" +
  "AvkaRjqaOgq1ChQALgYLhgMAUEsBAi0DLQAAAAgAAAAhAJC83cJSAAAAjAAAAAUAAAAAAAAAAAAAAIABAAAAAGEubnB5UEsBAi0DLQAAAAgAAAAhAM4s4NNWAAAAmAAAAAU" +
  "AAAAAAAAAAAAAAIABiQAAAHcubnB5UEsBAi0DLQAAAAgAAAAhAAG9DwhIAAAAhAAAAAUAAAAAAAAAAAAAAIABFgEAAGgubnB5UEsFBgAAAAADAAMAmQAAAJUBAAAAAA==";

/** An .npy file of some header and bytes. */
function npy(header: string, bytes: Uint8Array): Uint8Array {
  const text = `${header}\n`;
  const head = new Uint8Array([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, text.length & 255, text.length >> 8]);
  return new Uint8Array([...head, ...new TextEncoder().encode(text), ...bytes]);
}

const header = (descr: string, shape: string): string =>
  `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;

describe("NumPy's files", () => {
  it("that NumPy compressed are read: big-endian, column-major, half", () => {
    const { a, w, h } = loadNpz(Buffer.from(COMPRESSED, "base64"));
    expect([a?.dtype, w?.dtype, h?.dtype]).toEqual(["i32", "f32", "f32"]);
    const rows = [
      [0, 1, 2],
      [3, 4, 5],
    ];
    expect(a?.toArray()).toEqual(rows);
    expect(w?.toArray()).toEqual(rows);
    expect(h?.toArray()).toEqual([0.5, -2]);
  });

  it("come back as they were, scalars and empty arrays too", () => {
    const all = {
      f: tensor([1.5, Number.NaN, -0]),
      d: tensor([[Math.PI]], { dtype: "f64" }),
      i: tensor([-1, 2 ** 31 - 1], { dtype: "i32" }),
      b: tensor([true, false]),
      s: tensor(3),
      e: tensor([], { shape: [0, 2] }),
    };
    const back = loadNpz(saveNpz(all), all);
    for (const key of Object.keys(all) as (keyof typeof all)[]) expect(back[key].data()).toEqual(all[key].data());
    expect(loadNpy(saveNpy(all.d)).shape).toEqual([1, 1]);
    expect(() => loadNpz(saveNpz({ x: all.f }), { y: all.f })).toThrow("the file lacks y");
  });

  it("of other types are refused, objects before anything is unpickled", () => {
    const cases: readonly (readonly [Uint8Array, string])[] = [
      [npy(header("|O", "(1,)"), new Uint8Array(8)), "|O"],
      [npy(header("<c8", "(1,)"), new Uint8Array(8)), "<c8"],
      [npy(header("<U3", "(1,)"), new Uint8Array(12)), "<U3"],
      [npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", new Uint8Array(4)), "records"],
      [npy(header("<f4", "(3,)"), new Uint8Array(8)), "8 bytes of elements"],
      [npy(header("<f4", "(4294967296, 4294967296, 4294967296)"), new Uint8Array(8)), "8 bytes of elements"],
      [npy(header("<i8", "(1,)"), new Uint8Array([0, 0, 0, 0, 1, 0, 0, 0])), "does not fit i32"],
      [npy("{}", new Uint8Array(0)), "header"],
      [new Uint8Array(20), "does not begin"],
      [npy(header("<f4", "(1,)"), new Uint8Array(4)).fill(9, 6, 7), "version 9"],
    ];
    for (const [file, words] of cases) expect(() => loadNpy(file)).toThrow(words);
    for (const [file] of cases) expect(() => loadNpy(file)).toThrow(TidemarkError);
  });

  it("are files by their names in Node", async () => {
    const folder = mkdtempSync(join(tmpdir(), "numpy-"));
    await saveFile(join(folder, "w.npz"), { w: tensor([1, 2]) });
    await saveFile(join(folder, "w.npy"), tensor([3]));
    expect((await loadFile(join(folder, "w.npz"))).w?.toArray()).toEqual([1, 2]);
    expect((await loadFile(join(folder, "w.npy"))).value?.toArray()).toEqual([3]);
    await expect(saveFile(join(folder, "w.npz"), { w: tensor([1]) }, { metadata: { a: "b" } })).rejects.toThrow(
      "no metadata",
    );
  });
});
