/**
 * @file Mixtures of experts whose experts are shared out over an axis of the mesh (D. Lepikhin et al., GShard, 2020). Each device has tokens and
 * E/p experts of its own. Rows of tokens go to the devices of their experts and come back, the same number for each pair of devices
 * whatever the router does:
 *
 *   tokens ── router ── rows by device ══ allToAll ══ rows by expert ── own experts ── … ══ allToAll ══ … ── Σ gate · row
 *   [T, d]              [p · room, d]                 [rows, d]                                             [T, d]
 *
 * Without a capacity a pair has room for T · min(active, E/p) rows, which is every choice; with one for E/p · c, c for each expert. Derivatives go
 * the same ways back: an exchange is its own transpose, and so is a permutation.
 */
import { applyOp } from "../api/apply.ts";
import { full } from "../api/create.ts";
import { add, div, equal, greaterEqual, mul, sub } from "../api/elementwise.ts";
import { scatterAdd } from "../api/indexing.ts";
import { matmul } from "../api/linear.ts";
import { any, sum } from "../api/reduce.ts";
import { broadcastTo, expandDims, reshape, swapAxes } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import type { Key } from "../nn/key.ts";
import {
  type Experts,
  expertsOf,
  type Mixture,
  type MixtureOptions,
  type MixtureParams,
  requireTokens,
  roomOf,
  weighted,
} from "../nn/mixture.ts";
import { exactPlaces, exactRows, expertOfChoice, limitedPlaces, route } from "../nn/routing.ts";
import { iota } from "../ops/create.ts";
import { permuteRows } from "../ops/grouped.ts";
import { fail } from "../trace/arguments.ts";
import { type Tensor, tensorTypeOf } from "../trace/tensor.ts";
import { asPart } from "../trace/trace.ts";
import { allReduce, allToAll, type OverOptions } from "./collectives.ts";
import { devicesAlong } from "./shards.ts";
import { part } from "./tensor.ts";

/** Options of `parallelExperts`: those of the layer, and where its experts are. */
export interface ParallelExpertsOptions extends MixtureOptions, OverOptions {}

/** What {@link parallelExperts} returns. */
export interface ParallelExperts {
  /** Parameters of all experts, as `mixtureOfExperts` has them. */
  init(key: Key): MixtureParams;
  /** Those of a device, from parameters of all experts that all devices have: the router, and its own experts. */
  own(params: MixtureParams): MixtureParams;
  /** x [..., features] are tokens of the device, `params` its own. Both losses, `dropped` and `load` are of the tokens of all devices. */
  apply(params: MixtureParams, x: Tensor): Mixture;
  /** Rows that the experts of a device compute where each of so many devices has so many tokens, whatever the router does. */
  rows(tokens: number, devices: number): number;
}

/** The ways of a device's tokens to experts and back. */
interface Route {
  /** Rows that the device's own experts compute, sorted by expert; `groups` has the expert of each tile, where they do not have equally many. */
  there(tokens: Tensor): { readonly rows: Tensor; readonly groups: Tensor | null };
  /** From computed rows to one for each choice of the device's tokens. */
  back(made: Tensor): Tensor;
  readonly dropped: Tensor;
}

interface Setting {
  readonly experts: Experts;
  readonly devices: number;
  readonly over: OverOptions["over"];
}

const exchanged = (x: Tensor, over: OverOptions["over"]): Tensor => allToAll(x, { over, split: 0, join: 0 });

/** Every expert has as many rows for each device: what comes in is sorted by exchanging two axes. */
function limitedRoute(choices: readonly Tensor[], tokens: number, { experts, devices, over }: Setting): Route {
  const { sizes } = experts;
  const { slots, pairs, dropped } = limitedPlaces(choices, sizes.experts, roomOf(tokens, sizes));
  const turned = (rows: Tensor, first: number, second: number): Tensor => {
    const [count, features] = [at(rows.shape, 0), at(rows.shape, 1)];
    const room = count / (first * second);
    return reshape(swapAxes(reshape(rows, [first, second, room, features]), 0, 1), [count, features]);
  };
  const own = sizes.experts / devices;
  return {
    dropped,
    there(x) {
      const sent = applyOp(permuteRows, [x, pairs, slots], { copies: sizes.active });
      return { rows: turned(exchanged(sent, over), devices, own), groups: null };
    },
    back: (made) => applyOp(permuteRows, [exchanged(turned(made, own, devices), over), slots, pairs], { copies: 1 }),
  };
}

/** Rows of a device for each other one, for any routing. */
const roomOfPair = (tokens: number, own: number, active: number): number => tokens * Math.min(active, own);

