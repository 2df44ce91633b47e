/**
 * @file Trees of tensors as files: written, read by an independent reader, read back from arrays, blobs, responses, streams, file
 * handles and Node's files, damaged, killed on the way, and sent to another thread.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  compile,
  fileInfo,
  fromMessage,
  grad,
  load,
  loadFrom,
  ones,
  save,
  saveTo,
  spec,
  type Tensor,
  tensor,
  toMessage,
  tree,
} from "../src/api/index.ts";
import { loadFile, saveFile } from "../src/node/index.ts";
import { adam } from "../src/optim/index.ts";

const MODELS = join(import.meta.dirname, "../../shared/bench/models");

interface PlainEntry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** Names, types and numbers of a file, by the layout rules alone. */
function readPlainly(file: Uint8Array): Record<string, { dtype: string; shape: number[]; bytes: Uint8Array }> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = Number(view.getBigUint64(0, true));
  const header = JSON.parse(Buffer.from(file.subarray(8, 8 + length)).toString("utf8"));
  const result: Record<string, { dtype: string; shape: number[]; bytes: Uint8Array }> = {};
  for (const [name, entry] of Object.entries<PlainEntry>(header)) {
    if (name === "__metadata__") continue;
    const [from, to] = entry.data_offsets;
    result[name] = { ...entry, bytes: file.slice(8 + length + from, 8 + length + to) };
  }
  return result;
}

const folder = (): string => mkdtempSync(join(tmpdir(), "weights-"));

const params = {
  emb: tensor([
    [1.5, -2],
    [Number.NaN, 0.1],
  ]),
  blocks: [{ w: tensor([1, 2, 3], { dtype: "f64" }) }, { w: tensor([4], { dtype: "i32" }) }],
  mask: tensor([true, false]),
  empty: tensor([], { shape: [0, 3] }),
  step: 12.25,
  frozen: true,
};

