/**
 * @file What the reference says of a function beside its comment, computed from the calls of its example: which values of the
 * forward pass its derivative reads, what the state of an optimizer takes, and with which errors it answers arguments that do not fit.
 *
 * The derivative is that of src/autodiff; what it reads is read off the graph. The errors are those that it throws when arguments of the
 * example are replaced, one at a time, by others of another type, shape or size. A layer is what its `apply` does, a function that
 * returns a function what that does.
 */
import * as tidemark from "../src/api/index.ts";
import { jointOf } from "../src/autodiff/vjp.ts";
import { elementsOf, type Graph, type Node, nodesFor, typeText, type Value } from "../src/ir/index.ts";
import { bytesOf, isFloat } from "../src/kernel/dtype.ts";
import { inline } from "../src/passes/inline.ts";
import { traceFunction } from "../src/trace/function.ts";
import { type AnyFunction, type Call, callsOf } from "./recorded.ts";

export interface FactRequest {
  /** `tidemark/nn`. */
  readonly module: string;
  /** The name, behind its namespace if it is in one. */
  readonly path: readonly string[];
  readonly example: string;
  /** Of each parameter: its name, whether it takes tensors, and whether it stands for all further arguments. */
  readonly params: readonly { readonly name: string; readonly isTensor: boolean; readonly isRest?: boolean }[];
}

export interface Facts {
  /** A sentence about memory; null where there is nothing to say. */
  readonly memory: string | null;
  /** Codes of errors, each with a message. */
  readonly errors: ReadonlyMap<string, string>;
}

const { Tensor, tensor, TidemarkError } = tidemark;
type TensorValue = InstanceType<typeof Tensor>;

const isNested = (value: unknown): boolean =>
  typeof value === "number" || typeof value === "boolean" || (Array.isArray(value) && value.every(isNested));

/** Arguments with tensors in the places of numbers that are taken as such. */
function asTensors(args: readonly unknown[], { params }: FactRequest): readonly unknown[] {
  return args.map((arg, i) => {
    const takesTensor = params[i]?.isTensor ?? false;
    return takesTensor && Array.isArray(arg) && isNested(arg) ? tensor(arg as number[]) : arg;
  });
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** The tensors in a value, with the words that lead to them. */
function tensorsIn(value: unknown, name: string): readonly { readonly name: string; readonly tensor: TensorValue }[] {
  if (value instanceof Tensor) return [{ name, tensor: value }];
  if (Array.isArray(value)) return value.flatMap((item, i) => tensorsIn(item, `${name}[${i}]`));
  if (!isPlain(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => tensorsIn(item, name === "" ? key : `${name}.${key}`));
}

/** The value with others in the places of its tensors, in their order. */
function withTensors(value: unknown, next: () => unknown): unknown {
  if (value instanceof Tensor) return next();
  if (Array.isArray(value)) return value.map((item) => withTensors(item, next));
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withTensors(item, next)]));
}

type NameOf = (argument: number) => string;

/** Names of arguments by those of the parameters. */
function namesBy({ params }: FactRequest): NameOf {
  const rest = params.findIndex(({ isRest }) => isRest);
  return (i) =>
    rest >= 0 && i >= rest ? `${params[rest]?.name}[${i - rest}]` : (params[i]?.name ?? `argument ${i + 1}`);
}

/** A function of tensors alone: a call with everything else as it was. */
function ofTensors(call: Call, nameOf: NameOf) {
  const found = call.args.flatMap((arg, i) => tensorsIn(arg, nameOf(i)));
  const fn: AnyFunction = (...tensors) => {
    let at = 0;
    return call.fn(...call.args.map((arg) => withTensors(arg, () => tensors[at++])));
  };
  return { fn, found };
}

/** Operations that copy elements and compute none: what they read is what is kept. */
const COPIES: ReadonlySet<string> = new Set(["broadcast", "reshape", "transpose"]);

/** What a value has its elements from. */
function sourceOf(value: Value, nodes: readonly Node[]): Value {
  const node = nodes.find(({ outputs }) => outputs.includes(value));
  const [input] = node?.inputs ?? [];
  return node && input && COPIES.has(node.op.name) ? sourceOf(input, nodes) : value;
}

const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

/** Kinds of values that a sentence names. */
const MOST_KINDS = 4;

