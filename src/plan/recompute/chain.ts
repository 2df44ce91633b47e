/**
 * @file Optimal recomputation for a chain of unequal blocks, by dynamic programming over memory in slots: Beaumont et
 * al., "Optimal checkpointing for heterogeneous chains: how to train deep neural networks with limited memory", 2019
 * (Rotor), with several ways to run a block, as Rockmate has them.
 *
 * ```
 *   C(s, t, m) = least cost of forward and backward of blocks s … t with m slots, the input of s held outside of m
 *     taped:     run s so that its backward has all it needs:   F(s,o) + C(s+1, t, m - tape(s,o)) + B(s,o)   over ways o
 *     resumed:   run s … r-1 and hold only the input of r:      F(s)+…+F(r-1) + C(r, t, m - a(r-1)) + C(s, r-1, m)
 * ```
 *
 * O(L³ · slots) time, O(L² · slots) memory. Every block's backward runs once.
 */
import { at } from "../../base/invariant.ts";

/** One way to run a block for its backward. */
export interface BlockOption {
  readonly forwardCost: number;
  readonly backwardCost: number;
  /** Slots for all that its backward reads, its output included. */
  readonly tapeSlots: number;
}

export interface ChainBlock {
  /** Cost of forward alone, holding nothing but the output. */
  readonly cost: number;
  readonly outputSlots: number;
  /** Slots needed beside what is held while its forward, or its backward, runs. */
  readonly workSlots: number;
  readonly options: readonly BlockOption[];
}

export type ChainAction =
  | { readonly kind: "forward"; readonly block: number }
  | { readonly kind: "tape"; readonly block: number; readonly option: number }
  | { readonly kind: "backward"; readonly block: number; readonly option: number };

export interface ChainPlan {
  readonly cost: number;
  readonly actions: readonly ChainAction[];
}

interface Table {
  readonly blocks: readonly ChainBlock[];
  readonly slots: number;
  /** `(s, t)` → costs by slots. */
  readonly cost: readonly Float64Array[];
  /** The choice that gives it: way -1 - o taped, or the block r to resume at. */
  readonly choice: readonly Int32Array[];
}

const cell = (blocks: number, s: number, t: number): number => s * blocks + t;

function solveCell(table: Table, s: number, t: number, prefix: Float64Array): void {
  const { blocks, slots } = table;
  const n = blocks.length;
  const cost = at(table.cost, cell(n, s, t));
  const choice = at(table.choice, cell(n, s, t));
  const block = at(blocks, s);
  cost.fill(Number.POSITIVE_INFINITY);
  block.options.forEach((option, o) => {
    const rest = s < t ? at(table.cost, cell(n, s + 1, t)) : null;
    for (let m = option.tapeSlots + block.workSlots; m <= slots; m++) {
      const total = option.forwardCost + option.backwardCost + (rest ? (rest[m - option.tapeSlots] as number) : 0);
      if (total >= (cost[m] as number)) continue;
      cost[m] = total;
      choice[m] = -1 - o;
    }
  });
  for (let r = s + 1; r <= t; r++) {
    const held = at(blocks, r - 1).outputSlots;
    const forward = at(prefix, r) - at(prefix, s);
    const later = at(table.cost, cell(n, r, t));
    const again = at(table.cost, cell(n, s, r - 1));
    let work = 0;
    for (let k = s; k < r; k++) work = Math.max(work, at(blocks, k).workSlots + at(blocks, k).outputSlots);
    for (let m = Math.max(held, work); m <= slots; m++) {
      const total = forward + (later[m - held] as number) + (again[m] as number);
      if (total >= (cost[m] as number)) continue;
      cost[m] = total;
      choice[m] = r;
    }
  }
}

function actionsOf(table: Table, slots: number): readonly ChainAction[] {
  const n = table.blocks.length;
  const actions: ChainAction[] = [];
  const visit = (s: number, t: number, m: number): void => {
    if (s > t) return;
    const chosen = at(at(table.choice, cell(n, s, t)), m);
    if (chosen < 0) {
      const option = -1 - chosen;
      actions.push({ kind: "tape", block: s, option });
      visit(s + 1, t, m - at(at(table.blocks, s).options, option).tapeSlots);
      actions.push({ kind: "backward", block: s, option });
      return;
    }
    for (let block = s; block < chosen; block++) actions.push({ kind: "forward", block });
    visit(chosen, t, m - at(table.blocks, chosen - 1).outputSlots);
    visit(s, chosen - 1, m);
  };
  visit(0, n - 1, slots);
  return actions;
}

/** The cheapest orders of forward runs and backward runs within any number of slots up to `most`; null where none fits. */
export function solveChain(blocks: readonly ChainBlock[], most: number): (slots: number) => ChainPlan | null {
  const n = blocks.length;
  if (n === 0) return () => ({ cost: 0, actions: [] });
  const prefix = new Float64Array(n + 1);
  blocks.forEach((block, k) => {
    prefix[k + 1] = at(prefix, k) + block.cost;
  });
  const cells = Array.from({ length: n * n }, (_, k) => Math.floor(k / n) <= k % n);
  const table: Table = {
    blocks,
    slots: most,
    cost: cells.map((used) => new Float64Array(used ? most + 1 : 0)),
    choice: cells.map((used) => new Int32Array(used ? most + 1 : 0)),
  };
  for (let length = 1; length <= n; length++) {
    for (let s = 0; s + length <= n; s++) solveCell(table, s, s + length - 1, prefix);
  }
  return (slots) => {
    const cost = at(at(table.cost, cell(n, 0, n - 1)), slots);
    return Number.isFinite(cost) ? { cost, actions: actionsOf(table, slots) } : null;
  };
}
