/**
 * @file Follows an exported program: node by node, each operation applied to its arguments. All sizes are known, since those of the inputs
 * are. A node that changes its operand gives a new value, which takes the operand's name; a change of a part of another value is refused.
 */
import * as t from "../../api/functions.ts";
import { TidemarkError, withLocation } from "../../base/errors.ts";
import type { Pt2Argument, Pt2Node, Pt2Program, Pt2Region } from "../../formats/pt2-program.ts";
import { tensorName } from "../../formats/pt2-program.ts";
import { evaluateSize, parseSize } from "../../formats/size-expression.ts";
import { isFloat } from "../../kernel/dtype.ts";
import { Tensor } from "../../trace/tensor.ts";
import type { Rebinding } from "../shared/rebatch.ts";
import { Args, dtypeOfCode, type Value } from "./args.ts";
import { changes, isPartView, operatorOf } from "./operators.ts";
import { rebound } from "./rebind.ts";

export interface Run {
  readonly program: Pt2Program;
  /** Parameters, buffers and inputs by their names in the graph. */
  readonly given: ReadonlyMap<string, Tensor>;
  readonly sizes: ReadonlyMap<string, number>;
  readonly key: Tensor;
  /** Whether operations that are not known stand for what they read and write. */
  readonly opaque: boolean;
  /** Another batch than the one that fixed sizes were recorded with. */
  readonly batch?: Rebinding | undefined;
  /** Only shapes are wanted: what cannot be followed stands for what it reads and writes. */
  readonly shapesOnly?: boolean | undefined;
}

/** Names that a list of outputs defines; a list of tensors is one output. */
function definedBy(outputs: readonly Pt2Argument[]): readonly (string | null)[] {
  return outputs.flatMap((output) => {
    if (Array.isArray(output.as_tensors)) return (output.as_tensors as readonly unknown[]).map(tensorName);
    const symbol = (output.as_sym_int ?? output.as_sym_bool ?? output.as_sym_float) as { as_name?: string } | undefined;
    return [symbol?.as_name ?? tensorName(output)];
  });
}

/** Every name that some node or result reads. */
function namesRead(program: Pt2Program): ReadonlySet<string> {
  const read = new Set<string>();
  const visit = (json: unknown): void => {
    if (Array.isArray(json)) for (const one of json) visit(one);
    else if (typeof json === "object" && json !== null) {
      for (const [key, value] of Object.entries(json)) {
        if ((key === "name" || key === "as_name") && typeof value === "string") read.add(value);
        else visit(value);
      }
    }
  };
  for (const { inputs } of program.nodes) for (const { arg } of inputs) visit(arg);
  for (const { argument } of program.outputs) visit(argument);
  return read;
}

/** The values of a program's results by their names in the graph. */
export function follow(run: Run): (name: string) => Value | undefined {
  const values = new Map<string, Value>(run.given);
  const state: State = { run, values, read: namesRead(run.program), parts: new Set(), draws: { count: 0 } };
  for (const node of run.program.nodes) followNode(node, state);
  return (name) => values.get(name);
}

interface State {
  readonly run: Run;
  readonly values: Map<string, Value>;
  readonly read: ReadonlySet<string>;
  /** Values that are parts of others. */
  readonly parts: Set<string>;
  readonly draws: { count: number };
}

function followNode(recorded: Pt2Node, state: State): void {
  const { run, values, read, parts, draws } = state;
  const around = { lookup: (name: string) => values.get(name), type: (name: string) => run.program.types.get(name) };
  const node = run.batch ? rebound(recorded, run.batch, around) : recorded;
  const names = definedBy(node.outputs);
  const args = new Args(node, {
    ...around,
    key: () => t.random.foldIn(run.key, draws.count++),
    isUsed: (i) => read.has(names[i] ?? ""),
    follow: (region, inputs) => followRegion(region, inputs, state),
  });
  define(
    names,
    atNode(node, () => applied(args, run)),
    values,
    node,
  );
  const self = tensorName(node.inputs[0]?.arg);
  if (isPartView(node.target)) for (const name of names) if (name !== null) parts.add(name);
  if (!changes(node.target) || self === null) return;
  if (parts.has(self) && !run.shapesOnly) {
    args.fail(`it changes ${self}, a part of another tensor`, "export the model after run_decompositions()");
  }
  const [first] = names;
  if (first !== null && first !== undefined) values.set(self, values.get(first) as Value);
}

/** A graph inside of a node, whose names are its own. */
function followRegion(region: Pt2Region, inputs: readonly Value[], state: State): readonly Value[] {
  const values = new Map<string, Value>(region.inputs.map((name, i) => [name, inputs[i] as Value]));
  const everything = { has: () => true } as unknown as ReadonlySet<string>;
  const inner: State = { ...state, values, read: everything, parts: new Set() };
  for (const node of region.nodes) followNode(node, inner);
  return region.outputs.map((name) => values.get(name) as Value);
}

function applied(args: Args, run: Run): Value | null {
  const operator = operatorOf(args.node.target);
  if (operator && !run.shapesOnly) return operator(args);
  if (operator)
    return shapeOf(
      () => operator(args),
      () => standIn(args, run),
    );
  return run.opaque ? standIn(args, run) : args.fail("the operation is not known");
}

function shapeOf(followed: () => Value | null, instead: () => Value): Value | null {
  try {
    return followed();
  } catch (error) {
    if (error instanceof TidemarkError) return instead();
    throw error;
  }
}

/** Reads its float operands and writes results of the recorded types: what a plan has to know of an unknown operation. */
function standIn(args: Args, { program, sizes, batch }: Run): Value {
  const operands = args.node.inputs.flatMap((_, i) => {
    const value = args.at(i);
    return (Array.isArray(value) ? value : [value]).filter(
      (one): one is Tensor => one instanceof Tensor && isFloat(one.dtype),
    );
  });
  const total = operands.map((x) => t.cast(t.sum(x), "f32")).reduce((a, b) => t.add(a, b), t.zeros([], "f32"));
  return definedBy(args.node.outputs).map((name) => {
    const type = program.types.get(name ?? "");
    if (!type) return args.fail(`the type of ${name} is not recorded`);
    const shape = type.sizes.map((size) => {
      const extent = typeof size === "number" ? size : evaluateSize(parseSize(size), sizes);
      return extent ?? args.fail(`the size of ${name} is open`);
    });
    if (batch && shape[0] === batch.from) shape[0] = batch.to;
    return t.cast(t.broadcastTo(total, shape), dtypeOfCode(type.dtype));
  });
}

function define(
  names: readonly (string | null)[],
  made: Value | null,
  values: Map<string, Value>,
  node: Pt2Node,
): void {
  if (made === null) return;
  const list = Array.isArray(made) ? (made as readonly Value[]) : [made as Value];
  names.forEach((name, i) => {
    const value = list[i];
    if (name === null) return;
    if (value === undefined) {
      throw new TidemarkError("InvalidFile", `${node.target} has no result ${i}`, { help: "the program is damaged" });
    }
    values.set(name, value);
  });
}

/** Errors of operations, with the node that they come from. */
function atNode<T>(node: Pt2Node, body: () => T): T {
  try {
    return body();
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.summary.startsWith(node.target)) throw error;
    const [name] = definedBy(node.outputs);
    const made = new TidemarkError(error.code, `${error.summary} in the node ${name ?? ""} (${node.target})`, {
      help: error.help,
    });
    throw withLocation(made, error.where);
  }
}
