/**
 * @file A graph in which some parameters are W + s·L·R with a small inner extent, computed without that sum: products,
 * convolutions and look-ups apply the two factors one after the other.
 *
 *   x·(W + s·L·R)          =  x·W + s·(x·L)·R
 *   (W + s·L·R)[i]         =  W[i] + s·L[i]·R
 *   conv(x, W + s·L∘R)     =  conv(x, W) + s·conv₁(conv(x, R), L)      with R [r, in, …window] and L [out, r, 1, …]
 *
 * A transposed weight has transposed factors, and the body of a call gets factors as further parameters. Whatever else
 * reads such a weight reads the sum.
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import type { AnyOp } from "../ir/op.ts";
import { elementsOf } from "../ir/type.ts";
import { call } from "../ops/control.ts";
import { conv, convInput } from "../ops/conv.ts";
import type { ConvAttrs } from "../ops/conv-geometry.ts";
import { apply } from "../ops/define.ts";
import { add } from "../ops/elementwise.ts";
import { type ReadAttrs, take } from "../ops/indexing.ts";
import { scale } from "../ops/math.ts";
import { type MatmulAttrs, matmul } from "../ops/matmul.ts";
import { reshape, type TransposeAttrs, transpose } from "../ops/movement.ts";

/** What is added to a weight: [p, r] and [r, q] for a matrix, [out, r, 1, …] and [r, in, …window] for a convolution. */
export interface Factors {
  readonly left: Value;
  readonly right: Value;
  readonly scale: number;
}

interface Factored extends Factors {
  readonly base: Value;
}

/** How a weight is used: decides which factor is which in files. */
export type Use = "out-in" | "in-out" | "table" | "windows";

/** A parameter or a view of it, and whether its axes are exchanged. */
interface View {
  readonly param: Value;
  readonly isSwapped: boolean;
}

/** A node that reads such weights. */
interface Rule {
  /** Its results without sums, or null where there is no way. */
  rewrite(b: Build, node: Node, of: (i: number) => Factored | undefined): Value | Factored | readonly Value[] | null;
  /** What its input i says about the axes of the weight that is read there. */
  use?(node: Node, i: number, view: View): Use | undefined;
  /** The values that input i is, in the body or as the result. */
  views?(node: Node, i: number, view: View): readonly [Value, View] | undefined;
}

const product = (b: Build, sides: readonly Value[], ta: boolean, tb: boolean): Value =>
  b.call(matmul, sides, { ta, tb, xNonzero: [], wNonzero: [] });

const swapped = (b: Build, x: Value): Value => b.call(transpose, [x], { perm: [1, 0] });

/** On the right x·L·R, on the left L·R·x; a side that is read transposed has its factors exchanged. */
const ofProduct: Rule["rewrite"] = (b, node, of) => {
  const { ta, tb } = node.attrs as MatmulAttrs;
  const [left, right] = [of(0), of(1)];
  const [x, w] = [at(node.inputs, 0), at(node.inputs, 1)];
  if ((left && right) || x.type.shape.length !== 2) return null;
  if (right) {
    const [first, second] = tb ? [right.right, right.left] : [right.left, right.right];
    const inner = scale(b, product(b, [x, first], ta, tb), right.scale);
    return apply(b, add, product(b, [x, right.base], ta, tb), product(b, [inner, second], false, tb));
  }
  if (!left) return null;
  const [first, second] = ta ? [left.left, left.right] : [left.right, left.left];
  const inner = scale(b, product(b, [first, w], ta, tb), left.scale);
  return apply(b, add, product(b, [left.base, w], ta, tb), product(b, [second, inner], ta, false));
};

const ofTranspose: Rule["rewrite"] = (b, node, of) => {
  const weight = of(0);
  const { perm } = node.attrs as TransposeAttrs;
  if (!weight || perm.length !== 2) return null;
  if (perm[0] === 0) return weight;
  const { base, left, right } = weight;
  return { ...weight, base: swapped(b, base), left: swapped(b, right), right: swapped(b, left) };
};

const ofRows: Rule["rewrite"] = (b, node, of) => {
  const [weight, indices] = [of(0), at(node.inputs, 1)];
  const attrs = node.attrs as ReadAttrs;
  if (!weight || attrs.axis !== 0 || weight.left.type.shape.length !== 2) return null;
  const { base, left, right } = weight;
  const rows = b.call(take, [left, indices], attrs);
  const places = elementsOf(indices.type.shape);
  const flat = b.call(reshape, [rows], { shape: [places, at(left.type.shape, 1)] });
  const change = product(b, [scale(b, flat, weight.scale), right], false, false);
  const shape = [...indices.type.shape, at(right.type.shape, 1)];
  return apply(b, add, b.call(take, [base, indices], attrs), b.call(reshape, [change], { shape }));
};

const ofWindows: Rule["rewrite"] = (b, node, of) => {
  const [image, weight] = [at(node.inputs, 0), of(1)];
  const attrs = node.attrs as ConvAttrs;
  if (!weight || of(0) || attrs.groups !== 1 || weight.left.type.shape.length < 3) return null;
  const { base, left, right } = weight;
  const one = attrs.stride.map(() => 1);
  const none = attrs.stride.map(() => 0);
  const inner = scale(b, b.call(conv, [image, right], attrs), weight.scale);
  const change = b.call(conv, [inner, left], { stride: one, lo: none, hi: none, dilation: one, groups: 1 });
  return apply(b, add, b.call(conv, [image, base], attrs), change);
};

