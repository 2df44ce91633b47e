/**
 * @file In place equals fresh. Every operation on every sample is built twice: once with results in storage of their own,
 * once with an input donated to a result of its type. The bits are the same, and storage is shared, without a final
 * copy, exactly where the kernel allows it. Then chains: the planner's sharing changes buffers, never bits.
 */

import { describe, expect, test } from "vitest";
import { loadGraph } from "../src/api/load-graph.ts";
import { hostRandom } from "../src/base/random.ts";
import type { PlacedProgram } from "../src/codegen/placed.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { assemble } from "../src/compiler/assemble.ts";
import type { PlanRequest } from "../src/compiler/request.ts";
import { Build } from "../src/ir/build.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import type { AnyOp, Sample } from "../src/ir/op.ts";
import { elementsOf, sameType, tensorType, typeText } from "../src/ir/type.ts";
import { elementWriter, isFloat } from "../src/kernel/dtype.ts";
import { inPlacePairs } from "../src/kernel/loops.ts";
import { lowerNode } from "../src/lower/lower.ts";
import { allOps } from "../src/ops/all.ts";
import { full, iota } from "../src/ops/create.ts";
import { dynamicUpdate } from "../src/ops/dynamic.ts";
import { add, mul, relu, sub } from "../src/ops/elementwise.ts";
import { scatterAdd, take } from "../src/ops/indexing.ts";
import { exp } from "../src/ops/math.ts";
import { matmul } from "../src/ops/matmul.ts";
import { flip, reshape, transpose } from "../src/ops/movement.ts";
import { addDiagonal } from "../src/ops/reference.ts";
import { slice } from "../src/ops/slice.ts";
import { pipeline } from "../src/passes/pipeline.ts";
import { planProgram } from "../src/plan/plan.ts";
import { validate } from "../src/plan/validate.ts";
import { type Elements, Executable } from "../src/runtime/executable.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";

type Data = readonly Float64Array[];

/** The bytes of every result. */
function run(executable: Executable, graph: Graph, inputs: Data): readonly Uint8Array[] {
  const { params, results } = executable.placed;
  graph.params.forEach(({ type }, i) => {
    executable.write(type, params[i]!, Array.from(inputs[i]!, elementWriter(type.dtype)));
  });
  executable.run();
  return graph.results.map((value, i) => bytesAt(executable, value, results[i]!));
}

function bytesAt(executable: Executable, { type }: Value, address: number): Uint8Array {
  const made: Elements = executable.read(type, address);
  return new Uint8Array(made.buffer);
}

/** The same steps, planned without permission to share storage. */
function withoutSharing(placed: PlacedProgram): PlacedProgram {
  const steps = placed.plan.program.steps.map((step) => ({ ...step, inPlace: [] }));
  const plan = planProgram({ ...placed.plan.program, steps }, { keepOrder: true });
  const address = (id: number): number => plan.offsets[id]!;
  const kernels = plan.program.steps.flatMap(({ node, alias }, i) => {
    if (alias) return [];
    const { kernel, values } = lowerNode(node, wasmDescription());
    const scratch = [...plan.scratch[i]!];
    return [{ kernel, addresses: values.map((v) => address(v ? plan.bufferOf.get(v)! : scratch.shift()!)) }];
  });
  const params = plan.program.params.map((v) => address(plan.bufferOf.get(v)!));
  return { ...placed, plan, kernels, copies: [], params, results: plan.resultBuffers.map(address) };
}

/** Every value in storage of its own: arguments are kept for the whole run, and no step may share. */
function runFresh(graph: Graph, inputs: Data, options: Partial<PlanRequest> = {}): readonly Uint8Array[] {
  const persistent = new Set(graph.params.keys());
  const placed = withoutSharing(assemble({ graph, persistent }, wasmDescription(), options));
  return run(new Executable(placed, wasmTarget()), graph, inputs);
}

function rangeOf({ range = [-2, 2] }: Sample<unknown>, i: number): readonly [number, number] {
  return (typeof range[0] === "number" ? range : range[i]) as readonly [number, number];
}

function inputsOf(sample: Sample<unknown>, seed: number): Data {
  const random = hostRandom(seed);
  return sample.inputs.map(({ dtype, shape }, i) => {
    const [lo, hi] = rangeOf(sample, i);
    const data = Float64Array.from({ length: elementsOf(shape) }, () => {
      const x = lo + (hi - lo) * random.next();
      return isFloat(dtype) ? x : Math.floor(x);
    });
    addDiagonal(sample, i, data);
    return data;
  });
}

