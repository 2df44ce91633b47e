/**
 * @file What is zero by construction: where a mask picks a constant on one side of a line through two axes, products of it
 * need not go there. Causal attention is the case in point: exp(where(column ≤ row, score, -∞) - most) is zero above the
 * diagonal, half of the terms of each product with it.
 *
 *   iota, reshape, broadcast, add …    value = Σ coef · position + constant            an index
 *   ge(row, column)                    true exactly where Σ coef · position ≤ 0        a side of a line
 *   where(past, score, -∞)             -∞ beyond the line
 *   sub(…, most), exp                  f(-∞) beyond the line: 0
 *   matmul(e, v)                       gets xin: beyond the line x is zero (ops/matmul.ts)
 *
 * What is found holds for every input that is finite: -∞ - y is taken for -∞ and 0 · y for 0. Signs of zeros are not known, and
 * numbers are those of the element type.
 *
 * Invariant: values do not change, only what is known of them.
 */

import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { isIndexType, storedNumber } from "../kernel/dtype.ts";
import { type BroadcastAttrs, broadcast } from "../ops/broadcast.ts";
import { type FullAttrs, full, type IotaAttrs, iota } from "../ops/create.ts";
import { add, div, ge, gt, le, lt, mul, neg, not, sub } from "../ops/elementwise.ts";
import { type MatmulAttrs, matmul } from "../ops/matmul.ts";
import { reshape, type TransposeAttrs, transpose } from "../ops/movement.ts";
import { stopGradient, where } from "../ops/select.ts";
import { evaluateElement } from "./fold.ts";
import type { Pass } from "./pass.ts";

/** Σ coefs · position + constant, a coefficient for each axis. */
interface Plane {
  readonly coefs: readonly number[];
  readonly constant: number;
}

/** A value equal to a plane; true exactly where it is 0 or less; equal to one number wherever it is above 0; or everywhere. */
type Fact =
  | { readonly kind: "index" | "inside"; readonly plane: Plane }
  | { readonly kind: "beyond"; readonly plane: Plane; readonly value: number }
  | { readonly kind: "constant"; readonly value: number };

type Facts = ReadonlyMap<Value, Fact>;

const plus = (a: Plane, b: Plane, sign: number): Plane => ({
  coefs: a.coefs.map((coef, axis) => coef + sign * at(b.coefs, axis)),
  constant: a.constant + sign * b.constant,
});

const scaled = ({ coefs, constant }: Plane, by: number): Plane => ({
  coefs: coefs.map((coef) => coef * by),
  constant: constant * by,
});

const flat = ({ coefs }: Plane): boolean => coefs.every((coef) => coef === 0);

const shifted = ({ coefs, constant }: Plane, by: number): Plane => ({ coefs, constant: constant + by });

/** Where a plane of whole numbers is above 0: where its negation and 1 is 0 or less. */
const opposite = ({ coefs, constant }: Plane): Plane => ({ coefs: coefs.map((c) => -c), constant: 1 - constant });

const samePlane = (a: Plane, b: Plane): boolean =>
  a.constant === b.constant && a.coefs.every((coef, axis) => coef === b.coefs[axis]);

/** The fact of a view, whose axis `axisOf(i)` is axis i of the input; axes of extent one do not count. */
function viewed(fact: Fact, input: Value, rank: number, axisOf: (axis: number) => number | null): Fact | null {
  if (fact.kind === "constant") return fact;
  const coefs = new Array<number>(rank).fill(0);
  for (const [axis, coef] of fact.plane.coefs.entries()) {
    if (coef === 0 || input.type.shape[axis] === 1) continue;
    const to = axisOf(axis);
    if (to === null) return null;
    coefs[to] = coef;
  }
  return { ...fact, plane: { ...fact.plane, coefs } };
}

/** Where the axes of a reshape come to be: those that have the same extent and as many elements behind them. */
function reshapedAxis(from: readonly number[], to: readonly number[], axis: number): number | null {
  const behind = (shape: readonly number[], i: number): number =>
    shape.slice(i + 1).reduce((n, extent) => n * extent, 1);
  const wanted = behind(from, axis);
  const found = to.findIndex((extent, i) => extent === from[axis] && behind(to, i) === wanted);
  return found < 0 ? null : found;
}

