/**
 * @file Numbers against the reference: the traced graph, before any pass, in doubles. Programs in f32 that jump somewhere
 * (the place of a largest element, a branch) may rightly land elsewhere than their reference: they are compared in f64.
 */
import { plansOf } from "../../../src/api/plan.ts";
import { evaluate } from "../../../src/ir/evaluate.ts";
import type { Graph } from "../../../src/ir/graph.ts";
import type { Reference } from "../../../src/ir/op.ts";
import { allNodes } from "../../../src/ir/walk.ts";
import { isComputed } from "../../../src/kernel/dtype.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import type { Tensor } from "../../../src/trace/tensor.ts";
import { drawRecipe, type FuzzProgram, fuzzProgram, leavesOf, type RecipeOptions } from "../program.ts";
import type { FloatType } from "../scene.ts";
import { compileFor, type Session } from "./session.ts";

/**
 * Some programs lose digits whoever runs them: differences that cancel, chaotic loops. How many is seen by the reference
 * rounded after every operation, and from arguments whose last digit was changed; results may be so many times as far off.
 */
const SENSITIVE = 8;
const EPSILON = { bf16: 2 ** -9, f16: 2 ** -12, f32: 2 ** -24, f64: 2 ** -53 } as const;
const TOLERANCE = { bf16: 0.3, f16: 0.1, f32: 2e-2, f64: 1e-7 } as const;

/** The float of least precision in a graph. */
function leastFloat(graph: Graph): FloatType {
  const used = new Set(
    [...allNodes(graph)].flatMap((node) => [...node.inputs, ...node.outputs].map((v) => v.type.dtype)),
  );
  return (["bf16", "f16", "f32"] as const).find((dtype) => used.has(dtype)) ?? "f64";
}

/** Whether whole numbers or truth values are made in it: places, tests, branches. */
const jumps = (graph: Graph): boolean =>
  [...allNodes(graph)].some((node) => node.outputs.some(({ type }) => type.dtype === "i32" || type.dtype === "bool"));

const doubles = (x: Tensor): Reference => Float64Array.from(isComputed(x.dtype) ? x.data() : x.cast("f32").data());

/** The worst difference over the largest number, and how often only one of both is NaN. */
function compare(got: Reference, want: Reference): readonly [worst: number, onlyOne: number] {
  const scale = want.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 1e-3);
  let [worst, onlyOne] = [0, 0];
  got.forEach((a, i) => {
    const b = want[i] as number;
    if (Number.isNaN(a) !== Number.isNaN(b)) onlyOne++;
    else if (a !== b && !Number.isNaN(a)) worst = Math.max(worst, Math.abs(a - b) / scale);
  });
  return [worst, onlyOne];
}

/** The same numbers, each half a last digit of a type off. */
const rounded =
  (type: keyof typeof TOLERANCE) =>
  (numbers: Reference): Reference =>
    numbers.map((x, i) => x * (1 + (i % 2 === 0 ? 1 : -1) * EPSILON[type]));

interface Traced {
  readonly graph: Graph;
  readonly inputs: readonly Tensor[];
}

function traced(program: FuzzProgram): Traced {
  const args = program.args(0);
  const { source } = plansOf(program.fn as AnyFunction, args, { cache: false });
  const captured = source.traced.captures.map(({ tensor }) => tensor);
  return { graph: source.graph, inputs: [...leavesOf(args as never), ...captured] };
}

const isUnsure = ({ graph }: Traced): boolean => leastFloat(graph) !== "f64" && jumps(graph);

export function checkReference(session: Session, options: RecipeOptions): void {
  const { counts, found, begin } = session;
  begin("reference");
  let { program } = session;
  let made = traced(program);
  if (isUnsure(made)) {
    program = fuzzProgram(drawRecipe(program.recipe.seed, { ...options, dtype: "f64", cast: "none" }));
    made = traced(program);
    // casts to others may be among its steps
    if (isUnsure(made)) return;
  }
  const inputs = made.inputs.map(doubles);
  const wanted = evaluate(made.graph, inputs, { round: false });
  const results = leavesOf(compileFor({ ...session, program })(...program.args(0)));
  counts.references++;
  const type = leastFloat(made.graph);
  const othersOf = (): readonly (readonly Reference[])[] => [
    evaluate(made.graph, inputs, { round: true }),
    evaluate(made.graph, inputs.map(rounded(type)), { round: false }),
  ];
  results.forEach((result, i) => {
    const [worst, onlyOne] = compare(doubles(result), wanted[i] as Reference);
    if (worst <= TOLERANCE[type] && onlyOne === 0) return;
    const own = othersOf().map((other) => compare(other[i] as Reference, wanted[i] as Reference)[0]);
    if (worst <= SENSITIVE * Math.max(...own) && onlyOne === 0) return;
    found("reference", `result ${i} in ${type} is ${worst} off, ${onlyOne} elements are NaN in only one of both`);
  });
}
