/**
 * @file Tracing a user's function: its arguments are flattened into tensors, the function runs once on traced stand-ins
 * of the same structure, and its result is flattened again. The key says when a trace may be used again: equal
 * structure, equal types, equal constants. Numbers that may differ between calls are parameters of the graph, after the
 * tensors: one for each element type that a number is used with.
 */
import { TidemarkError } from "../base/errors.ts";
import { at, invariant } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { type TensorType, typeText } from "../ir/type.ts";
import { rootOf } from "./cell.ts";
import { sourceLocation } from "./source-location.ts";
import { numberOf, type Tensor, tensorTypeOf } from "./tensor.ts";
import { type Capture, currentTrace, type Trace, traceGraph } from "./trace.ts";
import { type Flat, flatten, leafCount, type NumberLeaf, type TreeDef, treeKey, unflatten } from "./tree.ts";

/** Any function: its arguments are checked when it is called. */
export type AnyFunction = (...args: never[]) => unknown;

/** A tensor among the arguments. */
export interface LeafInfo {
  /** `params.layers[2].w`. */
  readonly path: string;
  readonly type: TensorType;
  /** Which argument it is in. */
  readonly argument: number;
}

/** A parameter that is one of the numbers among the arguments. */
export interface NumberParam extends LeafInfo {
  /** Which of the numbers. */
  readonly index: number;
}

export interface Traced {
  /** Parameters: the leaves of the arguments in order, then the numbers that were used, then the captures in order. */
  readonly graph: Graph;
  readonly leaves: readonly LeafInfo[];
  readonly numbers: readonly NumberParam[];
  readonly argTrees: readonly TreeDef[];
  /** Outside of any other trace all of these are concrete: `capture.tensor.storage`. */
  readonly captures: readonly Capture[];
  /** Puts the graph's results into the structure that the function returned. */
  readonly resultTree: TreeDef;
  readonly cacheKey: string;
}

/** What the text of a function says of its parameters. */
interface Parameters {
  /** Undefined where one is no plain name. */
  readonly names: readonly (string | undefined)[];
  /** Further arguments are not seen by the function; infinite where that is not certain. */
  readonly most: number;
}

/** Cache of a pure function: the text of a function never changes. */
const knownParameters = new WeakMap<AnyFunction, Parameters>();

function parametersOf(fn: AnyFunction): Parameters {
  const known = knownParameters.get(fn);
  if (known) return known;
  const found = readParameters(fn);
  knownParameters.set(fn, found);
  return found;
}

/** Names of a function's parameters, read off its text; `arg0` where that is not a plain name. */
export function argumentNames(fn: AnyFunction, count: number): readonly string[] {
  const { names } = parametersOf(fn);
  return Array.from({ length: count }, (_, i) => names[i] ?? `arg${i}`);
}

