/**
 * @file Loading programs that were built ahead of time: files that are damaged, mixed or for another engine are refused before a run, and
 * wrong arguments, names and values before anything is written.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BuildOptions, type BuiltProgram, buildFiles, parseBuild } from "../src/api/ahead.ts";
import { sourceOfFunction, sourceOfGraph } from "../src/api/ahead-source.ts";
import { plainHost } from "../src/api/host.ts";
import { save, spec, type Tensor, tensor, zeros } from "../src/api/index.ts";
import { checksum } from "../src/base/checksum.ts";
import { detectFeatures } from "../src/codegen/wasm/features.ts";
import { parse } from "../src/ir/parse.ts";
import { writeProgram } from "../src/node/build.ts";
import { allOps } from "../src/ops/all.ts";
import { allReduce, mesh, shard } from "../src/parallel/index.ts";
import { FILES, type ProgramFile, withSection } from "../src/runtime/ahead/format.ts";
import { type AheadProgram, load, type ProgramSources } from "../src/runtime/ahead/main.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import {
  AHEAD_CASES,
  type AheadCase,
  argumentsOf,
  bytesText,
  compiledOutcome,
  type GivenTensor,
} from "./support/ahead-programs.ts";

const RUNTIME = new TextEncoder().encode("export const load = 1;\n");

function make(fn: AnyFunction, args: readonly unknown[], options: BuildOptions = {}): BuiltProgram {
  const request = parseBuild(options);
  return buildFiles(sourceOfFunction(fn, args, request, request.resident), request, RUNTIME, plainHost());
}

const bytesOf = ({ files }: BuiltProgram, name: string) => files.get(name) as Uint8Array<ArrayBuffer>;

function sourcesOf(built: BuiltProgram): ProgramSources {
  const weights = built.files.has(FILES.weights) ? { weights: bytesOf(built, FILES.weights) } : {};
  return { program: bytesOf(built, FILES.program), wasm: bytesOf(built, FILES.code), ...weights };
}

/** A copy with one bit changed. */
function changed(bytes: Uint8Array<ArrayBuffer>, at: number): Uint8Array<ArrayBuffer> {
  const copy = bytes.slice();
  copy[at] = (copy[at] as number) ^ 1;
  return copy;
}

interface Layer {
  readonly w: Tensor;
  readonly on: Tensor;
}

/** A state that is replaced, parameters that stay, and three inputs. */
function update(state: { count: Tensor }, layer: Layer, x: Tensor, ids: Tensor, rate: number) {
  const y = x.matmul(layer.w).mul(layer.on.cast("f32")).mul(rate);
  return { state: { count: state.count.add(ids.sum()) }, y };
}

const LAYER = () => ({
  w: tensor([
    [1, 2, 3],
    [4, 5, 6],
  ]),
  on: tensor([true, false, true]),
});
const ARGUMENTS = () => [{ count: tensor(5, { dtype: "i32" }) }, LAYER(), spec([1, 2]), spec([2], "i32"), 0.5] as const;
const OPTIONS: BuildOptions = { name: "update", donate: [0], resident: [1] };

