/**
 * @file From text to graphs: syntax.ts reads the statements; here names are resolved, attributes completed and types
 * checked against the operations' own rules. Every problem is reported with its place, all of one kind at once. A value
 * whose statement is wrong still counts as defined, with the type written, so that one mistake is one message.
 */
import { type ErrorCode, TidemarkError } from "../base/errors.ts";
import { attrProblems, withDefaults } from "./attrs.ts";
import { type Graph, type Node, newValue, type Value } from "./graph.ts";
import type { Place, Token } from "./lexer.ts";
import type { AnyOp, Attr, Attrs } from "./op.ts";
import { type BindingSyntax, type FuncSyntax, type Problem, readModule, type StatementSyntax } from "./syntax.ts";
import { sameType, type TensorType, typeText } from "./type.ts";
import { type VarianceRules, varianceProblem } from "./variance.ts";

/** Options of {@link parse}. */
export interface ParseOptions {
  /** Name of the file, put before places in messages. */
  readonly file?: string;
}

/** Reports no more than this many problems in full. */
const SHOWN = 20;

class Elaboration {
  readonly problems: Problem[] = [];
  readonly #ops: ReadonlyMap<string, AnyOp>;
  readonly #rules: VarianceRules | undefined;

  constructor(ops: readonly AnyOp[]) {
    this.#ops = new Map(ops.map((op) => [op.name, op]));
    this.#rules = ops.find((op) => op.facts?.collective)?.facts?.collective?.rules;
  }

  report(place: Place, message: string): void {
    this.problems.push({ line: place.line, column: place.column, message });
  }

  func(syntax: FuncSyntax): Graph {
    const scope = new Map<string, Value>();
    const params = syntax.params.map((binding) => this.#define(scope, binding, syntax));
    const nodes = syntax.body.flatMap((statement) => this.#statement(scope, statement, syntax) ?? []);
    const results = syntax.results.flatMap((name) => this.#use(scope, name) ?? []);
    return { name: syntax.name.text, params, nodes, results };
  }

  /** The type as it is written, with the axes that it names. */
  #typeOf({ name, type, over }: BindingSyntax, { mesh = "" }: FuncSyntax): TensorType {
    if (over.length === 0) return type;
    try {
      const made = this.#rules?.typeOver(type, mesh, over);
      if (made?.varies?.over.length === over.length) return made;
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error;
    }
    this.report(
      name,
      `${name.text} varies over ${over.join(", ")}, the mesh of the function is ${JSON.stringify(mesh)}`,
    );
    return type;
  }

  #define(scope: Map<string, Value>, binding: BindingSyntax, func: FuncSyntax): Value {
    const { name } = binding;
    const type = this.#typeOf(binding, func);
    if (scope.has(name.text)) this.report(name, `${name.text} is defined twice`);
    const value = newValue(type, name.text);
    scope.set(name.text, value);
    return value;
  }

  #use(scope: ReadonlyMap<string, Value>, name: Token): Value | undefined {
    const value = scope.get(name.text);
    if (!value) this.report(name, `unknown value ${name.text}: it is not defined above`);
    return value;
  }

  #attrs(op: AnyOp, { attrs }: StatementSyntax, place: Place): Attrs | undefined {
    const given: Record<string, Attr> = {};
    const before = this.problems.length;
    for (const { key, value } of attrs) {
      if (Object.hasOwn(given, key.text)) this.report(key, `attribute ${key.text} is given twice`);
      given[key.text] = value;
    }
    for (const problem of attrProblems(op, given)) this.report(place, problem);
    return this.problems.length === before ? withDefaults(op, given) : undefined;
  }

  #statement(scope: Map<string, Value>, syntax: StatementSyntax, func: FuncSyntax): Node | undefined {
    const before = this.problems.length;
    const op = this.#ops.get(syntax.op.text);
    if (!op) this.report(syntax.op, `unknown operation ${syntax.op.text}`);
    const inputs = syntax.inputs.flatMap((name) => this.#use(scope, name) ?? []);
    const regions = syntax.regions.map((region) => this.func(region));
    const attrs = op && this.#attrs(op, syntax, syntax.op);
    if (op && attrs && this.problems.length === before) {
      this.#checkTypes(syntax, () =>
        op.infer(
          inputs.map((v) => v.type),
          attrs,
          regions,
        ),
      );
    }
    const outputs = syntax.results.map((binding) => this.#define(scope, binding, func));
    if (!op || !attrs) return undefined;
    const { phase, where, replay } = syntax;
    const node = { op, inputs, attrs, outputs, regions, phase, where, replay };
    const problem = this.problems.length === before ? varianceProblem(node) : null;
    if (problem) this.report(syntax.op, `${syntax.op.text} ${problem}`);
    return node;
  }

  #checkTypes(syntax: StatementSyntax, infer: () => readonly TensorType[]): void {
    let types: readonly TensorType[];
    try {
      types = infer();
    } catch (error) {
      const message =
        error instanceof TidemarkError ? `${error.code}: ${error.summary}` : `${syntax.op.text}: ${String(error)}`;
      this.report(syntax.op, message);
      return;
    }
    if (types.length !== syntax.results.length) {
      this.report(syntax.op, `${syntax.op.text} has ${types.length} results, ${syntax.results.length} are named`);
      return;
    }
    syntax.results.forEach(({ name, type }, i) => {
      const inferred = types[i] as TensorType;
      if (sameType(type, inferred)) return;
      this.report(name, `${name.text} is written as ${typeText(type)}, ${syntax.op.text} makes ${typeText(inferred)}`);
    });
  }
}

function fail(code: ErrorCode, problems: readonly Problem[], options: ParseOptions): never {
  const file = options.file ? `${options.file}:` : "";
  const sorted = [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
  const lines = sorted.slice(0, SHOWN).map(({ line, column, message }) => `${file}${line}:${column}: ${message}`);
  if (sorted.length > SHOWN) lines.push(`and ${sorted.length - SHOWN} more`);
  const summary = lines.length === 1 ? (lines[0] as string) : `${sorted.length} problems\n  ${lines.join("\n  ")}`;
  const help =
    code === "ParseError" ? "a statement reads `name: f32[2,3] = operation(inputs) {attributes}`" : undefined;
  throw new TidemarkError(code, summary, { help });
}

/**
 * Reads a module of functions. `ops` are the operations that may occur. Throws `ParseError` for text outside of the
 * grammar and `InvalidGraph` for text that means nothing: unknown names, wrong types, missing attributes.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * console.log(parse(text, allOps).map(({ name, nodes }) => `${name}: ${nodes.length}`)); // → [f: 1]
 */
export function parse(text: string, ops: readonly AnyOp[], options: ParseOptions = {}): Graph[] {
  const { funcs, problems } = readModule(text);
  if (problems.length > 0) fail("ParseError", problems, options);
  const elaboration = new Elaboration(ops);
  const names = new Set<string>();
  const graphs = funcs.map((func) => {
    if (names.has(func.name.text)) elaboration.report(func.name, `function ${func.name.text} is defined twice`);
    names.add(func.name.text);
    return elaboration.func(func);
  });
  if (elaboration.problems.length > 0) fail("InvalidGraph", elaboration.problems, options);
  return graphs;
}
