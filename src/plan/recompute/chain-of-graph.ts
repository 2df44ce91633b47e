/**
 * @file A graph seen as a chain of blocks: cut where a single forward value crosses, so that a block's forward reads the
 * value before it and its own, and backward visits blocks from the last to the first. Then the program of `chain.ts`
 * plans it. Where the graph is no such chain (long skips, a backward half in another order), there is no plan.
 */
import { at } from "../../base/invariant.ts";
import { type ChainBlock, solveChain } from "./chain.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";
import { forwardOps } from "./segments.ts";
import { simulate } from "./simulate.ts";

/** Slots that the budget is divided into. */
const SLOTS = 200;
/** The dynamic program is cubic in them; neighbours are merged beyond. */
const MOST_BLOCKS = 120;

interface Block {
  readonly forward: readonly number[];
  readonly backward: readonly number[];
}

/** Forward operations after which at most one forward value is still read by forward operations. */
function cuts(problem: RecomputeProblem, forward: number): readonly number[] {
  const lastUse = new Map<number, number>();
  for (let op = 0; op < forward; op++) for (const value of at(problem.ops, op).inputs) lastUse.set(value, op);
  const open = new Set<number>();
  const ends: number[] = [];
  for (let op = 0; op < forward; op++) {
    for (const value of at(problem.ops, op).outputs) if ((lastUse.get(value) ?? -1) > op) open.add(value);
    for (const value of at(problem.ops, op).inputs) if ((lastUse.get(value) ?? -1) <= op) open.delete(value);
    if (open.size <= 1 || op === forward - 1) ends.push(op + 1);
  }
  return ends;
}

/** The blocks, or null when backward does not visit them from last to first. */
export function blocksOf(problem: RecomputeProblem): readonly Block[] | null {
  const forward = forwardOps(problem);
  const all = cuts(problem, forward);
  if (all.length === 0) return null;
  const every = Math.ceil(all.length / MOST_BLOCKS);
  const ends = all.filter((_, i) => i % every === every - 1 || i === all.length - 1);
  const blockOf = new Map<number, number>();
  const blocks = ends.map((end, b) => {
    const from = b === 0 ? 0 : at(ends, b - 1);
    const ops = Array.from({ length: end - from }, (_, i) => from + i);
    for (const op of ops) for (const value of at(problem.ops, op).outputs) blockOf.set(value, b);
    return { forward: ops, backward: [] as number[] };
  });
  // a gradient alone may need nothing of the forward pass
  if (blocks.length === 0) return null;
  let current = blocks.length - 1;
  for (let op = forward; op < problem.ops.length; op++) {
    const read = at(problem.ops, op).inputs.flatMap((value) => blockOf.get(value) ?? []);
    // an operation that reads the value before a block and the block's own belongs to the block
    const wanted = read.length === 0 ? current : Math.max(...read);
    if (wanted > current) return null;
    if (read.some((b) => b < wanted - 1)) return null;
    current = wanted;
    at(blocks, current).backward.push(op);
  }
  return blocks;
}

/** The chain's plan within `budget`, or null. Slots are taken away until the whole, work included, fits. */
export function chainPlan(problem: RecomputeProblem, budget: number): Sequence | null {
  const blocks = blocksOf(problem);
  if (!blocks || blocks.length < 2) return null;
  const slot = budget / SLOTS;
  const readLater = new Set(problem.ops.slice(forwardOps(problem)).flatMap((op) => op.inputs));
  const costOf = (ops: readonly number[]): number => ops.reduce((sum, op) => sum + at(problem.ops, op).cost, 0);
  const chain = blocks.map(({ forward, backward }): ChainBlock => {
    const outputs = forward.flatMap((op) => at(problem.ops, op).outputs);
    const bytes = (values: readonly number[]): number => values.reduce((sum, v) => sum + at(problem.bytes, v), 0);
    const output = at(problem.ops, forward.at(-1) ?? 0).outputs;
    const tape = outputs.filter((value) => readLater.has(value) || output.includes(value));
    const cost = costOf(forward);
    return {
      cost,
      outputSlots: Math.ceil(bytes(output) / slot),
      workSlots: 0,
      options: [{ forwardCost: cost, backwardCost: costOf(backward), tapeSlots: Math.ceil(bytes(tape) / slot) }],
    };
  });
  const planWithin = solveChain(chain, SLOTS);
  for (let slots = SLOTS; slots > 0; slots -= Math.max(1, slots >> 5)) {
    const plan = planWithin(slots);
    if (!plan) return null;
    const sequence = plan.actions.flatMap((action) => {
      const block = at(blocks, action.block);
      return action.kind === "backward" ? block.backward : block.forward;
    });
    const { peakBytes, violations } = simulate(problem, sequence);
    if (violations.length === 0 && peakBytes <= budget) return sequence;
  }
  return null;
}
