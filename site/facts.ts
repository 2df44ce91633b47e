/**
 * @file What the reference says of a function beside its comment, computed from the arguments of its example: which values of the
 * forward pass its derivative reads, and with which errors it answers arguments that do not fit.
 *
 * The derivative is that of src/autodiff; what it reads is read off the graph. The errors are those that it throws when arguments of the
 * example are replaced, one at a time, by others of another type, shape or size.
 */
import { transform } from "sucrase";
import * as tidemark from "../src/api/index.ts";
import { jointOf } from "../src/autodiff/vjp.ts";
import { type Graph, type Node, nodesFor, typeText, type Value } from "../src/ir/index.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { inline } from "../src/passes/inline.ts";
import { traceFunction } from "../src/trace/function.ts";

type Values = Readonly<Record<string, unknown>>;
type AnyFunction = (...args: readonly unknown[]) => unknown;

export interface FactRequest {
  readonly name: string;
  readonly example: string;
  /** Of each parameter: its name, and whether it takes tensors. */
  readonly params: readonly { readonly name: string; readonly isTensor: boolean }[];
}

export interface Facts {
  /** What the derivative reads, in words; null where there is no derivative. */
  readonly keeps: readonly string[] | null;
  /** Codes of errors, each with a message. */
  readonly errors: ReadonlyMap<string, string>;
}

const { Tensor, tensor, TidemarkError } = tidemark;

/** Runs an example with the function replaced by one that remembers what it was called with first. */
function argumentsOf(name: string, example: string): readonly unknown[] | null {
  let first: readonly unknown[] | null = null;
  const original = (tidemark as Values)[name] as AnyFunction;
  const recorder: AnyFunction = (...args) => {
    first ??= args;
    return original(...args);
  };
  const modules: Values = { tidemark: { ...tidemark, [name]: recorder } };
  const { code } = transform(example, { transforms: ["typescript", "imports"] });
  const require = (id: string): unknown => {
    if (!(id in modules)) throw new Error(`facts of ${name}: its example imports ${id}`);
    return modules[id];
  };
  new Function("require", "exports", "console", code)(require, {}, { log: () => undefined });
  return first;
}

const isNested = (value: unknown): boolean =>
  typeof value === "number" || (Array.isArray(value) && value.every(isNested));

/** Arguments with tensors in the places of numbers that are taken as such. */
function asTensors(args: readonly unknown[], { params }: FactRequest): readonly unknown[] {
  return args.map((arg, i) => {
    const takesTensor = params[i]?.isTensor ?? false;
    return takesTensor && Array.isArray(arg) && isNested(arg) ? tensor(arg as number[]) : arg;
  });
}

/** The function of its tensors alone. */
function ofTensors(
  name: string,
  args: readonly unknown[],
): { fn: AnyFunction; tensors: readonly unknown[]; places: number[] } {
  const places = args.flatMap((arg, i) => (arg instanceof Tensor ? [i] : []));
  const original = (tidemark as Values)[name] as AnyFunction;
  const fn: AnyFunction = (...tensors) => {
    const all = [...args];
    for (const [k, place] of places.entries()) all[place] = tensors[k];
    return original(...all);
  };
  return { fn, tensors: places.map((place) => args[place]), places };
}

/** Operations that copy elements and compute none: what they read is what is kept. */
const COPIES: ReadonlySet<string> = new Set(["broadcast", "reshape", "transpose"]);

/** What a value has its elements from. */
function sourceOf(value: Value, nodes: readonly Node[]): Value {
  const node = nodes.find(({ outputs }) => outputs.includes(value));
  const [input] = node?.inputs ?? [];
  return node && input && COPIES.has(node.op.name) ? sourceOf(input, nodes) : value;
}

/** A value of the forward pass in words. */
function words(value: Value, graph: Graph, nodes: readonly Node[], nameOf: (param: number) => string): string {
  const param = graph.params.indexOf(value);
  if (param >= 0) return `\`${nameOf(param)}\``;
  if (graph.results.includes(value)) return graph.results.length === 1 ? "its result" : "one of its results";
  const op = nodes.find(({ outputs }) => outputs.includes(value))?.op.name ?? "value";
  return `a value \`${typeText(value.type)}\` of its own (\`${op}\`)`;
}

