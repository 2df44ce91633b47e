/** @file The values of a plan that are kept in few bits, for reports. */
import { formatBytes } from "../base/bytes.ts";
import type { RoundedForm } from "../ir/facts.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { allNodes } from "../ir/walk.ts";

/** A value that the backward pass reads rounded. */
export interface RoundedReport {
  readonly value: string;
  /** `4 bits`. */
  readonly form: string;
  /** Whether gradients are linear in it. */
  readonly linear: boolean;
  /** As it is kept, and whole. */
  readonly bytes: number;
  readonly wholeBytes: number;
  /** Root mean square of the error over that of the values, expected of normally distributed ones. */
  readonly error: number;
}

/** Expected range of 256 normally distributed numbers, in standard deviations. */
const RANGE = 5.63;

/**
 * Rounding to one of two neighbours at random has a variance of f·(1-f) steps², where f is the distance to the lower one: a sixth
 * on average.
 */
export const expectedError = (bits: number): number => (RANGE * Math.sqrt(1 / 6)) / (2 ** bits - 1);

/** Values that are rounded, each once: where one is recomputed it is rounded again. */
function roundings(graph: Graph): ReadonlyMap<number, { readonly form: RoundedForm; readonly node: Node }> {
  const found = new Map<number, { readonly form: RoundedForm; readonly node: Node }>();
  for (const node of allNodes(graph)) {
    const form = node.op.facts?.rounds?.(node.attrs);
    if (form && !found.has(form.key)) found.set(form.key, { form, node });
  }
  return found;
}

/** The keys of all values that are rounded. */
export const roundedKeys = (graph: Graph): ReadonlySet<number> => new Set(roundings(graph).keys());

export function roundedReports(graph: Graph): readonly RoundedReport[] {
  return [...roundings(graph).values()].flatMap(({ form, node: { inputs, outputs } }): readonly RoundedReport[] => {
    const [whole, ...ends] = inputs;
    if (!whole) return [];
    const bytes = [...outputs, ...ends].reduce((sum, { type }) => sum + byteLength(type), 0);
    const { bits, value, linear } = form;
    return [
      { value, form: `${bits} bits`, linear, bytes, wholeBytes: byteLength(whole.type), error: expectedError(bits) },
    ];
  });
}

const LISTED = 8;

/** The largest of them, and all together; nothing where there are none. */
export function roundedText(all: readonly RoundedReport[]): readonly string[] {
  if (all.length === 0) return [];
  const sum = (of: (one: RoundedReport) => number): string =>
    formatBytes(all.reduce((total, one) => total + of(one), 0));
  const largest = [...all].sort((a, b) => b.wholeBytes - a.wholeBytes).slice(0, LISTED);
  const lines = largest.map(({ value, form, linear, bytes, wholeBytes, error }) => {
    const how = linear ? "linear, no gradient changes in expectation" : "not linear";
    return `  ${value} in ${form}: ${formatBytes(bytes)} instead of ${formatBytes(wholeBytes)}, error ${(100 * error).toFixed(1)} % expected; ${how}`;
  });
  const more = all.length > LISTED ? [`  … and ${all.length - LISTED} more`] : [];
  const head = `rounded: ${all.length} values for the backward pass, ${sum((one) => one.bytes)} instead of ${sum((one) => one.wholeBytes)}`;
  return [head, ...lines, ...more];
}
