/** @file Walks of repair: what they find is valid and lower, with small buffers, fixed ones and alignment. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { boundOf } from "../bound.ts";
import { type Buffer, heightOf, overlapInTime, type Problem } from "../problem.ts";
import { placeGreedily } from "./grid.ts";
import { hangingOf as hangingIn } from "./hanging.ts";
import { walkersOf as partsOf } from "./parts.ts";
import { randomFrom } from "./random.ts";
import { searchPlacement } from "./search.ts";
import { sectionsOf } from "./sections.ts";
import { type Part, Walk, type Walker } from "./walk.ts";

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

const walkersOf = (problem: Problem): readonly Walker[] => partsOf(problem, sectionsOf(problem));
const hangingOf = (problem: Problem): Part | null => hangingIn(problem, sectionsOf(problem));

/** Pairs that share a step and a byte, and what is misplaced. */
function faults({ buffers }: Problem, offsets: readonly number[]): string[] {
  return buffers.flatMap((a) => {
    const [from, to] = [offsets[a.id]!, offsets[a.id]! + a.bytes];
    const misplaced = from < 0 || from % a.align !== 0 || from !== (a.fixedAt ?? from);
    const met = buffers.filter((b) => a.id < b.id && overlapInTime(a.lifespan, b.lifespan));
    const hit = met.filter((b) => from < offsets[b.id]! + b.bytes && offsets[b.id]! < to);
    return [...(misplaced ? [`${a.id} at ${from}`] : []), ...hit.map((b) => `${a.id}, ${b.id}`)];
  });
}

