/** @file Local search: its placements are valid and lower, with fixed buffers and with alignment. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { boundOf } from "../bound.ts";
import { type Buffer, heightOf, overlapInTime, type Problem } from "../problem.ts";
import { placeGreedily } from "./greedy.ts";
import { randomFrom } from "./random.ts";
import { searchPlacement } from "./search.ts";

type Row = readonly [start: number, length: number, bytes: number];

function problemOf(rows: readonly Row[], alignment = 1, coarse = 1): Problem {
  const buffers = rows.map(
    ([start, length, bytes], id): Buffer => ({
      id,
      lifespan: { start, end: start + length },
      bytes,
      align: id % 5 === 0 ? coarse * alignment : alignment,
      values: [],
      kind: "activation",
    }),
  );
  return { buffers, capacity: Number.POSITIVE_INFINITY, alignment };
}

/** Pairs that share a step and a byte, and what is misplaced. */
function faults({ buffers }: Problem, offsets: readonly number[]): string[] {
  return buffers.flatMap((a) => {
    const [from, to] = [offsets[a.id]!, offsets[a.id]! + a.bytes];
    const isMisplaced = from < 0 || from % a.align !== 0 || from !== (a.fixedAt ?? from);
    const others = buffers.filter((b) => a.id < b.id && overlapInTime(a.lifespan, b.lifespan));
    const hits = others.filter((b) => from < offsets[b.id]! + b.bytes && offsets[b.id]! < to);
    return [...(isMisplaced ? [`${a.id} at ${from}`] : []), ...hits.map((b) => `${a.id}, ${b.id}`)];
  });
}

/** Large and small buffers, most of them short. */
function mixture(count: number, seed: number): Row[] {
  const random = randomFrom(seed);
  const below = (n: number): number => Math.floor(random() * n);
  return Array.from({ length: count }, (_, i) => {
    const bytes = i % 3 === 0 ? 1 + below(3) : 400 * (1 + below(4));
    return [below(60), 1 + below(i % 4 === 0 ? 60 : 12), bytes];
  });
}

const REPAIR = { exact: false };

it("comes lower than the greedy placement that it starts from", () => {
  const problem = problemOf(mixture(240, 3));
  const start = placeGreedily(problem, 0, 1);
  const targetBytes = boundOf(problem).bytes;
  for (const emptyStart of [true, false]) {
    const params = { ...REPAIR, emptyStart };
    const result = searchPlacement(problem, { targetBytes, start, workLimit: 2e7, params });
    expect(faults(problem, result.offsets)).toEqual([]);
    expect(result.strategy).toBe("repair");
    expect(result.height).toBeLessThan(start.height);
    expect(result.height).toBe(heightOf(problem, result.offsets));
  }
});

it("places random problems without conflicts, aligned and with fixed buffers", () => {
  const row = fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 40 }));
  const rows = fc.array(row, { minLength: 2, maxLength: 40, size: "max" });
  fc.assert(
    fc.property(rows, fc.constantFrom(1, 8), fc.constantFrom(1, 4), fc.boolean(), (list, alignment, coarse, fix) => {
      const free = problemOf(list, alignment, coarse);
      const start = placeGreedily(free, 0, 1);
      const buffers = free.buffers.map((b) => (fix && b.id % 6 === 0 ? { ...b, fixedAt: start.offsets[b.id]! } : b));
      const problem = { ...free, buffers };
      const targetBytes = boundOf(problem).bytes;
      const { offsets } = searchPlacement(problem, { targetBytes, start, workLimit: 1e6, params: REPAIR });
      expect(faults(problem, offsets)).toEqual([]);
    }),
    { seed: 5, numRuns: 60 },
  );
});

it("does not aim below what is fixed, however high that is", () => {
  const free = problemOf(mixture(400, 3));
  const { offsets, height } = placeGreedily(free, 0, 1);
  const isHigh = (b: Buffer): boolean => b.bytes >= 400 && offsets[b.id]! + b.bytes > 0.9 * height;
  const buffers = free.buffers.map((b) => (isHigh(b) ? { ...b, fixedAt: offsets[b.id]! } : b));
  const problem = { ...free, buffers };
  const targetBytes = boundOf(problem).bytes;
  const top = Math.max(...buffers.map((b) => (b.fixedAt === undefined ? 0 : b.fixedAt + b.bytes)));
  for (const params of [{}, REPAIR]) {
    const result = searchPlacement(problem, { targetBytes, workLimit: 1e7, params });
    expect(result).toMatchObject({ height: top, boundBytes: top, proven: true });
    expect(faults(problem, result.offsets)).toEqual([]);
  }
  const infeasible = searchPlacement(problem, { targetBytes, capacityBytes: top - 1 });
  expect(infeasible).toMatchObject({ boundBytes: top, nodes: 0 });
});

it("ends soon after its deadline, with the first greedy placement if there is no other", () => {
  const rows = Array.from({ length: 2000 }, (_, i): Row => [(i * 7) % 200, 1 + ((i * 5) % 90), 1 + ((i * 11) % 13)]);
  const problem = problemOf(rows);
  const targetBytes = boundOf(problem).bytes;
  const first = placeGreedily(problem, 0, 1);
  expect(placeGreedily(problem, 0, Number.POSITIVE_INFINITY, () => true)).toEqual(first);
  for (const limit of [0, 3, 40]) {
    let looks = 0;
    const isOver = (): boolean => {
      looks += 1;
      return looks > limit;
    };
    const result = searchPlacement(problem, { targetBytes, isOver });
    expect(faults(problem, result.offsets)).toEqual([]);
    expect(result.height).toBeLessThanOrEqual(first.height);
  }
  expect(searchPlacement(problem, { targetBytes, timeoutMs: 0 })).toMatchObject({ ...first, nodes: 0 });
});
