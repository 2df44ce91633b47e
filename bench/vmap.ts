/**
 * @file Time and memory of functions of batches, against calls for single elements and against the batch written by hand:
 *
 *   npx rolldown bench/vmap.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/vmap.mjs --log-level silent &&
 *     node node_modules/.cache/vmap.mjs
 *
 * A figure is the best of several calls, which alternate, on one thread of WebAssembly. Ratios below 1 are in favour of `vmap`.
 *
 * Last result, one core of a shared AMD EPYC, Node 20.20, ratio to single calls, and to the batch by hand:
 *
 *   a layer, 128 rows of [256]                          0.34   1.00
 *   gradients of single examples, 64 of [8, 128]        0.87
 *   gradients of single images, 32 of [1, 8, 24, 24]    0.94
 *   jacrev of [256] in chunks of 16                     time 1.22, memory 0.57 of those of the whole
 */
import { compile, conv2d, grad, jacrev, plan, random, type Tensor, vmap } from "../src/api/index.ts";

const CALLS = 40;
const normal = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape);

interface Task {
  readonly name: string;
  /** Of the whole batch, the first argument; others are the same for all elements. */
  readonly over: (...args: Tensor[]) => Tensor;
  /** For one element. */
  readonly one: (...args: Tensor[]) => Tensor;
  /** The batch written by hand, where there is such a form. */
  readonly byHand?: (...args: Tensor[]) => Tensor;
  readonly args: readonly Tensor[];
}

const layer = (x: Tensor, w: Tensor): Tensor => x.matmul(w).tanh().matmul(w);
const slopeOf = (x: Tensor, w: Tensor): Tensor => grad((m: Tensor) => layer(x, m).square().sum())(w);
const convSlope = (x: Tensor, w: Tensor): Tensor => grad((m: Tensor) => conv2d(x, m).relu().square().sum())(w);

const overFirst = (fn: (x: Tensor, w: Tensor) => Tensor) => vmap(fn, { in: [0, null] }) as Task["over"];

const TASKS: readonly Task[] = [
  {
    name: "a layer, 128 rows of [256]",
    over: overFirst(layer),
    one: layer as Task["one"],
    byHand: layer as Task["one"],
    args: [normal(1, [128, 256]), normal(2, [256, 256])],
  },
  {
    name: "gradients of single examples, 64 of [8, 128]",
    over: overFirst(slopeOf),
    one: slopeOf as Task["one"],
    args: [normal(1, [64, 8, 128]), normal(2, [128, 128])],
  },
  {
    name: "gradients of single images, 32 of [1, 8, 24, 24]",
    over: overFirst(convSlope),
    one: convSlope as Task["one"],
    args: [normal(1, [32, 1, 8, 24, 24]), normal(2, [16, 8, 3, 3])],
  },
];

function alternating(fns: readonly (() => unknown)[]): readonly number[] {
  const best = fns.map(() => Number.POSITIVE_INFINITY);
  for (let call = 0; call < CALLS; call++) {
    for (const [i, fn] of fns.entries()) {
      const start = performance.now();
      fn();
      best[i] = Math.min(best[i] as number, performance.now() - start);
    }
  }
  return best;
}

console.log("ms of vmap, ratio to single calls, ratio to the batch by hand");
for (const { name, over, one, byHand, args } of TASKS) {
  const [first, ...rest] = args as [Tensor, ...Tensor[]];
  const [whole, single, hand] = [over, one, byHand ?? over].map((fn) => compile(fn, { target: "wasm", threads: 1 }));
  const elements = Array.from({ length: first.shape[0] ?? 0 }, (_, n) => first.slice([n]));
  const [batch = 0, each = 0, own = 0] = alternating([
    () => whole?.(...args).data(),
    () => elements.map((element) => single?.(element, ...rest).data()),
    () => hand?.(...args).data(),
  ]);
  const ratio = byHand ? (batch / own).toFixed(2) : "-";
  console.log(name.padEnd(50), batch.toFixed(2), (batch / each).toFixed(2), ratio);
}

const [x, w] = [normal(1, [256]), normal(2, [256, 256])];
const rows = (chunk?: number) => (v: Tensor, m: Tensor) => jacrev(layer, chunk ? { chunk } : {})(v, m);
const [whole, parts] = [rows(), rows(16)].map((fn) => ({ run: compile(fn), bytes: plan(fn)(x, w).arenaBytes }));
const [all = 0, chunked = 0] = alternating([() => whole?.run(x, w).data(), () => parts?.run(x, w).data()]);
console.log(
  `jacrev of [256] in chunks of 16: time ${(chunked / all).toFixed(2)}, memory ${((parts?.bytes ?? 0) / (whole?.bytes ?? 1)).toFixed(2)}`,
);
