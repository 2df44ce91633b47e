/**
 * @file Graphs as text: canonical, so that equal graphs print equally and the text can be compared, kept in files and
 * read back (parse.ts; docs/ir.md has the grammar).
 *
 *   func mlp(x: f32[32,64], w: f32[64,128]) {
 *     z: f32[32,128] = matmul(x, w)
 *     h: f32[32,128] = relu(z)
 *     // backward
 *     g: f32[32,128] = mul(h, h) ~1
 *     return h, g
 *   }
 *
 * Names come from the hints on values and are made unique by `_1`, `_2` in definition order; values without a hint are
 * v0, v1, …. A text whose names are distinct therefore keeps them, which is what makes print ∘ parse the identity.
 */
import { attrsText } from "./attrs.ts";
import type { Graph, Node, Phase, Value } from "./graph.ts";
import { typeText } from "./type.ts";
import { variance } from "./variance.ts";

/** Options of {@link print}. */
export interface PrintOptions {
  /** Append `// model.ts:14` where it is known. */
  readonly locations?: boolean;
  /** Text after a statement, in a column of its own: the planner's addresses. */
  note?(node: Node, nameOf: (value: Value) => string): string | undefined;
}

const KEYWORDS: ReadonlySet<string> = new Set(["func", "return"]);
/** Signatures longer than this are printed one parameter a line. */
const WIDTH = 110;

/** A hint as a legal name; undefined when nothing is left of it. */
function legalName(hint: string | undefined): string | undefined {
  if (!hint) return undefined;
  const clean = hint.replace(/[^\p{L}\p{N}_.]/gu, "_");
  if (KEYWORDS.has(clean)) return `${clean}_`;
  return /^[\p{L}_]/u.test(clean) ? clean : `_${clean}`;
}

/**
 * The name of every value that a graph defines (regions have names of their own). Hints are those of values, or from
 * elsewhere.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, valueNames } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const graph of parse(text, allOps)) console.log([...valueNames(graph).values()]); // → [x, y]
 */
export function valueNames(
  graph: Graph,
  hintOf: (value: Value) => string | undefined = ({ name }) => name,
): ReadonlyMap<Value, string> {
  const names = new Map<Value, string>();
  const taken = new Set<string>();
  const suffixes = new Map<string, number>();
  let unnamed = 0;
  const define = (value: Value): void => {
    if (names.has(value)) return;
    const hint = legalName(hintOf(value));
    let name = hint ?? `v${unnamed++}`;
    while (taken.has(name)) {
      if (hint === undefined) {
        name = `v${unnamed++}`;
        continue;
      }
      const suffix = (suffixes.get(hint) ?? 0) + 1;
      suffixes.set(hint, suffix);
      name = `${hint}_${suffix}`;
    }
    taken.add(name);
    names.set(value, name);
  };
  for (const param of graph.params) define(param);
  for (const node of graph.nodes) for (const output of node.outputs) define(output);
  return names;
}

/** Looks names up; a value that the graph does not define shows as `#id`, so that broken graphs print too. */
export function namer(graph: Graph, hintOf?: (value: Value) => string | undefined): (value: Value) => string {
  const names = valueNames(graph, hintOf);
  return (value) => names.get(value) ?? `#${value.id}`;
}

/** `matmul(x, w) {tb} ~1`: a node without its results, regions and notes. */
export function applicationText(node: Node, nameOf: (value: Value) => string): string {
  const replay = node.replay === 0 ? "" : ` ~${node.replay}`;
  return `${node.op.name}(${node.inputs.map(nameOf).join(", ")})${attrsText(node.op, node.attrs)}${replay}`;
}

/**
 * `d_w = matmul(x, d_z) {ta}`: a node on one line, for messages.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { nodeText, parse } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const { nodes } of parse(text, allOps)) console.log(nodes.map((node) => nodeText(node, (value) => value.name ?? "?"))); // → [y = tanh(x)]
 */
