/** @file Programs whose values wait in a file: the same bits, the planned bytes, and errors that say what to do. */
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import "../../tests/support/host.ts";
import { type Compiled, compile } from "../api/compile.ts";
import { valueAndGrad } from "../api/grad.ts";
import "../api/methods.ts";
import { plan } from "../api/plan.ts";
import type { CompileOptions } from "../api/request.ts";
import { sgd } from "../optim/sgd.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { nativeTarget } from "./native/target.ts";
import { measureFolder, reserveByWriting, SpillFile } from "./spill-file.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-spill-"));
afterAll(() => rmSync(folder, { recursive: true }));

const found = nativeTarget();
const missing = typeof found === "string" && !process.env.CI;
const TARGETS = missing ? (["wasm"] as const) : (["native", "wasm"] as const);

const optimizer = sgd({ lr: 0.01 });
type State = ReturnType<typeof optimizer.init<readonly Tensor[]>>;
const [LAYERS, ROWS, WIDTH] = [12, 64, 32];

function train(state: State, x: Tensor): readonly [State, Tensor] {
  const lossOf = (weights: readonly Tensor[]): Tensor =>
    weights
      .reduce((h, w) => h.matmul(w).tanh().add(h), x)
      .square()
      .mean();
  const [loss, d] = valueAndGrad(lossOf)(state.params);
  return [optimizer.update(state, d), loss];
}

const numbers = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898 + seed) / 8);
const matrix = (rows: number, seed: number): Tensor => tensor(numbers(rows * WIDTH, seed)).reshape([rows, WIDTH]);
const initial = (): State => optimizer.init(Array.from({ length: LAYERS }, (_, i) => matrix(WIDTH, i)));

/** Puts /dev/full, which can be opened and not written, in place of open files. */
function replaceByFull(prefix: string): void {
  for (const name of readdirSync("/proc/self/fd")) {
    try {
      if (!readlinkSync(`/proc/self/fd/${name}`).startsWith(prefix)) continue;
    } catch {
      // it was the descriptor of the list itself
      continue;
    }
    closeSync(Number(name));
    const others: number[] = [];
    for (let opened = openSync("/dev/full", "r+"); opened !== Number(name); opened = openSync("/dev/full", "r+"))
      others.push(opened);
    for (const other of others) closeSync(other);
  }
}

type Step = Compiled<[State, Tensor], readonly [State, Tensor]>;

/** Losses and weights after three steps. */
function trained(step: Step): readonly (readonly number[])[] {
  let state = initial();
  const losses = [1, 2, 3].map((seed) => {
    const [next, loss] = step(state, matrix(ROWS, seed));
    state = next;
    return loss.item();
  });
  return [losses, ...state.params.map((w) => [...w.data()].map(Number))];
}

const OPTIONS = { donate: [0] } as const;
const sizes = plan(train, OPTIONS)(initial(), matrix(ROWS, 0));
const memory = Math.ceil(sizes.persistentBytes + 0.4 * (sizes.arenaBytes - sizes.persistentBytes));
const spill = { to: folder, bandwidth: "20GB/s" };

describe.each(TARGETS)("spill on %s", (target) => {
  const asked: CompileOptions = { ...OPTIONS, target, memory, spill, validate: true };

  it("has the bits of a program without it, in a file of the planned size", () => {
    const [stored, spilled] = [compile(train, { ...OPTIONS, target }), compile(train, asked)];
    const info = spilled.program(initial(), matrix(ROWS, 0));
    expect(info.spillBytes).toBeGreaterThan(0);
    expect(info.arenaBytes).toBeLessThanOrEqual(memory);
    expect(trained(spilled)).toEqual(trained(stored));
    expect(spilled.stats().spillBytes).toBe(info.spillBytes);
    spilled.dispose();
    stored.dispose();
  });

  it("runs on threads or step by step, and at a limited rate", () => {
    const bits = trained(compile(train, { ...OPTIONS, target }));
    // step by step native would compile every operation by itself
    const own = target === "native" ? { threads: 2 } : { checkNaN: true, donate: [] };
    for (const more of [own, { spill: { ...spill, limit: "100GB/s" } }]) {
      const step = compile(train, { ...asked, ...more });
      expect(trained(step)).toEqual(bits);
      step.dispose();
    }
  });

  it.skipIf(process.platform !== "linux")("says so where the file cannot be written any more", () => {
    const step = compile(train, asked);
    step.program(initial(), matrix(ROWS, 0));
    replaceByFull(folder);
    expect(() => step(initial(), matrix(ROWS, 0))).toThrow(
      /StorageError: spill: .* cannot be read or written any more \(ENOSPC\)/,
    );
    step.dispose();
  });

  it("leaves nothing in the folder", () => {
    const step = compile(train, asked);
    trained(step);
    expect(readdirSync(folder)).toEqual([]);
    step.dispose();
  });
});