describe("a tree in a file", () => {
  it("has the layout that other readers expect", () => {
    const file = save(params, { metadata: { epoch: "3" } });
    const plain = readPlainly(file);
    expect(Object.keys(plain).sort()).toEqual(["blocks.0.w", "blocks.1.w", "emb", "empty", "frozen", "mask", "step"]);
    expect(plain["blocks.0.w"]).toMatchObject({ dtype: "F64", shape: [3] });
    expect(new Float64Array(plain["blocks.0.w"]?.bytes.buffer ?? new ArrayBuffer(0))).toEqual(
      new Float64Array([1, 2, 3]),
    );
    expect(plain.mask).toMatchObject({ dtype: "BOOL", shape: [2], bytes: new Uint8Array([1, 0]) });
    expect(plain.empty).toMatchObject({ dtype: "F32", shape: [0, 3] });
    expect(fileInfo(file).metadata).toEqual({ epoch: "3" });
    expect(save(params, { metadata: { epoch: "3" } })).toEqual(file);
  });

  it("comes back bit for bit, with its numbers and booleans", () => {
    const back = load(save(params), params);
    expect(back.emb.data()).toEqual(params.emb.data());
    expect(back.blocks[0]?.w.data()).toEqual(params.blocks[0]?.w.data());
    expect(back.blocks[1]?.w.dtype).toBe("i32");
    expect(back.mask.toArray()).toEqual([true, false]);
    expect(back.empty.shape).toEqual([0, 3]);
    expect([back.step, back.frozen]).toEqual([12.25, true]);
  });

  it("comes back bit for bit, whatever its structure", () => {
    const leaf = fc.oneof(
      fc.array(fc.float(), { maxLength: 4 }).map((x) => tensor(new Float32Array(x))),
      fc.array(fc.double(), { maxLength: 4 }).map((x) => tensor(new Float64Array(x))),
      fc.array(fc.integer(), { maxLength: 4 }).map((x) => tensor(new Int32Array(x))),
    );
    const key = fc
      .string({ minLength: 1 })
      .filter((k) => !k.includes(".") && k !== "__proto__" && k !== "__metadata__");
    const { node } = fc.letrec<{ node: object }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.array(tie("node"), { maxLength: 3 }),
        fc.dictionary(key, tie("node"), { maxKeys: 3, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(node, (any) => {
        const back = load(save(any), any);
        expect(tree.paths(back)).toEqual(tree.paths(any));
        const bits = (t: object) =>
          tree.flatten(t).leaves.map((x) => [x.dtype, x.shape, new Uint8Array(x.data().buffer)]);
        expect(bits(back)).toEqual(bits(any));
      }),
      { numRuns: 200 },
    );
  });

  it("resumes a run of an optimizer to the same bits", () => {
    const optimizer = adam({ lr: 0.1 });
    const loss = (w: Tensor) => w.square().sum();
    const step = compile((s: ReturnType<typeof optimizer.init<Tensor>>) => optimizer.update(s, grad(loss)(s.params)));
    let state = optimizer.init(tensor([1, -2]));
    for (let i = 0; i < 3; i++) state = step(state);
    let resumed = load(save(state), tree.map(({ shape, dtype }) => spec(shape, dtype), state) as typeof state);
    for (let i = 0; i < 3; i++) [state, resumed] = [step(state), step(resumed)];
    expect(resumed.params.data()).toEqual(state.params.data());
  });

  it("is refused where two tensors have one path, or a name is the format's own", () => {
    expect(() => save({ a: { b: ones([1]) }, "a.b": ones([1]) })).toThrow("two tensors have the path a.b");
    expect(() => save({ __metadata__: ones([1]) })).toThrow("cannot be the name");
    expect(() => save({ w: ones([1]) }, { metadata: { epoch: 3 as unknown as string } })).toThrow("metadata.epoch");
  });
});

describe("a file that does not fit a tree", () => {
  const file = save({ a: ones([2]), b: ones([3]), c: ones([2, 2]), n: tensor(1, { dtype: "f64" }) });

  it("is refused with all names that are missing and all that are too many", () => {
    const like = { a: ones([2]), x: ones([1]), y: ones([1]), n: 1 };
    expect(() => load(file, like)).toThrow(/the file lacks x, y; the tree has no place for b, c/);
    expect(() => load(file, like, { rename: (path) => `model.${path}` })).toThrow("model.a (for a)");
  });

  it("is refused with all shapes and types that differ, by name", () => {
    const like = { a: ones([3]), b: tensor([1, 2, 3], { dtype: "i32" }), c: ones([2, 2]), n: 1 };
    expect(() => load(file, like)).toThrow("a is F32[2], the tree has f32[3]; b is F32[3], the tree has i32[3]");
  });

  it("gives what is wanted of it under other names", () => {
    const back = load(file, { w: ones([2]) }, { rename: () => "a", extra: "ignore" });
    expect(back.w.toArray()).toEqual([1, 1]);
    expect(Object.keys(load(file)).sort()).toEqual(["a", "b", "c", "n"]);
  });
});

describe("elements of other types", () => {
  /** A file with one tensor. */
  function fileOf(dtype: string, shape: readonly number[], data: ArrayBufferView): Uint8Array {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const header = Buffer.from(JSON.stringify({ x: { dtype, shape, data_offsets: [0, bytes.length] } }));
    const file = new Uint8Array(8 + header.length + bytes.length);
    new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
    file.set(header, 8);
    file.set(bytes, 8 + header.length);
    return file;
  }
  const numbers = (dtype: string, data: ArrayBufferView, n: number) => load(fileOf(dtype, [n], data)).x;

  it("become f32 exactly where they are narrower floats", () => {
    const halves = new Uint16Array([0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x8000, 0x3555]);
    const expected = [1, -2, 2 ** -24, 65504, Infinity, -Infinity, NaN, -0, 0.333251953125];
    expect(numbers("F16", halves, 9)?.data()).toEqual(new Float32Array(expected));
    const brains = new Uint16Array([0x3f80, 0xc000, 0x7f80, 0x7fc0, 0x0001, 0x4049]);
    const wide = [1, -2, Infinity, NaN, 2 ** -133, 3.140625];
    expect(numbers("BF16", brains, 6)?.data()).toEqual(new Float32Array(wide));
  });

  it("become i32 where they are other whole numbers that fit, and are refused where one does not", () => {
    expect(numbers("I64", new BigInt64Array([-5n, 7n]), 2)?.toArray()).toEqual([-5, 7]);
    expect(numbers("U8", new Uint8Array([0, 255]), 2)?.toArray()).toEqual([0, 255]);
    expect(numbers("I16", new Int16Array([-1]), 1)?.toArray()).toEqual([-1]);
    expect(() => numbers("I64", new BigInt64Array([1n << 40n]), 1)).toThrow(
      "x has 1099511627776 as an element of type I64",
    );
    expect(() => numbers("U32", new Uint32Array([0xffffffff]), 1)).toThrow("4294967295");
    expect(() => numbers("BOOL", new Uint8Array([2]), 1)).toThrow("not 0 or 1");
    expect(() => numbers("C64", new Float32Array([1, 2]), 1)).toThrow("C64, which tensors cannot hold");
  });
});

describe("a damaged file", () => {
  const whole = save({ a: ones([5]), b: tensor([true, false]) });

  it("is refused at every length", async () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => load(whole.slice(0, length))).toThrow(/^InvalidFile/);
    }
    const stream = new Blob([whole.slice(0, -1) as Uint8Array<ArrayBuffer>]).stream();
    await expect(loadFrom(stream)).rejects.toThrow("cut off");
    const longer = new Blob([whole as Uint8Array<ArrayBuffer>, "x"]);
    await expect(loadFrom(longer)).rejects.toThrow("after the last tensor");
    await expect(loadFrom(longer.stream())).rejects.toThrow("after the last tensor");
  });

  it("is refused or gives tensors, whatever bytes it has", () => {
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const damaged = whole.slice();
        damaged[at] = byte;
        try {
          load(damaged);
        } catch (error) {
          expect(String(error)).toContain("InvalidFile");
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("blobs, responses, streams and file handles", () => {
  const file = save({ w: tensor([1, 2, 3]) });
  const like = { w: ones([3]) };
  const part = file as Uint8Array<ArrayBuffer>;

  it("are read", async () => {
    const blob = new Blob([part]);
    for (const source of [blob, new Response(part), blob.stream(), { getFile: async () => blob }]) {
      expect((await loadFrom(source, like)).w.toArray()).toEqual([1, 2, 3]);
    }
  });

  it("are read in pieces of any size", async () => {
    const pieces = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of file) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    expect((await loadFrom(pieces, like)).w.toArray()).toEqual([1, 2, 3]);
  });

  it("that are no files are refused", async () => {
    await expect(loadFrom(new Response("no", { status: 404 }))).rejects.toThrow("the server answered 404");
    await expect(loadFrom(5 as unknown as Blob)).rejects.toThrow("cannot read 5");
    await expect(saveTo({} as WritableStream, like)).rejects.toThrow("cannot write to an object");
  });

  it("are written a tensor at a time, and aborted when a tensor cannot be read", async () => {
    const parts: Uint8Array[] = [];
    const calls: string[] = [];
    const writer = {
      write: async (bytes: Uint8Array) => void parts.push(bytes),
      close: async () => void calls.push("close"),
      abort: async () => void calls.push("abort"),
    };
    await saveTo({ createWritable: async () => writer }, { w: tensor([1, 2, 3]) });
    expect(Buffer.concat(parts)).toEqual(Buffer.from(file));
    await expect(saveTo({ createWritable: async () => writer }, { w: spec([2]) })).rejects.toThrow("is a spec");
    expect(calls).toEqual(["close", "abort"]);
  });
});

describe("Node's files", () => {
  it("are whole or were not changed", async () => {
    const path = join(folder(), "model.safetensors");
    await saveFile(path, { w: tensor([1, 2]) });
    await expect(saveFile(path, { v: ones([9]), w: spec([2]) })).rejects.toThrow("is a spec");
    expect((await loadFile(path)).w?.toArray()).toEqual([1, 2]);
    expect(readdirSync(join(path, ".."))).toEqual(["model.safetensors"]);
  });

  it("name the file in errors", async () => {
    const path = join(folder(), "none.safetensors");
    await expect(loadFile(path)).rejects.toThrow(`StorageError: ${path} cannot be read`);
    writeFileSync(path, "hello");
    await expect(loadFile(path)).rejects.toThrow(`InvalidFile: ${path}: the file has 5 bytes`);
    await expect(saveFile(join(path, "below"), {})).rejects.toThrow("cannot be written");
  });

  it.skipIf(!existsSync(MODELS))("are read where PyTorch wrote them", async () => {
    for (const model of ["mlp", "cnn", "unet", "lstm", "gpt2", "vit", "mobilenet_v2"]) {
      for (const name of ["model", "io", "grads"]) {
        const path = join(MODELS, model, `${name}.safetensors`);
        const plain = readPlainly(new Uint8Array(readFileSync(path)));
        const tensors = await loadFile(path);
        expect(Object.keys(tensors).sort()).toEqual(Object.keys(plain).sort());
        for (const [key, { dtype, shape, bytes }] of Object.entries(plain)) {
          expect(tensors[key]?.shape).toEqual(shape);
          if (dtype === "F32") expect(Buffer.from(tensors[key]?.data().buffer as ArrayBuffer).equals(bytes)).toBe(true);
          else expect(tensors[key]?.dtype).toBe("i32");
        }
      }
    }
  });

  it("survive a process that is killed while it writes", async () => {
    const path = join(folder(), "model.safetensors");
    await saveFile(path, { w: ones([4]) });
    const script = `
      const { tensor } = await import(${JSON.stringify(join(import.meta.dirname, "../dist/api/index.js"))});
      const { saveFile } = await import(${JSON.stringify(join(import.meta.dirname, "../dist/node/index.js"))});
      const big = tensor(new Float32Array(1 << 22));
      const { open } = await import("node:fs/promises");
      const handle = Object.getPrototypeOf(await open(process.execPath, "r"));
      const { write } = handle;
      let calls = 0;
      handle.write = function (...args) {
        if (++calls === 2) process.kill(process.pid, "SIGKILL");
        return write.apply(this, args);
      };
      await saveFile(${JSON.stringify(path)}, { big });
    `;
    const { signal } = spawnSync(process.execPath, ["--input-type=module", "-e", script]);
    expect(signal).toBe("SIGKILL");
    expect((await loadFile(path)).w?.toArray()).toEqual([1, 1, 1, 1]);
  });
});

describe("other ways out of a tensor", () => {
  it("are sent to another thread and back", async () => {
    const worker = new Worker(
      `require("node:worker_threads").parentPort.on("message", (m) => require("node:worker_threads").parentPort.postMessage(m));`,
      { eval: true },
    );
    const { message, transfer } = toMessage({ w: tensor([1, 2]), flags: [tensor([true])], n: 3 });
    worker.postMessage(message, transfer);
    const back = await new Promise<typeof message>((resolve) => worker.once("message", resolve));
    await worker.terminate();
    const copy = fromMessage(back);
    expect(copy.w.toArray()).toEqual([1, 2]);
    expect(copy.flags[0]?.toArray()).toEqual([true]);
    expect(copy.n).toBe(3);
    expect(() => fromMessage(message)).toThrow("not whole");
    expect(() => fromMessage({} as typeof message)).toThrow("not a message of tensors");
  });

  it("refuse to be cloned without their elements", () => {
    expect(() => structuredClone(tensor([1]))).toThrow("toSendTensors_use_toMessage");
    expect(() => structuredClone({ params: [compile((x: Tensor) => x.add(1))(tensor([1]))] })).toThrow(
      "could not be cloned",
    );
  });

  it("keep their numbers in JSON, or refuse", () => {
    expect(JSON.stringify({ loss: tensor(0.5), w: tensor([[1, 2]]), m: tensor([true]) })).toBe(
      '{"loss":0.5,"w":[[1,2]],"m":[true]}',
    );
    expect(() => JSON.stringify(tensor([1, Number.NaN]))).toThrow("element 1 is NaN");
    expect(() => JSON.stringify(spec([2]))).toThrow("is a spec");
  });
});

describe("trees", () => {
  it("are mapped, taken apart and put together", () => {
    const a = { w: tensor([1, 2]), layers: [tensor(3)], rate: 0.5 };
    expect(tree.map((x) => x.mul(2), a).layers[0]?.item()).toBe(6);
    expect(tree.map((x) => x.shape, a)).toEqual({ w: [2], layers: [[]], rate: 0.5 });
    expect(tree.map((x, y) => x.sub(y), a, a).w.toArray()).toEqual([0, 0]);
    const { leaves, structure } = tree.flatten(a);
    expect(tree.unflatten(structure, leaves)).toEqual(a);
    expect(() => tree.unflatten(structure, [])).toThrow("0 leaves for a structure with 2");
    expect(() => tree.map((x, y) => x.add(y), a, { w: tensor([1, 2]) })).toThrow("layers");
    expect(tree.paths(tensor(1))).toEqual([""]);
  });
});