/** Values computed inside, as a reader of the reference can do something with: how many of which operation. */
function insideWords(values: readonly Value[], nodes: readonly Node[]): string {
  const counts = new Map<string, number>();
  for (const value of values) {
    const op = nodes.find(({ outputs }) => outputs.includes(value))?.op.name ?? "value";
    const text = `\`${typeText(value.type)}\` by \`${op}\``;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const kinds = [...counts].map(([text, count]) => (count > 1 ? `${count} × ${text}` : text));
  return listed(kinds.length > MOST_KINDS ? [...kinds.slice(0, MOST_KINDS), "others"] : kinds);
}

/** What of the forward pass the values of the derivative are computed from: values of `own` that it reads. */
function valuesRead(
  graph: Graph,
  tensors: number,
): { read: readonly Value[]; forward: readonly Node[]; whole: Graph } | null {
  const active = graph.params.map(({ type }, i) => i < tensors && isFloat(type.dtype));
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
  const isRead = (value: Value): boolean => own.has(value) && !constant.has(value);
  const sources = backward.flatMap(({ inputs }) => inputs).filter(isRead);
  const stored = new Set(sources.map((value) => sourceOf(value, forward)).filter((value) => !constant.has(value)));
  return { read: [...own].filter((value) => stored.has(value)), forward, whole };
}

/** What the derivative reads of the forward pass, as a sentence. */
function keeps(call: Call, nameOf: NameOf, subject: string): string | null {
  const { fn, found } = ofTensors(call, nameOf);
  if (found.length === 0) return null;
  const tensors = found.map((each) => each.tensor);
  const graph = inline.run(traceFunction(fn, tensors).graph);
  if (graph.results.length === 0) return null;
  const values = valuesRead(graph, tensors.length);
  if (!values) {
    const isSmooth = graph.results.some(({ type }) => isFloat(type.dtype));
    return isSmooth
      ? `The derivative of ${subject} is zero: nothing is kept.`
      : `${subject} has no derivative: nothing is kept.`;
  }
  const results = values.whole.results.slice(0, graph.results.length);
  const given: string[] = [];
  const inside: Value[] = [];
  for (const value of values.read) {
    const param = values.whole.params.indexOf(value);
    const name = found[param]?.name;
    if (param >= 0) given.push(name === undefined ? "a constant of its own" : `\`${name}\``);
    else if (results.includes(value)) given.push(results.length === 1 ? "the result" : "one of the results");
    else inside.push(value);
  }
  const parts = [...new Set(given)];
  if (inside.length > 0) parts.push(`values computed inside (${insideWords(inside, values.forward)})`);
  if (parts.length === 0) return `The derivative of ${subject} reads nothing of the forward pass.`;
  return `In the example, the derivative of ${subject} reads ${listed(parts)}.`;
}

/** Rows and columns of the matrix that states of optimizers are measured with. */
const EXTENT = 256;

/** What an optimizer's state takes besides the parameters, as a sentence. */
function stateBytes(init: AnyFunction): string {
  const bytes = (value: unknown): number =>
    tensorsIn(value, "").reduce((sum, each) => sum + elementsOf(each.tensor.shape) * bytesOf(each.tensor.dtype), 0);
  const params = { w: tidemark.zeros([EXTENT, EXTENT]) };
  const ratio = (bytes(init(params)) - bytes(params)) / bytes(params);
  const times = ratio === 1 ? "as many bytes as they do" : `${Number(ratio.toPrecision(2))} times their bytes`;
  return `Besides the parameters, its state takes ${times}, as in the example, for a ${EXTENT} × ${EXTENT} matrix in f32.`;
}

function memoryOf(calls: ReadonlyMap<Call["of"], Call>, request: FactRequest): string | null {
  const itself = calls.get("itself");
  const apply = calls.get("apply");
  const init = calls.get("init");
  if (request.module === "tidemark/optim") return init ? stateBytes(init.fn) : null;
  if (apply) {
    const names = isPlain(apply.args[1]) ? ["params", "state", "x"] : ["params", "x"];
    return keeps(apply, (i) => names[i] ?? "options", "`apply`");
  }
  if (!itself) return null;
  const args = asTensors(itself.args, request);
  return keeps({ ...itself, args }, namesBy(request), `\`${request.path.join(".")}\``);
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
  if (typeof arg === "string") return ["another text", 7];
  if (Array.isArray(arg)) return [[-1], [0.5], "text"];
  return [null, "text", { unknown: 1 }];
}

/** Codes of errors with the message of the first of each; arguments that were recorded inside of a trace are out of it here. */
function errorsOf(calls: ReadonlyMap<Call["of"], Call>, request: FactRequest): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const probe = (fn: AnyFunction, given: readonly unknown[]): void => {
    try {
      fn(...given);
    } catch (error) {
      if (error instanceof TidemarkError && error.code !== "TraceLeak" && !found.has(error.code))
        found.set(error.code, error.summary);
    }
  };
  for (const call of calls.values()) {
    const args = call.of === "itself" ? asTensors(call.args, request) : call.args;
    const count = call.of === "itself" ? Math.max(args.length, request.params.length) : args.length;
    for (let i = 0; i < count; i++)
      for (const other of others(args[i])) probe(call.fn, Object.assign([...args], { [i]: other }));
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Errors of functions that are no part of programs: they read elements, or give something else than tensors. */
const NO_PROGRAM: ReadonlySet<string> = new Set([
  "SideEffect",
  "InvalidTree",
  "InvalidArgument",
  "TraceLeak",
  "NotDifferentiable",
]);

/** Entry points whose functions take what others have made: plans, graphs of the caller, code. They check little. */
const UNCHECKED: ReadonlySet<string> = new Set(["tidemark/plan", "tidemark/remat", "tidemark/wasm"]);

/** Other arguments make a loop that does not end. */
const ENDLESS: ReadonlySet<string> = new Set(["whileLoop"]);

/** The facts of a function, or null where its example does not call it in a way that can be followed. */
export function factsOf(request: FactRequest): Facts | null {
  if (UNCHECKED.has(request.module)) return null;
  const calls = callsOf(request.module, request.path, request.example);
  if (!calls || calls.size === 0) return null;
  const errors = ENDLESS.has(request.path.at(-1) ?? "") ? new Map<string, string>() : errorsOf(calls, request);
  try {
    return { memory: memoryOf(calls, request), errors };
  } catch (error) {
    if (error instanceof TidemarkError && NO_PROGRAM.has(error.code)) return { memory: null, errors };
    throw error;
  }
}
