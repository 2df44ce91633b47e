/**
 * @file The size of generated code is linear in the program. Values that are read at several positions inside of one kernel
 * are computed at each; chains of such reads once doubled the code with every link. Chains of all kinds, and programs that
 * fuzzing found to become megabytes, are measured as WebAssembly and as C; and fusing them changes no bit.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type LoadGraphOptions, loadGraph } from "../src/api/load-graph.ts";
import { at } from "../src/base/invariant.ts";
import { emitNativeProgram } from "../src/codegen/native/program.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { emitProgram } from "../src/codegen/wasm/program.ts";
import { assemble } from "../src/compiler/assemble.ts";
import type { MemoryRequest } from "../src/compiler/request.ts";
import { Build } from "../src/ir/build.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import { parse } from "../src/ir/parse.ts";
import { type Shape, tensorType } from "../src/ir/type.ts";
import { allNodes } from "../src/ir/walk.ts";
import { allOps } from "../src/ops/all.ts";
import { sum } from "../src/ops/broadcast.ts";
import * as element from "../src/ops/elementwise.ts";
import { type ReadAttrs, take } from "../src/ops/indexing.ts";
import * as math from "../src/ops/math.ts";
import { flip, reshape, transpose } from "../src/ops/movement.ts";
import { type CastAttrs, cast } from "../src/ops/select.ts";
import { pad, slice } from "../src/ops/slice.ts";
import { pipeline } from "../src/passes/pipeline.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { randomInputs } from "./support/random-graph.ts";
import { randomIndexing } from "./support/random-indexing.ts";

interface CodeSize {
  readonly wasm: number;
  readonly native: number;
}

/** Bytes of code, without what every program of the target has. */
function sizeOf(graph: Graph, memory: MemoryRequest = {}): CodeSize {
  const { kernels, copies, plan } = assemble({ graph }, wasmDescription(false), { memory, cache: false });
  const native = (steps: typeof kernels): number =>
    emitNativeProgram(steps, copies, { lanes: 16, fma: false, threads: 1 }).text.length;
  return {
    wasm: emitProgram(kernels, copies, plan.height, { fma: false }).bytes.length,
    native: native(kernels) - native([]),
  };
}

/** Results as WebAssembly computes them. */
function resultsOf(graph: Graph, options: LoadGraphOptions = {}): readonly unknown[] {
  const executable = loadGraph(graph, { target: wasmTarget(false), cache: false, ...options });
  const inputs = randomInputs(graph, 7);
  executable.poison();
  graph.params.forEach(({ type }, i) => {
    executable.write(type, at(executable.placed.params, i), at(inputs, i));
  });
  executable.run();
  return graph.results.map(({ type }, i) => executable.read(type, at(executable.placed.results, i)));
}

type Link = (b: Build, z: Value, i: number) => Value;

/** Links one after the other from a parameter. */
function chainOf(links: number, shape: Shape, link: Link): Graph {
  const b = new Build("chain");
  let z = b.param(tensorType("f32", shape));
  for (let i = 0; i < links; i++) z = link(b, z, i);
  return b.finish([z]);
}

const lookUp = (b: Build, z: Value, indices: Value): Value =>
  b.call<ReadAttrs>(take, [z, indices], { axis: 0, outside: "zero" });

const elements = ({ type }: Value): number => type.shape.reduce((n, extent) => n * extent, 1);

/** Turned round under extents that do not fit together, so that every link divides the index of the last one anew. */
const turned: Link = (b, z, i) => {
  const rows = at([6, 10, 14, 15, 21], i % 5);
  const flat = b.call(reshape, [z], { shape: [rows, elements(z) / rows] });
  return b.call(transpose, [flat], { perm: [1, 0] });
};

