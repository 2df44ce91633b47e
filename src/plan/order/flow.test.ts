/** @file Maximum flow against the least of all cuts. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Flow } from "./flow.ts";

const NODES = 7;
const edges = fc.array(fc.tuple(fc.nat(NODES - 1), fc.nat(NODES - 1), fc.nat(9)), { maxLength: 24 });
type Edges = readonly (readonly [number, number, number])[];

function flowOf(list: Edges): Flow {
  const flow = new Flow(2, 1e6);
  while (flow.addNode() < NODES - 1);
  for (const [from, to, capacity] of list) flow.addEdge(from, to, capacity);
  return flow;
}

/** What leaves a set of nodes that holds the source 0 and not the sink 1. */
function leaving(list: Edges, inside: (node: number) => boolean): number {
  return list.reduce((sum, [from, to, capacity]) => sum + (inside(from) && !inside(to) ? capacity : 0), 0);
}

describe("Flow", () => {
  it("is as large as the smallest cut, and shows one from either side", () => {
    fc.assert(
      fc.property(edges, (list) => {
        let least = Number.POSITIVE_INFINITY;
        for (let set = 0; set < 2 ** (NODES - 2); set++) {
          least = Math.min(
            least,
            leaving(list, (node) => node === 0 || (node > 1 && ((set >> (node - 2)) & 1) === 1)),
          );
        }
        const flow = flowOf(list);
        expect(flow.maximum(0, 1)).toBe(least);
        const [reached, reaching] = [flow.reachedFrom(0), flow.reaching(1)];
        expect(leaving(list, (node) => reached[node] === 1)).toBe(least);
        expect(leaving(list, (node) => reaching[node] === 0)).toBe(least);
      }),
      { numRuns: 2000, seed: 61 },
    );
  });

  it("says nothing when its credit is spent", () => {
    const flow = new Flow(2, 3);
    const middle = flow.addNode();
    for (let k = 0; k < 5; k++) flow.addEdge(0, middle, 1);
    flow.addEdge(middle, 1, 9);
    expect(flow.maximum(0, 1)).toBeNull();
  });
});
