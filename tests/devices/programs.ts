/** @file Programs with collectives in loops, branches and derivatives, on the devices of one process. */
import {
  checkpoint,
  compile,
  compileAsync,
  cond,
  grad,
  scan,
  type Tensor,
  tensor,
  whileLoop,
} from "../../src/api/index.ts";
import { allGather, allReduce, type Device, deviceIndex, mesh, permute, shard } from "../../src/parallel/index.ts";
import type { Input } from "./module.ts";

const D = { over: "data" };

type Fn = (x: Tensor) => Tensor;

/** What a device computes from its row, and what that is for the rows of all; `rank` is the device's. */
const CASES: Readonly<Record<string, { readonly fn: Fn; readonly out: "data" | readonly [] }>> = {
  "a loop": {
    fn: (x) => scan((s: Tensor) => [allReduce(s, D).mul(0.25).add(x), []], x, null, { length: 5 })[0] as Tensor,
    out: "data",
  },
  "a loop with a count of its own": {
    fn: (x) =>
      whileLoop(
        (s: Tensor) => allReduce(s.sum(), D).less(1000),
        (s: Tensor) => permute(s, { ...D, shift: 1 }).add(1),
        x,
      ),
    out: "data",
  },
  "a branch of all": {
    fn: (x) =>
      cond(
        allReduce(x.sum(), D).greater(0),
        (u: Tensor) => allReduce(u, D),
        (u: Tensor) => allReduce(u.neg(), D),
        x,
      ),
    out: [],
  },
  "a derivative of a derivative": {
    fn: (x) =>
      grad((u: Tensor) =>
        grad((v: Tensor) => allReduce(v.mul(v).mul(v).sum(), D))(u)
          .mul(allGather(u, D).sum())
          .sum(),
      )(x),
    out: "data",
  },
  "a checkpoint": {
    fn: (x) => grad((u: Tensor) => checkpoint((v: Tensor) => allReduce(v.tanh(), D).square().sum())(u))(x),
    out: "data",
  },
  "a number of its own": { fn: (x) => x.mul(deviceIndex(D).cast("f32").add(1)), out: "data" },
};

export const rowOf = (rank: number): number[] => [rank + 1, 0.5 * rank, -1, 2];

/** The functions as tests evaluate them on all devices at once. */
export const caseNames = Object.keys(CASES);
export const caseOf = (name: string) => CASES[name] as (typeof CASES)[string];

async function cases({ rank, size }: Device<Input>) {
  const found: Record<string, readonly number[]> = {};
  for (const [name, { fn, out }] of Object.entries(CASES)) {
    const options = { mesh: mesh({ data: size }), in: ["data"], out };
    const x = tensor(rowOf(rank));
    const results = [
      compile(shard(fn, options), { name })(x),
      compile(shard(fn, options), { name, threads: 2 })(x),
      (await compileAsync(shard(fn, options), [x], { name }))(x),
    ].map((y) => [...(y.data() as Float32Array)]);
    if (new Set(results.map(String)).size > 1) throw new Error(`${name}: ${results.map(String).join(" | ")}`);
    found[name] = results[0] as number[];
  }
  return found;
}

/** Messages on the way, and what a device is. */
function told({ rank, size, input, outsidePlanBytes, tell }: Device<Input>) {
  tell({ rank });
  return { rank, size, given: input.given, outsidePlanBytes };
}

export const programs = { cases, told };