/** One plain name, as most functions of one parameter are written. */
const SINGLE = /^(?:async\s+)?([\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*)\s*=>/u;
const NAME = /^\s*([\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*)\s*(?:=|$)/u;

function readParameters(fn: AnyFunction): Parameters {
  const read = parametersIn(Function.prototype.toString.call(fn), fn.length);
  // what wraps a function may say how that calls its parameters; what it is given is not for it to say
  return Object.hasOwn(fn, "toString") ? { ...read, names: parametersIn(String(fn), fn.length).names } : read;
}

function parametersIn(source: string, least: number): Parameters {
  const text = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  const single = SINGLE.exec(text)?.[1];
  const open = text.indexOf("(");
  const [head, list] = single === undefined ? [text.slice(0, open), topLevel(text.slice(open + 1))] : ["", single];
  const parts = splitTopLevel(list).filter((part) => part.trim() !== "");
  const names = parts.map((part) => NAME.exec(part)?.[1]);
  // a name that is computed or quoted may have brackets of its own; what looks like a comment may be in a text
  const isOpen =
    /["'`[]/.test(head) || /\.\.\.|["'`/]/.test(list) || /\barguments\b|\beval\b|\[native code\]/.test(source);
  return { names, most: isOpen || parts.length < least ? Number.POSITIVE_INFINITY : parts.length };
}

/** The text up to the bracket that closes the one before it. */
function topLevel(text: string): string {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    if ("([{".includes(text[i] as string)) depth++;
    else if (")]}".includes(text[i] as string) && depth-- === 0) return text.slice(0, i);
  }
  return text;
}

function splitTopLevel(text: string): readonly string[] {
  const parts = [""];
  let depth = 0;
  for (const c of text) {
    if ("([{".includes(c)) depth++;
    else if (")]}".includes(c)) depth--;
    if (c === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += c;
  }
  return parts;
}

export interface FlatArguments {
  readonly tensors: readonly Tensor[];
  readonly leaves: readonly LeafInfo[];
  readonly trees: readonly TreeDef[];
  /** Numbers that are to be traced, and which argument each is in. */
  readonly numbers: readonly (NumberLeaf & { readonly argument: number })[];
  readonly key: string;
}

/** Which numbers among the arguments are to be traced: all that it does not say are constants. */
export type NumberChoice = (argument: number, path: string) => boolean;

const noNumbers: NumberChoice = () => false;

/**
 * Arguments up to the last that is there: `f(x, undefined)` is `f(x)`. Numbers that the function has no parameter for are not there:
 * a loop may hand its count to whatever it calls.
 */
function givenOf(fn: AnyFunction, args: readonly unknown[]): readonly unknown[] {
  const { most } = parametersOf(fn);
  const isSeen = (arg: unknown, i: number): boolean => arg !== undefined && (i < most || typeof arg !== "number");
  return args.slice(0, args.findLastIndex(isSeen) + 1);
}

/** Flattens arguments. The key is equal for calls that can share a trace. */
export function flattenArguments(
  fn: AnyFunction,
  args: readonly unknown[],
  isTraced: NumberChoice = noNumbers,
): FlatArguments {
  const given = givenOf(fn, args);
  const names = argumentNames(fn, given.length);
  const tensors: Tensor[] = [];
  const leaves: LeafInfo[] = [];
  const numbers: (NumberLeaf & { readonly argument: number })[] = [];
  const trees = given.map((arg, argument): TreeDef => {
    const path = names[argument] as string;
    // One before given arguments is passed on: a default replaces it.
    if (arg === undefined) return { kind: "static", value: arg, path };
    const flat = flatten(arg, path, "argument", (own) => isTraced(argument, own));
    for (const number of flat.numbers) numbers.push({ ...number, argument });
    flat.leaves.forEach((leaf, i) => {
      tensors.push(leaf);
      leaves.push({ path: flat.paths[i] as string, type: tensorTypeOf(leaf), argument });
    });
    return flat.def;
  });
  const key = `${trees.map(treeKey).join(",")}:${leaves.map((leaf) => typeText(leaf.type)).join(",")}`;
  return { tensors, leaves, trees, numbers, key };
}

/** `params.layers[2].w` → `params_layers_2_w`. */
const identifier = (path: string): string => path.replaceAll(/[^\w]+/g, "_").replace(/_$/, "");

const nameOf = (fn: AnyFunction): string => (/^[A-Za-z_][\w]*$/.test(fn.name) ? fn.name : "fn");

function requireResult(fn: AnyFunction, result: unknown): void {
  const name = fn.name ? `function ${fn.name}` : "the function";
  if (typeof result === "object" && result !== null && "then" in result) {
    throw new TidemarkError("SideEffect", `${name} is async: it returned a promise`, {
      where: sourceLocation(),
      help: "a traced function must be synchronous: await its inputs before the call and pass them in",
    });
  }
  if (result === undefined) {
    throw new TidemarkError("InvalidTree", `${name} returned nothing`, {
      where: sourceLocation(),
      help: "return a tensor, or an array or object of tensors",
    });
  }
}

/**
 * A function gets its arguments by value: the caller does not see changes to them. Where the caller would expect to (compile:
 * it is still the same function), a changed argument must be among the results.
 */
export type ArgumentChanges = "local" | "returned";

function requireReturned(
  fn: AnyFunction,
  flat: FlatArguments,
  args: readonly Tensor[],
  results: readonly Tensor[],
): void {
  const returned = new Set(results.flatMap(({ traced }) => (traced ? [rootOf(traced.cell)] : [])));
  args.forEach(({ traced }, i) => {
    const root = traced && rootOf(traced.cell);
    if (!root || root.version === 0 || returned.has(root)) return;
    const name = fn.name || "the function";
    const { path } = flat.leaves[i] as LeafInfo;
    throw new TidemarkError("SideEffect", `${name} changes its argument ${path} and does not return it`, {
      where: root.changedAt,
      help: `return ${path} too, so that the caller gets the change; or change a copy: ${path}.copy()`,
    });
  });
}

const isNumber = (value: unknown): boolean => typeof value === "number" || Boolean(numberOf(value));

/** Whether a value is an array of numbers, nested or not. */
const isNumbers = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((item) => isNumber(item) || isNumbers(item));

/** Explains a failure by an argument that was left out, or that is an array instead of a tensor. */
function mistakeIn(fn: AnyFunction, args: readonly unknown[], { message }: TypeError): TidemarkError | null {
  const name = fn.name || "the function";
  const failed = (summary: string, help: string): TidemarkError =>
    new TidemarkError("InvalidArgument", `${name} ${summary}, and failed: ${message}`, {
      where: sourceLocation(),
      help,
    });
  if (args.length < fn.length) {
    const missing = argumentNames(fn, fn.length).slice(args.length).join(", ");
    const help = `${args.length} of ${fn.length} arguments were given: pass the others, or give them defaults`;
    return failed(`was called without ${missing}`, help);
  }
  const list = args.findIndex(isNumbers);
  if (list < 0 || !message.endsWith("is not a function")) return null;
  const path = at(argumentNames(fn, args.length), list);
  const help = `arrays among arguments stay arrays, here of single numbers; for a tensor pass tensor(${path})`;
  return failed(`got the array of numbers ${path}`, help);
}

/** Calls a function; if it fails because of its arguments, the error says so. */
function calledWith(fn: AnyFunction, args: readonly never[]): unknown {
  try {
    return fn(...args);
  } catch (error) {
    throw (error instanceof TypeError ? mistakeIn(fn, args, error) : null) ?? error;
  }
}

/** Stand-ins for the numbers among the arguments. */
function standIns({ numbers }: FlatArguments): readonly Tensor[] {
  const trace = currentTrace();
  invariant(trace || numbers.length === 0, () => "numbers outside of a trace");
  return numbers.map((number, i) => (trace as Trace).number(i, number, identifier(number.path)));
}

/** Runs a function on stand-ins for the tensors among its arguments; gives back the tensors of its result. */
function callOn(fn: AnyFunction, flat: FlatArguments, tensors: readonly Tensor[], changes: ArgumentChanges): Flat {
  const numbers = standIns(flat);
  let next = 0;
  const args = flat.trees.map((tree, argument) => {
    const count = leafCount(tree);
    next += count;
    const own = numbers.filter((_, i) => flat.numbers[i]?.argument === argument);
    return unflatten(tree, tensors.slice(next - count, next), own) as never;
  });
  const result = calledWith(fn, args);
  requireResult(fn, result);
  const made = flatten(result, "result", "result");
  if (changes === "returned") requireReturned(fn, flat, tensors, made.leaves);
  return made;
}

/** Traces a function on arguments; only their structure, types and constants matter. */
export function traceFunction(fn: AnyFunction, args: readonly unknown[]): Traced {
  return traceFlat(fn, flattenArguments(fn, args));
}

/** A function called inside a trace, by value like a program of its own. */
export function callByValue(trace: Trace, fn: AnyFunction, args: readonly unknown[]): unknown {
  const flat = flattenArguments(fn, args);
  const own = flat.tensors.map((tensor) => trace.copy(tensor));
  const { def, leaves } = callOn(fn, flat, own, "returned");
  return unflatten(
    def,
    leaves.map((tensor) => trace.copy(tensor)),
  );
}

/** `sample` gives the tensors among the arguments of the first call, where those are not `flat.tensors`. */
export function traceFlat(
  fn: AnyFunction,
  flat: FlatArguments,
  changes: ArgumentChanges = "local",
  sample: (i: number) => Tensor | null = (i) => flat.tensors[i] ?? null,
): Traced {
  const params = flat.leaves.map((leaf, i) => ({
    type: leaf.type,
    name: identifier(leaf.path),
    sample: () => sample(i),
  }));
  let resultTree: TreeDef | undefined;
  const made = traceGraph(nameOf(fn), params, (tensors) => {
    const { def, leaves } = callOn(fn, flat, tensors, changes);
    resultTree = def;
    return leaves;
  });
  const { captures } = made;
  const numbers = made.numbers.map(({ index, value }): NumberParam => {
    const { path, argument } = at(flat.numbers, index);
    return { path, argument, index, type: value.type };
  });
  const extra = [...made.numbers, ...captures].map(({ value }) => value);
  const graph = { ...made.graph, params: [...made.graph.params.slice(0, params.length), ...extra] };
  return {
    graph,
    numbers,
    leaves: flat.leaves,
    argTrees: flat.trees,
    captures,
    resultTree: resultTree as TreeDef,
    cacheKey: flat.key,
  };
}
