/**
 * @file The time of one token in a stack of transformer blocks by its position, with a cache of fixed capacity: processor time of the fastest of several
 * steps at each position, all positions taking turns. Below it the bytes of the arena and of its parts.
 *
 *   npx rolldown bench/generate.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/generate.mjs
 *   node node_modules/.cache/generate.mjs [--target=native] [--capacity=8192] [--width=256] [--blocks=4] [--seconds=4]
 */
import { parseArgs } from "node:util";
import { compile, ones, type Tensor, tensor } from "../src/api/index.ts";
import { flatten } from "../src/api/tree.ts";
import { type KeyValueCache, type TransformerBlockParams, transformerBlock } from "../src/nn/index.ts";
import "../src/node/index.ts";

const { values: options } = parseArgs({
  options: {
    target: { type: "string", default: "native" },
    capacity: { type: "string", default: "8192" },
    width: { type: "string", default: "256" },
    blocks: { type: "string", default: "4" },
    seconds: { type: "string", default: "4" },
  },
});
const [capacity, width, blocks] = [Number(options.capacity), Number(options.width), Number(options.blocks)];
const block = transformerBlock(width, { heads: width / 64, causal: true });
const bytesOf = (tree: Parameters<typeof flatten>[0]): number =>
  flatten(tree).leaves.reduce((sum, x) => sum + 4 * x.elements, 0);

const i32 = (value: number): Tensor => tensor(value, { dtype: "i32" });
type State = { readonly params: readonly TransformerBlockParams[]; readonly cache: readonly KeyValueCache[] };
let traces = 0;
const step = compile(
  (state: State, x: Tensor, position: Tensor) => {
    traces++;
    let y = x;
    const cache = state.cache.map((own, i) => {
      const [next, kept] = block.extend(state.params[i] as TransformerBlockParams, y, own, position);
      y = next;
      return kept;
    });
    return [{ params: state.params, cache }, y] as const;
  },
  { target: options.target as "native", donate: [0] },
);
const each = Array.from({ length: blocks }, (_, i) => i);
let state: State = { params: each.map((i) => block.init(i)), cache: each.map(() => block.initCache(capacity)) };
const [cacheBytes, paramBytes] = [bytesOf(state.cache), bytesOf(state.params)];

const places = [0, 64, 256, 1024, 2048, 4096, 8191, 16383].filter((t) => t < capacity);
const best = places.map(() => Number.POSITIVE_INFINITY);
const x = ones([1, width]);
const run = (t: number): number => {
  const before = process.cpuUsage();
  const [next, y] = step(state, x, i32(t));
  state = next;
  y.data();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};
run(0);
const end = performance.now() + 1000 * Number(options.seconds);
do {
  places.forEach((t, i) => {
    best[i] = Math.min(best[i] ?? 0, run(t));
  });
} while (performance.now() < end);

const first = best[0] ?? 0;
console.log("position  ms of a token   µs more for each position before");
places.forEach((t, i) => {
  const ms = best[i] ?? 0;
  const more = t === 0 ? "" : ((1000 * (ms - first)) / t).toFixed(3);
  console.log(`${String(t).padStart(8)} ${ms.toFixed(3).padStart(14)} ${more.padStart(10)}`);
});
const MiB = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(2)} MiB`;
const { arenaBytes } = step.usage();
console.log(
  `arena ${MiB(arenaBytes)}: parameters ${MiB(paramBytes)}, cache ${MiB(cacheBytes)}; traced ${traces} times`,
);
