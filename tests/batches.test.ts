/**
 * @file Batches on targets. A batch of each operation has the bits of one application for each element, as WebAssembly computes
 * them, but for sums whose order belongs to their shape; random programs, loops and branches over a batch do as well, and
 * native code has the bits of WebAssembly.
 */
import { describe, expect, test } from "vitest";
import { at } from "../src/base/invariant.ts";
import { batch } from "../src/batching/batch.ts";
import { Build } from "../src/ir/build.ts";
import { evaluate } from "../src/ir/evaluate.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import type { AnyOp, Reference, Sample } from "../src/ir/op.ts";
import { elementsOf, type TensorType } from "../src/ir/type.ts";
import { verify } from "../src/ir/verify.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { allOps } from "../src/ops/all.ts";
import { randomGraph, randomInputs, together } from "./support/random-graph.ts";
import { looped, randomCase } from "./support/random-loops.ts";
import { runGraph } from "./support/run-graph.ts";
import { plainTargets, type TestedTarget } from "./support/targets.ts";

const [wasm, native] = plainTargets as readonly [TestedTarget, TestedTarget];
const SIZE = 3;

/**
 * Where the order of a sum belongs to the shape: a sum over all of a few elements is taken in lanes, one over a part of them in order
 * (ops/broadcast.ts); groups of rows are cut into runs by their place among all rows.
 */
const OTHER_ORDER: Readonly<Record<string, number>> = { sum: 1e-6, reduce_prod: 1e-6, grouped_outer: 1e-6 };

interface BatchCase {
  readonly name: string;
  readonly graph: Graph;
  readonly varies: readonly boolean[];
  /** By element, for each parameter; the same where it does not vary. */
  readonly inputs: readonly (readonly Reference[])[];
}

const joined = (parts: readonly Reference[]): Reference => Float64Array.from(parts.flatMap((part) => [...part]));

function caseOf(
  name: string,
  graph: Graph,
  varies: readonly boolean[],
  drawOf: (i: number, n: number) => Reference,
): BatchCase {
  const rounded = (i: number, n: number): Reference =>
    at(graph.params, i).type.dtype === "f32" ? drawOf(i, n).map(Math.fround) : drawOf(i, n);
  const inputs = Array.from({ length: SIZE }, (_, n) => graph.params.map((__, i) => rounded(i, varies[i] ? n : 0)));
  return { name, graph, varies, inputs };
}

const batchOf = ({ graph, varies }: BatchCase): Graph =>
  batch(graph, SIZE, { params: varies, results: graph.results.map(() => true) }).graph;

const inputsOf = ({ graph, varies, inputs }: BatchCase): readonly Reference[] =>
  graph.params.map((_, i) => (varies[i] ? joined(inputs.map((one) => at(one, i))) : at(at(inputs, 0), i)));

/** Results of all cases as batches, and element by element, each in one program. */
function run(cases: readonly BatchCase[], on: TestedTarget = wasm) {
  const given = cases.flatMap(inputsOf);
  const batches = runGraph(on.target(), together(cases.map(batchOf)), (_: Value, i: number) => at(given, i));
  const single = together(cases.map(({ graph }) => graph));
  const each = Array.from({ length: SIZE }, (_, n) => {
    const own = cases.flatMap(({ inputs }) => at(inputs, n));
    return runGraph(on.target(), single, (__: Value, i: number) => at(own, i));
  });
  const owner = cases.flatMap(({ name, graph }) => graph.results.map(() => name));
  return batches.map((got, r) => ({
    name: at(owner, r),
    got: Float64Array.from(got),
    wanted: joined(each.map((results) => Float64Array.from(at(results, r)))),
  }));
}

function noise(seed: number, i: number): number {
  const v = Math.sin(127.1 * (i + 1) + 311.7 * (seed + 1)) * 43758.5453;
  return v - Math.floor(v);
}

function draw(type: TensorType, seed: number, [lo, hi]: readonly [number, number]): Reference {
  return Float64Array.from({ length: elementsOf(type.shape) }, (_, i) => {
    const v = lo + (hi - lo) * noise(seed, i);
    return isFloat(type.dtype) ? v : Math.floor(v);
  });
}

