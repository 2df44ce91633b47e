/**
 * @file How far a program with rounded residuals (`lossy`) is from the program without: of each rounded value the error, and of each
 * result, gradients for example, the distance. Both programs run on the arguments:
 *
 *   values     ‖x̂ - x‖ / ‖x‖, from a program that computes both          results    ‖lossy - exact‖ / ‖exact‖, and the cosine
 */
import { at } from "../base/invariant.ts";
import { ProgramPlans } from "../compiler/assemble.ts";
import type { RoundedReport } from "../ir/facts.ts";
import type { Graph } from "../ir/graph.ts";
import { isFloat } from "../kernel/dtype.ts";
import { measuringErrors } from "../passes/rounded-residuals.ts";
import { reportsByKey, roundedKeys } from "../plan/rounded.ts";
import { fail, requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { currentHost, fastestFor, targetOf } from "./host.ts";
import { loadPlaced } from "./program.ts";
import { type PlanningOptions, parsePlanning } from "./request.ts";
import { CallReader, numberTensors, type TracedProgram } from "./traced-program.ts";

/** A rounded value. */
export interface ValueDeviation extends RoundedReport {
  /** Root mean square of the error over that of the values, as measured. */
  readonly measured: number;
}

/** A result that is a float. */
export interface ResultDeviation {
  readonly path: string;
  /** ‖lossy - exact‖ / ‖exact‖; 0 if both are zero. */
  readonly relative: number;
  /** Of the angle between the two; 1 if both are zero. */
  readonly cosine: number;
}

/** How far a function with rounded residuals is from the exact one, as {@link lossyDeviation} measures it. */
export interface Deviation {
  readonly values: readonly ValueDeviation[];
  readonly results: readonly ResultDeviation[];
}

/** Distance and angle of two lists of numbers. */
function compared(path: string, lossy: ArrayLike<number>, exact: ArrayLike<number>): ResultDeviation {
  let [apart, dot, own, other] = [0, 0, 0, 0];
  for (let i = 0; i < exact.length; i++) {
    const [a, b] = [lossy[i] ?? 0, exact[i] ?? 0];
    apart += (a - b) ** 2;
    dot += a * b;
    own += a * a;
    other += b * b;
  }
  const isZero = own === 0 && other === 0;
  return {
    path,
    relative: isZero ? 0 : Math.sqrt(apart / other),
    cosine: isZero ? 1 : dot / Math.sqrt(own * other),
  };
}

/**
 * Measures what `lossy` changes: takes the function's arguments, and the options of `plan` with `lossy`. Nothing is donated.
 *
 * @memory That of two programs that run one after the other, with the results of both.
 *
 * @example
 * import { grad, lossyDeviation, random, type Tensor } from "tidemark";
 *
 * const slope = grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().matmul(w).square().mean());
 * const [w, x] = [random.normal(random.key(1), [64, 64]), random.normal(random.key(2), [128, 64])];
 * const { results } = lossyDeviation(slope, { lossy: { residuals: { linear: 8, rest: 8 } } })(w, x);
 * console.log((results[0]?.cosine ?? 0) > 0.99); // true
 */
export function lossyDeviation<A extends readonly Tree[] = [Tensor], R = unknown>(
  fn: (...args: A) => R,
  options: PlanningOptions,
): (...args: A) => Deviation {
  requireFunction("lossyDeviation", "its first argument", fn);
  const { donate: _, ...rest } = options;
  const request = parsePlanning("lossyDeviation", rest);
  const { lossy } = request.memory;
  if (!lossy) {
    fail(
      "InvalidArgument",
      "lossyDeviation: lossy is not given",
      'give { lossy: { residuals: "auto" }, memory: "64MiB" }',
    );
  }
  return (...args) => {
    const host = currentHost();
    const source = new CallReader(fn as AnyFunction, request).trace(args);
    const { target } = fastestFor(source, targetOf(request, host, false));
    const plans = new ProgramPlans(source, target.description, request, host);
    const chosen = plans.choose();
    const given = argumentsOf(source);
    const run = (graph: Graph): readonly Tensor[] => {
      const traced = { ...source, graph };
      const asIs = new ProgramPlans(
        traced,
        target.description,
        { ...request, memory: {}, passes: [], cache: false },
        host,
      );
      const program = loadPlaced(traced, asIs.placed(asIs.choose(), 0), { target, host }, { checkNaN: false });
      const results = program.run(given);
      for (const result of results) result.data();
      program.close();
      return results;
    };
    const measuring = measuringErrors(plans.lossyForms(lossy).rounded(roundedKeys(chosen.result.graph)));
    const [rounded, exact] = [run(measuring.graph), run(plans.storedGraph)];
    const count = exact.length;
    const reports = reportsByKey(measuring.graph);
    const values = measuring.keys.flatMap((key, i): readonly ValueDeviation[] => {
      const report = reports.get(key);
      if (!report) return [];
      const [apart, whole] = [0, 1].map((k) => at(rounded, count + 2 * i + k).item());
      return [{ ...report, measured: Math.sqrt((apart ?? 0) / Math.max(whole ?? 0, Number.MIN_VALUE)) }];
    });
    const { paths, leaves } = flatten(unflatten(source.traced.resultTree, exact) as Tree, "result");
    const results = leaves.flatMap((leaf, i) =>
      isFloat(leaf.dtype) ? [compared(at(paths, i), at(rounded, i).data(), leaf.data())] : [],
    );
    return { values, results };
  };
}

const argumentsOf = (source: TracedProgram): readonly Tensor[] => [
  ...source.flat.tensors,
  ...numberTensors(source.traced, source.flat),
  ...source.traced.captures.map(({ tensor }) => tensor),
];
