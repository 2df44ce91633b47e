/** @file The values of a plan that are kept in few bits, for reports. */
import { formatBytes } from "../base/bytes.ts";
import type { RoundedForm, RoundedReport } from "../ir/facts.ts";
import type { Graph, Value } from "../ir/graph.ts";
import type { TensorType } from "../ir/type.ts";
import { allNodes } from "../ir/walk.ts";

/** Values that are rounded, each once: where one is recomputed it is rounded again. */
function roundings(graph: Graph): ReadonlyMap<number, RoundedForm> {
  const found = new Map<number, RoundedForm>();
  const types = (values: readonly Value[]): readonly TensorType[] => values.map(({ type }) => type);
  for (const { op, attrs, inputs, outputs } of allNodes(graph)) {
    const form = op.facts?.rounds?.(attrs, types(inputs), types(outputs));
    if (form && !found.has(form.key)) found.set(form.key, form);
  }
  return found;
}

/** The keys of all values that are rounded. */
export const roundedKeys = (graph: Graph): ReadonlySet<number> => new Set(roundings(graph).keys());

/** Of each value that is rounded, by its key. */
export const reportsByKey = (graph: Graph): ReadonlyMap<number, RoundedReport> =>
  new Map([...roundings(graph)].map(([key, { key: _, ...report }]) => [key, report]));

export const roundedReports = (graph: Graph): readonly RoundedReport[] => [...reportsByKey(graph).values()];

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
