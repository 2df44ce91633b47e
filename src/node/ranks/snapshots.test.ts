/**
 * @file Snapshots of several ranks, which are functions of this process here: they stop at changes of the disk all along the way, all of them or
 * one, and go on with other meshes and stages of ZeRO. What they find must be the state of one attempt at one step, on every rank.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { crashAfter } from "../../../tests/node/files.ts";
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf, tensorType } from "../../ir/type.ts";
import { groupRanks, groupSize, meshSize } from "../../kernel/device-group.ts";
import { bytesOf, type DType } from "../../kernel/dtype.ts";
import type { StateTensor } from "../../parallel/state-layout.ts";
import { type Files, NODE_FILES } from "../files.ts";
import { claimShared } from "./folder.ts";
import { Meeting, type Ranks } from "./meeting.ts";
import { Snapshots } from "./snapshots.ts";
import { keptBy, type Spread } from "./spread.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-ranks-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const newFolder = (): string => mkdtempSync(join(root, "run-"));

/** Ranks of one process, which give texts when all have come. */
function ranksHere(size: number): readonly Ranks[] {
  let waiting: { readonly own: string; readonly resolve: (all: readonly string[]) => void }[] = [];
  const comers = new Map<number, (typeof waiting)[number]>();
  return Array.from({ length: size }, (_, rank) => ({
    rank,
    size,
    fail: () => undefined,
    exchange: (own) =>
      new Promise((resolve) => {
        comers.set(rank, { own, resolve });
        if (comers.size < size) return;
        waiting = Array.from({ length: size }, (__, each) => comers.get(each) as (typeof waiting)[number]);
        comers.clear();
        const texts = waiting.map((one) => one.own);
        for (const one of waiting) one.resolve(texts);
      }),
  }));
}

const SHAPES: readonly (readonly [DType, readonly number[], cut: "params" | "slots" | "step"])[] = [
  ["f32", [3, 3], "params"],
  ["bf16", [5], "params"],
  ["f64", [], "params"],
  ["f32", [17], "slots"],
  ["f32", [0, 2], "slots"],
  ["f32", [1], "slots"],
  ["i32", [], "step"],
];

const tensorsWith = (zero: number): readonly StateTensor[] =>
  SHAPES.map(([dtype, shape, part], i) => ({
    path: `${part}[${i}]`,
    type: tensorType(dtype, shape),
    isCut: (part === "params" && zero === 3) || (part === "slots" && zero > 0),
  }));

interface Form {
  readonly axes: Readonly<Record<string, number>>;
  readonly zero: number;
}

const spreadOf = ({ axes }: Form): Spread => ({ mesh: Object.entries(axes), over: ["data"] });

/** The first byte of an element: where it is, of which attempt and step, and of which device along `tensor`. */
const byteOf = (attempt: number, step: number, own: number, place: number): number =>
  (1 + attempt * 101 + step * 37 + own * 59 + place * 7) & 255;

/** What a device keeps, in the state of a step. */
function stateOf(form: Form, rank: number, attempt: number, step: number): readonly Uint8Array[] {
  const spread = spreadOf(form);
  const own = form.axes.tensor ? groupRanks({ ...spread, over: ["tensor"] }, rank).indexOf(rank) : 0;
  const kept = tensorsWith(form.zero).map((tensor, k) => {
    const bytes = bytesOf(tensor.type.dtype);
    const { from, to } = keptBy(tensor, spread, rank);
    const count = elementsOf(tensor.type.shape);
    // parts of a device come out even
    const all = new Uint8Array((tensor.isCut ? Math.ceil(count / groupSize(spread)) : count) * bytes);
    for (let i = from; i < to; i++) all[(i - from) * bytes] = byteOf(attempt, step, own, 17 * k + i);
    return all;
  });
  return [...kept, new Uint8Array([attempt, step, 0, 0])];
}

interface Attempt {
  readonly form: Form;
  readonly number: number;
  readonly steps: number;
  /** The disk as a rank has it. */
  readonly files?: (rank: number) => Files;
}

interface Outcome {
  readonly from: number | null;
  readonly of: number | null;
  readonly damaged: readonly string[];
}

const identity = { what: "a test" };

