/**
 * @file Random bodies: as a loop and inlined turn after turn, whatever they read, hand through, rename and return, the
 * program gives the same bits, its plan is valid, and nothing depends on what was in the arena before.
 */

import { describe, expect, it } from "vitest";
import { loadGraph } from "../../src/api/load-graph.ts";
import { jvp } from "../../src/autodiff/jvp.ts";
import { vjp } from "../../src/autodiff/vjp.ts";
import { at } from "../../src/base/invariant.ts";
import { Build } from "../../src/ir/build.ts";
import { evaluate } from "../../src/ir/evaluate.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import type { Reference } from "../../src/ir/op.ts";
import { elementsOf } from "../../src/ir/type.ts";
import { violations } from "../../src/ir/verify.ts";
import { concat } from "../../src/ops/concat.ts";
import { full } from "../../src/ops/create.ts";
import { reshape } from "../../src/ops/movement.ts";
import { INDEX } from "../../src/ops/region-checks.ts";
import { slice } from "../../src/ops/slice.ts";
import { validate } from "../../src/plan/validate.ts";
import { expectClose } from "../functions/compare.ts";
import { type RandomGraphOptions, randomInputs } from "../support/random-graph.ts";
import { type LoopCase, looped, randomCase, TURNS } from "../support/random-loops.ts";

/** Row `n` of a stack. */
function rowOf(b: Build, stack: Value, n: number): Value {
  const [, ...shape] = stack.type.shape;
  const start = [n, ...shape.map(() => 0)];
  const cut = b.call(slice, [stack], { start, limit: [n + 1, ...shape], stride: start.map(() => 1) });
  return b.call(reshape, [cut], { shape });
}

function inlined({ body, carries, xs, reverse }: LoopCase, like: Graph): Graph {
  const b = new Build("inlined");
  const inputs = like.params.map((param) => b.param(param.type));
  let state = inputs.slice(0, carries);
  const rows: (readonly Value[])[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const n = reverse ? TURNS - 1 - turn : turn;
    const x = inputs.slice(carries, carries + xs).map((stack) => rowOf(b, stack, n));
    const i = b.call(full, [], { ...INDEX, value: n });
    const made = b.inline(body, [i, ...state, ...x, ...inputs.slice(carries + xs)]);
    state = made.slice(0, carries);
    rows[n] = made.slice(carries);
  }
  const ys = at(rows, 0).map((_, y) => {
    const parts = rows.map((row) => b.call(reshape, [at(row, y)], { shape: [1, ...at(row, y).type.shape] }));
    return b.call(concat, parts, { axis: 0 });
  });
  return b.finish([...state, ...ys]);
}

function run(graph: Graph, inputs: readonly Reference[]): readonly (readonly number[])[] {
  const executable = loadGraph(graph, { validate: true });
  const { plan, params, results } = executable.placed;
  expect(validate(plan.program, plan)).toEqual([]);
  executable.poison();
  graph.params.forEach((param, i) => {
    executable.write(param.type, at(params, i), at(inputs, i));
  });
  executable.run();
  return graph.results.map((result, i) => {
    const view = executable.read(result.type, at(results, i));
    expect(view.length).toBe(elementsOf(result.type.shape));
    return [...new Uint8Array(view.buffer, view.byteOffset, view.byteLength)];
  });
}

describe("random bodies", () => {
  it("have the bits of the body inlined once a turn", () => {
    for (let seed = 0; seed < 150; seed++) {
      const chosen = randomCase(seed);
      const loop = looped(chosen);
      expect(violations(loop), `seed ${seed}`).toEqual([]);
      const inputs = randomInputs(loop, seed, { special: false });
      expect(run(loop, inputs), `seed ${seed}`).toEqual(run(inlined(chosen, loop), inputs));
    }
  });

  const smooth: RandomGraphOptions = { smooth: true, dtypes: ["f64"] };
  const modes = {
    reverse: vjp,
    forward: jvp,
    "reverse over reverse": (graph: Graph, active: readonly boolean[]): Graph => {
      const once = vjp(graph, active);
      return vjp(
        once,
        once.params.map((_, i) => active[i] ?? false),
      );
    },
    "forward over reverse": (graph: Graph, active: readonly boolean[]): Graph => {
      const once = vjp(graph, active);
      return jvp(
        once,
        once.params.map((_, i) => active[i] ?? false),
      );
    },
  };

  it.each(Object.entries(modes))("have the derivatives of the body inlined once a turn: %s mode", (mode, transform) => {
    for (let seed = 0; seed < 40; seed++) {
      // rules of the user's own have no forward mode
      const chosen = randomCase(seed, { ...smooth, regions: mode !== "forward" });
      const loop = looped(chosen);
      // with respect to some of the inputs
      const active = loop.params.map((_, i) => (seed >> (i % 3)) % 2 === 0 || i === seed % loop.params.length);
      const [got, want] = [loop, inlined(chosen, loop)].map((graph) => transform(graph, active));
      if (!got || !want) continue;
      expect(violations(got), `seed ${seed}`).toEqual([]);
      const inputs = randomInputs(got, seed, { special: false });
      const [a, b] = [evaluate(got, inputs), evaluate(want, inputs)];
      expect(a.length).toBe(b.length);
      a.forEach((result, i) => {
        expectClose(result, at(b, i), 1e-9, `${mode}, seed ${seed}, result ${i}`);
      });
    }
  });
});
