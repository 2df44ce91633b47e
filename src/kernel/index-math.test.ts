/** @file Indices against plain integer arithmetic: random expressions, at samples of their counters. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Atom, constant, type Expr, type Index, type LoopVar, load } from "./expr.ts";
import {
  addIndex,
  constIndex,
  divIndex,
  indexDependsOn,
  linearIndex,
  modIndex,
  offsetIndex,
  rangeOf,
  scaleIndex,
  splitIndex,
  substitute,
  valueIndex,
  varIndex,
  ZERO,
} from "./index-math.ts";

const A: LoopVar = { kind: "var", name: "a", extent: 5 };
const B: LoopVar = { kind: "var", name: "b", extent: 4 };
const C: LoopVar = { kind: "var", name: "c", extent: 6 };
const ONCE: LoopVar = { kind: "var", name: "once", extent: 1 };
const VARS = [A, B, C];
const [a, b, c] = [varIndex(A), varIndex(B), varIndex(C)];
// A value read at run time; it stands for d, which the tests run over -3 … 7.
const D_EXPR: Expr = load("i32", 0, ZERO);
const d = valueIndex(D_EXPR, -3, 7);

type Values = Readonly<Record<string, number>>;

function numberOf(index: Index, values: Values): number {
  let sum = index.offset;
  for (const { atom, coef } of index.terms) sum += coef * atomValue(atom, values);
  return sum;
}

function atomValue(atom: Atom, values: Values): number {
  switch (atom.kind) {
    case "var":
      return values[atom.name] ?? Number.NaN;
    case "value":
      return values.d ?? Number.NaN;
    case "div":
    case "mod": {
      const of = numberOf(atom.of, values);
      if (of < 0) expect.fail(`${of} is divided, which should never be negative`);
      return atom.kind === "div" ? Math.floor(of / atom.by) : of % atom.by;
    }
  }
}

const floorMod = (n: number, by: number): number => n - by * Math.floor(n / by);

/** An index together with what it should be. */
interface Case {
  readonly index: Index;
  readonly plain: (values: Values) => number;
}

const leaf: fc.Arbitrary<Case> = fc.oneof(
  fc.constantFrom(...VARS).map((v): Case => ({ index: varIndex(v), plain: (x) => x[v.name] ?? Number.NaN })),
  fc.constant<Case>({ index: d, plain: (x) => x.d ?? Number.NaN }),
  fc.integer({ min: -20, max: 20 }).map((n): Case => ({ index: constIndex(n), plain: () => n })),
  fc.constant<Case>({ index: varIndex(ONCE), plain: () => 0 }),
);

const factor = fc.integer({ min: -12, max: 12 });
const divisor = fc.constantFrom(1, 2, 3, 4, 5, 6, 8, 12, 24);

const { tree } = fc.letrec<{ tree: Case }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    leaf,
    fc.array(tie("tree"), { minLength: 2, maxLength: 3 }).map(
      (parts): Case => ({
        index: addIndex(...parts.map((p) => p.index)),
        plain: (x) => parts.reduce((sum, p) => sum + p.plain(x), 0),
      }),
    ),
    fc
      .tuple(tie("tree"), factor)
      .map(([p, k]): Case => ({ index: scaleIndex(p.index, k), plain: (x) => k * p.plain(x) })),
    fc
      .tuple(tie("tree"), factor)
      .map(([p, k]): Case => ({ index: offsetIndex(p.index, k), plain: (x) => k + p.plain(x) })),
    fc.tuple(tie("tree"), divisor).map(
      ([p, n]): Case => ({
        index: divIndex(p.index, n),
        plain: (x) => Math.floor(p.plain(x) / n),
      }),
    ),
    fc.tuple(tie("tree"), divisor).map(
      ([p, n]): Case => ({
        index: modIndex(p.index, n),
        plain: (x) => floorMod(p.plain(x), n),
      }),
    ),
  ),
}));