describe("loading a program", () => {
  let built: BuiltProgram;
  let sources: ProgramSources;
  const folders: string[] = [];
  const folder = (): string => {
    folders.push(mkdtempSync(join(tmpdir(), "tidemark-load-")));
    return folders.at(-1) as string;
  };

  beforeAll(() => {
    built = make(update as AnyFunction, ARGUMENTS(), OPTIONS);
    sources = sourcesOf(built);
  });

  afterAll(() => {
    for (const path of folders) rmSync(path, { recursive: true, force: true });
  });

  it("gives a function of what does not stay, and names for the rest", async () => {
    const program = await load(sources);
    expect(program.name).toBe("update");
    expect(program.inputs.map(({ name }) => name)).toEqual(["x", "ids", "rate (f32)"]);
    expect(program.resident.map(({ name, kind }) => [name, kind])).toEqual([
      ["state.count", "state"],
      ["layer.w", "constant"],
      ["layer.on", "constant"],
    ]);
    expect(program([[1, 1]], new Int32Array([3, 4]), 2)).toEqual({
      state: undefined,
      y: new Float32Array([10, 0, 18]),
    });
    expect(program.read("state")).toEqual({ count: new Int32Array([12]) });
    expect(program.read("layer.on")).toEqual(new Uint8Array([1, 0, 1]));
    program.write("state.count", 100);
    program.write("layer", {
      w: [
        [0, 1, 0],
        [0, 0, 0],
      ],
      on: [false, true, false],
    });
    expect(program([[7, 1]], [0, 1], 1)).toEqual({ state: undefined, y: new Float32Array([0, 7, 0]) });
    expect(program.read("state.count")).toEqual(new Int32Array([101]));
    expect([program.arenaBytes, program.memoryBytes]).toEqual([built.program.arenaBytes, 65536]);
  });

  it("takes a file of another state, also one that `save` wrote", async () => {
    const first = await load(sources);
    first([[1, 1]], [3, 4], 2);
    const second = await load({ ...sources, weights: first.save() as Uint8Array<ArrayBuffer> });
    expect(second.read("state.count")).toEqual(new Int32Array([12]));
    const saved = save({ state: { count: tensor(7, { dtype: "i32" }) }, layer: LAYER() });
    const third = await load({ ...sources, weights: saved as Uint8Array<ArrayBuffer> });
    expect(third.read("state.count")).toEqual(new Int32Array([7]));
  });

  it("needs values for all that stays before it runs", async () => {
    const { weights: _, ...without } = sources;
    const program = await load(without);
    expect(() => program([[1, 1]], [1, 1], 1)).toThrow(/^NotReady: state.count, layer.w, layer.on have no value yet/);
    expect(() => program.read("layer.w")).toThrow(/^NotReady: layer.w has no value yet/);
    program.write("state", { count: 1 });
    program.write("layer", { w: new Float32Array(6).fill(1), on: [true, true, true] });
    expect(program([[1, 1]], [1, 1], 1)).toMatchObject({ y: new Float32Array([2, 2, 2]) });
    const unweighted = make(update as AnyFunction, ARGUMENTS(), { ...OPTIONS, weights: false });
    expect(unweighted.files.has(FILES.weights)).toBe(false);
    expect(bytesOf(unweighted, FILES.code)).not.toEqual(bytesOf(built, FILES.code));
  });

  it("reads a folder by its URL, and each file by its own", async () => {
    const path = folder();
    await writeProgram(path, built);
    const program = await load(pathToFileURL(`${path}/`));
    expect(program.read("state")).toEqual({ count: new Int32Array([5]) });
    const again = await load({ ...sources, program: JSON.parse(readFileSync(join(path, FILES.program), "utf8")) });
    expect(again.read("state")).toEqual({ count: new Int32Array([5]) });
    rmSync(join(path, FILES.code));
    await expect(load(pathToFileURL(path))).rejects.toThrow(/^StorageError: program.wasm cannot be read/);
    await expect(load("model/")).rejects.toThrow(/^InvalidArgument: load: "model\/" is not a URL/);
    await expect(load({} as never)).rejects.toThrow(/^InvalidArgument: load: no program/);
    await expect(load({ ...sources, wasm: 3 as never })).rejects.toThrow(/^InvalidArgument: load: program.wasm/);
  });

  it("compiles a response while it arrives, and says what a server answered", async () => {
    const response = (bytes: Uint8Array<ArrayBuffer>, type: string, status = 200) =>
      new Response(bytes, { status, headers: { "content-type": type } });
    const code = bytesOf(built, FILES.code);
    for (const type of ["application/wasm", "application/octet-stream"]) {
      const program = await load({ ...sources, wasm: response(code, type) });
      expect(program.read("state")).toEqual({ count: new Int32Array([5]) });
    }
    const cut = response(code.slice(0, -100), "application/wasm");
    await expect(load({ ...sources, wasm: cut })).rejects.toThrow(/^InvalidFile: program.wasm was cut off: 100 /);
    const missing = response(code, "text/html", 404);
    await expect(load({ ...sources, wasm: missing })).rejects.toThrow(/^StorageError: .* answered with status 404/);
  });

  it("refuses files that are damaged or belong to different builds", async () => {
    const { program, wasm, weights } = sources as { [K in keyof ProgramSources]-?: Uint8Array<ArrayBuffer> };
    const refused = (given: Partial<ProgramSources>, message: RegExp) =>
      expect(load({ ...sources, ...given })).rejects.toThrow(message);
    for (const at of [1, 100, Math.floor(wasm.length / 2), wasm.length - 50]) {
      await refused({ wasm: changed(wasm, at) }, /^InvalidFile: program.wasm is damaged, or program.json belongs/);
    }
    for (const at of [wasm.length - 1, wasm.length - 30, wasm.length - 38]) {
      await refused({ wasm: changed(wasm, at) }, /^InvalidFile: program.json is damaged, or program.wasm belongs/);
    }
    await refused({ wasm: wasm.slice(0, 7) }, /^InvalidFile: program.wasm was cut off/);
    await refused({ program: program.slice(0, -9) }, /^InvalidFile: program.json is cut off or not JSON/);
    await refused({ program: changed(program, 0) }, /^InvalidFile: program.json is cut off or not JSON/);
    const text = new TextDecoder().decode(program);
    const edited = (from: string, to: string) => new TextEncoder().encode(text.replace(from, to)) as typeof program;
    await refused({ program: edited('"address":64', '"address":65') }, /^InvalidFile: program.json is damaged/);
    await refused(
      { program: edited('"version":1', '"version":9') },
      /has version 9 of the format, this runtime reads 1/,
    );
    await refused({ program: edited("tidemark-program", "other") }, /is not a program of tidemark build/);
    await refused({ program: new Uint8Array([0x22, 0xff, 0x22]) }, /is not UTF-8/);
    await refused({ weights: weights.slice(0, -1) }, /^InvalidFile: .*cut off/);
    await refused(
      { weights: save({ w: tensor([1]) }) as typeof weights },
      /^InvalidFile: the program has no place for w/,
    );
    const wrong = save({ layer: { w: tensor([1]) } }) as typeof weights;
    await refused({ weights: wrong }, /^InvalidFile: layer.w is f32\[1\]; the program has f32\[2,3\]/);
    const other = sourcesOf(make(((x: Tensor) => x.add(1)) as AnyFunction, [spec([3])]));
    await refused({ wasm: other.wasm }, /^InvalidFile: program.wasm/);
    await refused({ program: other.program }, /^InvalidFile: program.wasm/);
    const module = await WebAssembly.compile(other.wasm as Uint8Array<ArrayBuffer>);
    await refused({ wasm: module }, /^InvalidFile: program.json is damaged, or program.wasm belongs to another build/);
    await expect(load({ ...other, wasm: module })).resolves.toBeTypeOf("function");
  });

  it("refuses arguments that are missing, superfluous, of another type or shape, and changes nothing", async () => {
    const program = await load(sources);
    const refused = (args: readonly unknown[], message: RegExp) => expect(() => program(...args)).toThrow(message);
    const [x, ids] = [new Float32Array(2), new Int32Array(2)];
    refused([x, ids], /^InvalidTree: rate is missing/);
    refused([x, ids, 1, 2], /^InvalidArgument: 4 arguments were given, not 3\n {2}help: a call takes x, ids, rate;/);
    refused(
      [new Float64Array(2), ids, 1],
      /^DtypeMismatch: x is a Float64Array of 2\n.*f32\[1,2\] is a Float32Array of 2/,
    );
    refused([new Float32Array(3), ids, 1], /^ShapeMismatch: x is a Float32Array of 3/);
    refused([[1, 2], ids, 1], /^ShapeMismatch: x is an array of 2, not an array of 1/);
    refused([[[1, 2, 3]], ids, 1], /^ShapeMismatch: x\[0\] is an array of 3, not an array of 2/);
    refused([x, [1, 1.5], 1], /^DtypeMismatch: ids\[1\] is 1.5\n.*i32 takes whole numbers/);
    refused([x, ids, "1"], /^DtypeMismatch: rate is "1"/);
    const write = (name: string, value: unknown, message: RegExp) =>
      expect(() => program.write(name, value)).toThrow(message);
    write("layer", { w: x }, /^ShapeMismatch: layer.w is a Float32Array of 2/);
    write("layer", { w: new Float32Array(6) }, /^InvalidTree: layer.on is missing/);
    write("layer", { w: new Float32Array(6), on: [1, 0, 1], bias: 1 }, /^InvalidTree: layer has no bias/);
    write("layer.on", new Uint8Array([1, 2, 0]), /^DtypeMismatch: layer.on: element 1 is 2/);
    write("layer", [1], /^InvalidTree: layer is an array of 1\n.*it is an object with w, on/);
    write("layr.w", 1, /^InvalidArgument: nothing that stays in the arena is called layr.w\n.*did you mean layer.w\?/);
    expect(() => program.read("x")).toThrow(/^InvalidArgument: nothing that stays/);
    expect(program.read("layer.w")).toEqual(new Float32Array([1, 2, 3, 4, 5, 6]));
    expect(program.read("state.count")).toEqual(new Int32Array([5]));
  });

  it("refuses another value for a constant that the program was built for", async () => {
    const scaled = (x: Tensor, axis: number, options: { keep: boolean }) => (options.keep ? x.sum(axis) : x);
    const made = make(scaled as AnyFunction, [spec([2, 3]), 1, { keep: true }], { static: [1] });
    const program = await load(sourcesOf(made));
    expect(
      program(
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        1,
        { keep: true },
      ),
    ).toEqual(new Float32Array([6, 15]));
    expect(
      program([
        [1, 2, 3],
        [4, 5, 6],
      ]),
    ).toEqual(new Float32Array([6, 15]));
    expect(() => program(new Float32Array(6), 0)).toThrow(/^InvalidArgument: axis is 0; the program was built for 1/);
  });

  it("runs a graph, and tensors without elements", async () => {
    const [graph] = parse("func f(a: f32[2], b: f32[2]) {\n  s: f32[2] = add(a, b)\n  return s, a\n}\n", allOps);
    const request = parseBuild({});
    if (!graph) throw new Error("no graph");
    const program = await load(sourcesOf(buildFiles(sourceOfGraph(graph), request, RUNTIME, plainHost())));
    expect(program([1, 2], [3, 4])).toEqual([new Float32Array([4, 6]), new Float32Array([1, 2])]);
    const empty = make(
      ((p: { e: Tensor }, x: Tensor) => [x.add(1), p.e]) as AnyFunction,
      [{ e: spec([0]) }, spec([1])],
      {
        resident: [0],
      },
    );
    expect((await load(sourcesOf(empty)))([1])).toEqual([new Float32Array([2]), new Float32Array([])]);
  });

  it("writes no text of the user's into scripts, and none that ends a comment into types", () => {
    const named = make(((x: Tensor) => ({ "a */ b": x })) as AnyFunction, [spec([1])], { name: "*/ alert(1) /*" });
    expect(new TextDecoder().decode(bytesOf(named, FILES.index))).not.toContain("alert");
    const types = new TextDecoder().decode(bytesOf(named, FILES.types));
    expect(types).toContain("The program __ alert_1_ __, compiled");
    expect(types).toContain('"a */ b": /* f32[1] */ Float32Array;');
  });

  it("leaves state out of results, also beside parts without tensors", async () => {
    const fn = (state: readonly [Tensor, object], x: Tensor) => ({
      state: [state[0].add(x), {}],
      more: [{}, x.mul(2)],
    });
    const program = await load(sourcesOf(make(fn as AnyFunction, [[tensor(1), {}], spec([])], { donate: [0] })));
    expect(program(3)).toEqual({ state: undefined, more: [{}, new Float32Array([6])] });
    expect(program.read("state")).toEqual([new Float32Array([4]), {}]);
  });

  it("refuses what a build is not for, by name", () => {
    const refused = (options: BuildOptions, message: RegExp) => expect(() => parseBuild(options)).toThrow(message);
    refused({ target: "native" }, /^TargetUnsupported: build: programs are built for wasm, not for native/);
    refused({ threads: 4 }, /^TargetUnsupported: build: programs are built for one thread, not for 4/);
    refused({ donate: [0], resident: [0] }, /^InvalidArgument: build: argument 0 is donated and resident/);
    refused({ resident: [-1] }, /^InvalidArgument: build: resident is \[-1\]/);
    expect(() => make(((x: Tensor) => x) as AnyFunction, [spec([1])], { resident: [1] })).toThrow(
      /resident names argument 1/,
    );
    const options = { memory: "1KB" } as const;
    expect(() => make(((x: Tensor) => x.add(1)) as AnyFunction, [spec([1000])], options)).toThrow(/^PlanInfeasible/);
  });

  it("keeps files that no build has written", async () => {
    const path = folder();
    await writeProgram(path, built);
    const before = readdirSync(path).sort();
    expect(before).toEqual([...built.files.keys()].sort());
    const other = make(((x: Tensor) => x.add(1)) as AnyFunction, [spec([3])]);
    await writeProgram(path, other);
    expect(existsSync(join(path, FILES.weights))).toBe(false);
    await writeProgram(path, built);
    writeFileSync(join(path, FILES.weights), "my own");
    await expect(writeProgram(path, built)).rejects.toThrow(/^StorageError: .*have changed since: weights.safetensors/);
    await writeProgram(path, built, { force: true });
    expect(readFileSync(join(path, FILES.weights)).equals(bytesOf(built, FILES.weights))).toBe(true);
    const foreign = folder();
    writeFileSync(join(foreign, FILES.index), "// a page of mine");
    await expect(writeProgram(foreign, built)).rejects.toThrow(/index.js\n {2}help: give another folder/);
    expect(readdirSync(foreign)).toEqual([FILES.index]);
    await expect(writeProgram(join(foreign, FILES.index), built)).rejects.toThrow(/^StorageError/);
  });
});