/** Every choice has a row. What comes in is sorted by expert, whose numbers come along. */
function exactRoute(choices: readonly Tensor[], tokens: number, { experts, devices, over }: Setting): Route {
  const { sizes } = experts;
  const own = sizes.experts / devices;
  const byDevice = choices.map((choice) => any(reshape(choice, [tokens, devices, own]), 2));
  const sent = limitedPlaces(byDevice, devices, roomOfPair(tokens, own, sizes.active));
  const expert = expertOfChoice(choices);
  const numbers = sub(expert, mul(div(expert, own), own));
  const count = at(sent.pairs.shape, 0);
  // -1 where there is no row
  const arrived = exchanged(scatterAdd(full([count], -1, "i32"), sent.slots, add(numbers, 1)), over);
  const shape = [count, own];
  const choice = equal(applyOp(iota, [], { shape, axis: 1 }), broadcastTo(expandDims(arrived, 1), shape));
  const rows = exactRows(count, 1, own, sizes.tile);
  const sorted = exactPlaces({ choices: [choice], load: sum(choice, 0) }, rows, sizes.tile, greaterEqual(arrived, 0));
  return {
    dropped: sent.dropped,
    there(x) {
      const incoming = exchanged(applyOp(permuteRows, [x, sent.pairs, sent.slots], { copies: sizes.active }), over);
      const inOrder = applyOp(permuteRows, [incoming, sorted.pairs, sorted.slots], { copies: 1 });
      return { rows: inOrder, groups: sorted.groups };
    },
    back(made) {
      const outgoing = applyOp(permuteRows, [made, sorted.slots, sorted.pairs], { copies: 1 });
      return applyOp(permuteRows, [exchanged(outgoing, over), sent.slots, sent.pairs], { copies: 1 });
    },
  };
}

function requireOwnTokens(name: string, x: Tensor, over: OverOptions["over"]): void {
  const varies = tensorTypeOf(x).varies?.over ?? [];
  const missing = [over].flat().filter((axis) => !varies.includes(axis));
  if (missing.length === 0) return;
  const summary = `${name} over ${missing.join(", ")}: x is equal on all devices along it`;
  const help =
    "every device has tokens of its own: cut them, part(x, { over, axis: 0 }), or name the axis in shard's in";
  fail("VarianceMismatch", summary, help);
}

function partsOfExperts(name: string, experts: number, devices: number): number {
  if (devices >= 1 && Number.isInteger(experts / devices)) return experts / devices;
  const summary = `${name}: ${experts} experts on ${devices} devices`;
  return fail("InvalidArgument", summary, `make them a multiple of ${devices}`);
}

/**
 * A mixture of experts whose experts are shared out over the devices of an axis, each with tokens of its own: the values and gradients of
 * `mixtureOfExperts` on the tokens of all. A capacity is that of each device's tokens.
 *
 * Memory is planned for any routing: without a capacity each device has room for tokens · min(active, own experts) rows of every device.
 *
 * @example
 * import { ones, type Tensor } from "tidemark";
 * import { mesh, parallelExperts, shard } from "tidemark/parallel";
 *
 * const layer = parallelExperts(8, { experts: 4, active: 2, hidden: 16, over: "expert" });
 * const params = layer.init(0);
 * const own = { router: [], up: "expert", down: "expert" }; // a device's own: layer.own(params), inside of shard
 * const apply = shard((p: typeof params, x: Tensor) => layer.apply(p, x).y, { mesh: mesh({ expert: 1 }), in: [own, "expert"], out: "expert" });
 * console.log(apply(params, ones([3, 5, 8])).shape, layer.rows(15, 1)); // [3, 5, 8] 80
 */
export function parallelExperts(features: number, options: ParallelExpertsOptions): ParallelExperts {
  const name = "parallelExperts";
  const { over, ...layer } = options ?? {};
  const experts = expertsOf(name, features, layer);
  if (over === undefined)
    fail("InvalidArgument", `${name}: over is missing`, 'name the axis: { experts: 8, over: "expert" }');
  const { sizes, normalize, init, compute } = experts;
  return {
    init,
    own(params) {
      partsOfExperts(name, sizes.experts, devicesAlong(over, name));
      const cut = (w: Tensor): Tensor => part(w, { over, axis: 0 });
      const { router, up, gate, down } = params;
      return { router, up: cut(up), ...(gate ? { gate: cut(gate) } : {}), down: cut(down) };
    },
    apply(params, x) {
      const devices = devicesAlong(over, name);
      experts.require(params, x, partsOfExperts(name, sizes.experts, devices));
      requireOwnTokens(name, x, over);
      return asPart(name, () => {
        const tokens = reshape(x, [x.elements / features, features]);
        const meanOfAll = (y: Tensor): Tensor => allReduce(y, { over, op: "mean" });
        const routing = route(matmul(tokens, params.router), sizes.active, normalize, meanOfAll);
        const { choices, gates, balance, zLoss, load } = routing;
        const routeOf = sizes.capacity === undefined ? exactRoute : limitedRoute;
        const { there, back, dropped } = routeOf(choices, at(tokens.shape, 0), { experts, devices, over });
        const { rows, groups } = there(tokens);
        const y = reshape(weighted(back(compute(params, rows, groups)), gates), x.shape);
        return { y, balance, zLoss, dropped: allReduce(dropped, { over }), load: allReduce(load, { over }) };
      });
    },
    rows(tokens, devices) {
      requireTokens(name, tokens);
      const own = partsOfExperts(name, sizes.experts, devices);
      if (sizes.capacity !== undefined) return sizes.experts * roomOf(tokens, sizes);
      return exactRows(devices * roomOfPair(tokens, own, sizes.active), 1, own, sizes.tile);
    },
  };
}
