/**
 * @file The rules of values that vary (ir/variance.ts): operands of one node vary alike, marked where they do not; results follow.
 *
 * Of loops and branches every carry and result gets the fewest axes that do not change from one iteration, or branch, to the next:
 *
 *   carry c, with nothing           body: c + x, x over data        → c over data, its first value is marked in front of the loop
 *   decided by v over data          everything inside over data     → marks, and the sums that they are in reverse, stand outside:
 *                                                                      devices that go different ways cannot meet inside
 *
 * Functions with derivatives of their own take all operands alike, so that cotangents that they compute vary as the operands do.
 */

import { TidemarkError } from "../../base/errors.ts";
import { at, invariant } from "../../base/invariant.ts";
import { Build } from "../../ir/build.ts";
import { byGroup, type Group, type Wiring, wiringOf } from "../../ir/control.ts";
import type { Graph, Node, Value } from "../../ir/graph.ts";
import { newValue, nodeLike } from "../../ir/graph.ts";
import type { TensorType } from "../../ir/type.ts";
import { type Variance, type VarianceRules, type VaryingSite, variance } from "../../ir/variance.ts";
import { allNodes } from "../../ir/walk.ts";
import { groupSize } from "../../kernel/device-group.ts";
import { isFloat } from "../../kernel/dtype.ts";
import { typesOf } from "../region-checks.ts";
import { gatheredAgain } from "./again.ts";
import { inOrder, parseMesh } from "./mesh.ts";

/** Names of axes. */
export type Axes = readonly string[];

const NONE: Axes = [];

export const axesOf = ({ type }: Value): Axes => type.varies?.over ?? NONE;

const minus = (a: Axes, b: Axes): Axes => a.filter((axis) => !b.includes(axis));
const includes = (a: Axes, b: Axes): boolean => b.every((axis) => a.includes(axis));

/** Marks a value as one that varies over more axes. */
export type Marking = (b: Build, x: Value, mesh: string, over: Axes) => Value;

/** The mesh of the first value that varies. */
function meshOf(site: VaryingSite): string {
  const found = variance(site.inputs) ?? variance(site.regions.flatMap(({ results }) => results));
  return found?.mesh ?? "";
}

class MeshRules implements VarianceRules {
  readonly #mark: Marking;
  readonly #known = new Map<string, Variance>();
  /** Marks that graphs under construction have: cotangents of all uses are added up before they are sent. */
  readonly #marks = new WeakMap<Build, Map<string, Value>>();

  constructor(mark: Marking) {
    this.#mark = mark;
  }

  typeOver(type: TensorType, mesh: string, over: Axes): TensorType {
    const { varies, ...rest } = type;
    if (over.length === 0) return varies ? rest : type;
    const wanted = inOrder(mesh, over);
    const key = `${mesh} ${wanted}`;
    const made = this.#known.get(key) ?? { mesh, over: wanted, rules: this };
    this.#known.set(key, made);
    return varies === made ? type : { ...rest, varies: made };
  }

  alike(b: Build, x: Value, { varies }: TensorType): Value {
    return varies ? this.#marked(b, x, varies.mesh, varies.over) : x;
  }

