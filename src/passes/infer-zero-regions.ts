/**
 * @file Infers regions that are zero by construction: if a mask picks a constant on one side of a line through two axes,
 * products can skip that side. The main case is causal attention: exp(where(column ≤ row, score, -∞) - most) is zero above
 * the diagonal, half of the terms of each product with it.
 *
 *   iota, reshape, broadcast, add …    value = Σ coef · position + constant            an index
 *   ge(row, column)                    true exactly where Σ coef · position ≤ 0        a side of a line
 *   where(past, score, -∞)             -∞ beyond the line
 *   sub(…, most), exp                  f(-∞) beyond the line: 0
 *   matmul(e, v)                       gets xNonzero: beyond the line x is zero (ops/matmul.ts)
 *
 * Facts hold for all finite inputs: -∞ - y is taken for -∞ and 0 · y for 0. Signs of zeros are not known, and numbers are
 * those of the element type.
 *
 * Invariant: values do not change; only attributes of products do.
 */

import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { nodeLike } from "../ir/graph.ts";
import { isFloat, isIndexType, storedNumber, typeOf } from "../kernel/dtype.ts";
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

/** The fact of a view from that of its input; axes of extent one do not count. */
function ofView({ op, attrs, inputs, outputs }: Node, fact: Fact): Fact | null {
  const [from, to] = [at(inputs, 0).type.shape, at(outputs, 0).type.shape];
  const axes = op.facts?.viewAxes?.(attrs, from, to);
  if (!axes || fact.kind === "constant") return axes ? fact : null;
  const coefs = new Array<number>(to.length).fill(0);
  for (const [axis, coef] of fact.plane.coefs.entries()) {
    if (coef === 0 || from[axis] === 1) continue;
    const place = axes[axis] ?? null;
    if (place === null) return null;
    coefs[place] = coef;
  }
  return { ...fact, plane: { ...fact.plane, coefs } };
}

/** A fact about an index: a constant is one too. */
function planeOf(fact: Fact | undefined, rank: number): Plane | null {
  if (fact?.kind === "index") return fact.plane;
  return fact?.kind === "constant" ? { coefs: new Array<number>(rank).fill(0), constant: fact.value } : null;
}

/** Comparisons of indices. */
function compared({ op }: Node, a: Plane, b: Plane): Fact | null {
  const { compares } = op.facts ?? {};
  if (!compares) return null;
  const plane = compares.sign === 1 ? plus(a, b, -1) : plus(b, a, -1);
  return { kind: "inside", plane: compares.strict ? shifted(plane, 1) : plane };
}

