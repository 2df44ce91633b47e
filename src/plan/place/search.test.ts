/** @file Search against brute force on tiny problems, against an all-pairs check on larger ones, and on published ones. */
import { existsSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundOf } from "../bound.ts";
import { parseCsv } from "../csv.ts";
import { place } from "../place.ts";
import { type Buffer, heightOf, overlapInTime, type Problem } from "../problem.ts";
import { DEFAULT_PARAMS, type SearchParams } from "./params.ts";
import { type SearchOptions, type SearchResult, searchPlacement } from "./search.ts";

interface Row {
  readonly start: number;
  readonly length: number;
  readonly bytes: number;
  /** Its own alignment is the problem's times this. */
  readonly coarse: number;
}

function problemOf(rows: readonly Row[], alignment: number): Problem {
  const buffers = rows.map(
    ({ start, length, bytes, coarse }, id): Buffer => ({
      id,
      lifespan: { start, end: start + length },
      bytes,
      align: alignment * coarse,
      values: [],
      kind: "activation",
    }),
  );
  return { buffers, capacity: Number.POSITIVE_INFINITY, alignment };
}

/** `coarse` of ten buffers have a larger alignment than the others. */
function problems(maxLength: number, maxStart: number, maxBytes: number, coarse = 1): fc.Arbitrary<Problem> {
  const row = fc.record({
    start: fc.nat(maxStart),
    length: fc.integer({ min: 1, max: maxStart }),
    bytes: fc.nat(maxBytes),
    coarse: fc.nat(9).map((x) => (x < coarse ? 2 : 1)),
  });
  return fc
    .tuple(fc.array(row, { maxLength, size: "max" }), fc.constantFrom(1, 8))
    .map(([rows, alignment]) => problemOf(rows, alignment));
}

/** Fixes some buffers where a placement has them, so that there is a solution. */
function withFixed(problem: Problem, every: number): Problem {
  const { offsets } = place(problem, boundOf(problem).bytes);
  const buffers = problem.buffers.map((b) => (b.id % every === 0 ? { ...b, fixedAt: offsets[b.id]! } : b));
  return { ...problem, buffers };
}

/** Two buffers that share a step and a byte, or a misplaced one. */
function faults({ buffers }: Problem, offsets: readonly number[]): string[] {
  const found: string[] = [];
  for (const a of buffers) {
    if (a.bytes === 0) continue;
    const from = offsets[a.id]!;
    if (from % a.align !== 0 || from < 0 || from !== (a.fixedAt ?? from)) found.push(`${a.id} at ${from}`);
    for (const b of buffers) {
      const apart = from + a.bytes <= offsets[b.id]! || offsets[b.id]! + b.bytes <= from;
      if (a.id < b.id && b.bytes > 0 && overlapInTime(a.lifespan, b.lifespan) && !apart) found.push(`${a.id}, ${b.id}`);
    }
  }
  return found;
}

/** The optimum: some order is optimal in which each buffer goes on top of the conflicting buffers placed before it. */
function optimum(problem: Problem): number {
  const { buffers } = problem;
  let best = Number.POSITIVE_INFINITY;
  const offsets: number[] = buffers.map((b) => b.fixedAt ?? 0);
  const visit = (placed: readonly Buffer[], rest: readonly Buffer[]): void => {
    if (heightOf({ ...problem, buffers: placed }, offsets) >= best) return;
    if (rest.length === 0) best = heightOf(problem, offsets);
    for (const buffer of rest) {
      let offset = 0;
      const conflict = () =>
        placed.find(
          (p) =>
            overlapInTime(p.lifespan, buffer.lifespan) &&
            offset < offsets[p.id]! + p.bytes &&
            offsets[p.id]! < offset + buffer.bytes,
        );
      for (let other = conflict(); other; other = conflict())
        offset = Math.ceil((offsets[other.id]! + other.bytes) / buffer.align) * buffer.align;
      offsets[buffer.id] = offset;
      visit(
        [...placed, buffer],
        rest.filter((b) => b !== buffer),
      );
    }
  };
  const free = buffers.filter((b) => b.fixedAt === undefined && b.bytes > 0);
  const fixed = buffers.filter((b) => b.fixedAt !== undefined && b.bytes > 0);
  visit(fixed, free);
  return best;
}

