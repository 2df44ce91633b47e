/**
 * @file Loops over a batch: one loop whose body is batched. A carry has the axis as soon as some iteration gives it one, so carries
 * are found by iterating to a fixed point. Of stacks an iteration reads a row of the whole batch, so the batch is their second axis.
 *
 *   scan(c [B, …], xs [L, B, …], k)      body(i, c [B, …], x [B, …], k)
 *
 * If elements have different numbers of iterations, the loop runs until all are done, and an element that is done keeps its state:
 *
 *   while(c, goes, n, k)      test   any(goes)
 *                             body   c = body(i, c, k) where goes, else c;   n = i + 1 where goes, else n;   goes = goes and test(c, k)
 *
 * and n, the number of iterations of each element, takes the place of the count.
 */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import { byGroup, type Group, loopOf, reversalOf, type Wiring, wiringOf } from "../ir/control.ts";
import type { Graph, Value } from "../ir/graph.ts";
import type { Attrs } from "../ir/op.ts";
import { tensorType } from "../ir/type.ts";
import { movedAxis } from "../ops/batch.ts";
import { broadcast } from "../ops/broadcast.ts";
import { full, fullAttrs } from "../ops/create.ts";
import { apply } from "../ops/define.ts";
import { add, and, lt } from "../ops/elementwise.ts";
import { any, reduceMax } from "../ops/reduce.ts";
import { INDEX, TRUTH } from "../ops/region-checks.ts";
import type { RewindAttrs } from "../ops/rewind.ts";
import { type Batched, type BatchedGraph, type BatchRequest, type NodeSite, withAxes } from "./batched.ts";
import { choose, flowingWhere } from "./masks.ts";

/** By group, which of its members have the axis. */
class Members {
  readonly #of = new Map<Group, boolean[]>();

  of(group: Group): boolean[] {
    const own = this.#of.get(group) ?? new Array<boolean>(group.size).fill(false);
    this.#of.set(group, own);
    return own;
  }

  list(groups: readonly Group[]): readonly boolean[] {
    return groups.flatMap((group) => this.of(group));
  }

  /** Adds members to groups; returns whether any were new. */
  add(groups: readonly Group[], has: readonly boolean[]): boolean {
    let grown = false;
    for (const [group, more] of byGroup(has, groups)) {
      const own = this.of(group);
      more.forEach((one, i) => {
        grown ||= one && !own[i];
        own[i] ||= one;
      });
    }
    return grown;
  }
}

/** A loop with the groups of its values, and which of them have the axis. */
interface LoopSite extends NodeSite {
  readonly wiring: Wiring;
  readonly members: Members;
}

/** The same with its regions over the batch. */
interface BatchedLoop extends LoopSite {
  readonly made: readonly BatchedGraph[];
}

/** Null where the planner decided about the loop. */
function loopSite(site: NodeSite): LoopSite | null {
  const wiring = wiringOf(site.node);
  if (!wiring) return null;
  const members = new Members();
  for (const [group, has] of byGroup(site.batched, wiring.inputs))
    if (group.kind !== "fixed") members.add([group], has);
  return { ...site, wiring, members };
}

/** What a region is asked for: carries that have the axis have it in the results, too. */
function requestFor({ params, results }: Wiring["regions"][number], members: Members): BatchRequest {
  return { params: members.list(params), results: members.list(results) };
}

/** Regions over a batch, with all carries that get the axis in some iteration. */
function fixedPoint(site: LoopSite): BatchedLoop {
  const { node, wiring, members } = site;
  for (;;) {
    const made = node.regions.map((region, n) => site.batch(region, requestFor(at(wiring.regions, n), members)));
    let grown = false;
    wiring.regions.forEach(({ results }, n) => {
      for (const [group, has] of byGroup(at(made, n).batched, results)) {
        if (group.kind !== "fixed") grown = members.add([group], has) || grown;
      }
    });
    if (!grown) return { ...site, made };
  }
}

/** The same where elements differ in what they do: all carries have the axis. */
function fixedPointOfAll(site: LoopSite): BatchedLoop {
  for (const group of site.wiring.inputs) if (group.kind === "carry") site.members.of(group).fill(true);
  return fixedPoint(site);
}

