/**
 * @file Mixtures of experts shared out over devices, against one device that has all experts and all tokens: the same bits of values, and
 * gradients to rounding. Each device checks its own.
 */
import { compile, random, type Tensor, valueAndGrad } from "../../src/api/index.ts";
import { type MixtureParams, mixtureOfExperts } from "../../src/nn/index.ts";
import { allReduce, mesh, parallelExperts, shard } from "../../src/parallel/index.ts";
import type { Target } from "../../src/runtime/device.ts";

const [TOKENS, WIDTH, OVER] = [24, 8, "expert"];
const EXPERTS = { experts: 12, active: 2, hidden: 16, tile: 4, gated: true } as const;

const dataOf = (x: Tensor): readonly number[] => [...(x.data() as Float32Array)];

/** Of a list of all devices, one behind the other. */
const ownOf = (all: readonly number[], rank: number, size: number): readonly number[] =>
  all.slice((rank * all.length) / size, ((rank + 1) * all.length) / size);

function requireNear(got: readonly number[], expected: readonly number[], error: number, name: string): void {
  const wrong = expected.findIndex((x, i) => !(Math.abs((got[i] as number) - x) <= error * (1 + Math.abs(x))));
  if (got.length !== expected.length || wrong >= 0) {
    throw new Error(`${name}[${wrong}] of ${got.length} is ${got[wrong]}, not ${expected[wrong]}`);
  }
}

/** A value that is looked at beside the loss. */
type Lost = [Tensor, Tensor];

function alone(capacity: object, params: MixtureParams, x: Tensor, target: Target) {
  const layer = mixtureOfExperts(WIDTH, { ...EXPERTS, ...capacity });
  const loss = (p: MixtureParams, t: Tensor): Lost => {
    const { y, balance } = layer.apply(p, t);
    return [y.square().sum().add(balance), y];
  };
  const step = (p: MixtureParams, t: Tensor) => valueAndGrad(loss, { hasAux: true })(p, t);
  return compile(step, { target, name: "alone" })(params, x);
}

function shared(size: number, capacity: object, params: MixtureParams, x: Tensor, target: Target) {
  const layer = parallelExperts(WIDTH, { ...EXPERTS, ...capacity, over: OVER });
  const devices = mesh({ [OVER]: size });
  const spec = { router: [], up: OVER, gate: OVER, down: OVER };
  const loss = (p: MixtureParams, t: Tensor): Lost => {
    const { y, balance } = layer.apply(p, t);
    return [allReduce(y.square().sum(), { over: OVER }).add(balance), y];
  };
  const step = (p: MixtureParams, t: Tensor) => valueAndGrad(loss, { hasAux: true })(p, t);
  const own = compile(shard(layer.own, { mesh: devices, in: [[]], out: spec }), { target, name: "own" })(params);
  const sharded = shard(step, { mesh: devices, in: [spec, OVER], out: [[[], OVER], spec] });
  return compile(sharded, { target, name: "experts" })(own, x);
}

/** Numbers that were compared, of layers with these capacities. */
export function experts(
  { rank, size }: { readonly rank: number; readonly size: number },
  target: Target,
  capacities: readonly object[],
) {
  const tokens = random.normal(random.key(5), [TOKENS, WIDTH]);
  const params = mixtureOfExperts(WIDTH, EXPERTS).init(7);
  const own = tokens.slice([[(rank * TOKENS) / size, ((rank + 1) * TOKENS) / size]]);
  let compared = 0;
  for (const capacity of capacities) {
    const [[, y], all] = alone(capacity, params, tokens, target);
    const [[, part], grads] = shared(size, capacity, params, own, target);
    requireNear(dataOf(part), ownOf(dataOf(y), rank, size), 0, "y");
    requireNear(dataOf(grads.router), dataOf(all.router), 1e-5, "router");
    for (const key of ["up", "gate", "down"] as const) {
      requireNear(dataOf(grads[key] as Tensor), ownOf(dataOf(all[key] as Tensor), rank, size), 1e-5, key);
    }
    compared += part.elements + [...Object.values(grads)].reduce((sum: number, x: Tensor) => sum + x.elements, 0);
  }
  return { compared };
}
