/**
 * @file Reverse mode through loops. The reverse of a loop is a loop in the other direction over the residuals of the forward
 * loop (residuals.ts), with the cotangents of the carries as its state:
 *
 *   c, ys, rs = scan(c₀, xs, k)                                     the same loop, which also stacks residuals
 *   …
 *   d_c₀, d_k, d_xs = scan(d_c, sums, rs, xs, d_ys, k) {reverse}    body: d_c', sums, r, x, d_y, k → d_c, sums, d_x
 *
 * Stacked residuals connect the two loops; they are not the final decision: if only the reverse reads the stacks of a loop,
 * the planner may keep states in their place (loops/rewrite.ts).
 *
 * Cotangents of constants are sums over all iterations. They are carries too, start from the existing sum, and add in the
 * order of the unrolled loop. Where there is no sum yet they start from -0, the identity of addition, the sign of zero
 * included.
 *
 * A `while` with a maximum number of iterations is the same with a count. Without a bound no storage can be planned for its
 * residuals: its reverse is a `rewind` (ops/rewind.ts), which recomputes states.
 */

import { at, invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Loop } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import { full, fullAttrs } from "../ops/create.ts";
import { scan, type WhileAttrs } from "../ops/loops.ts";
import { INDEX, stackType } from "../ops/region-checks.ts";
import { NOT_RECORDED, rewind } from "../ops/rewind.ts";
import { activeInLoop, reached } from "./activity.ts";
import type { Cotangents, Joint, JointRequest, ReverseContext, Reversed, Seed } from "./joint.ts";
import { type BodyLayout, chooseResiduals, type Residuals } from "./residuals.ts";

/** A loop that is being reversed. */
interface ActiveLoop {
  readonly parts: Loop;
  /** Parameters of the body that are active, and results that they reach. */
  readonly active: readonly boolean[];
  readonly results: readonly boolean[];
}

const minusZero = (b: Build, like: Value): Value => b.call(full, [], fullAttrs(like.type, -0));
const isFirst = (values: readonly Value[], i: number): boolean => values.indexOf(at(values, i)) === i;
const seedsOf = (some: readonly boolean[]): readonly Seed[] => some.map((one) => (one ? "param" : "zero"));

function activeLoop(parts: Loop, inputs: readonly boolean[]): ActiveLoop {
  const active = activeInLoop(parts.body, [false, ...inputs], 1, parts.carries.length);
  return { parts, active, results: reached(parts.body, active) };
}

function layoutOf({ carries, xs }: Loop, params: readonly Value[]): BodyLayout {
  const first = 1 + carries.length;
  return {
    index: at(params, 0),
    carries: params.slice(1, first),
    xs: params.slice(first, first + xs.length),
    consts: params.slice(first + xs.length),
  };
}

/** The reverse of one iteration: constants have sums. */
function requestFor({ parts, active }: ActiveLoop, seeds: readonly Seed[]): JointRequest {
  const firstConst = 1 + parts.carries.length + parts.xs.length;
  return { active, seeds, sums: active.map((one, i) => one && i >= firstConst) };
}

/**
 * The reverse of one iteration for the existing cotangents, and the carries that have one: those that get one from outside,
 * and those that some iteration gives one.
 */
function reverseIteration(context: ReverseContext, loop: ActiveLoop, cts: readonly (Value | null)[]) {
  const { carries, ys } = loop.parts;
  const carried = carries.map((_, k) => at(cts, k) !== null);
  for (;;) {
    const rows = ys.map((_, y) => at(cts, carries.length + y) !== null);
    const some = [...carried, ...rows].map((one, r) => one && at(loop.results, r));
    const joint = context.joint(loop.parts.body, requestFor(loop, seedsOf(some)));
    const more = carries.flatMap((_, k) => (joint.cotangents[1 + k] && !carried[k] ? [k] : []));
    if (more.length === 0) return { joint, carried: carries.flatMap((_, k) => (carried[k] ? [k] : [])) };
    for (const k of more) carried[k] = true;
  }
}