const someValues: fc.Arbitrary<Values> = fc.record({
  a: fc.integer({ min: 0, max: A.extent - 1 }),
  b: fc.integer({ min: 0, max: B.extent - 1 }),
  c: fc.integer({ min: 0, max: C.extent - 1 }),
  once: fc.constant(0),
  d: fc.integer({ min: -3, max: 7 }),
});

/** Samples of the counters; the same for every expression. */
const SAMPLES: readonly Values[] = fc.sample(someValues, { numRuns: 60, seed: 3 });
const RUNS = { numRuns: 1500, seed: 11 };

/** The two agree at all samples. Zeros are equal whatever their sign. */
function expectEqual(got: (values: Values) => number, wanted: (values: Values) => number): void {
  expect(SAMPLES.map((x) => got(x) + 0)).toEqual(SAMPLES.map((x) => wanted(x) + 0));
}

/** Checks the normal form all the way down. */
function expectNormal(index: Index): void {
  expect(Object.is(index.offset, -0)).toBe(false);
  expect(index.terms.every((t) => t.coef !== 0)).toBe(true);
  const names = index.terms.map(({ atom }) => offsetIndex(divOrSelf(atom), 0).key);
  expect(new Set(names).size).toBe(names.length);
  for (const { atom } of index.terms) if (atom.kind === "div" || atom.kind === "mod") expectNormal(atom.of);
}

/** An index of one atom, whose key names the atom. */
function divOrSelf(atom: Atom): Index {
  return substitute({ terms: [{ atom, coef: 1 }], offset: 0, key: "" }, varIndex, (e) => e);
}

describe("an index", () => {
  it("has the value of the integer expression it was built from", () => {
    fc.assert(
      fc.property(tree, ({ index, plain }) => {
        expectEqual((x) => numberOf(index, x), plain);
      }),
      RUNS,
    );
  });

  it("stays within rangeOf", () => {
    fc.assert(
      fc.property(tree, ({ index, plain }) => {
        const [lo, hi] = rangeOf(index);
        const outside = SAMPLES.map(plain).filter((n) => n < lo || n > hi);
        expect(outside).toEqual([]);
      }),
      RUNS,
    );
  });

  it("is in normal form: no zero coefficients, no atom twice, no negative zero", () => {
    fc.assert(
      fc.property(tree, ({ index }) => expectNormal(index)),
      { ...RUNS, numRuns: 500 },
    );
  });

  it("divides into quotient and remainder that add up to it again", () => {
    fc.assert(
      fc.property(tree, divisor, ({ index }, n) => {
        const again = addIndex(scaleIndex(divIndex(index, n), n), modIndex(index, n));
        expectEqual(
          (x) => numberOf(again, x),
          (x) => numberOf(index, x),
        );
      }),
      RUNS,
    );
  });

  it("keeps its value under a substitution of counters", () => {
    fc.assert(
      fc.property(tree, tree, ({ index, plain }, inner) => {
        const replacement = modIndex(inner.index, B.extent);
        const replaced = substitute(
          index,
          (v) => (v === B ? replacement : varIndex(v)),
          (e) => e,
        );
        expectEqual(
          (x) => numberOf(replaced, x),
          (x) => plain({ ...x, b: floorMod(inner.plain(x), B.extent) }),
        );
      }),
      { ...RUNS, numRuns: 700 },
    );
  });
});