/** Inputs with the axis in its place: in front, or behind the rows of a stack. */
function inputsOf({ b, node, batched, size, wiring, members }: LoopSite): readonly Value[] {
  const values = withAxes(b, { values: node.inputs, batched }, members.list(wiring.inputs), size);
  return byGroup(values, wiring.inputs).flatMap(([group, own]) =>
    own.map((value, i) => (group.kind === "row" && members.of(group)[i] ? movedAxis(b, value, 0, 1) : value)),
  );
}

/** Results with the axis in front. */
function outputsOf({ b, wiring, members }: LoopSite, made: readonly Value[]): Batched {
  const values = byGroup(made, wiring.outputs).flatMap(([group, own]) =>
    own.map((value, i) => (group.kind === "result" && members.of(group)[i] ? movedAxis(b, value, 1, 0) : value)),
  );
  return { values, batched: members.list(wiring.outputs) };
}

function asBatch(loop: BatchedLoop, attrs: Attrs): Batched {
  const regions = loop.made.map(({ graph }) => graph);
  return outputsOf(loop, loop.b.callAll(loop.node.op, inputsOf(loop), attrs, { regions }));
}

/** A region over all elements of which only some go on. */
interface Masked {
  readonly region: Graph;
  readonly params: readonly Value[];
  readonly batched: readonly boolean[];
  /** The number of its first carry among the parameters; carries are the first results. */
  readonly first: number;
  readonly carries: number;
}

/** Its results, where elements that do not go on keep their carries. */
function maskedResults(b: Build, goesOn: Value, { region, params, batched, first, carries }: Masked): readonly Value[] {
  const given = params.map((value, i) => (batched[i] ? flowingWhere(b, goesOn, value) : value));
  const results = b.inline(region, given);
  const next = results.slice(0, carries).map((value, k) => choose(b, goesOn, value, at(params, first + k)));
  return [...next, ...results.slice(carries)];
}

const copies = (b: Build, values: readonly Value[]): readonly Value[] =>
  values.map(({ type, name }) => b.param(type, name));

/** A number as one for each element. */
const forEach = (b: Build, number: Value, size: number): Value =>
  b.call(broadcast, [number], { shape: [size], axes: [] });

/** A builder for a region of a node. */
function regionOf({ node }: NodeSite, name: string): Build {
  const b = new Build(name);
  b.phase = node.phase;
  return b;
}

const sizeOf = (groups: readonly Group[]): number => groups.reduce((sum, { size }) => sum + size, 0);

/** Regions that take one number of iterations for each element, as their last parameter, and stop when it is reached. */
function countedRegions(loop: BatchedLoop): readonly Graph[] {
  const { size, made, wiring, members } = loop;
  return made.map(({ graph }, n) => {
    const { params: groups, results } = at(wiring.regions, n);
    const b = regionOf(loop, graph.name);
    const params = copies(b, graph.params);
    const count = b.param(tensorType(INDEX.dtype, [size]), "count");
    const carried = results.filter(({ kind }) => kind === "carry");
    const first = sizeOf(groups.slice(0, groups.indexOf(carried[0] as Group)));
    const goesOn = apply(b, lt, forEach(b, at(params, 0), size), count);
    const batched = members.list(groups);
    return b.finish(maskedResults(b, goesOn, { region: graph, params, batched, first, carries: sizeOf(carried) }));
  });
}

/** A loop with one number of iterations for each element, its first input: it runs as often as the most of them. */
function withCounts(site: LoopSite, attrs: Attrs): Batched {
  const loop = fixedPointOfAll(site);
  const { b, node } = loop;
  const [counts, ...inputs] = inputsOf(loop);
  const most = b.call(reduceMax, [counts as Value], { axes: [0] });
  const given = [most, ...inputs, counts as Value];
  return outputsOf(loop, b.callAll(node.op, given, attrs, { regions: countedRegions(loop) }));
}

/**
 * The test and the body of a loop that goes on until all elements are done. Behind the carries: which elements go on, so that the test
 * is computed once an iteration, and how many iterations each has had.
 */