function graphOf(op: AnyOp, sample: Sample<unknown>): Graph {
  const b = new Build(op.name);
  const params = sample.inputs.map((type, i) => b.param(type, `x${i}`));
  return b.finish(b.callAll(op, params, sample.attrs));
}

/** Whether the only kernel of a placed program may write result r over parameter p. */
function mayShare(placed: PlacedProgram, p: number, r: number): boolean {
  const { graph } = placed;
  const [param, result] = [graph.params[p] as Value, graph.results[r] as Value];
  if (param === result) return true;
  const [node, ...more] = graph.nodes;
  if (!node || more.length > 0) return false;
  if (node.op.alias !== null && node.inputs[node.op.alias] === param) return true;
  const { kernel, values } = lowerNode(node, wasmDescription());
  return inPlacePairs(kernel).some(([from, to]) => values[from] === param && values[to] === result);
}

/** Donates parameter p to result r; gives back whether storage was shared. */
function checkDonated(graph: Graph, inputs: Data, p: number, r: number): boolean {
  const fresh = runFresh(graph, inputs);
  const executable = loadGraph(graph, { donated: new Map([[p, r]]), persistent: new Set([p]), validate: true });
  const { placed } = executable;
  expect(validate(placed.plan.program, placed.plan)).toEqual([]);
  expect(run(executable, graph, inputs), "bits of a donated run").toEqual(fresh);
  expect(bytesAt(executable, graph.results[r]!, placed.params[p]!), "where the argument was").toEqual(fresh[r]);
  const shared = mayShare(placed, p, r);
  const empty = elementsOf(graph.params[p]!.type.shape) === 0;
  if (!empty) expect(placed.copies.length, "final copies").toBe(shared ? 0 : 1);
  return shared;
}

describe("every operation gives the same bits in place", () => {
  let shared = 0;
  for (const op of allOps) {
    if (op.lower.kind === "region") continue;
    const cases = op.samples().flatMap((sample: Sample<unknown>, s) => {
      const graph = graphOf(op, sample);
      return graph.params.flatMap((param, p) =>
        graph.results.flatMap((result, r) =>
          param.type.dtype !== "bool" && sameType(param.type, result.type) ? [{ graph, sample, s, p, r }] : [],
        ),
      );
    });
    if (cases.length === 0) continue;
    test(op.name, () => {
      for (const { graph, sample, s, p, r } of cases) {
        try {
          shared += Number(checkDonated(graph, inputsOf(sample, s), p, r));
        } catch (error) {
          const text = `${op.name}(${sample.inputs.map(typeText).join(", ")}) ${JSON.stringify(sample.attrs)}`;
          throw new Error(`${text}, x${p} donated`, { cause: error });
        }
      }
    });
  }

  test("and many of them do share storage", () => {
    expect(shared).toBeGreaterThan(50);
  });
});

/** Numbers of x's rows, the last first. */
const backwards = (b: Build, x: Value): Value =>
  b.call(flip, [b.call(iota, [], { shape: [x.type.shape[0] as number], axis: 0 })], { axes: [0] });

/** Programs of a few operations over x and y, that invite mistakes. */
const programs: Readonly<Record<string, (b: Build, x: Value, y: Value) => readonly Value[]>> = {
  "x · x": (b, x) => [b.call(mul, [x, x], {})],
  "x - x · y": (b, x, y) => [b.call(sub, [x, b.call(mul, [x, y], {})], {})],
  "x · xᵀ": (b, x) => [b.call(matmul, [x, x], { ta: false, tb: true })],
  xᵀ: (b, x) => [b.call(transpose, [x], { perm: [1, 0] })],
  "x + xᵀ": (b, x) => [b.call(add, [x, b.call(transpose, [x], { perm: [1, 0] })], {})],
  "y, unused x": (b, _, y) => [b.call(exp, [y], {})],
  "x and e^x": (b, x) => [b.call(exp, [x], {}), x],
  "both of x": (b, x) => [b.call(exp, [x], {}), b.call(relu, [x], {})],
  "x by another shape and back": (b, x) => {
    const [n, m] = x.type.shape as [number, number];
    return [b.call(reshape, [b.call(exp, [b.call(reshape, [x], { shape: [n * m] })], {})], { shape: [n, m] })];
  },
  "rows of x, backwards, and x": (b, x) => [
    b.call(add, [b.call(take, [x, backwards(b, x)], { axis: 0, outside: "nan" as const }), x], {}),
  ],
  "x with its own rows added, backwards": (b, x) => [b.call(scatterAdd, [x, backwards(b, x), x], { axis: 0 })],
  "x with rows of both added": (b, x, y) => [
    b.call(scatterAdd, [x, backwards(b, x), b.call(mul, [x, y], {})], { axis: 0 }),
  ],
  "x with a window of itself written over": (b, x) => {
    const part = b.call(slice, [x], { start: [0, 0], limit: [4, 4], stride: [1, 1] });
    const starts = b.call(full, [], { dtype: "i32", shape: [2], value: 3 });
    return [b.call(dynamicUpdate, [x, part, starts], {})];
  },
};

