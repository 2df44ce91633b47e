/**
 * @file Which blocks to put under checkpointing for a budget. Cheapest first: in some blocks results of products, convolutions and attention are
 * kept and the rest is recomputed; then whole blocks are. Every choice is judged by the modelled step with it (torch/step.ts).
 */
import type { OptimizerName } from "../torch/optimizer.ts";
import { type EagerProgram, type EagerStep, eagerStep, type RecomputedRange } from "../torch/step.ts";
import { type Block, blocksOf } from "./blocks.ts";

export interface Policy {
  /** Blocks of which only the inputs are kept. */
  readonly whole: readonly Block[];
  /** Blocks that keep results of some operations. */
  readonly selective: readonly Block[];
  /** The modelled step without and with it. */
  readonly before: EagerStep;
  readonly after: EagerStep;
}

export interface PolicyRequest {
  readonly budget: number;
  readonly optimizer: OptimizerName;
  readonly isHalf: boolean;
  /** Whether blocks may keep some results: Megatron's flags have whole layers only. */
  readonly isSelective: boolean;
}

const rangeOf = ({ start, end, kept }: Block, isWhole: boolean): RecomputedRange => ({
  start,
  end,
  saved: new Set(isWhole ? [] : kept.map(({ at }) => at)),
});

/** The cheapest policy whose peak is within the budget; the one with the least peak where none is. */
export function choosePolicy(eager: EagerProgram, request: PolicyRequest): Policy {
  const blocks = blocksOf(eager.program, { isHalf: request.isHalf, type: eager.type });
  const n = blocks.length;
  const before = eagerStep(eager, request.optimizer);
  const known = new Map<number, Policy>();
  /** Level i: the first i blocks selective; from n on, the first i - n whole and the rest selective. */
  const at = (level: number): Policy => {
    const found = known.get(level);
    if (found) return found;
    const count = request.isSelective ? Math.max(0, level - n) : level;
    const whole = blocks.slice(0, count);
    const selective = request.isSelective ? blocks.slice(count, Math.min(level, n)) : [];
    const recompute = [...whole.map((one) => rangeOf(one, true)), ...selective.map((one) => rangeOf(one, false))];
    const after = recompute.length === 0 ? before : eagerStep({ ...eager, recompute }, request.optimizer);
    const made = { whole, selective, before, after };
    known.set(level, made);
    return made;
  };
  const fits = (level: number): boolean => at(level).after.peak.bytes <= request.budget;
  const most = request.isSelective ? 2 * n : n;
  let [low, high] = [0, most];
  if (!fits(most))
    return [...known.values(), at(0), at(Math.min(n, most))].reduce((a, b) =>
      b.after.peak.bytes < a.after.peak.bytes ? b : a,
    );
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return at(high);
}
