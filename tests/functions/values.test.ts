/**
 * @file Values of every API function on every sample: compiled to WebAssembly it gives what the reference interpreter
 * gives on the traced graph, what the function gives when its operations run one at a time (to the last bit), and what
 * plain loops give.
 */
import { describe, expect, test } from "vitest";
import * as aliases from "../../src/api/aliases.ts";
import * as api from "../../src/api/index.ts";
import { compile } from "../../src/api/index.ts";
import { evaluate } from "../../src/ir/evaluate.ts";
import { traceFunction } from "../../src/trace/function.ts";
import { storageOf } from "../../src/trace/tensor.ts";
import { expectClose, expectSameBits, TOLERANCE } from "./compare.ts";
import type { Plain } from "./plain.ts";
import { dataFor, doubles, type FunctionSample, labelOf, listOf, tensorsFor } from "./sample.ts";
import { samplesByName } from "./samples.ts";

function check(sample: FunctionSample, label: string): void {
  const data = dataFor(sample, 5);
  const tensors = [...tensorsFor(sample, data)];
  const call = (...inputs: api.Tensor[]): readonly api.Tensor[] => listOf(sample.call(...inputs));
  const { graph, captures } = traceFunction(call, tensors);
  const captured = captures.map(({ tensor }) => Float64Array.from(storageOf(tensor).read()));
  const interpreted = evaluate(graph, [...data, ...captured]);
  const compiled = compile(call, { validate: true })(...tensors);
  const eager = call(...tensors);
  compiled.forEach((result, i) => {
    const name = `${label}, result ${i}`;
    expect([result.dtype, ...result.shape], name).toEqual([
      graph.results[i]!.type.dtype,
      ...graph.results[i]!.type.shape,
    ]);
    expectClose(doubles(result), interpreted[i]!, TOLERANCE[result.dtype], `${name} against the interpreter`);
    expectSameBits(eager[i]!, result, `${name}, one operation at a time`);
  });
  if (!sample.reference) return;
  const plain = sample.inputs.map(({ shape }, i): Plain => ({ shape, data: data[i]! }));
  const expected = listOf<Plain>(sample.reference(...plain));
  expect(expected.length, label).toBe(compiled.length);
  compiled.forEach((result, i) => {
    expect(result.shape, `${label}, shape of result ${i}`).toEqual(expected[i]!.shape);
    expectClose(doubles(result), expected[i]!.data, TOLERANCE[result.dtype], `${label}, result ${i} against loops`);
  });
}

for (const t of ["f32", "f64"] as const) {
  describe(`on WebAssembly, in the interpreter, eagerly and in plain loops, ${t}`, () => {
    for (const [name, samples] of samplesByName(t)) {
      test(`${name} is the same`, () => {
        samples.forEach((sample, i) => {
          check(sample, labelOf(sample, i));
        });
      });
    }
  });
}

/** What the API exports besides functions from tensors to tensors; each has tests of its own. */
const OTHERS = new Set([
  // a function of functions: tests/autocast.test.ts
  "autocast",
  ...["TidemarkError", "Tensor", "tensor", "compile", "plan", "spec", "specsOf", "random"],
  ...["grad", "valueAndGrad", "vjp", "jvp", "hvp", "jacobian", "hessian"],
  ...["checkpoint", "customVjp", "customJvp", "scope"],
  // tests/lossy.test.ts
  "lossyDeviation",
  // tests/browser-spill.test.ts
  "pageFile",
  // src/api/vmap.test.ts, src/api/matrices.test.ts
  ...["vmap", "jacrev", "jacfwd", "linearize", "associativeScan"],
  // src/api/reversible.test.ts
  ...["reversible", "reversibleChain", "reversibleLoop", "drift", "additiveCoupling", "onGrid"],
  // functions of functions: tests/control-flow
  ...["scan", "forLoop", "whileLoop", "cond", "switchCase"],
  // tests/weights.test.ts
  ...["save", "load", "saveTo", "loadFrom", "fileInfo", "toMessage", "fromMessage"],
  ...["loadBytes", "saveBytes", "loadShards"],
  // tests/numpy-files.test.ts
  ...["loadNpy", "loadNpz", "saveNpy", "saveNpz"],
  // tests/compile-async.test.ts, src/api/train-loop.test.ts
  ...["compileAsync", "trainLoop", "webgpu"],
]);

test("every function that the API exports has samples", () => {
  const exported = Object.entries(api).flatMap(([name, value]) => (typeof value === "function" ? [name] : []));
  const sampled = samplesByName("f32");
  const functions = new Map(Object.entries(api));
  const withSamples = new Set([...sampled.keys()].map((name) => functions.get(name)));
  const isAlias = (name: string) => name in aliases && withSamples.has(functions.get(name));
  expect(exported.filter((name) => !sampled.has(name) && !OTHERS.has(name) && !isAlias(name))).toEqual([]);
  expect([...sampled.keys()].filter((name) => !exported.includes(name))).toEqual([]);
});