const CHAINS: Readonly<Record<string, { readonly shape: Shape; readonly link: Link }>> = {
  "two look-ups of a value that is computed": {
    shape: [24],
    link(b, z) {
      const y = b.call(math.sin, [z], {});
      const [i, j] = [0, 1].map(() => b.param(tensorType("i32", [24]))) as [Value, Value];
      return b.call(element.mul, [lookUp(b, y, i), lookUp(b, y, j)], {});
    },
  },
  "a look-up at an index that is computed from the same value": {
    shape: [24],
    link(b, z) {
      const y = b.call(math.sin, [z], {});
      const places = b.call<CastAttrs>(cast, [b.call(math.exp, [y], {})], { dtype: "i32" });
      return lookUp(b, y, places);
    },
  },
  "padding with two values": {
    shape: [24],
    link(b, z) {
      const padded = [0, 1].map((value) => b.call(pad, [z], { lo: [1], hi: [0], interior: [0], value }));
      const both = b.call(element.add, padded, {});
      return b.call(math.sin, [b.call(slice, [both], { start: [0], limit: [24], stride: [1] })], {});
    },
  },
  neighbours: {
    shape: [24, 130],
    link(b, z) {
      const columns = at(z.type.shape, 1);
      const part = (start: number): Value =>
        b.call(slice, [z], { start: [0, start], limit: [24, columns - 1 + start], stride: [1, 1] });
      return b.call(math.sin, [b.call(element.add, [part(0), part(1)], {})], {});
    },
  },
  "guard within guard": {
    shape: [24],
    link(b, z) {
      const cut = b.call(slice, [b.call(math.sin, [z], {})], { start: [0], limit: [23], stride: [1] });
      return b.call(flip, [b.call(pad, [cut], { lo: [1], hi: [0], interior: [0], value: 0 })], { axes: [0] });
    },
  },
  "sums of look-ups": {
    shape: [24],
    link(b, z) {
      const y = b.call(math.sin, [lookUp(b, z, b.param(tensorType("i32", [24])))], {});
      const whole = b.call(sum, [lookUp(b, y, b.param(tensorType("i32", [24, 5])))], { axes: [1] });
      return b.call(element.mul, [whole, y], {});
    },
  },
  "views of views": { shape: [210, 10], link: turned },
  "views of values": { shape: [210, 10], link: (b, z, i) => b.call(math.sin, [turned(b, z, i)], {}) },
};

describe("code of a chain is linear in its links", () => {
  it.each(Object.entries(CHAINS))("%s", (_, { shape, link }) => {
    const [few, more, many] = [16, 32, 64].map((n) => sizeOf(chainOf(n, shape, link))) as [
      CodeSize,
      CodeSize,
      CodeSize,
    ];
    for (const target of ["wasm", "native"] as const) {
      // What is added for the second half is no more than for the first, give or take where kernels end.
      expect(more[target], target).toBeLessThan(2.5 * few[target]);
      expect(many[target], target).toBeLessThan(2.5 * more[target]);
      expect(many[target] / 64, target).toBeLessThan({ wasm: 12_000, native: 40_000 }[target]);
    }
  });

  it.each(Object.entries(CHAINS))("and has the bits of one kernel an operation: %s", (_, { shape, link }) => {
    const graph = chainOf(20, shape, link);
    expect(resultsOf(graph)).toEqual(resultsOf(graph, { passes: pipeline }));
  });
});

describe("an index that is read inside of a guard", () => {
  it("is not read where the guard does not hold", () => {
    // The indices lie at the start of the arena: the row before the first is outside of it.
    const b = new Build("padded look-up");
    const [i, x] = [b.param(tensorType("i32", [3])), b.param(tensorType("f32", [3, 8]))];
    const rows = lookUp(b, x, i);
    const graph = b.finish([b.call(pad, [rows], { lo: [3, 0], hi: [0, 0], interior: [0, 0], value: 0 })]);
    expect(resultsOf(graph, { persistent: new Set([0]) })).toEqual(resultsOf(graph, { passes: pipeline }));
  });
});

const FOLDER = join(import.meta.dirname, "fixtures", "code-size");

describe("code of random programs is linear in their nodes", () => {
  it.each(readdirSync(FOLDER))("%s", (file) => {
    const graph = at(parse(readFileSync(join(FOLDER, file), "utf8"), allOps), 0);
    const nodes = [...allNodes(graph)].length;
    for (const memory of [{}, { least: true }]) {
      const { wasm, native } = sizeOf(graph, memory);
      expect(wasm).toBeLessThan(400 * nodes);
      expect(native).toBeLessThan(4000 * nodes);
    }
  });

  it("full of index arithmetic", () => {
    for (let seed = 0; seed < 60; seed++) {
      const graph = randomIndexing(seed, 20);
      const { wasm, native } = sizeOf(graph);
      expect(wasm / graph.nodes.length, `seed ${seed}`).toBeLessThan(6000);
      expect(native / graph.nodes.length, `seed ${seed}`).toBeLessThan(20_000);
    }
  });
});
