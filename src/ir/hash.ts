/**
 * @file Structural identity: two graphs have the same key when they compute the same thing in the same way. Values
 * count by their place of definition, so ids and names do not matter; nor do phases, source lines and the graph's name.
 * Replay numbers do: they keep recomputed nodes apart.
 */
import { attrsKey } from "./attrs.ts";
import type { Graph, Value } from "./graph.ts";
import type { AnyOp, Attrs } from "./op.ts";
import { type TensorType, typeText } from "./type.ts";

/**
 * A string that is equal exactly for structurally equal graphs; as long as the graph. Operations count by name; where two
 * may have one name, `opText` tells them apart.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, structuralKey } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(structuralKey(graph) === structuralKey(graph)); // → true
 */
export function structuralKey(
  graph: Graph,
  opText: (op: AnyOp) => string | number = (op) => op.name,
  texts: KeyTexts = PLAIN_TEXTS,
): string {
  const numbers = new Map<Value, number>();
  let key = `(${defined(graph.params, numbers, texts)})`;
  for (const { op, inputs, outputs, attrs, replay, regions } of graph.nodes) {
    const read = used(inputs, numbers);
    key += `\n${defined(outputs, numbers, texts)}=${opText(op)}(${read}){${texts.attrs(op, attrs)}}~${replay}`;
    for (const region of regions) key += `[${structuralKey(region, opText, texts)}]`;
  }
  return `${key}\n>${used(graph.results, numbers)}`;
}

/** Texts of what keys are made of. */
export interface KeyTexts {
  type(type: TensorType): string;
  attrs(op: AnyOp, attrs: Attrs): string;
}

const PLAIN_TEXTS: KeyTexts = { type: typeText, attrs: attrsKey };

/** The same for many graphs that have types and attributes in common, as parts of one program do: each text is made once. */
export class KnownTexts implements KeyTexts {
  readonly #types = new Map<TensorType, string>();
  readonly #attrs = new Map<Attrs, { readonly op: AnyOp; readonly text: string }>();

  type(type: TensorType): string {
    const known = this.#types.get(type);
    if (known !== undefined) return known;
    const text = typeText(type);
    this.#types.set(type, text);
    return text;
  }

  /** Attributes mean what their operation's defaults add to them. */
  attrs(op: AnyOp, attrs: Attrs): string {
    const known = this.#attrs.get(attrs);
    if (known?.op === op) return known.text;
    const text = attrsKey(op, attrs);
    this.#attrs.set(attrs, { op, text });
    return text;
  }
}

/** Types of values, which get their numbers here. */
function defined(values: readonly Value[], numbers: Map<Value, number>, texts: KeyTexts): string {
  let text = "";
  for (const value of values) {
    numbers.set(value, numbers.size);
    text += text === "" ? texts.type(value.type) : `,${texts.type(value.type)}`;
  }
  return text;
}

/** Numbers of values. One that is not defined has none; verify reports it, the key only has to be stable. */
function used(values: readonly Value[], numbers: ReadonlyMap<Value, number>): string {
  let text = "";
  for (const value of values) text += `${text === "" ? "" : ","}${numbers.get(value) ?? "?"}`;
  return text;
}

/**
 * Whether two graphs are structurally equal.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, sameGraph } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * const [a, b] = [parse(text, allOps), parse(text, allOps)];
 * for (const [i, graph] of a.entries()) console.log(b.slice(i, i + 1).every((other) => sameGraph(graph, other))); // → true
 */
export function sameGraph(a: Graph, b: Graph): boolean {
  return a === b || structuralKey(a) === structuralKey(b);
}

/**
 * 128 bits of a graph's structural key, as 32 hexadecimal digits: a name for caches and reports.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { hashGraph, parse } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log(hashGraph(graph).length); // → 32
 */
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