/** Constants that the reverse of an iteration adds to, by position. */
function summedConsts({ parts }: ActiveLoop, { cotangents, sumParams }: Joint): readonly number[] {
  const first = 1 + parts.carries.length + parts.xs.length;
  return parts.consts.flatMap((_, k) => {
    const [cotangent, sum] = [cotangents[first + k] ?? null, sumParams[first + k] ?? null];
    return sum && cotangent !== sum ? [k] : [];
  });
}

/** Initial values of the sums: if a constant is read under two names, only one of them continues the existing sum. */
function begunSums(b: Build, { consts }: Loop, summed: readonly number[], all: Cotangents): readonly Value[] {
  return summed.map((k) => {
    const outer = at(consts, k);
    return (isFirst(consts, k) ? all.of(outer) : null) ?? minusZero(b, outer);
  });
}

/** Passes sums on: to `all` where they continue it, else as contributions. */
function handSums(
  { consts }: Loop,
  summed: readonly number[],
  made: readonly Value[],
  all: Cotangents,
): readonly (Value | null)[] {
  const contributions: (Value | null)[] = consts.map(() => null);
  for (const [n, k] of summed.entries()) {
    if (isFirst(consts, k) && all.of(at(consts, k))) all.replace(at(consts, k), at(made, n));
    else contributions[k] = at(made, n);
  }
  return contributions;
}

/** A value outside that a body reads whole, or row by row. */
interface Source {
  readonly kind: "row" | "const";
  readonly outer: Value;
}

/** Builds the body of the reversed loop, with parameters for the outer values that it reads. */
class ReverseBody {
  readonly #b: Build;
  readonly #now = new Map<Value, Value>();
  readonly #again = new Map<Value, Node>();
  /** Parameters that stand for rows and constants, with the outer value of each. */
  readonly xs: { readonly param: Value; readonly outer: Value }[] = [];
  readonly consts: { readonly param: Value; readonly outer: Value }[] = [];
  readonly #sources: ReadonlyMap<Value, Source>;

  constructor(name: string, sources: ReadonlyMap<Value, Source>, again: readonly Node[]) {
    this.#b = new Build(name);
    this.#b.phase = "backward";
    this.#sources = sources;
    for (const node of again) for (const value of node.outputs) this.#again.set(value, node);
  }

  get b(): Build {
    return this.#b;
  }

  /** Binds a value of the joint graph to one of this body. */
  bind(value: Value, now: Value): void {
    this.#now.set(value, now);
  }

  readonly resolve = (value: Value): Value => {
    const known = this.#now.get(value);
    if (known) return known;
    const node = this.#again.get(value);
    if (node) {
      this.append(node);
      return this.#now.get(value) as Value;
    }
    const source = this.#sources.get(value);
    invariant(source, () => `the reverse of a loop reads ${value.name ?? value.id}, which is not kept`);
    const param = newValue(value.type, value.name);
    (source.kind === "row" ? this.xs : this.consts).push({ param, outer: source.outer });
    this.#now.set(value, param);
    return param;
  };

  append(node: Node): void {
    const inputs = node.inputs.map(this.resolve);
    const outputs = node.outputs.map((value) => newValue(value.type, value.name));
    this.#b.append(nodeLike(node, { inputs, outputs }));
    node.outputs.forEach((value, i) => {
      this.#now.set(value, at(outputs, i));
    });
  }