/** The body of a call reads the weight and its factors, not the sum: a checkpoint keeps neither. */
const ofCall: Rule["rewrite"] = (b, node, of) => {
  const body = at(node.regions, 0);
  const given = node.inputs.map((_, i) => of(i));
  const own = new Map<Value, Factors>();
  given.forEach((weight, i) => {
    if (!weight) return;
    const stand = (value: Value): Value => newValue(value.type, value.name);
    own.set(at(body.params, i), { left: stand(weight.left), right: stand(weight.right), scale: weight.scale });
  });
  const inputs = node.inputs.map((input, i) => given[i]?.base ?? input);
  const factors = given.flatMap((weight) => (weight ? [weight.left, weight.right] : []));
  return b.callAll(node.op, [...inputs, ...factors], node.attrs, { regions: [withFactors(body, own)] });
};

const RULES: ReadonlyMap<AnyOp, Rule> = new Map<AnyOp, Rule>([
  [
    matmul,
    {
      rewrite: ofProduct,
      // on the right of a product the first axis is summed over, on the left the second
      use: ({ attrs }, i, { isSwapped }) =>
        (i === 1 ? !attrs.tb : attrs.ta === true) !== isSwapped ? "in-out" : "out-in",
    },
  ],
  [
    transpose,
    {
      rewrite: ofTranspose,
      views: ({ attrs, outputs }, _, { param, isSwapped }) => {
        const { perm } = attrs as TransposeAttrs;
        return perm.length === 2 ? [at(outputs, 0), { param, isSwapped: isSwapped !== (perm[0] === 1) }] : undefined;
      },
    },
  ],
  [take, { rewrite: ofRows, use: (_, i) => (i === 0 ? "table" : undefined) }],
  [conv, { rewrite: ofWindows, use: (_, i) => (i === 1 ? "windows" : undefined) }],
  // a transposed convolution reads the sum
  [convInput, { rewrite: () => null, use: (_, i) => (i === 1 ? "windows" : undefined) }],
  [call, { rewrite: ofCall, views: ({ regions }, i, view) => [at(at(regions, 0).params, i), view] }],
]);

/** s·L·R in the shape of the weight. */
export function productOf(b: Build, { left, right, scale: s }: Factors): Value {
  const [rows, inner] = left.type.shape as readonly [number, number];
  const columns = elementsOf(right.type.shape) / inner;
  const flat = (x: Value, shape: readonly number[]): Value => b.call(reshape, [x], { shape });
  const matrix = product(b, [scale(b, flat(left, [rows, inner]), s), flat(right, [inner, columns])], false, false);
  return flat(matrix, [rows, ...right.type.shape.slice(1)]);
}

const sumOf = (b: Build, weight: Factored): Value => apply(b, add, weight.base, productOf(b, weight));

/** The graph with factors of some of its parameters, which become its last parameters: L and R of each in order. */
export function withFactors(graph: Graph, scales: ReadonlyMap<Value, Factors>): Graph {
  const b = new Build(graph.name);
  for (const param of graph.params) b.params.push(param);
  const factored = new Map<Value, Factored>();
  const sums = new Map<Value, Value>();
  const now = new Map<Value, Value>();
  for (const [param, factors] of scales) {
    b.params.push(factors.left, factors.right);
    factored.set(param, { ...factors, base: param });
  }
  const resolve = (value: Value): Value => {
    const weight = factored.get(value);
    if (!weight) return now.get(value) ?? value;
    const known = sums.get(value);
    if (known) return known;
    const sum = sumOf(b, weight);
    sums.set(value, sum);
    return sum;
  };
  for (const node of graph.nodes) {
    Object.assign(b, { phase: node.phase, where: node.where, replay: node.replay });
    Object.assign(b, { scope: node.scope, within: node.within });
    const reads = node.inputs.some((input) => factored.has(input));
    const made = reads ? rewritten(b, node, factored, resolve) : null;
    if (made === null) {
      b.append({ ...node, inputs: node.inputs.map(resolve) });
    } else if (Array.isArray(made)) {
      node.outputs.forEach((output, i) => void now.set(output, at(made as readonly Value[], i)));
    } else {
      const [output, one] = [at(node.outputs, 0), made as Value | Factored];
      if ("base" in one) factored.set(output, one);
      else now.set(output, one);
    }
  }
  return b.finish(graph.results.map(resolve));
}

function rewritten(
  b: Build,
  node: Node,
  factored: ReadonlyMap<Value, Factored>,
  resolve: (value: Value) => Value,
): ReturnType<Rule["rewrite"]> {
  const rule = RULES.get(node.op);
  // the rule reads factors itself; other inputs are those of the new graph
  const inputs = node.inputs.map((input) => (factored.has(input) ? input : resolve(input)));
  return rule?.rewrite(b, { ...node, inputs }, (i) => factored.get(at(node.inputs, i))) ?? null;
}

/** The first use of each of some parameters that shows what its axes are. */
export function usesOf(graph: Graph, params: readonly Value[]): ReadonlyMap<Value, Use> {
  const views = new Map<Value, View>(params.map((param) => [param, { param, isSwapped: false }]));
  const uses = new Map<Value, Use>();
  const visit = (body: Graph): void => {
    for (const node of body.nodes) {
      const rule = RULES.get(node.op);
      node.inputs.forEach((input, i) => {
        const view = views.get(input);
        if (!view || !rule) return;
        const use = rule.use?.(node, i, view);
        if (use && !uses.has(view.param)) uses.set(view.param, use);
        const further = rule.views?.(node, i, view);
        if (further) views.set(...further);
      });
      if (rule) node.regions.forEach(visit);
    }
  };
  visit(graph);
  return uses;
}
