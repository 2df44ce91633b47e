/**
 * @file Chooses between keeping states and tapes when both share the same units: Maddison, "Step-based checkpointing
 * with high-level algorithmic differentiation", 2024, here with separate sizes, a units per state and b per tape. With
 * x₀ as the current state, not kept, and u units free, l steps need at least
 *
 * ```
 *   m(1, u) = 1                                                                the working tape
 *   m(l, u) = min   1 + m(l-1, u-b)                      keep the tape of step 0 and continue from x₁
 *                   min over i of  i + m(l-i, u-a) + m(i, u)   keep x₀, continue from x_i; then from x₀, with its units free
 * ```
 *
 * evaluations. Binomial schedules are b = ∞, store-all is a large u. The last kept item is freed first, so slots form a
 * stack and need no search. All i are tried while O(l² u) ≤ `WORK_LIMIT`; for longer loops only those near the best i
 * of l - 1 steps (at most 1.1 % worse where both were measured), and loops too long for the table are split by the
 * binomial rule until they fit.
 */
import { at } from "../../base/invariant.ts";
import { binomialSplit } from "../../loops/binomial.ts";

/** The first action: keep the tape of the first step, or keep its state and advance. */
export type MixedChoice = "tape" | number;

export interface MixedTable {
  /** Evaluations of l steps with u units free; infinite if impossible. */
  evaluations(l: number, u: number): number;
  choice(l: number, u: number): MixedChoice;
  /** Whether no schedule has fewer. */
  readonly optimal: boolean;
}

export interface MixedSizes {
  readonly stateUnits: number;
  readonly tapeUnits: number;
}

/** Inner steps of the dynamic program, and cells of its table, that fit the time limit. */
const WORK_LIMIT = 5e7;
const CELL_LIMIT = 2e6;

/** How much of a problem is solved, and how thoroughly. */
export interface MixedEffort {
  /** Steps of the table. */
  readonly steps: number;
  /** Splits to try on either side of the last best one. */
  readonly window: number;
}

interface Cells {
  readonly sizes: MixedSizes;
  /** Splits to try on either side of the last best one. */
  readonly window: number;
  readonly width: number;
  readonly cost: Float64Array;
  /** 0 for the tape, otherwise how far to advance. */
  readonly choice: Int32Array;
  /** By units: the best way to advance for one step less. */
  readonly last: Int32Array;
}

function solveCell(cells: Cells, l: number, u: number): void {
  const { width, cost, choice, last, window } = cells;
  const { stateUnits, tapeUnits } = cells.sizes;
  const taped = u >= tapeUnits ? 1 + at(cost, (l - 1) * width + u - tapeUnits) : Number.POSITIVE_INFINITY;
  let best = Number.POSITIVE_INFINITY;
  let far = 0;
  // l evaluations, one per step, are the minimum
  if (taped > l && u >= stateUnits) {
    const middle = at(last, u);
    // the second part is as long as tapes fit
    far = Math.max(1, l - 1 - Math.floor((u - stateUnits) / tapeUnits));
    best = far + at(cost, far * width + u) + at(cost, (l - far) * width + u - stateUnits);
    const high = Math.min(l - 1, middle + window);
    for (let i = Math.max(1, middle - window); i <= high; i++) {
      const total = i + (cost[i * width + u] as number) + (cost[(l - i) * width + u - stateUnits] as number);
      if (total < best) {
        best = total;
        far = i;
      }
    }
  }
  if (far > 0) last[u] = far;
  cost[l * width + u] = Math.min(taped, best);
  choice[l * width + u] = best < taped ? far : 0;
}

function solve(steps: number, units: number, sizes: MixedSizes, window: number): Cells {
  const width = units + 1;
  const cost = new Float64Array((steps + 1) * width);
  const choice = new Int32Array((steps + 1) * width);
  const cells: Cells = { sizes, window, width, cost, choice, last: new Int32Array(width) };
  cost.fill(1, width, 2 * width);
  for (let l = 2; l <= steps; l++) for (let u = 0; u <= units; u++) solveCell(cells, l, u);
  return cells;
}

function effortFor(steps: number, units: number): MixedEffort {
  const tableSteps = Math.max(2, Math.min(steps, Math.floor(CELL_LIMIT / (units + 1))));
  const work = (tableSteps * tableSteps * (units + 1)) / 2;
  if (work <= WORK_LIMIT) return { steps: tableSteps, window: Number.POSITIVE_INFINITY };
  return { steps: tableSteps, window: Math.floor(WORK_LIMIT / (2 * tableSteps * (units + 1))) };
}

/** The split of a loop too long for the table; if no second state fits, the second part is as long as tapes fit. */
function longChoice(l: number, u: number, { stateUnits, tapeUnits }: MixedSizes): number {
  const snapshots = Math.floor(u / stateUnits);
  if (snapshots > 1) return binomialSplit(l, snapshots);
  return l - 1 - Math.min(l - 2, Math.floor((u - stateUnits) / tapeUnits));
}

/** The table for loops of up to `steps` steps in `units` units. */
export function mixedTable(
  steps: number,
  units: number,
  sizes: MixedSizes,
  effort: MixedEffort = effortFor(steps, units),
): MixedTable {
  const tableSteps = Math.min(steps, effort.steps);
  const { width, cost, choice } = solve(tableSteps, units, sizes, effort.window);
  const allTaped = (l: number, u: number): boolean => (l - 1) * sizes.tapeUnits <= u;

  /** Pieces too long for the table are cut until none is: at most one cut a step. */
  function evaluations(all: number, units: number): number {
    let sum = 0;
    const pieces: [number, number][] = [[all, units]];
    for (let piece = pieces.pop(); piece; piece = pieces.pop()) {
      const [l, u] = piece;
      if (l <= tableSteps) sum += at(cost, l * width + u);
      else if (allTaped(l, u)) sum += l;
      else if (u < sizes.stateUnits) return Number.POSITIVE_INFINITY;
      else {
        const i = longChoice(l, u, sizes);
        sum += i;
        pieces.push([i, u], [l - i, u - sizes.stateUnits]);
      }
    }
    return sum;
  }

  return {
    optimal: tableSteps === steps && effort.window === Number.POSITIVE_INFINITY,
    evaluations: (l, u) => (l === 0 ? 0 : evaluations(l, u)),
    choice(l, u) {
      if (l > tableSteps) return allTaped(l, u) ? "tape" : longChoice(l, u, sizes);
      return at(choice, l * width + u) || "tape";
    },
  };
}
