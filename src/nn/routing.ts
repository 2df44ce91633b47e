/**
 * @file Which experts a token goes to, and where its rows are. All sizes are known before any token is: only tables are data.
 *
 *   tokens ── router ── softmax ── k largest ── gates [T, k]
 *                                  │
 *                                  ├─ slots  i32[T · k]   row of each choice, sorted by expert: the counting sort
 *                                  └─ pairs  i32[rows]    choice of each row, -1 for padding: its inverse
 *
 *   rows   e0 e0 e0 · | e1 e1 · · |           | e3 · · ·        tiles of four; e2 has no tokens, · are padding
 *
 * Within an expert, first choices come before second ones, and tokens are in order.
 */
import { applyOp } from "../api/apply.ts";
import { arange, full, zeros } from "../api/create.ts";
import { add, cast, div, equal, greaterEqual, less, logicalOr, mul, sub, where } from "../api/elementwise.ts";
import { groupsOfTiles } from "../api/grouped.ts";
import { scatterAdd } from "../api/indexing.ts";
import { concat, stack } from "../api/join.ts";
import { logsumexp } from "../api/log-sum.ts";
import { softmax } from "../api/normalize.ts";
import { argmax, cumsum, mean, sum } from "../api/reduce.ts";
import { broadcastTo, expandDims, reshape } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { iota } from "../ops/create.ts";
import type { Tensor } from "../trace/tensor.ts";

export interface Routing {
  /** By choice, the expert of each token: bool [tokens, experts]. No token chooses an expert twice. */
  readonly choices: readonly Tensor[];
  /** Weights of the choices: [tokens, active]. */
  readonly gates: Tensor;
  /** Tokens of each expert: i32 [experts]. */
  readonly load: Tensor;
  /** experts · Σ (share of choices) · (mean probability): 1 where both are even. */
  readonly balance: Tensor;
  /** Mean of the squared log-sum-exp of the router's outputs. */
  readonly zLoss: Tensor;
}

/** The largest `active` of each row, one after the other; NaN counts as largest, ties go to the first. */
function largest(probabilities: Tensor, active: number): readonly Tensor[] {
  const { shape } = probabilities;
  const position = applyOp(iota, [], { shape, axis: 1 });
  const choices: Tensor[] = [];
  let left = probabilities;
  for (let j = 0; j < active; j++) {
    const choice = equal(position, broadcastTo(expandDims(argmax(left, 1), 1), shape));
    choices.push(choice);
    if (j < active - 1) left = where(choice, Number.NEGATIVE_INFINITY, left);
  }
  return choices;
}

/** Routes [tokens, experts] outputs of a router. Losses are of all tokens, where `meanOfAll` is a mean over devices that have equally many. */
export function route(
  logits: Tensor,
  active: number,
  normalize: boolean,
  meanOfAll: (x: Tensor) => Tensor = (x) => x,
): Routing {
  const [tokens, experts] = [at(logits.shape, 0), at(logits.shape, 1)];
  const probabilities = softmax(logits, 1);
  const choices = largest(probabilities, active);
  const chosen = stack(
    choices.map((choice) => sum(where(choice, probabilities, 0), 1)),
    1,
  );
  const load = sum(choices.reduce(logicalOr), 0);
  const share = meanOfAll(mul(cast(load, logits.dtype), 1 / Math.max(1, tokens * active)));
  // without tokens there is nothing to balance
  const balance =
    tokens === 0 ? zeros([], logits.dtype) : mul(sum(mul(share, meanOfAll(mean(probabilities, 0)))), experts);
  const logsum = logsumexp(logits, 1);
  const zLoss = tokens === 0 ? zeros([], logits.dtype) : meanOfAll(mean(mul(logsum, logsum)));
  const gates = normalize ? div(chosen, sum(chosen, 1, { keepDims: true })) : chosen;
  return { choices, gates, load, balance, zLoss };
}

export interface Places {
  /** Row of each choice of each token, out of range where it was dropped: i32 [tokens · active]. */
  readonly slots: Tensor;
  /** Choice of each row, out of range for padding: i32 [rows]. */
  readonly pairs: Tensor;
  /** Expert of each tile of rows, i32; null where all have equally many rows. */
  readonly groups: Tensor | null;
  /** Choices that have no row: i32 []. */
  readonly dropped: Tensor;
}

/** By choice, the place of each token among those of its expert: i32 [tokens, experts], of use where it is chosen. */
function ranks(choices: readonly Tensor[]): readonly Tensor[] {
  let before: Tensor | null = null;
  return choices.map((choice) => {
    const among = cast(choice, "i32");
    const rank = sub(cumsum(among, 0), 1);
    const placed = before ? add(rank, before) : rank;
    before = before ? add(before, sum(among, 0)) : sum(among, 0);
    return placed;
  });
}

/** The inverse of `slots`. */
function inverse(slots: Tensor, rows: number): Tensor {
  const numbers = add(arange(0, at(slots.shape, 0), 1, "i32"), 1);
  return scatterAdd(full([rows], -1, "i32"), slots, numbers);
}

/** For each choice its element of a row of [tokens, experts]; all choices as one list. */
function perChoice(choices: readonly Tensor[], values: readonly Tensor[]): Tensor {
  const picked = choices.map((choice, j) => sum(where(choice, at(values, j), 0), 1));
  return reshape(stack(picked, 1), [-1]);
}

/** Rows that any routing has room in: every choice, and each expert that has tokens rounded up to whole tiles. */
export function exactRows(tokens: number, active: number, experts: number, tile: number): number {
  const choices = tokens * active;
  return Math.floor((choices + Math.min(experts, choices) * (tile - 1)) / tile) * tile;
}

type Choices = Pick<Routing, "choices" | "load">;

/** All choices have a row: experts take as many tiles as they need. What is not `present` has none. */
export function exactPlaces({ choices, load }: Choices, rows: number, tile: number, present?: Tensor): Places {
  const tiles = div(add(load, tile - 1), tile);
  const ends = mul(cumsum(tiles, 0), tile);
  const starts = sub(ends, mul(tiles, tile));
  const placed = perChoice(
    choices,
    ranks(choices).map((rank) => add(rank, starts)),
  );
  const slots = present ? where(present, placed, rows) : placed;
  const offsets = concat([zeros([1], "i32"), ends]);
  const groups = groupsOfTiles(offsets, rows / tile, tile);
  return { slots, pairs: inverse(slots, rows), groups, dropped: zeros([], "i32") };
}

/** The expert of each choice of each token: i32 [tokens · active]. */
export const expertOfChoice = (choices: readonly Tensor[]): Tensor =>
  perChoice(
    choices,
    choices.map(({ shape }) => applyOp(iota, [], { shape, axis: 1 })),
  );

/** Every expert has `capacity` rows; choices beyond them are dropped, last ones first. */
export function limitedPlaces(choices: readonly Tensor[], experts: number, capacity: number): Places {
  const rank = perChoice(choices, ranks(choices));
  const rows = experts * capacity;
  const slots = where(less(rank, capacity), add(mul(expertOfChoice(choices), capacity), rank), rows);
  return { slots, pairs: inverse(slots, rows), groups: null, dropped: sum(greaterEqual(rank, capacity)) };
}