describe("multi-indices", () => {
  const shapes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 });

  it("are split from an element number and joined to it again", () => {
    fc.assert(
      fc.property(tree, shapes, ({ index }, shape) => {
        const elements = shape.reduce((x, y) => x * y, 1);
        const linear = modIndex(index, elements);
        const parts = splitIndex(linear, shape);
        const joined = linearIndex(parts, shape);
        parts.forEach((part, axis) => {
          const outside = SAMPLES.map((x) => numberOf(part, x)).filter((n) => n < 0 || n >= (shape[axis] ?? 1));
          expect(outside).toEqual([]);
        });
        expectEqual(
          (x) => numberOf(joined, x),
          (x) => numberOf(linear, x),
        );
      }),
      { ...RUNS, numRuns: 700 },
    );
  });

  it("of counters come back as the counters", () => {
    const parts = splitIndex(linearIndex([a, b, c], [5, 4, 6]), [5, 4, 6]);
    expect(parts.map((p) => p.key)).toEqual([a.key, b.key, c.key]);
  });

  it("survive a reshape there and back as plain strides", () => {
    const merged = splitIndex(linearIndex([a, b, c], [5, 4, 6]), [20, 6]);
    const back = splitIndex(linearIndex(merged, [20, 6]), [5, 4, 6]);
    expect(back.map((p) => p.key)).toEqual([a.key, b.key, c.key]);
  });

  it("of a split element number join to that number, not to quotients and remainders", () => {
    const n: LoopVar = { kind: "var", name: "n", extent: 120 };
    const linear = varIndex(n);
    expect(linearIndex(splitIndex(linear, [5, 4, 6]), [5, 4, 6]).key).toBe(linear.key);
    expect(linearIndex(splitIndex(linear, [5, 1, 24]), [5, 1, 24]).key).toBe(linear.key);
  });
});

describe("the documented identities", () => {
  const X: LoopVar = { kind: "var", name: "x", extent: 1000 };
  const x = varIndex(X);
  const mixed = addIndex(scaleIndex(a, 12), scaleIndex(c, 4), varIndex({ kind: "var", name: "low", extent: 4 }));

  it("div(12 a + 4 c + low, 4) = 3 a + c and mod = low", () => {
    expect(divIndex(mixed, 4).key).toBe(addIndex(scaleIndex(a, 3), c).key);
    expect(modIndex(mixed, 4).key).toBe("1*low");
  });

  it("div(4 a + b, 12) = div(a, 3) and mod = 4 mod(a, 3) + b, when 0 ≤ b < 4", () => {
    const x = addIndex(scaleIndex(a, 4), b);
    expect(divIndex(x, 12).key).toBe(divIndex(a, 3).key);
    expect(modIndex(x, 12).key).toBe(addIndex(scaleIndex(modIndex(a, 3), 4), b).key);
  });

  it("4 (x div 4) + (x mod 4) = x", () => {
    expect(addIndex(scaleIndex(divIndex(x, 4), 4), modIndex(x, 4)).key).toBe(x.key);
  });

  it("4 ((x div 4) mod 3) + (x mod 4) = x mod 12", () => {
    const part = modIndex(divIndex(x, 4), 3);
    expect(addIndex(scaleIndex(part, 4), modIndex(x, 4)).key).toBe(modIndex(x, 12).key);
  });

  it("quotient and remainder of a quotient or a remainder join too", () => {
    for (const y of [divIndex(x, 3), modIndex(x, 12)]) {
      expect(addIndex(scaleIndex(divIndex(y, 4), 4), modIndex(y, 4)).key).toBe(y.key);
    }
  });

  it("(x mod 12) div 4 = (x div 4) mod 3 and (x div 3) div 4 = x div 12", () => {
    expect(divIndex(modIndex(x, 12), 4).key).toBe(modIndex(divIndex(x, 4), 3).key);
    expect(divIndex(divIndex(x, 3), 4).key).toBe(divIndex(x, 12).key);
  });
});

describe("run-time values", () => {
  it("are one atom for one expression, and another for another", () => {
    expect(valueIndex(D_EXPR, -3, 7).key).toBe(d.key);
    expect(valueIndex(load("i32", 0, ZERO), -3, 7).key).not.toBe(d.key);
    expect(addIndex(d, scaleIndex(d, -1))).toEqual(ZERO);
  });

  it("are rewritten by substitution, and asked when dependence is", () => {
    const other = constant("i32", 2);
    const replaced = substitute(divIndex(d, 2), varIndex, () => other);
    expect(replaced.key).toBe(divIndex(valueIndex(other, -3, 7), 2).key);
    expect(indexDependsOn(divIndex(addIndex(a, d), 3), A, () => false)).toBe(true);
    expect(indexDependsOn(divIndex(addIndex(a, d), 3), B, () => false)).toBe(false);
    expect(indexDependsOn(divIndex(addIndex(a, d), 3), B, (e) => e === D_EXPR)).toBe(true);
  });
});
