/**
 * @file Every operation on every sample, over a batch: with each operand alone and with all of them varying, the results are those
 * of one application for each element, in the reference arithmetic bit by bit. The same for derivatives: the derivative of a batch
 * is the batch of derivatives.
 */
import { describe, expect, test } from "vitest";
import { ownSamples } from "../../tests/support/own-samples.ts";
import { jvp } from "../autodiff/jvp.ts";
import { vjp } from "../autodiff/vjp.ts";
import { Build } from "../ir/build.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import type { AnyOp, Sample } from "../ir/op.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { verify } from "../ir/verify.ts";
import { allNodes } from "../ir/walk.ts";
import { isFloat } from "../kernel/dtype.ts";
import { allOps } from "../ops/all.ts";
import { batch } from "./batch.ts";

const SIZE = 3;

/** Operations that run in a loop over the elements of a batch, and why no rule on axes serves them. */
const IN_A_LOOP: Readonly<Record<string, string>> = {
  pack_bits: "made by a pass after all transformations",
  unpack_bits: "made by a pass after all transformations",
  pack_codes: "words hold elements that are apart: of a batch they would have to be taken apart",
  unpack_codes: "the same",
  group_min: "made by a pass after all transformations",
  group_max: "the same",
  pack_groups: "the same",
  unpack_groups: "the same",
  shuffle: "one permutation is a chain of exchanges",
};

/** Those that do so for some attributes. */
const SOMETIMES: Readonly<Record<string, string>> = {
  attend: "dropout draws by the number of a pair among all scores",
  attend_backward: "the same",
};

function noise(seed: number, i: number): number {
  const v = Math.sin(127.1 * (i + 1) + 311.7 * (seed + 1)) * 43758.5453;
  return v - Math.floor(v);
}

function draw(type: TensorType, seed: number, [lo, hi]: readonly [number, number]): Float64Array {
  return Float64Array.from({ length: elementsOf(type.shape) }, (_, i) => {
    const v = lo + (hi - lo) * noise(seed, i);
    return isFloat(type.dtype) ? v : Math.floor(v);
  });
}

function rangeOf(sample: Sample<unknown>, i: number): readonly [number, number] {
  const range = sample.range ?? [-2, 2];
  return (Array.isArray(range[0]) ? range[i] : range) as readonly [number, number];
}

function graphOf(op: AnyOp, { inputs, attrs }: Sample<unknown>): Graph {
  const b = new Build(op.name);
  return b.finish(
    b.callAll(
      op,
      inputs.map((type, i) => b.param(type, `x${i}`)),
      attrs,
    ),
  );
}

/** Which operands vary: each alone, and all. */
function choices(count: number): readonly (readonly boolean[])[] {
  const each = Array.from({ length: count }, (_, i) => Array.from({ length: count }, (__, j) => i === j));
  return count > 1 ? [...each, Array.from({ length: count }, () => true)] : each;
}

const joined = (parts: readonly Float64Array[]): Float64Array => Float64Array.from(parts.flatMap((part) => [...part]));

/** One set of inputs for each element; those that do not vary are the same. */
function elements(graph: Graph, varies: readonly boolean[], drawOf: (i: number, n: number) => Float64Array) {
  return Array.from({ length: SIZE }, (_, n) => graph.params.map((__, i) => drawOf(i, varies[i] ? n : 0)));
}

function expectNear(got: Float64Array, wanted: Float64Array, near: number): void {
  expect(got.length).toBe(wanted.length);
  wanted.forEach((w, e) => {
    if (Object.is(got[e], w)) return;
    expect(Math.abs(got[e]! - w)).toBeLessThanOrEqual(near * (1 + Math.abs(w)));
  });
}

/** Runs a graph over a batch and element by element. */
function check(graph: Graph, varies: readonly boolean[], drawOf: (i: number, n: number) => Float64Array): void {
  const made = batch(graph, SIZE, { params: varies, results: graph.results.map(() => true) });
  verify(made.graph);
  const inputs = elements(graph, varies, drawOf);
  const given = graph.params.map((_, i) => (varies[i] ? joined(inputs.map((one) => one[i]!)) : inputs[0]![i]!));
  const got = evaluate(made.graph, given);
  const each = inputs.map((one) => evaluate(graph, one));
  graph.results.forEach((_, r) => {
    expect(got[r]).toEqual(joined(each.map((results) => results[r]!)));
  });
}

/** Large ones are for kernels. */
const MOST = 600;

const samplesOf = (op: AnyOp): readonly Sample<unknown>[] =>
  ownSamples(op)
    .filter(({ inputs }) => inputs.length > 0)
    .filter(({ inputs }) => inputs.reduce((sum, { shape }) => sum + elementsOf(shape), 0) <= MOST);

