/**
 * @file The regions of a loop's reverse from states: one iteration forward, and one iteration backward preceded by the
 * part of the forward iteration that it needs.
 *
 * ```
 *   step   (i, s, x, k)    → s        the part of the forward body that the next state needs
 *   back   (i, s, a, x, k) → a, w     the part of the forward body that computes stack rows, then the reverse body on those rows
 *   tail   (i, a, x, k, r) → a, w     the reverse body on stacked rows r
 * ```
 *
 * All take the same rows and constants, each outer value once: those of the two bodies that remain in use.
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { nodesFor } from "../ir/walk.ts";
import { INDEX } from "../ops/region-checks.ts";
import { cse } from "../passes/cse.ts";
import { dce } from "../passes/dce.ts";
import { readsFor } from "../passes/narrow.ts";
import { type LoopPair, rowsOf } from "./pairs.ts";

/** The nodes of a body that some of its results need. */
function bodyPart(body: Graph, results: readonly Value[]): Graph {
  const needed = nodesFor(body, results);
  return { ...body, nodes: body.nodes.filter((node) => needed.has(node)), results };
}

/** Region parameters, one for each outer value. */
class SharedInputs {
  /** A body parameter bound to each outer value, for its type and name. */
  readonly #like = new Map<Value, Value>();

  /** `params` are a body's parameters, those for `values` start at index `first`; unused ones are skipped. */
  add(values: readonly Value[], params: readonly Value[], first: number, isRead: (param: Value) => boolean): this {
    values.forEach((value, i) => {
      const param = at(params, first + i);
      if (isRead(param) && !this.#like.has(value)) this.#like.set(value, param);
    });
    return this;
  }

  get outer(): readonly Value[] {
    return [...this.#like.keys()];
  }

  params(b: Build): ReadonlyMap<Value, Value> {
    return new Map([...this.#like].map(([outer, { type, name }]) => [outer, b.param(type, name)]));
  }
}

/** Inputs shared by `step` and `back`: the rows and constants of both bodies that are used. */
export interface RegionInputs {
  readonly rows: SharedInputs;
  readonly consts: SharedInputs;
}

export function inputsOf({ forwardParts, backwardParts, stacks, states }: LoopPair): RegionInputs {
  const { body, carries, xs, consts } = forwardParts;
  const next = states.map((k) => at(body.results, k));
  const read = readsFor(body, [...rowsOf(forwardParts, stacks), ...next]);
  const first = 1 + carries.length;
  const isRead = (param: Value): boolean => read.has(param);
  const { body: back, carries: adjoints, xs: backXs, consts: backConsts } = backwardParts;
  const firstBack = 1 + adjoints.length;
  const produced = new Set(
    stacks.flatMap((stack) => backXs.flatMap((x, i) => (x === stack ? [back.params[firstBack + i]] : []))),
  );
  const isGiven = (param: Value): boolean => !produced.has(param);
  return {
    rows: new SharedInputs().add(xs, body.params, first, isRead).add(backXs, back.params, firstBack, isGiven),
    consts: new SharedInputs()
      .add(consts, body.params, first + xs.length, isRead)
      .add(backConsts, back.params, firstBack + backXs.length, isGiven),
  };
}

/** Parameters of a region that runs the forward body: row index, kept state, adjoints, rows, constants. */
class Region {
  readonly b: Build;
  readonly index: Value;
  readonly adjoints: readonly Value[];
  readonly #pair: LoopPair;
  readonly #states: ReadonlyMap<number, Value>;
  readonly #rows: ReadonlyMap<Value, Value>;
  readonly #consts: ReadonlyMap<Value, Value>;

  constructor(name: string, pair: LoopPair, { rows, consts }: RegionInputs, adjoints: readonly Value[]) {
    this.b = new Build(name);
    this.b.phase = "backward";
    this.#pair = pair;
    const { params } = pair.forwardParts.body;
    this.index = this.b.param(INDEX, "i");
    this.#states = new Map(pair.states.map((k) => [k, this.b.param(at(params, 1 + k).type, at(params, 1 + k).name)]));
    this.adjoints = adjoints.map(({ type, name }) => this.b.param(type, name));
    this.#rows = rows.params(this.b);
    this.#consts = consts.params(this.b);
  }

  row(outer: Value): Value {
    // An unused value stays unbound.
    return this.#rows.get(outer) ?? outer;
  }

  constant(outer: Value): Value {
    return this.#consts.get(outer) ?? outer;
  }

  /** Inlines the part of the forward body that some results need. */
  forward(results: readonly Value[]): readonly Value[] {
    const { body, carries, xs, consts } = this.#pair.forwardParts;
    const bound = [
      this.index,
      ...carries.map((carry, k) => this.#states.get(k) ?? carry),
      ...xs.map((x) => this.row(x)),
      ...consts.map((k) => this.constant(k)),
    ];
    return this.b.inline(bodyPart(body, results), bound, { phase: "backward" });
  }

  finish(results: readonly Value[]): Graph {
    return dce.run(cse.run(this.b.finish(results)));
  }
}

export function stepOf(pair: LoopPair, inputs: RegionInputs): Graph {
  const { body } = pair.forwardParts;
  const region = new Region(`${body.name}_again`, pair, inputs, []);
  return region.finish(region.forward(pair.states.map((k) => at(body.results, k))));
}

export function backOf(pair: LoopPair, inputs: RegionInputs): Graph {
  const { forwardParts, backwardParts, stacks } = pair;
  const { body, carries, xs, consts } = backwardParts;
  const region = new Region(body.name, pair, inputs, body.params.slice(1, 1 + carries.length));
  const rows = new Map(region.forward(rowsOf(forwardParts, stacks)).map((row, n) => [at(stacks, n), row]));
  const bound = [
    region.index,
    ...region.adjoints,
    ...xs.map((x) => rows.get(x) ?? region.row(x)),
    ...consts.map((k) => region.constant(k)),
  ];
  return region.finish(region.b.inline(body, bound));
}

/** The reverse body on stacked rows, which are its last parameters. */
export function tailOf({ backwardParts, stacks }: LoopPair, { rows, consts }: RegionInputs): Graph {
  const { body, carries, xs, consts: given } = backwardParts;
  const b = new Build(`${body.name}_tail`);
  b.phase = "backward";
  const index = b.param(INDEX, "i");
  const adjoints = body.params.slice(1, 1 + carries.length).map(({ type, name }) => b.param(type, name));
  const [rowParams, constParams] = [rows.params(b), consts.params(b)];
  const kept = new Map(
    stacks.map((stack) => {
      const { type, name } = at(body.params, 1 + carries.length + xs.indexOf(stack));
      return [stack, b.param(type, name)];
    }),
  );
  const bound = [
    index,
    ...adjoints,
    ...xs.map((x) => kept.get(x) ?? rowParams.get(x) ?? x),
    ...given.map((k) => constParams.get(k) ?? k),
  ];
  return dce.run(b.finish(b.inline(body, bound)));
}