  finish(carries: readonly Value[], index: Value, results: readonly Value[]): Graph {
    const rest = [...this.xs, ...this.consts].map(({ param }) => param);
    return { name: this.#b.name, params: [index, ...carries, ...rest], nodes: [...this.#b.nodes], results };
  }
}

/** The nodes of the reverse part that the given values depend on, in order. */
function reverseNodes({ b, forwardNodes }: Joint, values: readonly Value[]): readonly Node[] {
  const wanted = new Set(values);
  const needed = b.nodes
    .slice(forwardNodes)
    .reverse()
    .filter((node) => {
      if (!node.outputs.some((value) => wanted.has(value))) return false;
      for (const value of node.inputs) wanted.add(value);
      return true;
    });
  return needed.reverse();
}

/** Values of two joint graphs of one body: their forward parts are equal. */
function sameIn(from: Joint, to: Joint): (value: Value) => Value {
  const pairs = new Map<Value, Value>();
  from.params.forEach((param, i) => {
    pairs.set(param, at(to.params, i));
  });
  from.b.nodes.slice(0, from.forwardNodes).forEach((node, n) => {
    node.outputs.forEach((value, i) => {
      pairs.set(value, at(at(to.b.nodes, n).outputs, i));
    });
  });
  return (value) => {
    const found = pairs.get(value);
    invariant(found, () => `${value.name ?? value.id} is not in the forward part`);
    return found;
  };
}

/** Results of the forward loop: stacks by value of the first joint graph, and the last carries. */
interface Left {
  readonly loop: ActiveLoop;
  readonly first: Joint;
  readonly residuals: Residuals;
  readonly stacks: ReadonlyMap<Value, Value>;
  readonly last: readonly Value[];
  /** The number of iterations, if it is not `length`. */
  readonly count: Value | null;
}

/** The source of each value that the reverse of an iteration reads. */
function sourcesFor(joint: Joint, { loop, first, stacks }: Left): ReadonlyMap<Value, Source> {
  const same = sameIn(first, joint);
  const sources = new Map<Value, Source>();
  for (const [value, outer] of stacks) sources.set(same(value), { kind: "row", outer });
  const layout = layoutOf(loop.parts, joint.params);
  layout.xs.forEach((param, i) => {
    sources.set(param, { kind: "row", outer: at(loop.parts.xs, i) });
  });
  layout.consts.forEach((param, i) => {
    sources.set(param, { kind: "const", outer: at(loop.parts.consts, i) });
  });
  return sources;
}

/** The state of a reversed loop: parameters of its body, and their initial values. */
interface State {
  readonly params: readonly Value[];
  readonly begin: readonly Value[];
  /** Per shifted carry, the value of the joint graph that it is in the next iteration. */
  readonly shifted: readonly Value[];
}

/** Cotangents of carries, then sums of constants, then carries that are shifted by one iteration. */
function stateOf(b: Build, body: ReverseBody, iteration: Iteration, all: Cotangents): State {
  const { left, joint, cts, carried, summed } = iteration;
  const { parts } = left.loop;
  const params: Value[] = [];
  const begin: Value[] = [];
  const carry = (value: Value | null, like: Value, first: Value): void => {
    const param = newValue(like.type, value?.name);
    if (value) body.bind(value, param);
    params.push(param);
    begin.push(first);
  };
  for (const k of carried) {
    const like = at(joint.params, 1 + k);
    carry(joint.seedParams[k] ?? null, like, at(cts, k) ?? minusZero(b, like));
  }
  const firstConst = 1 + parts.carries.length + parts.xs.length;
  begunSums(b, parts, summed, all).forEach((first, n) => {
    carry(joint.sumParams[firstConst + at(summed, n)] ?? null, first, first);
  });
  const same = sameIn(left.first, joint);
  const { carries } = layoutOf(parts, left.first.params);
  const shifted = left.residuals.shifted.map(([before, after]) => {
    carry(same(after), before, at(left.last, carries.indexOf(before)));
    return same(before);
  });
  return { params, begin, shifted };
}

/** One iteration of a loop with its reverse. */
interface Iteration {
  readonly left: Left;
  readonly joint: Joint;
  /** Cotangents of the loop's results. */
  readonly cts: readonly (Value | null)[];
  /** Carries that have a cotangent, and constants that are added to. */
  readonly carried: readonly number[];
  readonly summed: readonly number[];
}

/** Parameters for the row's number and for the cotangents of rows. */
function bindRows(body: ReverseBody, { left, joint, cts }: Iteration): Value {
  const { parts } = left.loop;
  const index = newValue(INDEX, "i");
  body.bind(at(joint.params, 0), index);
  const nc = parts.carries.length;
  parts.ys.forEach((_, y) => {
    const seed = joint.seedParams[nc + y];
    if (!seed) return;
    const param = newValue(seed.type, seed.name);
    body.bind(seed, param);
    body.xs.push({ param, outer: at(cts, nc + y) as Value });
  });
  return index;
}

/** The results of an iteration's reverse: next cotangents and sums, and cotangents of rows (by position in `dxs`). */
function iterationResults(body: ReverseBody, { left, joint, carried, summed }: Iteration, dxs: readonly number[]) {
  const { parts } = left.loop;
  const [nc, nx] = [parts.carries.length, parts.xs.length];
  const numbers = [...carried.map((k) => 1 + k), ...summed.map((k) => 1 + nc + nx + k), ...dxs.map((x) => 1 + nc + x)];
  const wanted = numbers.flatMap((i) => joint.cotangents[i] ?? []);
  for (const node of reverseNodes(joint, wanted)) body.append(node);
  const resolved = numbers.map((i) => {
    const cotangent = joint.cotangents[i];
    return cotangent ? body.resolve(cotangent) : body.b.call(full, [], { ...at(joint.params, i).type, value: 0 });
  });
  const state = carried.length + summed.length;
  return { next: resolved.slice(0, state), rows: resolved.slice(state) };
}

/** The reversed loop, appended; gives contributions to carries, xs and constants. */
function appendReverse(
  context: ReverseContext,
  left: Left,
  cts: readonly (Value | null)[],
  all: Cotangents,
): readonly (Value | null)[] {
  const { loop } = left;
  const { parts } = loop;
  const { joint, carried } = reverseIteration(context, loop, cts);
  const iteration: Iteration = { left, joint, cts, carried, summed: summedConsts(loop, joint) };
  const again = left.residuals.again.map((node) => at(joint.b.nodes, left.first.b.nodes.indexOf(node)));
  const body = new ReverseBody(`${parts.body.name}_reverse`, sourcesFor(joint, left), again);
  const state = stateOf(context.b, body, iteration, all);
  const index = bindRows(body, iteration);
  const dxs = parts.xs.flatMap((_, x) => (joint.cotangents[1 + parts.carries.length + x] ? [x] : []));
  const { next, rows } = iterationResults(body, iteration, dxs);
  const region = body.finish(state.params, index, [...next, ...state.shifted.map(body.resolve), ...rows]);
  const outer = [...state.begin, ...body.xs.map((x) => x.outer), ...body.consts.map((k) => k.outer)];
  const attrs = {
    carries: state.params.length,
    xs: body.xs.length,
    length: parts.length,
    reverse: !parts.reverse,
    counted: left.count !== null,
    reversal: "auto",
    snapshots: 0,
  };
  const inputs = left.count ? [left.count, ...outer] : outer;
  const outputs = context.b.callAll(scan, inputs, attrs, { regions: [region] });
  const sums = outputs.slice(carried.length, carried.length + iteration.summed.length);
  const stacks = outputs.slice(state.params.length);
  return [
    ...parts.carries.map((_, k) => outputs[carried.indexOf(k)] ?? null),
    ...parts.xs.map((_, x) => stacks[dxs.indexOf(x)] ?? null),
    ...handSums(parts, iteration.summed, sums, all),
  ];
}

/** The forward loop with residuals among its stacks. */
function forwardLoop(context: ReverseContext, loop: ActiveLoop, node: Node): { copy: Node; left: Left } {
  const { parts } = loop;
  const first = context.joint(parts.body, requestFor(loop, seedsOf(loop.results)));
  const residuals = chooseResiduals(first, layoutOf(parts, first.params));
  const ys = first.results.slice(parts.carries.length);
  const extra = residuals.kept.filter((value) => !ys.includes(value));
  const region: Graph = {
    name: parts.body.name,
    params: first.params,
    nodes: first.b.nodes.slice(0, first.forwardNodes),
    results: [...first.results, ...extra],
  };
  const regions = node.regions.map((other, n) => (n === parts.region ? region : other));
  const own = parts.carries.length + parts.ys.length;
  const stacked = extra.map((value) => newValue(stackType(value.type, parts.length), value.name));
  const outputs = [...node.outputs.slice(0, own), ...stacked, ...node.outputs.slice(own)];
  const copy = context.append(nodeLike(node, { regions, outputs }));
  const stacks = new Map<Value, Value>();
  for (const value of residuals.kept) {
    const y = ys.indexOf(value);
    const place = y >= 0 ? parts.carries.length + y : own + extra.indexOf(value);
    stacks.set(value, at(copy.outputs, place));
  }
  const last = copy.outputs.slice(0, parts.carries.length);
  return { copy, left: { loop, first, residuals, stacks, last, count: null } };
}

export function reverseLoop(context: ReverseContext, node: Node, parts: Loop, active: readonly boolean[]): Reversed {
  const loop = activeLoop(parts, parts.count ? active.slice(1) : active);
  const own = parts.carries.length + parts.ys.length;
  const activeOutputs = parts.iterations ? [...loop.results, false] : loop.results;
  if (!parts.isBounded) {
    const copy = context.append(node);
    const { checkpoints } = node.attrs as WhileAttrs;
    const unbounded = { loop, count: at(copy.outputs, own), checkpoints };
    return {
      outputs: copy.outputs,
      activeOutputs,
      pullback: (cts, all) => appendRewind(context, unbounded, cts, all),
    };
  }
  const { copy, left } = forwardLoop(context, loop, node);
  const after = parts.iterations ? copy.outputs.slice(-1) : [];
  const count = after[0] ?? parts.count;
  return {
    outputs: [...copy.outputs.slice(0, own), ...after],
    activeOutputs,
    pullback: (cts, all) => {
      const contributions = appendReverse(context, { ...left, count }, cts, all);
      return parts.count ? [null, ...contributions] : contributions;
    },
  };
}

/** A loop without a bound that took `count` iterations. */
interface UnboundedLoop {
  readonly loop: ActiveLoop;
  readonly count: Value;
  readonly checkpoints: number;
}

/** The reverse of a loop without a bound: states are recomputed. */
function appendRewind(
  context: ReverseContext,
  { loop, count, checkpoints }: UnboundedLoop,
  cts: readonly (Value | null)[],
  all: Cotangents,
): readonly (Value | null)[] {
  const { b } = context;
  const { carries, consts, body } = loop.parts;
  const { joint, carried } = reverseIteration(context, loop, cts);
  const summed = summedConsts(loop, joint);
  const layout = layoutOf(loop.parts, joint.params);
  const first = 1 + carries.length;
  const cotangent = (i: number): Value =>
    joint.cotangents[i] ?? joint.b.call(full, [], { ...at(joint.params, i).type, value: 0 });
  const adjoints = [
    ...carried.map((k) => joint.seedParams[k] ?? newValue(at(layout.carries, k).type, "unused")),
    ...summed.map((k) => joint.sumParams[first + k] as Value),
  ];
  const results = [...carried.map((k) => cotangent(1 + k)), ...summed.map((k) => cotangent(first + k))];
  const back: Graph = {
    name: `${body.name}_vjp`,
    params: [layout.index, ...layout.carries, ...adjoints, ...layout.consts],
    nodes: [...joint.b.nodes],
    results,
  };
  const begin = [
    ...carried.map((k) => at(cts, k) ?? minusZero(b, at(carries, k))),
    ...begunSums(b, loop.parts, summed, all),
  ];
  const wrt = [...carried, ...summed.map((k) => carries.length + k)];
  const shape = { states: carries.length, adjoints: adjoints.length, xs: 0, length: 0 };
  const attrs = { ...NOT_RECORDED, ...shape, checkpoints, wrt };
  const made = b.callAll(rewind, [count, ...carries, ...begin, ...consts], attrs, { regions: [body, back] });
  const sums = handSums(loop.parts, summed, made.slice(carried.length), all);
  return [...carries.map((_, k) => made[carried.indexOf(k)] ?? null), ...sums];
}