function untilAllDone(loop: BatchedLoop, carries: number): readonly [Graph, Graph] {
  const { size, made, wiring, members } = loop;
  const [test, body] = [at(made, 0).graph, at(made, 1).graph];
  const [goesType, countType] = [tensorType(TRUTH.dtype, [size]), tensorType(INDEX.dtype, [size])];
  const t = regionOf(loop, test.name);
  copies(t, test.params.slice(0, carries));
  const goes = t.param(goesType, "goes");
  t.param(countType, "n");
  copies(t, test.params.slice(carries));
  const isAny = t.finish([t.call(any, [goes], { axes: [0] })]);

  const s = regionOf(loop, body.name);
  const [i, ...own] = copies(s, body.params.slice(0, 1 + carries));
  const [goesOn, n] = [s.param(goesType, "goes"), s.param(countType, "n")];
  const consts = copies(s, body.params.slice(1 + carries));
  const params = [i as Value, ...own, ...consts];
  const batched = members.list(at(wiring.regions, 1).params);
  const results = maskedResults(s, goesOn, { region: body, params, batched, first: 1, carries });
  const next = results.slice(0, carries);
  const stillGoes = apply(s, and, goesOn, at(s.inline(test, [...next, ...consts]), 0));
  const after = apply(s, add, forEach(s, i as Value, size), s.call(full, [], fullAttrs(countType, 1)));
  const step = s.finish([...next, stillGoes, choose(s, goesOn, after, n), ...results.slice(carries)]);
  return [isAny, step];
}

/** A `while` in which elements stop at different times. */
function batchedWhile(site: LoopSite): Batched {
  const { b, node, size } = site;
  const loop = fixedPointOfAll(site);
  const carries = sizeOf(site.wiring.inputs.filter(({ kind }) => kind === "carry"));
  const inputs = inputsOf(loop);
  const [goes] = b.inline(at(loop.made, 0).graph, inputs);
  const none = b.call(full, [], { dtype: INDEX.dtype, shape: [size], value: 0 });
  const given = [...inputs.slice(0, carries), goes as Value, none, ...inputs.slice(carries)];
  const regions = untilAllDone(loop, carries);
  const made = b.callAll(node.op, given, { ...node.attrs, carries: carries + 2 }, { regions });
  const own = outputsOf(loop, [...made.slice(0, carries), ...made.slice(carries + 2)]);
  // the number of iterations of each element in the place of that of the loop
  return {
    values: [...own.values.slice(0, -1), at(made, carries + 1)],
    batched: [...own.batched.slice(0, -1), true],
  };
}

/** Whether each adjoint has the axis exactly where that has it which it is the cotangent of. */
function staysTranspose({ node, wiring, members }: LoopSite): boolean {
  const { wrt, adjoints } = node.attrs as RewindAttrs;
  const [, ofStates, ofAdjoints] = wiring.inputs;
  const consts = wiring.inputs.at(-1);
  if (!ofStates || !ofAdjoints || !consts || wrt.length !== adjoints) return false;
  const primals = members.list([ofStates, consts]);
  return wrt.every((k, i) => primals[k] === members.of(ofAdjoints)[i]);
}

function batchedRewind(site: LoopSite): Batched | null {
  const attrs = site.node.attrs as RewindAttrs;
  if (site.batched[0]) {
    // in reverse, rows are counted from each element's own end
    return attrs.reverse ? null : withCounts(site, { ...attrs, wrt: [] });
  }
  const loop = fixedPoint(site);
  return asBatch(loop, { ...attrs, wrt: staysTranspose(loop) ? attrs.wrt : [] });
}

/** A loop, or the reverse of one, over a batch; null where it must run for one element after the other. */
export function batchedLoop(site: NodeSite): Batched | null {
  const { node } = site;
  const own = loopSite(site);
  if (!own) return null;
  if (reversalOf(node)) return batchedRewind(own);
  const loop = loopOf(node);
  if (loop?.count && site.batched[0]) return withCounts(own, node.attrs);
  const made = fixedPoint(own);
  const differs = loop?.test && at(made.made, 0).batched[0];
  return differs ? batchedWhile(own) : asBatch(made, node.attrs);
}