/** Views of something known. */
function ofView({ op, attrs, inputs, outputs }: Node, fact: Fact): Fact | null {
  const [input, { type }] = [at(inputs, 0), at(outputs, 0)];
  const rank = type.shape.length;
  if (op === broadcast) return viewed(fact, input, rank, (axis) => at((attrs as BroadcastAttrs).axes, axis));
  if (op === transpose) return viewed(fact, input, rank, (axis) => (attrs as TransposeAttrs).perm.indexOf(axis));
  if (op === reshape) return viewed(fact, input, rank, (axis) => reshapedAxis(input.type.shape, type.shape, axis));
  return op === stopGradient ? fact : null;
}

/** A fact about an index: a constant is one too. */
function planeOf(fact: Fact | undefined, rank: number): Plane | null {
  if (fact?.kind === "index") return fact.plane;
  return fact?.kind === "constant" ? { coefs: new Array<number>(rank).fill(0), constant: fact.value } : null;
}

/** Comparisons of indices. */
function compared({ op }: Node, a: Plane, b: Plane): Fact | null {
  if (op === le) return { kind: "inside", plane: plus(a, b, -1) };
  if (op === lt) return { kind: "inside", plane: shifted(plus(a, b, -1), 1) };
  if (op === ge) return { kind: "inside", plane: plus(b, a, -1) };
  return op === gt ? { kind: "inside", plane: shifted(plus(b, a, -1), 1) } : null;
}

function combined({ op }: Node, a: Plane, b: Plane): Plane | null {
  if (op === add) return plus(a, b, 1);
  if (op === sub) return plus(a, b, -1);
  if (op !== mul) return null;
  if (flat(b)) return scaled(a, b.constant);
  return flat(a) ? scaled(b, a.constant) : null;
}

/** Arithmetic of indices, where no element leaves the range of i32 and wraps around. */
function ofIndices(node: Node, a: Plane, b: Plane): Fact | null {
  const plane = combined(node, a, b);
  if (!plane) return compared(node, a, b);
  const { shape } = at(node.outputs, 0).type;
  const reach = plane.coefs.reduce(
    (sum, coef, axis) => sum + Math.abs(coef) * at(shape, axis),
    Math.abs(plane.constant),
  );
  return reach < 2 ** 31 ? { kind: "index", plane } : null;
}

/** where(c, x, y): a side of a line picks a constant, or both sides are the same constant beyond it. */
function ofWhere(c: Fact | undefined, x: Fact | undefined, y: Fact | undefined): Fact | null {
  if (c?.kind === "inside" && y?.kind === "constant") return { kind: "beyond", plane: c.plane, value: y.value };
  if (c?.kind === "inside" && x?.kind === "constant")
    return { kind: "beyond", plane: opposite(c.plane), value: x.value };
  const agrees = (a: Fact | undefined, b: Fact | undefined): Fact | null =>
    a?.kind === "beyond" && b?.kind === "constant" && Object.is(a.value, b.value) ? a : null;
  return agrees(x, y) ?? agrees(y, x);
}

/** The number that something is beyond a line, or everywhere. */
const numberOf = (fact: Fact | undefined): number | null =>
  fact?.kind === "beyond" || fact?.kind === "constant" ? fact.value : null;

/** 0 · y, 0 / y, -∞ + y and -∞ - y whatever y is, unless it is known to be a number that makes NaN of it. */
function absorbed({ op }: Node, x: Fact | undefined, y: Fact | undefined): Fact | null {
  const absorbs = (a: Fact | undefined, value: number, other: Fact | undefined, clashes: readonly number[]) => {
    const met = numberOf(other);
    const clash = met !== null && (Number.isNaN(met) || clashes.includes(met));
    return a?.kind === "beyond" && a.value === value && !clash ? a : null;
  };
  const { NEGATIVE_INFINITY: least, POSITIVE_INFINITY: most } = Number;
  if (op === mul) return absorbs(x, 0, y, [least, most]) ?? absorbs(y, 0, x, [least, most]);
  if (op === div) return absorbs(x, 0, y, [0]);
  if (op === add) return absorbs(x, least, y, [most]) ?? absorbs(y, least, x, [most]);
  return op === sub ? absorbs(x, least, y, [least]) : null;
}

/** Every choice of signs for the zeros among some numbers: facts do not tell 0 from -0. */
function signings(values: readonly number[]): readonly (readonly number[])[] {
  return values.reduce<readonly (readonly number[])[]>(
    (made, value) => made.flatMap((front) => (value === 0 ? [0, -0] : [value]).map((v) => [...front, v])),
    [[]],
  );
}

/**
 * The number that an elementwise operation makes of some, as targets compute it, or null. Those that round in their own way are
 * followed at 0 and ±∞ alone, to 0 and ±∞: log(exp(c)) - c is zero in doubles and need not be on a target.
 */
