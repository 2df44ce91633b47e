/**
 * @file State that lives in a file, or beside a device in the host's memory, between calls: the same bits, read between calls or passed
 * to another function.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulatedCuda } from "../../tests/support/emulated-cuda.ts";
import "../../tests/support/host.ts";
import { compile } from "../api/compile.ts";
import { valueAndGrad } from "../api/grad.ts";
import "../api/methods.ts";
import { plan } from "../api/plan.ts";
import type { CompileOptions, SpillOptions } from "../api/request.ts";
import { adam } from "../optim/adam.ts";
import type { TargetName } from "../runtime/choose-target.ts";
import type { Target } from "../runtime/device.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { nativeTarget } from "./native/target.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-state-"));
afterAll(() => rmSync(folder, { recursive: true }));

const missing = typeof nativeTarget() === "string" && !process.env.CI;
const inFile = { to: folder, bandwidth: "20GB/s" };
const onHost = { to: "host", bandwidth: "20GB/s" };

/** A device whose copies run at once, or as late as they may. */
function emulated(copies: "early" | "late"): Target {
  const target = emulatedCuda({ copies });
  if (typeof target === "string") throw new Error(target);
  return target;
}

const ROWS_OF_TARGETS: readonly (readonly [string, Target | TargetName, SpillOptions])[] = [
  ["in a file on wasm", "wasm", inFile],
  ...(missing
    ? []
    : ([
        ["in a file on native", "native", inFile],
        ["in the host's memory beside a device, with copies at once", emulated("early"), onHost],
        ["in the host's memory beside a device, with copies late", emulated("late"), onHost],
      ] as const)),
];

const [LAYERS, ROWS, WIDTH] = [5, 16, 48];
const optimizer = adam({ lr: 0.01 });
type State = ReturnType<typeof optimizer.init<readonly Tensor[]>>;

const numbers = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898 + seed) / 8);
const matrix = (rows: number, seed: number): Tensor => tensor(numbers(rows * WIDTH, seed)).reshape([rows, WIDTH]);
const initial = (): State => optimizer.init(Array.from({ length: LAYERS }, (_, i) => matrix(WIDTH, i)));
/** Weights that a function closes over. */
const frozen = Array.from({ length: LAYERS }, (_, i) => matrix(WIDTH, 100 + i));

function train(state: State, x: Tensor): readonly [State, Tensor] {
  const lossOf = (weights: readonly Tensor[]): Tensor =>
    weights
      .reduce((h, w, i) => h.matmul(w.add(frozen[i] as Tensor)).tanh(), x)
      .square()
      .mean();
  const [loss, d] = valueAndGrad(lossOf)(state.params);
  return [optimizer.update(state, d), loss];
}

const OPTIONS = { donate: [0] } as const;
const sizes = plan(train, OPTIONS)(initial(), matrix(ROWS, 0));
const memory = Math.ceil(0.45 * sizes.persistentBytes);

const listed = (x: Tensor): readonly number[] => [...x.data()].map(Number);
const all = ({ params, slots }: State): readonly (readonly number[])[] => [
  ...params.map(listed),
  ...Object.values(slots as Record<string, readonly Tensor[]>).flatMap((slot) => slot.map(listed)),
];