  /** Marked so that it varies over these axes at least. */
  #marked(b: Build, x: Value, mesh: string, over: Axes): Value {
    const missing = minus(over, axesOf(x));
    if (missing.length === 0) return x;
    const marks = this.#marks.get(b) ?? new Map<string, Value>();
    this.#marks.set(b, marks);
    const key = `${x.id} ${missing.toSorted()}`;
    const made = marks.get(key) ?? this.#madeMark(b, x, mesh, missing);
    marks.set(key, made);
    return made;
  }

  /** Views are marked by marking what they show: it may be read otherwise, too. */
  #madeMark(b: Build, x: Value, mesh: string, missing: Axes): Value {
    const node = b.producer(x);
    if (!node?.op.view || node.inputs.length !== 1) return this.#mark(b, x, mesh, missing);
    const { op, attrs, where } = node;
    return b.call(op, [this.#marked(b, at(node.inputs, 0), mesh, [...axesOf(x), ...missing])], attrs, { where });
  }

  rebound(graph: Graph, params: readonly TensorType[]): Graph {
    const mesh = [...params, ...typesOf(graph.params)].find(({ varies }) => varies)?.varies?.mesh ?? "";
    return this.#rebuilt(graph, params, [], mesh);
  }

  /** The graph for parameters of these types, its results marked so that they vary over these axes at least. */
  #rebuilt(graph: Graph, params: readonly TensorType[], results: readonly Axes[], mesh: string): Graph {
    const isSame = graph.params.every((value, i) => value.type.varies === params[i]?.varies);
    if (isSame && graph.results.every((value, i) => includes(axesOf(value), results[i] ?? NONE))) return graph;
    const b = new Build(graph.name);
    const map = new Map(graph.params.map((value, i) => [value, b.param(at(params, i), value.name)]));
    const resolve = (value: Value): Value => map.get(value) ?? value;
    for (const node of graph.nodes) {
      const outputs = repeated(b, node, node.inputs.map(resolve));
      for (const [i, output] of node.outputs.entries()) map.set(output, at(outputs, i));
    }
    return b.finish(graph.results.map((value, i) => this.#marked(b, resolve(value), mesh, results[i] ?? NONE)));
  }

  fitted(b: Build, site: VaryingSite): VaryingSite {
    const { op, inputs, regions } = site;
    if (op.facts?.collective) return site;
    const mesh = meshOf(site);
    if (op.lower.kind === "control") return this.#fittedControl(b, site, mesh);
    if (regions.length > 0) return this.#fittedCall(b, site, mesh);
    const over = union(inputs.map(axesOf));
    return { ...site, inputs: inputs.map((x) => this.#marked(b, x, mesh, over)) };
  }

  /** A function and its operands. One with a derivative of its own, or one that decides, takes operands alike. */
  #fittedCall(b: Build, site: VaryingSite, mesh: string): VaryingSite {
    const { op, regions, attrs } = site;
    const [body, other] = [at(regions, 0), regions[1]];
    const rule = op.derivative.kind === "region" ? op.derivative.rule?.({ ...site, ...APART }) : undefined;
    const isCustom = rule?.kind === "custom_vjp" || rule?.kind === "custom_jvp";
    let over = isCustom ? union(site.inputs.map(axesOf)) : NONE;
    const used = body.params.map((param) => marksOf(body, param) ?? NONE);
    for (;;) {
      const all = site.inputs.map((x, i) => union([axesOf(x), over, at(used, i)]));
      const inputs = site.inputs.map((x, i) => this.typeOver(x.type, mesh, at(all, i)));
      const made = this.#rebuilt(body, inputs, [], mesh);
      const decides = rule?.kind === "gated" ? axesOf(at(made.results, 0)) : NONE;
      requireTogether([made], decides);
      const wanted = union([over, decides, ...(isCustom ? made.results.map(axesOf) : [])]);
      if (wanted.length > over.length) {
        over = wanted;
        continue;
      }
      const values = site.inputs.map((x, i) => this.#marked(b, x, mesh, at(all, i)));
      if (!other || !rule) return { op, attrs, inputs: values, regions: [made] };
      const types = derivativeTypes(rule, inputs, typesOf(made.results));
      return { op, attrs, inputs: values, regions: [made, this.#rebuilt(other, types, [], mesh)] };
    }
  }

  #fittedControl(b: Build, site: VaryingSite, mesh: string): VaryingSite {
    const { op, attrs, inputs } = site;
    const types = op.infer(typesOf(inputs), attrs, site.regions);
    const wiring = wiringOf({ ...site, ...APART, outputs: types.map((type) => newValue(type)) });
    invariant(wiring, () => `${op.name}: a loop that is planned, in a program that varies over ${mesh}`);
    const axes = new Members();
    for (const [group, own] of byGroup(inputs, wiring.inputs)) axes.addAll(group, own);
    let regions = site.regions;
    for (let before = ""; before !== axes.text(); ) {
      before = axes.text();
      regions = regions.map((region, r) => {
        const groups = at(wiring.regions, r);
        const params = axes.ofAll(groups.params).map((over, i) => this.typeOver(at(region.params, i).type, mesh, over));
        const made = this.#rebuilt(region, params, axes.ofAll(groups.results), mesh);
        for (const [group, own] of byGroup(made.results, groups.results)) axes.addAll(group, own);
        return made;
      });
      for (const group of wiring.inputs) if (group.kind === "const") axes.hoist(group, regions, wiring);
    }
    requireTogether(regions, axes.decides);
    const wanted = axes.ofAll(wiring.inputs);
    const isFixed = wiring.inputs.flatMap(({ kind, size }) => new Array<boolean>(size).fill(kind === "fixed"));
    const fit = inputs.map((x, i) => (isFixed[i] ? x : this.#marked(b, x, mesh, at(wanted, i))));
    const outputs = wiring.outputs.flatMap((group) =>
      group.kind === "fixed" ? new Array<Axes>(group.size).fill(axes.decides) : axes.ofAll([group]),
    );
    return { op, attrs, inputs: fit, regions, outputs };
  }

  results(site: VaryingSite, types: readonly TensorType[]): readonly TensorType[] {
    const { op, inputs, attrs, regions, outputs } = site;
    const fact = op.facts?.collective;
    const { mesh: own } = attrs;
    const mesh = fact ? String(own) : meshOf(site);
    const over = union(inputs.map(axesOf));
    return types.map((type, i) => {
      if (fact) return this.typeOver(type, mesh, fact.varies(over, attrs));
      if (outputs) return this.typeOver(type, mesh, at(outputs, i));
      return this.typeOver(type, mesh, regions.length > 0 ? axesOf(at(at(regions, 0).results, i)) : over);
    });
  }

  problem({ op, inputs, attrs, regions, outputs }: Node): string | null {
    const b = new Build("check");
    const site = this.fitted(b, { op, inputs, attrs, regions });
    if (b.nodes.length > 0 || site.regions.some((region, r) => region !== regions[r])) {
      return "has operands that vary over different axes";
    }
    const wanted = this.results(site, typesOf(outputs));
    const wrong = outputs.findIndex(({ type }, i) => type.varies !== wanted[i]?.varies);
    const [is, be] = [outputs[wrong]?.type.varies, wanted[wrong]?.varies].map(
      (varies) => varies?.over.join() ?? "no axis",
    );
    return wrong < 0 ? null : `has a result that is said to vary over ${is} and varies over ${be}`;
  }

  refuse(graph: Graph, target: string): void {
    const found = [...allNodes(graph)].filter(({ op, attrs }) => {
      const fact = op.facts?.collective;
      return fact && fact.what !== "mark" && groupSize(fact.group(attrs)) > 1;
    });
    if (found.length === 0) return;
    const lines = new Set(found.map(({ op, where }) => `  ${op.name}${where === undefined ? "" : ` at ${where}`}`));
    const summary = [`${graph.name} connects devices, ${target} cannot`, ...lines].join("\n");
    const help =
      "take the target wasm, in workers that runDevices starts, or native by mpirun, or a mesh of one device";
    throw new TidemarkError("TargetUnsupported", summary, { help });
  }

  erased(graph: Graph): Graph {
    return erased(graph);
  }
}

export const varianceRules = (mark: Marking): VarianceRules => new MeshRules(mark);

/** The node on other operands. A mark adds or takes away what is left to add or take away. */
function repeated(b: Build, node: Node, inputs: readonly Value[]): readonly Value[] {
  const { op, attrs, outputs, regions, phase, where, replay } = node;
  const fact = op.facts?.collective;
  const options = { regions, phase, where, replay, ...(outputs.length === 1 ? { name: outputs[0]?.name } : {}) };
  [b.scope, b.within] = [node.scope, node.within];
  if (fact?.what !== "mark") return b.callAll(op, inputs, attrs, options);
  const [x, { over }] = [at(inputs, 0), fact.group(attrs)];
  const isAdding = fact.varies(NONE, attrs).length > 0;
  const left = isAdding ? minus(over, axesOf(x)) : over.filter((axis) => axesOf(x).includes(axis));
  return left.length === 0 ? [x] : b.callAll(op, inputs, { ...attrs, over: left.join() }, options);
}

/** Fields of a node that is asked for its form alone. */
const APART = { outputs: [], phase: "forward", where: undefined, replay: 0 } as const;

function union(all: readonly Axes[]): Axes {
  const found = [...new Set(all.flat())];
  return found.length === 0 ? NONE : found;
}

/** Types of the parameters of a derivative's region. */
function derivativeTypes(
  rule: { readonly kind: string; readonly results?: number },
  inputs: readonly TensorType[],
  results: readonly TensorType[],
): readonly TensorType[] {
  const floats = (types: readonly TensorType[]): readonly TensorType[] => types.filter(({ dtype }) => isFloat(dtype));
  if (rule.kind === "custom_jvp") return [...inputs, ...floats(inputs)];
  const { results: count = 0 } = rule;
  return [...results.slice(count), ...floats(results.slice(0, count))];
}

/** Axes of the members of groups; the fixed ones decide what runs. */
class Members {
  readonly #axes = new Map<Group, Axes[]>();
  decides: Axes = NONE;

  /** By group and number. What is decided by others varies as they do; numbers of iterations are the same for all that have them. */
  ofAll(groups: readonly Group[]): readonly Axes[] {
    return groups.flatMap((group) =>
      Array.from({ length: group.size }, (_, i) =>
        group.kind === "fixed" ? NONE : union([this.#axes.get(group)?.[i] ?? NONE, this.decides]),
      ),
    );
  }

  /** The axes of values are among those of the members. */
  addAll(group: Group, values: readonly Value[]): void {
    if (group.kind === "fixed") this.decides = union([this.decides, ...values.map(axesOf)]);
    else {
      const known = this.#axes.get(group);
      this.#axes.set(
        group,
        values.map((value, i) => union([known?.[i] ?? NONE, axesOf(value)])),
      );
    }
  }

  /** Constants that are marked wherever they are read are marked outside: their cotangents are sent once. */
  hoist(group: Group, regions: readonly Graph[], wiring: Wiring): void {
    const own = this.#axes.get(group) ?? [];
    const marked = own.map((axes, i) => {
      const used = regions.map((region, r) => {
        const params = byGroup(region.params, at(wiring.regions, r).params).find(([each]) => each === group)?.[1];
        return params?.[i] ? marksOf(region, params[i]) : null;
      });
      return union([axes, common(used)]);
    });
    this.#axes.set(group, marked);
  }

  /** Grows with every axis that is added. */
  text(): string {
    const counts = [...this.#axes.values()].map((own) => own.map((axes) => axes.length).join());
    return `${counts.join(";")} ${this.decides}`;
  }
}

/** Axes that are in all lists; those that are null do not count. */
function common(all: readonly (Axes | null)[]): Axes {
  const [first, ...others] = all.filter((axes) => axes !== null);
  return (first ?? NONE).filter((axis) => others.every((axes) => axes.includes(axis)));
}

/** Axes over which a parameter is marked wherever it is read; null where it is not read. */
function marksOf(graph: Graph, param: Value): Axes | null {
  if (graph.results.includes(param)) return NONE;
  const uses = graph.nodes.flatMap(({ op, inputs, attrs, regions }) =>
    inputs.flatMap((input, i): (Axes | null)[] => {
      if (input !== param) return [];
      const fact = op.facts?.collective;
      if (fact?.what === "mark") return [fact.varies(NONE, attrs)];
      const [body] = regions;
      const inner = op.lower.kind === "region" && body?.params[i];
      return [inner && body ? marksOf(body, inner) : NONE];
    }),
  );
  return uses.every((axes) => axes === null) ? null : common(uses);
}

/** Throws where devices that may go different ways would have to meet. */
function requireTogether(regions: readonly Graph[], decides: Axes): void {
  if (decides.length === 0) return;
  for (const node of regions.flatMap((region) => [...allNodes(region)])) {
    const fact = node.op.facts?.collective;
    if (!fact || fact.what === "mark" || fact.what === "device_index") continue;
    const { over } = fact.group(node.attrs);
    const shared = over.filter((axis) => decides.includes(axis));
    if (shared.length === 0) continue;
    const summary = `${node.op.name} over ${shared.join(", ")} in a loop or branch that is decided by a value that varies over ${decides.join(", ")}`;
    throw new TidemarkError("VarianceMismatch", summary, {
      where: node.where,
      help: "all devices must meet: decide by a value that is equal on all of them (allReduce it first), or communicate outside",
    });
  }
}

const erasedBefore = new WeakMap<Graph, Graph>();

function erased(graph: Graph): Graph {
  const known = erasedBefore.get(graph) ?? withoutVariance(graph);
  erasedBefore.set(graph, known);
  erasedBefore.set(known, known);
  return known;
}

function withoutVariance(graph: Graph): Graph {
  const b = new Build(graph.name);
  const map = new Map<Value, Value>();
  const plain = (value: Value): Value => {
    const { varies, ...type } = value.type;
    const made = varies ? newValue(type, value.name) : value;
    map.set(value, made);
    return made;
  };
  b.params.push(...graph.params.map(plain));
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((value) => map.get(value) ?? value);
    const fact = node.op.facts?.collective;
    const only = node.outputs[0];
    if (only && fact?.what === "mark") map.set(only, at(inputs, 0));
    else if (only && fact?.ordered && isOrdered(node)) {
      [b.phase, b.where, b.replay, b.scope, b.within] = [node.phase, node.where, node.replay, node.scope, node.within];
      map.set(only, fact.ordered(b, inputs, node.attrs));
    } else b.append(nodeLike(node, { inputs, outputs: node.outputs.map(plain), regions: node.regions.map(erased) }));
  }
  return gatheredAgain(b.finish(graph.results.map((value) => map.get(value) ?? value)));
}

/** A float sum of several devices whose order is said. */
function isOrdered({ op, attrs, inputs }: Node): boolean {
  const group = op.facts?.collective?.group(attrs);
  const dtype = inputs[0]?.type.dtype;
  const { mesh } = attrs;
  return group !== undefined && groupSize(group) > 1 && parseMesh(String(mesh)).ordered && !!dtype && isFloat(dtype);
}
