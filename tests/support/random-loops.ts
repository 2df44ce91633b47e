/** @file Random graphs as bodies of loops: some parameters are carries, some rows, some constants. */
import { at } from "../../src/base/invariant.ts";
import { hostRandom } from "../../src/base/random.ts";
import { Build } from "../../src/ir/build.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { sameType } from "../../src/ir/type.ts";
import { scan } from "../../src/ops/loops.ts";
import { INDEX } from "../../src/ops/region-checks.ts";
import { type RandomGraphOptions, randomGraph } from "./random-graph.ts";

export const TURNS = 3;

/** A body, and what its parameters are. */
export interface LoopCase {
  readonly body: Graph;
  readonly carries: number;
  readonly xs: number;
  readonly reverse: boolean;
}

export function randomCase(seed: number, options: RandomGraphOptions = {}): LoopCase {
  const next = hostRandom(seed);
  const graph = randomGraph(seed, { nodes: 4 + (seed % 14), ...options });
  const carries = Math.min(graph.params.length, 1 + Math.floor(next.next() * 3));
  const xs = Math.floor(next.next() * (graph.params.length - carries + 1));
  const values = [...graph.params, ...graph.nodes.flatMap((node) => node.outputs)];
  // The next value of a carry: anything of its type, often another carry or itself.
  const after = graph.params.slice(0, carries).map((param) => {
    const fitting = values.filter((value) => sameType(value.type, param.type));
    return at(fitting, Math.floor(next.next() * fitting.length));
  });
  const b = new Build("body");
  const index = b.param(INDEX, "i");
  const params = graph.params.map((param) => b.param(param.type, param.name));
  const wanted = { ...graph, results: [...after, ...graph.results] };
  return { body: b.finish([...b.inline(wanted, params), index]), carries, xs, reverse: next.next() < 0.5 };
}

export function looped({ body, carries, xs, reverse }: LoopCase): Graph {
  const b = new Build("looped");
  const own = body.params.slice(1);
  const inputs = own.map(({ type }, i) =>
    b.param(i >= carries && i < carries + xs ? { ...type, shape: [TURNS, ...type.shape] } : type),
  );
  const attrs = { carries, xs, length: TURNS, reverse, counted: false, reversal: "auto", snapshots: 0 };
  return b.finish(b.callAll(scan, inputs, attrs, { regions: [body] }));
}
