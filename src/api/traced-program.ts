/**
 * @file From a call to a graph: the arguments are taken apart, the function runs once on tensors that record, and donated
 * arguments find the results that take over their storage.
 */
import { at } from "../base/invariant.ts";
import { Recent } from "../base/recent.ts";
import type { SourceProgram } from "../compiler/request.ts";
import { elementWriter } from "../kernel/dtype.ts";
import { fail, requireLiteral } from "../trace/arguments.ts";
import { type AnyFunction, type FlatArguments, flattenArguments, type Traced, traceFlat } from "../trace/function.ts";
import { ArrayStorage, newArray } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { leafPaths } from "../trace/tree.ts";
import { matchDonated, persistentParams } from "./donation.ts";
import type { CompileRequest } from "./request.ts";

function requireArguments({ trees }: FlatArguments, option: string, positions: readonly number[] = []): void {
  const missing = positions.find((n) => n >= trees.length);
  if (missing === undefined) return;
  const summary = `${option} names argument ${missing} of a call with ${trees.length}`;
  fail("InvalidArgument", summary, `positions count from 0; ${option} takes arguments that the call has`);
}

/** Structures of arguments of which is remembered what is constant in them. */
const MOST_STRUCTURES = 1024;

/** How the arguments of a function's calls are taken apart: which of their numbers are constants. @internal */
export class CallReader {
  readonly #fn: AnyFunction;
  readonly #request: TraceRequest;
  readonly #static: ReadonlySet<number>;
  /** Paths of numbers that no operation met when the function was traced, by the key of the arguments without them. */
  readonly #unmet = new Recent<string, ReadonlySet<string>>(MOST_STRUCTURES);

  constructor(fn: AnyFunction, request: TraceRequest & Pick<CompileRequest, "static">) {
    this.#fn = fn;
    this.#request = request;
    this.#static = new Set(request.static);
  }

  read(args: readonly unknown[]): FlatArguments {
    const flat = this.#read(args);
    const unmet = flat.numbers.length === 0 ? undefined : this.#unmet.find(flat.key);
    return unmet ? this.#read(args, unmet) : flat;
  }

  #read(args: readonly unknown[], constants?: ReadonlySet<string>): FlatArguments {
    return flattenArguments(this.#fn, args, (argument, path) => !this.#static.has(argument) && !constants?.has(path));
  }

  /**
   * Traces a call. A number that no operation meets may still have decided something (`if (n)`, `n === 3`), which
   * cannot be seen in JavaScript: it is a constant from then on, and the function is traced again with its value.
   */
  trace(args: readonly unknown[]): TracedProgram {
    const flat = this.read(args);
    const source = traceProgram(this.#fn, flat, this.#request);
    const met = new Set(source.traced.numbers.map(({ index }) => index));
    const unmet = flat.numbers.filter((_, i) => !met.has(i));
    if (unmet.length === 0) return source;
    const { key } = this.#read(args);
    const known = this.#unmet.find(key) ?? [];
    this.#unmet.add(key, new Set([...known, ...unmet.map(({ path }) => path)]));
    return this.trace(args);
  }
}

/** What the numbers of a call are to its program: a scalar for each parameter. @internal */
export function numberTensors({ numbers }: Pick<Traced, "numbers">, flat: FlatArguments): readonly Tensor[] {
  return numbers.map(({ index, path, type }) => {
    const { value } = at(flat.numbers, index);
    requireLiteral(path, value, type.dtype);
    return new Tensor(new ArrayStorage(type.dtype, [], newArray(type.dtype, 1).fill(elementWriter(type.dtype)(value))));
  });
}

/** What of a request is about the graph. */
type TraceRequest = Partial<Pick<CompileRequest, "donate" | "resident" | "name" | "checkNaN">>;

/** A traced function, and what happens to its arguments. @internal */
export interface TracedProgram extends Required<SourceProgram> {
  readonly flat: FlatArguments;
  readonly traced: Traced;
  /** Parameters from this one on are captured constants: written once. */
  readonly firstCapture: number;
  readonly traceMs: number;
}

/** @internal */
export function traceProgram(fn: AnyFunction, flat: FlatArguments, request: TraceRequest): TracedProgram {
  requireArguments(flat, "donate", request.donate);
  requireArguments(flat, "resident", request.resident);
  const started = performance.now();
  const traced = traceFlat(fn, flat, "returned");
  const traceMs = performance.now() - started;
  // a program that is watched updates nothing in place, so that arguments survive an error
  const donate = new Set(request.checkNaN ? [] : request.donate);
  const params = traced.leaves.flatMap((leaf, index) =>
    donate.has(leaf.argument) ? [{ index, path: leaf.path, type: leaf.type }] : [],
  );
  const paths = leafPaths(traced.resultTree);
  const results = traced.graph.results.map((value, i) => ({ path: at(paths, i), type: value.type }));
  const graph = { ...traced.graph, name: request.name ?? traced.graph.name };
  const donated = matchDonated(params, results);
  const firstCapture = traced.leaves.length + traced.numbers.length;
  const stays = traced.leaves.flatMap(({ argument }, i) => (request.resident?.includes(argument) ? [i] : []));
  const persistent = new Set([...persistentParams(graph, donated, firstCapture), ...stays]);
  return { flat, traced, graph, donated, persistent, firstCapture, traceMs };
}

/** Where each parameter of the program comes from. @internal */
export function pathsOf({ traced }: TracedProgram): readonly string[] {
  const given = [...traced.leaves, ...traced.numbers].map((leaf) => leaf.path);
  return [...given, ...traced.captures.map((_, i) => `captured[${i}]`)];
}
