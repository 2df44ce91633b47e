/** @file Every way to run some part of a graph in strips, for tests. */
import { sameBitsOn } from "../../src/compiler/strip-bits.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import { StripGraph, stripRegion } from "../../src/loops/strips/region.ts";
import { intoStrips } from "../../src/loops/strips/rewrite.ts";
import { sharedLowering } from "../../src/lower/share.ts";
import type { TargetDescription } from "../../src/target/description.ts";

export interface Stripped {
  readonly value: Value;
  readonly axis: number;
  readonly strips: number;
  /** Nodes inside of the loop. */
  readonly nodes: number;
  readonly graph: Graph;
}

/** The graph with each of its values in strips, along each axis, in each of these numbers of strips; each region once. */
export function* allStrips(
  graph: Graph,
  target: TargetDescription,
  counts: readonly number[],
  wideBytes: number = Number.POSITIVE_INFINITY,
): Generator<Stripped> {
  const of = new StripGraph(graph);
  const bits = sameBitsOn(target, sharedLowering(target));
  const known = new Set<string>();
  for (const node of graph.nodes) {
    if (of.isRepeated(node)) continue;
    for (const value of node.outputs) {
      for (const axis of value.type.shape.keys()) {
        for (const strips of counts) {
          const region = stripRegion(of, { value, axis, strips }, wideBytes);
          const key = region && `${strips}: ${[...region.nodes.keys()].map((own) => of.position.get(own)).join()}`;
          if (!region || !key || known.has(key)) continue;
          known.add(key);
          const made = intoStrips(of, region, bits);
          if (made) yield { value, axis, strips, nodes: region.nodes.size, graph: made };
        }
      }
    }
  }
}