function sampleCases(op: AnyOp, sample: Sample<unknown>, seed: number): readonly BatchCase[] {
  const b = new Build(op.name);
  const params = sample.inputs.map((type) => b.param(type));
  const graph = b.finish(b.callAll(op, params, sample.attrs));
  const range = sample.range ?? [-2, 2];
  const rangeOf = (i: number) => (Array.isArray(range[0]) ? range[i] : range) as readonly [number, number];
  const drawOf = (i: number, n: number): Reference => draw(at(params, i).type, seed + i + 101 * n, rangeOf(i));
  const choices = params.length === 1 ? [] : params.map((_, i) => params.map((__, j) => i === j));
  return [...choices, params.map(() => true)].map((varies) => caseOf(op.name, graph, varies, drawOf));
}

/** Samples of f32 and of other types where there are none, few of each operation. */
function casesOf(op: AnyOp, most: number): readonly BatchCase[] {
  const all = op.samples().filter(({ inputs }) => inputs.length > 0);
  const floats = all.filter(({ inputs }) => inputs.some(({ dtype }) => dtype === "f32"));
  const few = (floats.length > 0 ? floats : all).filter(
    ({ inputs }) => inputs.reduce((sum, { shape }) => sum + elementsOf(shape), 0) < 3000,
  );
  return few.slice(0, most).flatMap((sample, s) => sampleCases(op, sample, 13 * s));
}

describe("a batch of each operation", () => {
  for (const op of allOps.filter((one) => casesOf(one, 1).length > 0)) {
    test(`has the bits of its elements: ${op.name}`, () => {
      for (const { name, got, wanted } of run(casesOf(op, op.batch ? 3 : 1))) {
        const near = OTHER_ORDER[name];
        if (near === undefined) {
          expect(got).toEqual(wanted);
          continue;
        }
        wanted.forEach((w, e) => {
          if (!Object.is(w, got[e])) expect(Math.abs(w - at(got, e))).toBeLessThanOrEqual(near * (1 + Math.abs(w)));
        });
      }
    });
  }

  test.skipIf(native.missing !== null)("has the bits of WebAssembly in native code", () => {
    const cases = allOps.filter((op) => op.batch).flatMap((op) => casesOf(op, 1).slice(-1));
    const given = cases.flatMap(inputsOf);
    const graph = together(cases.map(batchOf));
    const input = (_: Value, i: number): Reference => at(given, i);
    expect(runGraph(native.target(), graph, input)).toEqual(runGraph(wasm.target(), graph, input));
  });
});

describe("batches of random programs", () => {
  const randomCaseOf = (name: string, graph: Graph, seed: number): BatchCase => {
    const sets = Array.from({ length: SIZE }, (_, n) => randomInputs(graph, 10 * seed + n));
    const varies = graph.params.map((_, i) => (seed + i) % 3 !== 0 || graph.params.length === 1);
    return caseOf(name, graph, varies, (i, n) => at(at(sets, n), i) as Reference);
  };

  test("are those of their elements, in the reference arithmetic", () => {
    for (let seed = 0; seed < 40; seed++) {
      const graph = seed % 2 === 0 ? randomGraph(seed, { nodes: 4 + (seed % 25) }) : looped(randomCase(seed));
      const one = randomCaseOf(`program ${seed}`, graph, seed);
      const over = batchOf(one);
      verify(over);
      const got = evaluate(over, inputsOf(one));
      const each = one.inputs.map((inputs) => evaluate(graph, inputs));
      got.forEach((result, r) => {
        expect(result, one.name).toEqual(joined(each.map((results) => at(results, r))));
      });
    }
  });

  test("are those of their elements, as WebAssembly", () => {
    const cases = Array.from({ length: 4 }, (_, n) => {
      const seed = 300 + n;
      return randomCaseOf(
        `program ${seed}`,
        n % 2 === 0 ? randomGraph(seed, { nodes: 8 }) : looped(randomCase(seed)),
        seed,
      );
    });
    for (const { name, got, wanted } of run(cases)) {
      const scale = wanted.reduce((m, x) => (Number.isFinite(x) ? Math.max(m, Math.abs(x)) : m), 1);
      got.forEach((x, e) => {
        const w = at(wanted, e);
        if (Object.is(x, w) || (!Number.isFinite(x) && !Number.isFinite(w))) return;
        expect(Math.abs(x - w), name).toBeLessThanOrEqual(1e-5 * scale);
      });
    }
  });
});