/** A bad start, so that search has something to do: everything on top of everything. */
function tower(problem: Problem): NonNullable<SearchOptions["start"]> {
  let top = problem.buffers.reduce((most, b) => Math.max(most, (b.fixedAt ?? 0) + b.bytes), 0);
  const offsets = problem.buffers.map((b) => {
    if (b.fixedAt !== undefined) return b.fixedAt;
    const from = Math.ceil(top / b.align) * b.align;
    top = from + b.bytes;
    return from;
  });
  return { offsets, height: heightOf(problem, offsets), strategy: "tower" };
}

function checked(problem: Problem, options: Partial<SearchOptions>): SearchResult {
  const targetBytes = boundOf(problem).bytes;
  const result = searchPlacement(problem, { targetBytes, workLimit: 2e7, ...options });
  expect(faults(problem, result.offsets)).toEqual([]);
  expect(result.height).toBe(heightOf(problem, result.offsets));
  expect(result.boundBytes).toBeGreaterThanOrEqual(targetBytes);
  expect(result.height).toBeGreaterThanOrEqual(result.boundBytes);
  return result;
}

describe("search", () => {
  it("finds and proves the optimum of tiny problems, aligned ones and those with fixed buffers too", () => {
    fc.assert(
      fc.property(problems(7, 7, 9, 3), fc.constantFrom(0, 2, 3), (plain, every) => {
        const problem = every === 0 ? plain : withFixed(plain, every);
        const best = optimum(problem);
        const result = checked(problem, { start: tower(problem) });
        expect(result.height).toBe(best);
        expect(result.proven).toBe(true);
        expect(result.boundBytes).toBeLessThanOrEqual(best);
      }),
      { numRuns: 400, seed: 5 },
    );
  });

  it("is valid in every combination of its switches, and optimal with the exact method", () => {
    const switches = Object.entries(DEFAULT_PARAMS).filter(([, value]) => typeof value === "boolean");
    expect(switches.length).toBe(9);
    const combinations = Array.from({ length: 2 ** switches.length }, (_, bits) =>
      Object.fromEntries(switches.map(([name], k) => [name, ((bits >> k) & 1) === 1])),
    ) as Partial<SearchParams>[];
    const samples = fc.sample(fc.tuple(problems(7, 7, 9, 3), fc.constantFrom(0, 2, 3)), { numRuns: 12, seed: 12 });
    const tiny = samples.map(([plain, every]) => (every === 0 ? plain : withFixed(plain, every)));
    const larger = fc.sample(problems(40, 30, 40, 1), { numRuns: 3, seed: 13 });
    const optima = tiny.map(optimum);
    for (const params of combinations) {
      tiny.forEach((problem, k) => {
        const result = checked(problem, { start: tower(problem), params, workLimit: params.exact ? 2e7 : 1e5 });
        if (params.exact) expect([result.height, result.proven, params]).toEqual([optima[k], true, params]);
        if (!params.exact && !params.repair) expect(result.nodes).toBe(0);
      });
      for (const problem of larger) {
        const start = tower(problem);
        const { height } = checked(problem, { start, params, workLimit: 2e5 });
        if (params.exact || params.repair) expect(height).toBeLessThan(start.height);
        else expect(height).toBeLessThanOrEqual(start.height);
      }
    }
  });

  it("places without collisions, never above its start, in all combinations of limits", () => {
    const combinations = fc.record({
      seed: fc.integer({ min: 1, max: 9 }),
      room: fc.constantFrom(null, 1, 1.05, 1.3),
      tall: fc.boolean(),
      every: fc.constantFrom(0, 3),
    });
    fc.assert(
      fc.property(fc.oneof(problems(40, 10, 30), problems(60, 60, 40)), combinations, (plain, options) => {
        const problem = options.every === 0 ? plain : withFixed(plain, options.every);
        const bound = boundOf(problem).bytes;
        const start = options.tall ? tower(problem) : place(problem, bound);
        const capacity = options.room === null ? {} : { capacityBytes: Math.floor(bound * options.room) };
        const result = checked(problem, { seed: options.seed, start, workLimit: 1e6, ...capacity });
        expect(result.height).toBeLessThanOrEqual(start.height);
      }),
      { numRuns: 700, seed: 6 },
    );
  });

  /** Once a capacity is met, larger ones are too, with no more work. (That one is impossible may be seen at once.) */
  const expectMonotone = (problem: Problem, options: Partial<SearchOptions>): void => {
    const bound = boundOf(problem).bytes;
    let nodes: number | null = null;
    for (const room of [1, 1.005, 1.02, 1.05, 1.1, 1.2, 1.5]) {
      const capacityBytes = Math.floor(bound * room);
      const result = checked(problem, { capacityBytes, ...options });
      const fits = result.height <= capacityBytes;
      if (nodes !== null) expect([fits, result.nodes]).toEqual([true, Math.min(nodes, result.nodes)]);
      if (fits) nodes = result.nodes;
    }
  };

  it("needs no more nodes for more room", () => {
    fc.assert(
      fc.property(problems(24, 12, 20, 2), fc.boolean(), (problem, tall) => {
        expectMonotone(problem, { workLimit: 3e6, ...(tall ? { start: tower(problem) } : {}) });
      }),
      { numRuns: 100, seed: 8 },
    );
    fc.assert(
      fc.property(problems(150, 120, 60), (problem) => expectMonotone(problem, { workLimit: 3e6 })),
      { numRuns: 20, seed: 10 },
    );
  });

  it("needs no more nodes for more room on published instances", () => {
    for (const name of "BCDJK") {
      const { problem } = parseCsv(readFileSync(`tests/instances/minimalloc/${name}.1048576.csv`, "utf8"));
      expectMonotone(problem, { workLimit: 1e7 });
    }
  });

  it("shows that nothing fits a capacity below the optimum", () => {
    let above = 0;
    fc.assert(
      fc.property(problems(7, 7, 9, 5), (problem) => {
        const best = optimum(problem);
        const bound = boundOf(problem).bytes;
        if (best === bound) return;
        above += 1;
        const { boundBytes } = checked(problem, { start: tower(problem), capacityBytes: best - problem.alignment });
        expect(boundBytes).toBe(best);
      }),
      { numRuns: 1000, seed: 9 },
    );
    expect(above).toBeGreaterThan(20);
  });

  it("is a function of problem, limits and seed", () => {
    const { problem } = parseCsv(readFileSync("tests/instances/minimalloc/D.1048576.csv", "utf8"));
    const [a, b] = [1, 2].map(() => checked(problem, { workLimit: 2e7 }));
    expect(a).toEqual(b);
  });
});