describe("a folder", () => {
  it("is refused before anything is planned where it cannot be used", () => {
    const first = (to: string) => () => compile(train, { ...OPTIONS, target: "native", memory, spill: { to } });
    const at = (name: string): string => join(folder, name);
    expect(first(at("missing"))).toThrow(/StorageError: spill: .*missing does not exist/);
    writeFileSync(at("a-file"), "");
    expect(first(at("a-file"))).toThrow(/a-file is not a folder/);
    rmSync(at("a-file"));
    const owned = mkdtempSync(at("owned-"));
    writeFileSync(join(owned, "run.lock"), "{}");
    expect(first(owned)).toThrow(/belongs to another run \(run.lock\)/);
    rmSync(owned, { recursive: true });
    expect(first("/proc")).toThrow(/cannot be written \(E/);
  });

  it("that has no room is left as it was", () => {
    const { bavail, bsize } = statfsSync(folder);
    let asked = 0;
    const file = new SpillFile(folder, () => asked++);
    expect(() => file.reserve(bavail * bsize + 2 ** 34)).toThrow(
      /has no room for a file of [\d,]+ bytes, [\d,]+ are free \(ENOSPC\)/,
    );
    expect(asked).toBe(0);
    const refused = new SpillFile(folder, () => 28);
    expect(() => refused.reserve(4096)).toThrow(/ENOSPC/);
    const written = new SpillFile(folder, reserveByWriting);
    written.reserve(3 * 2 ** 20 + 4096);
    expect(written.bytes).toBe(3 * 2 ** 20 + 4096);
    written.hold(() => undefined)();
  });

  it.skipIf(missing)("that vanishes between two programs is an error, and no harm to the first", () => {
    const own = mkdtempSync(join(folder, "own-"));
    const asked = { ...OPTIONS, target: "native", memory, spill: { ...spill, to: own } } as const;
    const first: Step = compile(train, asked);
    first.program(initial(), matrix(ROWS, 0));
    rmSync(own, { recursive: true });
    expect(trained(first)).toEqual(trained(compile(train, { ...OPTIONS, target: "native" })));
    expect(() => compile(train, asked)(initial(), matrix(ROWS, 0))).toThrow(/does not exist/);
  });
});

describe("options", () => {
  const planned = (options: object) => () => plan(train, { ...OPTIONS, ...options })(initial(), matrix(ROWS, 0));
  it("are checked", () => {
    expect(planned({ spill })).toThrow(/spill without a budget in bytes/);
    expect(planned({ memory, spill: {} })).toThrow(/spill names no folder/);
    expect(planned({ memory, spill: { to: folder, speed: 3 } })).toThrow(/speed/);
    expect(planned({ memory, spill: { to: folder, bandwidth: "1GB" } })).toThrow(
      /the bandwidth of spill is the string "1GB"/,
    );
    expect(planned({ memory, spill: { to: folder, limit: "0B/s" } })).toThrow(/the limit of spill/);
  });

  it("measure a folder where no bandwidth is given", () => {
    const { arenaBytes, spillBytes } = planned({ memory: sizes.arenaBytes, spill: { to: folder } })();
    expect([arenaBytes, spillBytes]).toEqual([sizes.arenaBytes, 0]);
    expect(measureFolder(folder)).toBeGreaterThan(0);
  });
});