function evaluated(node: Node, facts: readonly (Fact | undefined)[]): number | null {
  const values = facts.flatMap((fact) => numberOf(fact) ?? []);
  const { dtype } = at(node.outputs, 0).type;
  const [value = Number.NaN, ...others] = signings(values).map((signed) =>
    storedNumber(dtype, evaluateElement(node, signed)),
  );
  // NaN is none either
  if (Number.isNaN(value) || others.some((other) => other !== value)) return null;
  const isPlain = (v: number): boolean => v === 0 || Math.abs(v) === Number.POSITIVE_INFINITY;
  const follows = isPlain(value) && facts.every((fact) => fact?.kind !== "beyond" || isPlain(fact.value));
  return node.op.exactInDouble || follows ? value : null;
}

/** An elementwise operation on things that are constant beyond one line: so is its result. */
function ofBeyond(node: Node, facts: readonly (Fact | undefined)[]): Fact | null {
  const { lower } = node.op;
  const found = absorbed(node, facts[0], facts[1]);
  if (found) return found;
  const line = facts.find((fact) => fact?.kind === "beyond");
  if (line?.kind !== "beyond" || lower.kind !== "map" || !lower.pointwise || lower.fusion !== "once") return null;
  const meets = (fact: Fact | undefined): boolean =>
    fact?.kind === "constant" || (fact?.kind === "beyond" && samePlane(fact.plane, line.plane));
  if (!facts.every(meets)) return null;
  const value = evaluated(node, facts);
  return value === null ? null : { kind: "beyond", plane: line.plane, value };
}

function factOf(node: Node, facts: Facts): Fact | null {
  const { op, inputs, outputs, attrs } = node;
  if (outputs.length !== 1) return null;
  const rank = at(outputs, 0).type.shape.length;
  if (op === full) {
    const { dtype, value } = attrs as FullAttrs;
    return { kind: "constant", value: storedNumber(dtype, value) };
  }
  if (op === iota) {
    const coefs = Array.from({ length: rank }, (_, axis) => (axis === (attrs as IotaAttrs).axis ? 1 : 0));
    return { kind: "index", plane: { coefs, constant: 0 } };
  }
  const known = inputs.map((input) => facts.get(input));
  const [x, y, z] = known;
  if (inputs.length === 1 && x) {
    const view = ofView(node, x);
    if (view) return view;
    if (op === not && x.kind === "inside") return { kind: "inside", plane: opposite(x.plane) };
    if (op === neg && x.kind === "index") return { kind: "index", plane: scaled(x.plane, -1) };
  }
  if (op === where) return ofWhere(x, y, z);
  const [a, b] = [planeOf(x, rank), planeOf(y, rank)];
  const indices = inputs.length === 2 && isIndexType(at(inputs, 0).type.dtype) && a && b ? ofIndices(node, a, b) : null;
  return indices ?? ofBeyond(node, known);
}

/** What is known of a side of a product: its line through the last two axes, if it is zero beyond one. */
function lineOf(fact: Fact | undefined): readonly number[] {
  if (fact?.kind !== "beyond" || fact.value !== 0) return [];
  const { coefs, constant } = fact.plane;
  const [r = 0, c = 0] = coefs.slice(-2);
  const inMatrix = coefs.slice(0, -2).every((coef) => coef === 0);
  return inMatrix && r !== 0 && c !== 0 ? [r, c, constant] : [];
}

function withLines(node: Node, facts: Facts): Node {
  if (node.op !== matmul) return node;
  const [xin, win] = [lineOf(facts.get(at(node.inputs, 0))), lineOf(facts.get(at(node.inputs, 1)))];
  if (xin.length + win.length === 0) return node;
  return { ...node, attrs: { ...(node.attrs as MatmulAttrs), xin, win } };
}

function annotate(graph: Graph): Graph {
  const facts = new Map<Value, Fact>();
  const nodes = graph.nodes.map((node) => {
    const fact = factOf(node, facts);
    const [output] = node.outputs;
    if (fact && output) facts.set(output, fact);
    const regions = node.regions.map(annotate);
    const inner = regions.every((region, i) => region === node.regions[i]) ? node : { ...node, regions };
    return withLines(inner, facts);
  });
  return nodes.every((node, i) => node === graph.nodes[i]) ? graph : { ...graph, nodes };
}

/** Tells products which of their factors are zero by construction. */
export const zeros: Pass = { name: "zeros", after: ["inline", "fold", "canonicalize", "cse", "dce"], run: annotate };