describe.each(ROWS_OF_TARGETS)("state %s", (_, target, spill) => {
  const asked: CompileOptions = { ...OPTIONS, target, memory, spill, validate: true };
  const stored = compile(train, { ...OPTIONS, target });
  /** After each of four steps: the loss, and everything in the state. */
  let expected: readonly { readonly loss: number; readonly state: readonly (readonly number[])[] }[];

  beforeAll(() => {
    let state = initial();
    expected = [1, 2, 3, 4].map((seed) => {
      const [next, loss] = stored(state, matrix(ROWS, seed));
      state = next;
      return { loss: loss.item(), state: all(state) };
    });
  });

  it("takes an arena below what persists, and is the same at every step", () => {
    const step = compile(train, asked);
    let state = initial();
    const info = step.program(state, matrix(ROWS, 0));
    expect(info.arenaBytes).toBeLessThanOrEqual(memory);
    expect(info.persistentBytes + info.spillPersistentBytes).toBe(sizes.persistentBytes);
    for (const [i, { loss, state: everything }] of expected.entries()) {
      const [next, own] = step(state, matrix(ROWS, i + 1));
      expect(() => state.params[0]?.data()).toThrow(/donated/);
      state = next;
      expect(own.item()).toBe(loss);
      // read every other time: what was not read must be there as well
      if (i % 2 === 1) expect(all(state)).toEqual(everything);
      expect(readdirSync(folder)).toEqual([]);
    }
    expect(step.stats()).toMatchObject({ spillBytes: info.spillBytes, planned: 1 });
    step.dispose();
    expect(all(state)).toEqual(expected[3]?.state);
  });

  it("goes on in the arena of another function, and comes back", () => {
    const step = compile(train, asked);
    let state = initial();
    for (const [i, run] of [step, stored, stored, step].entries()) {
      const [next, loss] = run(state, matrix(ROWS, i + 1));
      state = next;
      expect(loss.item()).toBe(expected[i]?.loss);
    }
    expect(all(state)).toEqual(expected[3]?.state);
    step.dispose();
  });

  it("stays there while programs for other shapes run", () => {
    const step = compile(train, asked);
    let state = initial();
    let plain = initial();
    for (const rows of [ROWS, 2 * ROWS, ROWS]) {
      const [[next, loss], [other, same]] = [step(state, matrix(rows, rows)), stored(plain, matrix(rows, rows))];
      [state, plain] = [next, other];
      expect(loss.item()).toBe(same.item());
    }
    expect(all(state)).toEqual(all(plain));
    step.dispose();
  });

  it.skipIf(spill === onHost)("is moved while threads compute, and at a limited rate", () => {
    const own = { threads: 2 };
    const step = compile(train, { ...asked, ...own, spill: { ...spill, limit: "100GB/s" } });
    let state = initial();
    for (const i of [0, 1]) {
      const [next, loss] = step(state, matrix(ROWS, i + 1));
      state = next;
      expect(loss.item()).toBe(expected[i]?.loss);
    }
    step.dispose();
  });
});

describe("weights that are only read", () => {
  it("are written into the file once, and fetched in every call", () => {
    const apply = (weights: readonly Tensor[], x: Tensor): Tensor =>
      weights.reduce((h, w, i) => h.matmul(w.add(frozen[i] as Tensor)).tanh(), x);
    const weights = Array.from({ length: LAYERS }, (_, i) => matrix(WIDTH, i));
    const [plain, step] = [
      compile(apply, { resident: [0] }),
      compile(apply, { resident: [0], memory: "48KiB", spill: inFile, validate: true }),
    ];
    const info = step.program(weights, matrix(ROWS, 1));
    expect(info.spillPersistentBytes).toBeGreaterThan(LAYERS * 4 * WIDTH ** 2);
    for (const seed of [1, 2, 1])
      expect(listed(step(weights, matrix(ROWS, seed)))).toEqual(listed(plain(weights, matrix(ROWS, seed))));
    const others = weights.map((_, i) => matrix(WIDTH, 50 + i));
    expect(listed(step(others, matrix(ROWS, 1)))).toEqual(listed(plain(others, matrix(ROWS, 1))));
    step.dispose();
  });
});

describe("a budget that a file cannot meet", () => {
  it("is refused with the bytes that would do", () => {
    const last = (u: Tensor, v: Tensor, x: Tensor): Tensor => x.matmul(u).tanh().matmul(v).tanh().matmul(u);
    const planned = (bytes: number) =>
      plan(last, { resident: [0, 1], memory: bytes, spill: inFile })(
        matrix(WIDTH, 0),
        matrix(WIDTH, 1),
        matrix(ROWS, 0),
      ).arenaBytes;
    let message = "";
    try {
      planned(4096);
    } catch (error) {
      message = String(error);
    }
    expect(message).toMatch(
      /PlanInfeasible: last needs [\d,]+ bytes of arena.*\n.*smallest plan found with values in the file/,
    );
    const [, bytes = ""] = /needs ([\d,]+) bytes/.exec(message) ?? [];
    expect(planned(Number(bytes.replaceAll(",", "")))).toBeLessThanOrEqual(Number(bytes.replaceAll(",", "")));
  });
});