export function nodeText(node: Node, nameOf: (value: Value) => string): string {
  return `${node.outputs.map(nameOf).join(", ")} = ${applicationText(node, nameOf)}`;
}

/** The mesh over which values of a graph vary; those of regions say so themselves. */
const meshOf = ({ params, nodes }: Graph): string | undefined =>
  (variance(params) ?? variance(nodes.flatMap(({ outputs }) => outputs)))?.mesh;

function signatureLines(graph: Graph, nameOf: (value: Value) => string): string[] {
  const name = legalName(graph.name) ?? "main";
  const params = graph.params.map((param) => `${nameOf(param)}: ${typeText(param.type)}`);
  const mesh = meshOf(graph);
  const head = mesh === undefined ? name : `${name} ${JSON.stringify(mesh)} `;
  const line = `func ${head}(${params.join(", ")}) {`;
  if (line.length <= WIDTH) return [line];
  return [`func ${head}(`, ...params.map((param, i) => `  ${param}${i < params.length - 1 ? "," : ""}`), ") {"];
}

/** Statements without notes: the columns `name:` and type are aligned over those with one result. */
function statementTexts(graph: Graph, nameOf: (value: Value) => string): string[] {
  let nameWidth = 0;
  let typeWidth = 0;
  for (const { outputs } of graph.nodes) {
    const [only] = outputs;
    if (!only || outputs.length > 1) continue;
    nameWidth = Math.max(nameWidth, nameOf(only).length + 1);
    typeWidth = Math.max(typeWidth, typeText(only.type).length);
  }
  return graph.nodes.map((node) => {
    const [only] = node.outputs;
    const right = applicationText(node, nameOf);
    if (!only || node.outputs.length > 1) {
      return `${node.outputs.map((v) => `${nameOf(v)}: ${typeText(v.type)}`).join(", ")} = ${right}`;
    }
    return `${`${nameOf(only)}:`.padEnd(nameWidth)} ${typeText(only.type).padEnd(typeWidth)} = ${right}`;
  });
}

function withNotes(
  graph: Graph,
  texts: readonly string[],
  nameOf: (value: Value) => string,
  options: PrintOptions,
): string[] {
  const notes = graph.nodes.map((node) => options.note?.(node, nameOf));
  let width = 0;
  texts.forEach((text, i) => {
    if (notes[i] !== undefined) width = Math.max(width, text.length);
  });
  return texts.map((text, i) => (notes[i] === undefined ? text : `${text.padEnd(width)} ${notes[i]}`));
}

/** Lines of a function; statements of a region start in the phase of the node that holds it. */
function funcLines(graph: Graph, options: PrintOptions, outer: Phase): string[] {
  const nameOf = namer(graph);
  const lines = signatureLines(graph, nameOf);
  const texts = withNotes(graph, statementTexts(graph, nameOf), nameOf, options);
  let phase = outer;
  graph.nodes.forEach((node, i) => {
    if (node.phase !== phase) lines.push(`  // ${node.phase}`);
    phase = node.phase;
    const location = options.locations && node.where ? `  // ${node.where}` : "";
    if (node.regions.length === 0) {
      lines.push(`  ${texts[i]}${location}`);
      return;
    }
    lines.push(`  ${texts[i]} {${location}`);
    for (const region of node.regions) lines.push(...funcLines(region, options, phase).map((line) => `    ${line}`));
    lines.push("  }");
  });
  lines.push(`  return${graph.results.length > 0 ? " " : ""}${graph.results.map(nameOf).join(", ")}`, "}");
  return lines;
}

/**
 * The text of a graph, or of several separated by empty lines; ends with a line break.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, print } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * console.log(print(parse(text, allOps)).split("\n").length); // → 5
 */
export function print(graph: Graph | readonly Graph[], options: PrintOptions = {}): string {
  const graphs = "nodes" in graph ? [graph] : graph;
  return graphs.map((g) => `${funcLines(g, options, "forward").join("\n")}\n`).join("\n");
}
