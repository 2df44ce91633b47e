/**
 * @file Merging makes no circles. Two groups may be merged only if nothing leads from the one to the other by a detour;
 * the detour may run through groups that hold both earlier and later nodes than either.
 */
import { describe, expect, test } from "vitest";
import { hostRandom } from "../base/random.ts";
import { Build } from "../ir/build.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { parse } from "../ir/parse.ts";
import { elementsOf, tensorType } from "../ir/type.ts";
import { violations } from "../ir/verify.ts";
import { allOps } from "../ops/all.ts";
import { broadcast, sum } from "../ops/broadcast.ts";
import { mul, neg, sub } from "../ops/elementwise.ts";
import { fuse } from "./fuse.ts";

function expectSameMeaning(graph: Graph, seed: number): void {
  const after = fuse.run(graph);
  expect(violations(after)).toEqual([]);
  const random = hostRandom(seed);
  const inputs = graph.params.map(({ type }) =>
    Float64Array.from({ length: elementsOf(type.shape) }, () => random.next() + 0.5),
  );
  expect(evaluate(after, inputs)).toEqual(evaluate(graph, inputs));
}

const wide = tensorType("f64", [4, 3]);
const narrow = tensorType("f64", [3]);

/** Rows and tables made from each other at random by maps, sums and broadcasts: many detours. */
function tangle(seed: number, nodes: number): Graph {
  const random = hostRandom(seed);
  const b = new Build("tangle");
  const [tables, rows]: [Value[], Value[]] = [
    [b.param(wide), b.param(wide)],
    [b.param(narrow), b.param(narrow)],
  ];
  const pick = (list: readonly Value[]): Value => list[Math.floor(random.next() * list.length)] as Value;
  for (let i = 0; i < nodes; i++) {
    const list = random.next() < 0.5 ? tables : rows;
    const kind = random.next();
    if (kind < 0.5) list.push(b.call(random.next() < 0.5 ? mul : sub, [pick(list), pick(list)], {}));
    else if (kind < 0.6) list.push(b.call(neg, [pick(list)], {}));
    else if (kind < 0.8) rows.push(b.call(sum, [pick(tables)], { axes: [0] }));
    else tables.push(b.call(broadcast, [pick(rows)], { shape: [4, 3], axes: [1] }));
  }
  return b.finish([...tables.slice(-12), ...rows.slice(-12)]);
}

describe("fusion groups", () => {
  test("are not merged around a detour through a group with earlier and later nodes", () => {
    const [graph] = parse(
      `func detour(x: f64[4,3], y: f64[4,3], a: f64[3], b: f64[3]) {
        s: f64[3] = sum(x) {axes=[0]}
        r: f64[3] = rsqrt(s)
        w: f64[4,3] = broadcast(r) {axes=[1], shape=[4,3]}
        t: f64[4,3] = mul(x, y)
        u: f64[4,3] = mul(t, w)
        v: f64[4,3] = mul(t, y)
        z: f64[3] = sum(v) {axes=[0]}
        p: f64[3] = mul(r, a)
        q: f64[3] = mul(p, b)
        o: f64[3] = mul(z, q)
        return u, o
      }`,
      allOps,
    );
    expectSameMeaning(graph as Graph, 1);
  });

  test("of tangled graphs have an order, and mean what the graph means", () => {
    for (let seed = 0; seed < 300; seed++) expectSameMeaning(tangle(seed, 30 + (seed % 60)), seed);
  });
});
