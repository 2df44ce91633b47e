/** @file What `bench --deviation` prints: errors of rounded values, and how far one step's results are from the exact ones. */

import { type Deviation, lossyDeviation } from "../api/deviation.ts";
import { counted } from "../base/errors.ts";
import { table } from "../plan/table.ts";
import type { Tree } from "../trace/tree.ts";
import { compileOptions, type PlanSettings } from "./plan-figures.ts";
import type { AnyProgram } from "./programs/built-in.ts";

/** Of the first step of a program. */
export function deviationOf(program: AnyProgram, settings: PlanSettings): Deviation {
  const { effort: _, ...options } = compileOptions(settings);
  const step = program.step as (...args: readonly Tree[]) => unknown;
  return lossyDeviation(step, { name: program.name, ...options })(
    program.init() as Tree,
    ...(program.batch() as Tree[]),
  );
}

/** Values and results in a list each, those furthest from exact. */
const LISTED = 12;

const percent = (share: number): string => `${(100 * share).toPrecision(3)} %`;

export function deviationText({ values, results }: Deviation): string {
  const ofValues = [...values].sort((a, b) => b.measured - a.measured).slice(0, LISTED);
  const rows = ofValues.map(({ value, form, error, measured }) => [value, form, percent(error), percent(measured)]);
  const ofResults = [...results].sort((a, b) => b.relative - a.relative).slice(0, LISTED);
  const lines = ofResults.map(({ path, relative, cosine }) => [path, percent(relative), cosine.toFixed(6)]);
  return [
    `${counted(values.length, "value")} ${values.length === 1 ? "is" : "are"} rounded; error expected and measured, the largest first`,
    ...table(rows, ["left", "right", "right", "right"]).map((line) => `  ${line}`),
    `${counted(results.length, "result")} of one step; distance from the exact ones, and cosine`,
    ...table(lines, ["left", "right", "right"]).map((line) => `  ${line}`),
    "",
  ].join("\n");
}