/** Every walk, or some, for some strides, from a greedy placement; what it found. */
function walkAll(
  problem: Problem,
  strides: number,
  which: (walker: Walker) => boolean = () => true,
): { best: number; found: (readonly number[])[] } {
  const boundBytes = boundOf(problem).bytes;
  let { height: bestBytes, offsets } = placeGreedily(problem, boundBytes, 1);
  const found: (readonly number[])[] = [];
  for (const walker of walkersOf(problem).filter(which)) {
    const walk = new Walk(walker, randomFrom(1), () => false);
    for (let k = 0; k < strides; k++) {
      const next = walk.stride({ bestBytes, boundBytes, offsets: () => offsets });
      if (!next) continue;
      found.push(next.offsets);
      expect(next.height).toBe(heightOf(problem, next.offsets));
      if (next.height < bestBytes) [bestBytes, offsets] = [next.height, next.offsets];
    }
  }
  return { best: bestBytes, found };
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

it("leaves out what is small, but nothing that is fixed", () => {
  const problem = problemOf(mixture(120, 1));
  const [first, ...others] = walkersOf(problem);
  const left = problem.buffers.filter(({ id }) => !first?.part.large.includes(id));
  expect(left.length).toBeGreaterThan(20);
  expect(Math.max(...left.map((b) => b.bytes))).toBeLessThan(400);
  expect(others.at(-1)?.part.large).toHaveLength(120);
  const fixed = { ...problem, buffers: problem.buffers.map((b) => (b.id === 3 ? { ...b, fixedAt: 0 } : b)) };
  expect(left.some((b) => b.id === 3)).toBe(true);
  expect(walkersOf(fixed)[0]?.part.large).toContain(3);
});

it("leaves out nothing where all are alike", () => {
  const rows = mixture(60, 2).map(([start, length]): Row => [start, length, 8]);
  for (const { part } of walkersOf(problemOf(rows))) expect(part.large).toHaveLength(60);
});

it("comes lower than the greedy placement that it starts from, and all that it finds is valid", () => {
  const problem = problemOf(mixture(240, 3));
  const { height } = placeGreedily(problem, 0, 1);
  const { best, found } = walkAll(problem, 8);
  expect(found.length).toBeGreaterThan(0);
  for (const offsets of found) expect(faults(problem, offsets)).toEqual([]);
  expect(best).toBeLessThan(height);
  expect(best).toBeGreaterThanOrEqual(boundOf(problem).bytes);
});

it("finds valid placements of random problems, aligned and with fixed buffers", () => {
  const row = fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 40 }));
  const rows = fc.array(row, { minLength: 2, maxLength: 40, size: "max" });
  fc.assert(
    fc.property(rows, fc.constantFrom(1, 8), fc.constantFrom(1, 4), fc.boolean(), (list, alignment, coarse, fix) => {
      const free = problemOf(list, alignment, coarse);
      const { offsets } = placeGreedily(free, 0, 1);
      const buffers = free.buffers.map((b) => (fix && b.id % 6 === 0 ? { ...b, fixedAt: offsets[b.id]! } : b));
      const problem = { ...free, buffers };
      for (const placement of walkAll(problem, 2).found) expect(faults(problem, placement)).toEqual([]);
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
  const known = { bestBytes: height + 1, boundBytes: boundOf(problem).bytes, offsets: () => offsets };
  for (const walker of walkersOf(problem)) {
    const walk = new Walk(walker, randomFrom(1), () => false);
    for (let k = 0; k < 4; k++) {
      const next = walk.stride(known);
      expect(next ? faults(problem, next.offsets) : []).toEqual([]);
    }
  }
  const top = Math.max(...buffers.map((b) => (b.fixedAt === undefined ? 0 : b.fixedAt + b.bytes)));
  const result = searchPlacement(problem, { targetBytes: known.boundBytes, workLimit: 1e7 });
  expect(result).toMatchObject({ height: top, boundBytes: top, proven: true });
  const hopeless = searchPlacement(problem, { targetBytes: known.boundBytes, capacityBytes: top - 1 });
  expect(hopeless).toMatchObject({ boundBytes: top, nodes: 0 });
});

/** Sizes that are multiples of each other, and small buffers, most of which live to the end. */
function nested(count: number, alignment: number): Problem {
  const random = randomFrom(7);
  const below = (n: number): number => Math.floor(random() * n);
  const rows = Array.from({ length: count }, (_, i): Row => {
    const start = below(200);
    if (i % 3 === 0) return [start, i % 2 === 0 ? 200 - start : 1 + below(20), alignment * (1 + below(9)) - below(2)];
    return [start, 1 + below(i % 5 === 0 ? 100 : 10), 1000 * alignment * [1, 2, 4, 16][i % 4]!];
  });
  return problemOf(rows, alignment);
}

it("lets small buffers hang from the top where the large ones come in rows", () => {
  for (const alignment of [1, 8]) {
    const problem = nested(1200, alignment);
    const [first, ...others] = walkersOf(problem);
    expect([first?.part.inRows, others.some(({ part }) => part.inRows)]).toEqual([true, false]);
    expect(first?.part.sections.unit).toBe(1000 * alignment);
    expect(first?.part.large.every((id) => problem.buffers[id]!.bytes >= 1000)).toBe(true);
    const { height } = placeGreedily(problem, 0, 1);
    const { best, found } = walkAll(problem, 6, ({ part }) => part.inRows);
    expect(best).toBeLessThan(height);
    for (const offsets of found) expect(faults(problem, offsets)).toEqual([]);
  }
});

it("hangs nothing where there are no rows, or where something is fixed or aligned", () => {
  const problem = nested(1200, 1);
  expect(hangingOf(problem)).not.toBeNull();
  const change = (to: (b: Buffer) => Buffer): Problem => ({ ...problem, buffers: problem.buffers.map(to) });
  expect(hangingOf(change((b) => ({ ...b, bytes: b.bytes + (b.id % 97) })))).toBeNull();
  expect(hangingOf(change((b) => (b.id === 5 ? { ...b, fixedAt: 0 } : b)))).toBeNull();
  expect(hangingOf(change((b) => (b.id === 5 ? { ...b, align: 64 } : b)))).toBeNull();
  expect(hangingOf(change((b) => (b.id % 3 === 0 ? { ...b, bytes: 900 } : b)))).toBeNull();
  expect(hangingOf({ ...problem, buffers: problem.buffers.slice(0, 900) })).toBeNull();
});

it("places what is live all the time below rows and fringe", () => {
  const problem = nested(1200, 1);
  const always = (b: Buffer): Buffer =>
    b.id < 4 ? { ...b, lifespan: { start: 0, end: 400 }, bytes: 500 + 1500 * (b.id % 2) } : b;
  const whole = { ...problem, buffers: problem.buffers.map(always) };
  const { found } = walkAll(whole, 6, ({ part }) => part.inRows);
  expect(found.length).toBeGreaterThan(0);
  for (const offsets of found) expect(faults(whole, offsets)).toEqual([]);
});