describe("published instances", () => {
  /** Those that take less than a second; the others are in bench/pack.ts. */
  for (const name of "ABCFGHJK") {
    it(`packs MiniMalloc's ${name} into its capacity`, () => {
      const { problem } = parseCsv(readFileSync(`tests/instances/minimalloc/${name}.1048576.csv`, "utf8"));
      for (const room of [1, 1.05, 1.1, 1.2]) {
        const capacityBytes = Math.floor(1048576 * room);
        expect(checked(problem, { capacityBytes, workLimit: 4e9 }).height).toBeLessThanOrEqual(capacityBytes);
      }
    });
  }

  it("packs C, resnet50 and G_1 at their bounds", () => {
    for (const name of ["minimalloc/C.1048576", "dsa/resnet50", "dsa/G_1", "minimalloc/example.12"]) {
      const { problem } = parseCsv(readFileSync(`tests/instances/${name}.csv`, "utf8"));
      const { height, proven } = checked(problem, { workLimit: 4e9 });
      expect([name, height, proven]).toEqual([name, boundOf(problem).bytes, true]);
    }
  });

  it("packs what recomputation leaves at its bound, where the file is at hand", () => {
    const file = "../shared/bench/instances/dsa-remat/ResNet-32_0.5.csv";
    if (!existsSync(file)) return console.warn(`not tested: there is no ${file}`);
    const { problem } = parseCsv(readFileSync(file, "utf8"));
    expect(checked(problem, { workLimit: 4e9 }).height).toBe(boundOf(problem).bytes);
  });
});