function combined({ op }: Node, a: Plane, b: Plane): Plane | null {
  const { coefficients, isProduct } = op.facts ?? {};
  if (coefficients) return plus(scaled(a, at(coefficients, 0)), b, at(coefficients, 1));
  if (!isProduct) return null;
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

/** The number that a value is beyond a line, or everywhere. */
const numberOf = (fact: Fact | undefined): number | null =>
  fact?.kind === "beyond" || fact?.kind === "constant" ? fact.value : null;

/** 0 · y, 0 / y, -∞ + y and -∞ - y for every y, unless it is known to be a number with which the result is NaN. */
function absorbed({ op }: Node, facts: readonly (Fact | undefined)[]): Fact | null {
  for (const { operand, value, unless } of op.facts?.absorbs ?? []) {
    const [own, met] = [facts[operand], numberOf(facts[1 - operand])];
    const clash = met !== null && (Number.isNaN(met) || unless.includes(met));
    if (own?.kind === "beyond" && own.value === value && !clash) return own;
  }
  return null;
}

/** Every choice of signs for the zeros among some numbers: facts do not tell 0 from -0. */
function signings(values: readonly number[]): readonly (readonly number[])[] {
  return values.reduce<readonly (readonly number[])[]>(
    (made, value) => made.flatMap((front) => (value === 0 ? [0, -0] : [value]).map((v) => [...front, v])),
    [[]],
  );
}

/**
 * The result of an elementwise operation on numbers, as targets compute it, or null. Operations whose rounding depends on the
 * target are followed only from 0 and ±∞ to 0 and ±∞: log(exp(c)) - c is zero in doubles and need not be on a target.
 */
function evaluated(node: Node, facts: readonly (Fact | undefined)[]): number | null {
  const values = facts.flatMap((fact) => numberOf(fact) ?? []);
  const { dtype } = at(node.outputs, 0).type;
  const [value = Number.NaN, ...others] = signings(values).map((signed) =>
    storedNumber(dtype, evaluateElement(node, signed)),
  );
  // not for NaN either
  const isHeld = isFloat(dtype) ? !Number.isNaN(value) : typeOf(dtype).accepts(value);
  if (!isHeld || others.some((other) => other !== value)) return null;
  const isPlain = (v: number): boolean => v === 0 || Math.abs(v) === Number.POSITIVE_INFINITY;
  const follows = isPlain(value) && facts.every((fact) => fact?.kind !== "beyond" || isPlain(fact.value));
  return node.op.exactInDouble || follows ? value : null;
}

/** An elementwise operation on values that are constant beyond one line: so is its result. */
function ofBeyond(node: Node, facts: readonly (Fact | undefined)[]): Fact | null {
  const { lower } = node.op;
  const found = absorbed(node, facts);
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
  const { shape, dtype } = at(outputs, 0).type;
  const own = op.facts ?? {};
  const number = own.constant?.(attrs);
  if (number !== undefined) return { kind: "constant", value: storedNumber(dtype, number) };
  const counted = own.counter?.(attrs);
  if (counted !== undefined) {
    return { kind: "index", plane: { coefs: shape.map((_, axis) => Number(axis === counted)), constant: 0 } };
  }
  const known = inputs.map((input) => facts.get(input));
  const [x, y, z] = known;
  if (inputs.length === 1 && x) {
    const view = ofView(node, x);
    if (view) return view;
    if (own.isNegation && x.kind === "inside") return { kind: "inside", plane: opposite(x.plane) };
    if (own.coefficients && x.kind === "index") {
      return { kind: "index", plane: scaled(x.plane, at(own.coefficients, 0)) };
    }
  }
  if (own.isSelection) return ofWhere(x, y, z);
  const [a, b] = [planeOf(x, shape.length), planeOf(y, shape.length)];
  const indices = inputs.length === 2 && isIndexType(at(inputs, 0).type.dtype) && a && b ? ofIndices(node, a, b) : null;
  return indices ?? ofBeyond(node, known);
}

/** The line through the last two axes of a product's operand beyond which it is zero, if any. */
function lineOf(fact: Fact | undefined): readonly number[] {
  if (fact?.kind !== "beyond" || fact.value !== 0) return [];
  const { coefs, constant } = fact.plane;
  const [r = 0, c = 0] = coefs.slice(-2);
  const inMatrix = coefs.slice(0, -2).every((coef) => coef === 0);
  return inMatrix && r !== 0 && c !== 0 ? [r, c, constant] : [];
}

function withLines(node: Node, facts: Facts): Node {
  const withZeros = node.op.facts?.withZeroFactors;
  if (!withZeros) return node;
  const lines = node.inputs.map((input) => lineOf(facts.get(input)));
  return lines.every((line) => line.length === 0) ? node : nodeLike(node, { attrs: withZeros(node.attrs, lines) });
}

function annotate(graph: Graph): Graph {
  const facts = new Map<Value, Fact>();
  const nodes = graph.nodes.map((node) => {
    const fact = factOf(node, facts);
    const [output] = node.outputs;
    if (fact && output) facts.set(output, fact);
    const regions = node.regions.map(annotate);
    const inner = regions.every((region, i) => region === node.regions[i]) ? node : nodeLike(node, { regions });
    return withLines(inner, facts);
  });
  return nodes.every((node, i) => node === graph.nodes[i]) ? graph : { ...graph, nodes };
}

/** Annotates products with regions where their operands are zero by construction. */
export const inferZeroRegions: Pass = {
  name: "infer-zero-regions",
  after: ["inline", "fold", "canonicalize", "cse", "dce"],
  run: annotate,
};