/** One rank, from finding a state to the last snapshot. */
async function runRank(folder: string, { form, number, steps, files }: Attempt, ranks: Ranks): Promise<Outcome> {
  const meeting = new Meeting(ranks);
  const disk = files?.(ranks.rank) ?? NODE_FILES;
  const spread = spreadOf(form);
  const tensors = tensorsWith(form.zero);
  const options = { files: disk, folder, identity, meeting, spread, tensors, loss: tensorType("f32", []) };
  const snapshots = new Snapshots(options);
  const kept = stateOf(form, ranks.rank, 0, 0).map(({ length }) => new Uint8Array(length));
  const damaged: string[] = [];
  const found = await snapshots.find(steps, kept, damaged);
  const [of = null, step = null] = found ? (kept.at(-1) ?? []) : [];
  if (found) expect(kept).toEqual(stateOf(form, ranks.rank, of as number, found.step));
  expect(step).toBe(found?.step ?? null);
  for (let i = (found?.step ?? 0) + 1; i <= steps; i++) {
    const decide = () => ({ save: i % 3 === 0 || i === steps, next: i + 1 });
    await snapshots.meet(i, decide, async () => stateOf(form, ranks.rank, number, i));
    if (i % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await snapshots.finish();
  return { from: step, of, damaged };
}

/** All ranks of an attempt; what each found, or its error. */
const run = (folder: string, attempt: Attempt) =>
  Promise.allSettled(ranksHere(meshSize(spreadOf(attempt.form))).map((ranks) => runRank(folder, attempt, ranks)));

async function finished(folder: string, attempt: Attempt): Promise<Outcome> {
  const all = await run(folder, attempt);
  for (const one of all) if (one.status === "rejected") throw one.reason;
  const outcomes = all.map((one) => (one as PromiseFulfilledResult<Outcome>).value);
  for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
  return at(outcomes, 0);
}

/** The last two snapshots, complete, and nothing else; a third where a run stopped before it removed it, and none ran since. */
function expectTidy(folder: string, most = 2): void {
  const names = readdirSync(folder).filter((name) => name !== "run.json");
  const records = names.filter((name) => /^state-\d+\.tide$/.test(name)).map((name) => name.replace(/\.tide$/, "."));
  expect(records.length).toBeLessThanOrEqual(most);
  expect(names.filter((name) => !records.some((record) => name.startsWith(record)))).toEqual([]);
}

const FORMS: readonly Form[] = [
  { axes: { data: 3 }, zero: 3 },
  { axes: { data: 2 }, zero: 0 },
  { axes: { data: 1 }, zero: 2 },
  { axes: { data: 4 }, zero: 1 },
];

describe("snapshots of several ranks", () => {
  it("are those of one attempt, whenever all stop, on any number of devices and with any stage of ZeRO", async () => {
    let [stops, resumed] = [0, 0];
    // four devices make about sixty changes
    for (let operations = 0; operations < 60; operations += 2) {
      const folder = newFolder();
      const first = at(FORMS, (operations / 2) % FORMS.length);
      const crash = crashAfter(operations);
      const outcomes = await run(folder, { form: first, number: 1, steps: 8, files: () => crash.files });
      if (!crash.crashed()) continue;
      stops++;
      expect(outcomes.map(({ status }) => status)).toContain("rejected");
      const again = await finished(folder, { form: at(FORMS, (stops * 3) % 4), number: 2, steps: 8 });
      expect(again.damaged).toEqual([]);
      if (again.from !== null) resumed++;
      expectTidy(folder, again.from === 8 ? 3 : 2);
      const whole = await finished(folder, { form: at(FORMS, (stops + 1) % 4), number: 3, steps: 8 });
      // nothing ran, and nothing is written where the first attempt had been at its end
      expect(whole.from).toBe(8);
    }
    expect(stops).toBeGreaterThan(15);
    expect(resumed).toBeGreaterThan(5);
  });

  it("are those of one attempt where one rank stops, and all are told which", async () => {
    let stops = 0;
    for (let operations = 1; ; operations += 3) {
      const folder = newFolder();
      const crash = crashAfter(operations);
      const form = { axes: { data: 3 }, zero: 3 };
      const files = (rank: number): Files => (rank === 1 ? crash.files : NODE_FILES);
      const outcomes = await run(folder, { form, number: 1, steps: 12, files });
      if (!crash.crashed()) break;
      stops++;
      const errors = outcomes.map((one) => (one.status === "rejected" ? String(one.reason) : ""));
      expect(errors[0]).toMatch(/DeviceFailed: rank 1 of 3 failed: /);
      expect(errors[2]).toBe(errors[0]);
      // the same step again by another attempt, stopped as well, leaves no file of it under the record of the first
      const second = crashAfter(operations + 4);
      await run(folder, { form, number: 2, steps: 12, files: (rank) => (rank === 2 ? second.files : NODE_FILES) });
      await finished(folder, { form, number: 3, steps: 12 });
      expectTidy(folder);
    }
    expect(stops).toBeGreaterThan(3);
  });

  it("of devices with parameters of their own are read at the same place along those axes", async () => {
    const folder = newFolder();
    await finished(folder, { form: { axes: { data: 2, tensor: 2 }, zero: 3 }, number: 1, steps: 4 });
    const other = await finished(folder, { form: { axes: { tensor: 2, data: 3 }, zero: 1 }, number: 2, steps: 7 });
    expect(other).toMatchObject({ from: 4, of: 1 });
    const third = await finished(folder, { form: { axes: { data: 1, tensor: 2 }, zero: 0 }, number: 3, steps: 7 });
    expect(third).toMatchObject({ from: 7, of: 2 });
  });

  it("are gone without the file of a rank, with a bit turned, or with a file of another attempt; the one before is taken", async () => {
    const form = { axes: { data: 2 }, zero: 2 };
    const other = newFolder();
    await finished(other, { form, number: 9, steps: 6 });
    const damages: readonly (readonly [(path: string) => void, RegExp])[] = [
      [(path) => rmSync(path), /it no longer exists/],
      [(path) => writeFileSync(path, readFileSync(path).subarray(0, 50)), /it has 50 bytes/],
      [
        (path) => {
          const bytes = readFileSync(path);
          bytes[100] = (bytes[100] ?? 0) ^ 8;
          writeFileSync(path, bytes);
        },
        /do not match its checksum/,
      ],
      [
        (path) => writeFileSync(path, readFileSync(join(other, "state-6.1-of-2.tide"))),
        /not the file that its snapshot was completed with/,
      ],
      [(path) => writeFileSync(path, readFileSync(path.replace("1-of-2", "0-of-2"))), /belongs to another run/],
    ];
    for (const [damage, problem] of damages) {
      const folder = newFolder();
      await finished(folder, { form, number: 1, steps: 6 });
      damage(join(folder, "state-6.1-of-2.tide"));
      const again = await finished(folder, { form, number: 2, steps: 6 });
      expect(again).toMatchObject({ from: 3, of: 1, damaged: [expect.stringMatching(problem)] });
      expect(await finished(folder, { form, number: 3, steps: 6 })).toMatchObject({ from: 6, of: 2, damaged: [] });
      expectTidy(folder);
    }
  });

  it("are an error where there are some and none is intact, the same on all ranks", async () => {
    const form = { axes: { data: 2 }, zero: 1 };
    const folder = newFolder();
    await finished(folder, { form, number: 1, steps: 6 });
    for (const step of [3, 6]) writeFileSync(join(folder, `state-${step}.tide`), "");
    const outcomes = await run(folder, { form, number: 2, steps: 6 });
    for (const one of outcomes) {
      const { reason } = one as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(TidemarkError);
      expect(reason.message).toMatch(
        /^StorageError: .*state-3\.tide is damaged: it is cut short\n {2}help: no snapshot/,
      );
    }
  });
});

describe("the folder of a run on devices", () => {
  const claim = (axes: Readonly<Record<string, number>>, own: readonly string[], step = "s", what = "x") => ({
    identity: { what },
    form: JSON.stringify(axes),
    steps: { step },
    spread: spreadOf({ axes, zero: 0 }),
    own,
  });

  it("goes on with another mesh, and refuses another run, step, or number of parts by name", async () => {
    const folder = newFolder();
    await claimShared(NODE_FILES, folder, claim({ data: 2, tensor: 2 }, ["tensor"]));
    await claimShared(NODE_FILES, folder, claim({ data: 4, tensor: 2 }, ["tensor"], "t"));
    await claimShared(NODE_FILES, folder, claim({ data: 2, tensor: 2 }, ["tensor"]));
    const other = (given: ReturnType<typeof claim>) => claimShared(NODE_FILES, folder, given);
    await expect(other(claim({ data: 4, tensor: 2 }, ["tensor"]))).rejects.toThrow("another run: different step");
    await expect(other(claim({ data: 2, tensor: 2 }, ["tensor"], "s", "y"))).rejects.toThrow("different what");
    await expect(other(claim({ data: 4 }, []))).rejects.toThrow(
      /was trained on the mesh data=4,tensor=2, with parameters in parts along tensor=2; this one is data=4, where all devices have the same/,
    );
  });
});