/** What the derivative reads of the forward pass. */
function keeps(request: FactRequest, args: readonly unknown[]): readonly string[] | null {
  const { fn, tensors, places } = ofTensors(request.name, args);
  const graph = inline.run(traceFunction(fn, tensors).graph);
  const active = graph.params.map(({ type }, i) => i < tensors.length && isFloat(type.dtype));
  const joint = jointOf(graph, { active, seeds: [] });
  const cotangents = joint.cotangents.flatMap((value) => value ?? []);
  if (cotangents.length === 0) return null;
  const whole = joint.b.finish([...joint.results, ...cotangents]);
  const needed = nodesFor(whole, cotangents);
  const forward = whole.nodes.slice(0, joint.forwardNodes);
  const backward = whole.nodes.slice(joint.forwardNodes).filter((node) => needed.has(node));
  const own = new Set<Value>([
    ...whole.params.slice(0, graph.params.length),
    ...forward.flatMap(({ outputs }) => outputs),
  ]);
  const constant = new Set(forward.filter(({ inputs }) => inputs.length === 0).flatMap(({ outputs }) => outputs));
  const read = new Set(
    backward.flatMap(({ inputs }) => inputs).filter((value) => own.has(value) && !constant.has(value)),
  );
  const stored = new Set([...read].map((value) => sourceOf(value, forward)).filter((value) => !constant.has(value)));
  const results = { ...whole, results: whole.results.slice(0, graph.results.length) };
  const nameOf = (param: number): string => request.params[places[param] ?? -1]?.name ?? "a constant";
  const said = [...own].filter((value) => stored.has(value)).map((value) => words(value, results, forward, nameOf));
  return [...new Set(said)];
}

/** Others in the place of an argument. */
function others(arg: unknown): readonly unknown[] {
  if (arg instanceof Tensor) {
    const { shape } = arg;
    const grown = shape.map((extent, i) => (i === shape.length - 1 ? extent + 1 : extent));
    const other = arg.dtype === "f64" ? "f32" : "f64";
    return [
      tidemark.zeros(shape, { dtype: other }),
      tidemark.zeros(shape, { dtype: "bool" }),
      tidemark.zeros(grown, { dtype: arg.dtype }),
      tidemark.zeros([2, ...shape], { dtype: arg.dtype }),
      tidemark.zeros([], { dtype: arg.dtype }),
      "text",
    ];
  }
  if (typeof arg === "number") return [-100, 0.5, Number.NaN, "text"];
  return [null, "text", { unknown: 1 }];
}

/** Codes of errors with the message of the first of each. */
function errors({ name, params }: FactRequest, args: readonly unknown[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const original = (tidemark as Values)[name] as AnyFunction;
  const probe = (given: readonly unknown[]): void => {
    try {
      original(...given);
    } catch (error) {
      if (error instanceof TidemarkError && !found.has(error.code)) found.set(error.code, error.summary);
    }
  };
  for (let i = 0; i < Math.max(args.length, params.length); i++)
    for (const other of others(args[i])) probe(Object.assign([...args], { [i]: other }));
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Errors of functions that are no part of programs: they read elements, or give something else than tensors. */
const NO_PROGRAM: ReadonlySet<string> = new Set(["SideEffect", "InvalidTree", "InvalidArgument"]);

/** The facts of a function, or null where its example does not call it with tensors. */
export function factsOf(request: FactRequest): Facts | null {
  const recorded = argumentsOf(request.name, request.example);
  if (!recorded) return null;
  const args = asTensors(recorded, request);
  if (!args.some((arg) => arg instanceof Tensor)) return null;
  try {
    return { keeps: keeps(request, args), errors: errors(request, args) };
  } catch (error) {
    if (error instanceof TidemarkError && NO_PROGRAM.has(error.code)) return null;
    throw error;
  }
}
