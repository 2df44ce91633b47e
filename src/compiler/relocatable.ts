/**
 * @file Programs that run wherever their operands are. A compiled function has one arena in which every value has an address; here
 * parameters and results have storage of their own, chosen for each run, and only what lives within the run is planned, in one
 * piece of memory (the *slot*) that is wherever there was room. Addresses are read from a table at the start of the memory:
 *
 *   table   0: slot   1: param 0   2: param 1   …   n: result buffer 0   …
 *
 *   kernel at [1], [2], [0] + 64        addresses of operands are numbers of the table, and offsets in the slot
 *
 * Parameters are not written to, but those that are donated: a result may be stored over one. A result that is a parameter under another
 * shape has no storage of its own.
 */
import { at, invariant } from "../base/invariant.ts";
import type { PlacedProgram, PlacedStep } from "../codegen/placed.ts";
import { type Int, int, loadAt, plus } from "../codegen/script.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { boundOf } from "../plan/bound.ts";
import { place } from "../plan/place.ts";
import { partOf, problemIn } from "../plan/problem.ts";
import type { TargetDescription } from "../target/description.ts";
import type { PlannedProgram } from "./assembler.ts";
import type { PlanningHost } from "./host.ts";
import { PLAIN_REQUEST } from "./request.ts";
import { planTools, storedPlans } from "./stored.ts";

/** Where a result is: in the storage of a parameter, or in one of the program's result buffers. */
export type ResultPlace = { readonly param: number } | { readonly buffer: number };

export interface RelocatableProgram {
  /** For a target to load into a memory whose first `tableBytes` are the table. */
  readonly placed: PlacedProgram;
  /** Of what lives within a run; 0 where nothing does. */
  readonly slotBytes: number;
  /** Bytes of each result buffer. */
  readonly bufferBytes: readonly number[];
  readonly results: readonly ResultPlace[];
}

/** Of a number in the table. */
const WORD_BYTES = 4;

/** A graph, and parameters whose storage a result may take over, with the number of that result. */
export interface RelocatableSource {
  readonly graph: Graph;
  readonly donated: ReadonlyMap<number, number>;
}

/** Plans a graph for a table of so many bytes; null where the table has not room for all its parameters and results. */
export function relocatable(
  { graph, donated }: RelocatableSource,
  target: TargetDescription,
  host: PlanningHost,
  tableBytes: number,
): RelocatableProgram | null {
  if ((1 + graph.params.length + graph.results.length) * WORD_BYTES > tableBytes) return null;
  const persistent = new Set([...graph.params.keys()].filter((param) => !donated.has(param)));
  const request = { ...PLAIN_REQUEST, cache: false };
  const source = { graph, donated, persistent };
  const planned = storedPlans(graph, planTools(source, target, request, host)).asWritten.result;
  if (planned.plan.copies.length === 0) return bound(planned, tableBytes);
  // where the result cannot be written over the parameter, nothing is saved
  const inPlace = withoutCopied(planned, donated);
  return relocatable({ graph, donated: inPlace }, target, host, tableBytes);
}

/** Without parameters that the result would be copied to in the end; never all of them that there were. */
function withoutCopied(
  { graph, plan }: PlannedProgram,
  donated: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  const copied = new Set(plan.copies.map(({ param }) => (param ? graph.params.indexOf(param) : -1)));
  const left = new Map([...donated].filter(([param]) => !copied.has(param)));
  return left.size < donated.size ? left : new Map();
}

function bound(planned: PlannedProgram, tableBytes: number): RelocatableProgram {
  const { graph, plan, lowered, controls } = planned;
  const { program, problem, bufferOf, offsets } = plan;
  const bufferFor = (value: Value): number => {
    const id = bufferOf.get(value);
    invariant(id !== undefined, () => `${value.name ?? value.id} has no place`);
    return id;
  };
  const words = new Map<number, number>();
  program.params.forEach((param, i) => {
    words.set(bufferFor(param), 1 + i);
  });
  invariant(words.size === program.params.length, () => `${graph.name}: parameters share storage`);
  const bufferBytes: number[] = [];
  const results = plan.resultBuffers.map((id): ResultPlace => {
    const known = words.get(id);
    const word = known ?? 1 + program.params.length + bufferBytes.length;
    if (known === undefined) {
      words.set(id, word);
      bufferBytes.push(at(problem.buffers, id).bytes);
    }
    return word <= program.params.length ? { param: word - 1 } : { buffer: word - 1 - program.params.length };
  });
  // what is left is placed again without the others
  const whole = problemIn(problem);
  const within = whole.buffers.filter(({ id }) => !words.has(id)).map(({ id }) => id);
  const part = partOf(whole, within);
  const { offsets: inSlot, height } = place(part, boundOf(part).bytes);
  const offsetOf = new Map(within.map((id, i) => [id, at(inSlot, i)]));
  const slot = loadAt(int(0));
  const buffer = (id: number): Int => {
    const word = words.get(id);
    return word !== undefined ? loadAt(int(WORD_BYTES * word)) : plus(slot, offsetOf.get(id) ?? at(offsets, id));
  };
  const addressOf = (value: Value): Int => buffer(bufferFor(value));
  const steps = program.steps.flatMap((step, i): { readonly step: PlacedStep; readonly node: typeof step.node }[] => {
    const { node } = step;
    const scratch = (plan.scratch[i] ?? []).map(buffer);
    const unit = controls.get(node);
    if (unit) return [{ node, step: { kernel: null, script: unit.statements(addressOf, scratch) } }];
    const kernel = lowered.get(node);
    if (!kernel) return [];
    let next = 0;
    const addresses = kernel.values.map((value) => (value ? addressOf(value) : at(scratch, next++)));
    return [{ node, step: { kernel: null, script: [{ kind: "kernel", kernel: kernel.kernel, addresses }] } }];
  });
  invariant(plan.copies.length === 0, () => `${graph.name}: copies after the run`);
  const placed: PlacedProgram = {
    ...{ graph, plan: { ...plan, height: tableBytes }, base: 0, planMs: 0, copies: [] },
    kernels: steps.map(({ step }) => step),
    kernelNodes: steps.map(({ node }) => node),
    params: [],
    results: [],
  };
  return { placed, slotBytes: height, bufferBytes, results };
}