/** Results of all calls and the state after them. */
async function outcomeOf(program: AheadProgram, { calls, options }: AheadCase) {
  const leaves = (tree: unknown): readonly string[] => {
    if (tree === undefined) return [];
    return ArrayBuffer.isView(tree) ? [bytesText(tree as Float32Array)] : Object.values(tree as object).flatMap(leaves);
  };
  const nested = ({ dtype, data, shape }: GivenTensor): unknown => {
    if (dtype === "i32") return Int32Array.from(data);
    return shape.length > 0 ? Float32Array.from(data) : data[0];
  };
  const results = calls.map((call) => leaves(program(...call.map((v) => (typeof v === "number" ? v : nested(v))))));
  return { results, state: options.donate ? program.resident.map(({ name }) => leaves(program.read(name))[0]) : [] };
}

describe("a program with fused multiply-add", () => {
  const training = AHEAD_CASES.find(({ name }) => name === "training") as AheadCase;
  const { fn, calls, options } = training;
  const built = () => make(fn, argumentsOf(training, calls[0] ?? []), { ...options, fma: true });

  it.runIf(detectFeatures().relaxedMadd)("has the bits of `compile` on an engine that has it", async () => {
    const program = await load(sourcesOf(built()));
    const { results, state } = compiledOutcome(training, true);
    expect(await outcomeOf(program, training)).toEqual({ results, state });
  });

  it.runIf(!detectFeatures().relaxedMadd)("is refused by an engine without it", async () => {
    await expect(load(sourcesOf(built()))).rejects.toThrow(/^TargetUnsupported: this engine has no fused multiply-add/);
  });

  it("says so in its files, and others do not", () => {
    expect(built().program.fused).not.toBe(null);
    expect(make(fn, argumentsOf(training, calls[0] ?? []), options).program.fused).toBe(null);
  });
});