for (const op of allOps.filter((one) => samplesOf(one).length > 0)) {
  describe(op.name, () => {
    test("over a batch is what it is for each element", () => {
      samplesOf(op).forEach((sample, s) => {
        const graph = graphOf(op, sample);
        const drawOf = (i: number, n: number) => draw(graph.params[i]!.type, s * 11 + i + 101 * n, rangeOf(sample, i));
        for (const varies of choices(graph.params.length)) check(graph, varies, drawOf);
      });
    });
  });
}

/** Types with f64 for f32, so that what is compared is no rounding. */
const wide = (type: TensorType): TensorType => (type.dtype === "f32" ? { ...type, dtype: "f64" } : type);

function inDoubles(sample: Sample<unknown>): Sample<unknown> {
  const attrs = sample.attrs as { dtype?: string };
  const isFloatAttr = attrs.dtype === "f32";
  return { ...sample, inputs: sample.inputs.map(wide), attrs: isFloatAttr ? { ...attrs, dtype: "f64" } : attrs };
}

/** Few samples of each: derivatives are rules of the same kind. */
const smooth = (op: AnyOp): readonly Sample<unknown>[] =>
  samplesOf(op)
    .filter((sample) => sample.smooth !== false && sample.inputs.some((type) => isFloat(type.dtype)))
    .slice(0, op.batch ? 2 : 1)
    .map(inDoubles);

/** The derivative of a batch, element by element: cotangents of what does not vary add up. */
function checkReverse(graph: Graph, varies: readonly boolean[], drawOf: (i: number, n: number) => Float64Array): void {
  const active = graph.params.map(({ type }) => isFloat(type.dtype));
  const over = batch(graph, SIZE, { params: varies, results: graph.results.map(() => true) }).graph;
  const [ofBatch, ofOne] = [vjp(over, active), vjp(graph, active)];
  const inputs = elements(graph, varies, drawOf);
  const cts = inputs.map((_, n) =>
    ofOne.params.slice(graph.params.length).map(({ type }, i) => draw(type, 900 + i + 17 * n, [-1, 1])),
  );
  const given = graph.params.map((_, i) => (varies[i] ? joined(inputs.map((one) => one[i]!)) : inputs[0]![i]!));
  const seeds = cts[0]!.map((_, i) => joined(cts.map((one) => one[i]!)));
  const got = evaluate(ofBatch, [...given, ...seeds]).slice(graph.results.length);
  const each = inputs.map((one, n) => evaluate(ofOne, [...one, ...cts[n]!]).slice(graph.results.length));
  const ofActive = varies.filter((_, i) => active[i]);
  got.forEach((cotangent, i) => {
    const parts = each.map((one) => one[i]!);
    const wanted = ofActive[i]
      ? joined(parts)
      : parts[0]!.map((_, e) => parts.reduce((sum, part) => sum + part[e]!, 0));
    expectNear(cotangent, wanted, 1e-9);
  });
}

for (const op of allOps.filter((one) => one.derivative.kind !== "none" && smooth(one).length > 0)) {
  describe(op.name, () => {
    test("has derivatives over a batch that are those of each element, in either order", () => {
      smooth(op).forEach((sample, s) => {
        const plain = graphOf(op, sample);
        if (!plain.results.some((value) => isFloat(value.type.dtype))) return;
        const active = plain.params.map(({ type }) => isFloat(type.dtype));
        const rangeAt = (i: number) => (i < plain.params.length ? rangeOf(sample, i) : ([-1, 1] as const));
        for (const graph of [jvp(plain, active), vjp(plain, active)]) {
          const drawOf = (i: number, n: number) => draw(graph.params[i]!.type, s * 7 + i + 53 * n, rangeAt(i));
          for (const varies of choices(graph.params.length)) check(graph, varies, drawOf);
        }
        const drawOf = (i: number, n: number) => draw(plain.params[i]!.type, s * 7 + i + 53 * n, rangeAt(i));
        for (const varies of choices(plain.params.length)) checkReverse(plain, varies, drawOf);
      });
    });
  });
}

test("few operations run in a loop over the elements", () => {
  const hasLoop = (graph: Graph): boolean => [...allNodes(graph)].some((node) => node.op.name === "scan");
  const found = new Map<string, boolean[]>();
  for (const op of allOps) {
    for (const sample of samplesOf(op)) {
      const graph = graphOf(op, sample);
      const loops = choices(graph.params.length).map((params) => hasLoop(batch(graph, SIZE, { params }).graph));
      found.set(op.name, [...(found.get(op.name) ?? []), ...loops]);
    }
  }
  const names = (wanted: (loops: readonly boolean[]) => boolean) =>
    [...found].filter(([, loops]) => wanted(loops)).map(([name]) => name);
  expect(names((loops) => loops.every((one) => one)).sort()).toEqual(Object.keys(IN_A_LOOP).sort());
  expect(names((loops) => loops.includes(true) && loops.includes(false)).sort()).toEqual(Object.keys(SOMETIMES).sort());
});
