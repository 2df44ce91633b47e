/**
 * @file Every operation on every smooth sample, through the drivers of both modes: forward mode equals central
 * differences, reverse mode is its transpose, results keep their bits, and the same holds once more for the derivative.
 */
import { describe, expect, test } from "vitest";
import { ownSamples } from "../../tests/support/own-samples.ts";
import { Build } from "../ir/build.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph } from "../ir/graph.ts";
import type { AnyOp, Sample } from "../ir/op.ts";
import { elementsOf, type TensorType } from "../ir/type.ts";
import { verify } from "../ir/verify.ts";
import { isFloat } from "../kernel/dtype.ts";
import { allOps } from "../ops/all.ts";
import { addDiagonal } from "../ops/reference.ts";
import { jvp } from "./jvp.ts";
import { vjp } from "./vjp.ts";

/** Uniform in [0, 1), from a seed and an index. */
function noise(seed: number, i: number): number {
  const v = Math.sin(127.1 * (i + 1) + 311.7 * (seed + 1)) * 43758.5453;
  return v - Math.floor(v);
}

/** Clear of the corners that floor, clamp and their kin have at whole numbers, and with no two alike. */
function clear(seed: number, i: number): number {
  return (Math.floor(64 * noise(seed, i)) + 0.25 + noise(seed + 1000, i) / 2) / 64;
}

function draw(type: TensorType, seed: number, [lo, hi]: readonly [number, number]): Float64Array {
  return Float64Array.from({ length: elementsOf(type.shape) }, (_, i) => {
    const v = lo + (hi - lo) * clear(seed, i);
    return isFloat(type.dtype) ? v : Math.floor(v);
  });
}

function rangeOf(sample: Sample<unknown>, i: number): readonly [number, number] {
  const range = sample.range ?? [-2, 2];
  return (Array.isArray(range[0]) ? range[i] : range) as readonly [number, number];
}

/** Types with f64 for f32, so that differences are sharp. */
const wide = (type: TensorType): TensorType => (type.dtype === "f32" ? { ...type, dtype: "f64" } : type);

function graphOf(op: AnyOp, sample: Sample<unknown>): Graph {
  const b = new Build(op.name);
  const attrs = sample.attrs as { dtype?: string };
  const params = sample.inputs.map((type, i) => b.param(wide(type), `x${i}`));
  return b.finish(b.callAll(op, params, attrs.dtype === "f32" ? { ...attrs, dtype: "f64" } : attrs));
}

const dot = (a: Float64Array, b: Float64Array): number => a.reduce((s, v, i) => s + v * b[i]!, 0);

interface Direction {
  readonly x: readonly Float64Array[];
  readonly t: readonly (Float64Array | null)[];
}

function differences(graph: Graph, { x, t }: Direction, h: number): readonly Float64Array[] {
  const at = (by: number) =>
    evaluate(
      graph,
      x.map((v, i) => v.map((e, k) => e + by * (t[i]?.[k] ?? 0))),
    );
  const [up, down] = [at(h), at(-h)];
  return up.map((u, i) => u.map((e, k) => (e - down[i]![k]!) / (2 * h)));
}

/** Checks both modes of a graph along one direction. */
function check(graph: Graph, { x, t }: Direction): void {
  const active = t.map((v) => v !== null);
  const tangents = t.filter((v) => v !== null);
  const [forward, backward] = [jvp(graph, active), vjp(graph, active)];
  verify(forward);
  verify(backward);
  const plain = evaluate(graph, x);
  const pushed = evaluate(forward, [...x, ...tangents]);
  expect(pushed.slice(0, plain.length)).toEqual(plain);
  const floats = graph.results.flatMap((value, i) => (isFloat(value.type.dtype) ? [i] : []));
  const along = pushed.slice(plain.length);
  const numeric = differences(graph, { x, t }, 1e-5);
  floats.forEach((result, i) => {
    along[i]!.forEach((v, k) => {
      const expected = numeric[result]![k]!;
      expect(Math.abs(v - expected)).toBeLessThanOrEqual(2e-5 * (1 + Math.abs(expected)));
    });
  });
  const cts = floats.map((result, i) => draw(graph.results[result]!.type, 70 + i, [-1, 1]));
  const pulled = evaluate(backward, [...x, ...cts]);
  expect(pulled.slice(0, plain.length)).toEqual(plain);
  const left = cts.reduce((s, ct, i) => s + dot(ct, along[i]!), 0);
  const right = tangents.reduce((s, v, i) => s + dot(v, pulled[plain.length + i]!), 0);
  expect(Math.abs(left - right)).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(left)));
}

for (const op of allOps) {
  const smooth = ownSamples(op).filter(
    (sample) => sample.smooth !== false && sample.inputs.some((type) => isFloat(type.dtype)),
  );
  if (op.derivative.kind === "none" || smooth.length === 0) continue;
  describe(op.name, () => {
    test("has two modes that agree with differences and with each other, twice over", () => {
      smooth.forEach((sample, s) => {
        const graph = graphOf(op, sample);
        if (!graph.results.some((value) => isFloat(value.type.dtype))) return;
        const x = graph.params.map((p, i) => draw(p.type, s * 7 + i, rangeOf(sample, i)));
        for (const [i, data] of x.entries()) addDiagonal(sample, i, data);
        const t = graph.params.map((p, i) => (isFloat(p.type.dtype) ? draw(p.type, s * 7 + i + 31, [-1, 1]) : null));
        check(graph, { x, t });
        // the derivative is a graph like any other
        const active = t.map((v) => v !== null);
        const joint = vjp(
          graph,
          active,
          graph.results.map(() => "one" as const),
        );
        check({ ...joint, results: joint.results.slice(graph.results.length) }, { x, t });
      });
    });
  });
}