describe("a program with collectives", () => {
  it("is refused, as files have no devices to exchange with", () => {
    const fn = shard((x: Tensor) => allReduce(x, { over: "data" }), { mesh: mesh({ data: 2 }), in: ["data"], out: [] });
    expect(() => make(fn as AnyFunction, [zeros([4])])).toThrow(
      "build: the program connects devices: all_reduce of 4 f32 over data of data=2",
    );
  });
});

describe("checksums", () => {
  it("change with every bit and with the length", () => {
    const bytes = Uint8Array.from({ length: 45 }, (_, i) => i * 7);
    const sums = new Set([checksum(bytes)]);
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const other = bytes.slice();
      other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
      sums.add(checksum(other));
    }
    for (let zeros = 1; zeros < 20; zeros++) sums.add(checksum(new Uint8Array([...bytes, ...new Uint8Array(zeros)])));
    expect(sums.size).toBe(1 + 8 * 45 + 19);
    expect(checksum(bytes.subarray(1, 40))).toBe(checksum(bytes.slice(1, 40)));
  });

  it("name a program in a section that engines find", () => {
    const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
    const module = new WebAssembly.Module(withSection(empty, {} as ProgramFile) as Uint8Array<ArrayBuffer>);
    expect(WebAssembly.Module.customSections(module, "tidemark")[0]?.byteLength).toBe(32);
  });
});