const square = tensorType("f32", [9, 9]);

function programOf(name: string): Graph {
  const b = new Build("program");
  const [x, y] = [b.param(square, "x"), b.param(square, "y")];
  return b.finish(programs[name]!(b, x, y));
}

const squares: Data = [1, 2].map((seed) => {
  const random = hostRandom(seed);
  return Float64Array.from({ length: 81 }, () => random.next() * 2 - 1);
});

describe("programs give the same bits with arguments donated", () => {
  test.each(Object.keys(programs))("%s", (name) => {
    const graph = programOf(name);
    for (const passes of [undefined, pipeline]) {
      const options = passes ? { passes } : {};
      const fresh = runFresh(graph, squares, options);
      expect(run(loadGraph(graph, options), graph, squares), "nothing donated").toEqual(fresh);
      for (const p of [0, 1]) {
        for (let r = -1; r < graph.results.length; r++) {
          const persistent = new Set(r < 0 ? [] : [p]);
          const executable = loadGraph(graph, { ...options, donated: new Map([[p, r]]), persistent });
          const { plan } = executable.placed;
          expect(validate(plan.program, plan)).toEqual([]);
          expect(run(executable, graph, squares), `x${p} donated to ${r}`).toEqual(fresh);
          const slot = executable.placed.params[p]!;
          if (r >= 0) expect(bytesAt(executable, graph.results[r]!, slot), `${r} where x${p} was`).toEqual(fresh[r]);
        }
      }
    }
  });

  test("both donated, to each other's results", () => {
    const b = new Build("swap");
    const [x, y] = [b.param(square, "x"), b.param(square, "y")];
    const graph = b.finish([b.call(sub, [y, x], {}), b.call(mul, [x, y], {}), y, x]);
    const fresh = runFresh(graph, squares);
    for (const [p, q] of [
      [0, 1],
      [1, 0],
      [2, 3],
      [3, 2],
      [0, 2],
      [3, 1],
    ] as const) {
      const options = {
        donated: new Map([
          [0, p],
          [1, q],
        ]),
        persistent: new Set([0, 1]),
      };
      const executable = loadGraph(graph, options);
      expect(run(executable, graph, squares), `results ${p} and ${q}`).toEqual(fresh);
      const { params } = executable.placed;
      expect(bytesAt(executable, graph.results[p]!, params[0]!), `${p} where x was`).toEqual(fresh[p]);
      expect(bytesAt(executable, graph.results[q]!, params[1]!), `${q} where y was`).toEqual(fresh[q]);
    }
  });
});

describe("chains", () => {
  const steps: readonly ((b: Build, h: Value, y: Value) => Value)[] = [
    (b, h) => b.call(relu, [h], {}),
    (b, h) => b.call(exp, [h], {}),
    (b, h, y) => b.call(add, [h, y], {}),
    (b, h, y) => b.call(mul, [y, h], {}),
  ];

  test.each([1, 2, 3, 4])(
    "of %i operations have the same bits with and without sharing, in fewer buffers",
    (length) => {
      const b = new Build("chain");
      const [x, y] = [b.param(square, "x"), b.param(square, "y")];
      const graph = b.finish([steps.slice(0, length).reduce((h, step) => step(b, h, y), x)]);
      // without fusion, which would leave nothing to share
      const placed = assemble({ graph, donated: new Map([[0, -1]]) }, wasmDescription(), { passes: pipeline });
      const apart = withoutSharing(placed);
      expect(placed.kernels.length).toBe(length);
      expect(placed.plan.problem.buffers.length).toBe(2);
      expect(apart.plan.problem.buffers.length).toBe(2 + length);
      expect(placed.plan.height).toBe(2 * 384);
      expect(apart.plan.height).toBeGreaterThan(placed.plan.height);
      const [together, alone] = [placed, apart].map((p) => run(new Executable(p, wasmTarget()), graph, squares));
      expect(together).toEqual(alone);
    },
  );
});
