/**
 * @file Structural identity: two graphs have the same key when they compute the same thing in the same way. Values
 * count by their place of definition, so ids and names do not matter; nor do phases, source lines and the graph's name.
 * Replay numbers do: they keep recomputed nodes apart.
 */
import { attrsKey } from "./attrs.ts";
import type { Graph, Value } from "./graph.ts";
import { typeText } from "./type.ts";

/** A string that is equal exactly for structurally equal graphs; as long as the graph. */
export function structuralKey(graph: Graph): string {
  const numbers = new Map<Value, number>();
  const define = (value: Value): string => {
    numbers.set(value, numbers.size);
    return typeText(value.type);
  };
  // A value that is not defined has no number; verify reports it, the key only has to be stable.
  const use = (value: Value): string => String(numbers.get(value) ?? "?");
  const lines = [`(${graph.params.map(define).join(",")})`];
  for (const node of graph.nodes) {
    const inputs = node.inputs.map(use).join(",");
    const regions = node.regions.map((region) => `[${structuralKey(region)}]`).join("");
    const attrs = attrsKey(node.op, node.attrs);
    lines.push(`${node.outputs.map(define).join(",")}=${node.op.name}(${inputs}){${attrs}}~${node.replay}${regions}`);
  }
  lines.push(`>${graph.results.map(use).join(",")}`);
  return lines.join("\n");
}

/** Whether two graphs are structurally equal. */
export function sameGraph(a: Graph, b: Graph): boolean {
  return a === b || structuralKey(a) === structuralKey(b);
}

/** 128 bits of a graph's structural key, as 32 hexadecimal digits: a name for caches and reports. */
export function hashGraph(graph: Graph): string {
  return hashText(structuralKey(graph));
}

/** Odd multipliers of four independent lanes: bits of the square roots of 2, 3, 5 and 7. */
const MULTIPLIERS = [0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b] as const;

/** 128 bits of a text. Not for secrets: nothing stops a determined author of collisions. */
export function hashText(text: string): string {
  const lanes = MULTIPLIERS.map((multiplier, lane) => {
    let h = multiplier ^ Math.imul(text.length + 1, 2 * lane + 1);
    for (let i = 0; i < text.length; i++) {
      h = Math.imul(h ^ text.charCodeAt(i), multiplier);
      // Multiplication carries upwards only; the rotation brings the high bits back down.
      h = (h << 13) | (h >>> 19);
    }
    h = Math.imul(h ^ (h >>> 16), MULTIPLIERS[(lane + 1) % 4] as number);
    return (h ^ (h >>> 15)) >>> 0;
  });
  return lanes.map((lane) => lane.toString(16).padStart(8, "0")).join("");
}
