/**
 * @file A language model whose texts have any length up to 512: programs in the arena of the maximum (`shapes: { T: { max: 512 } }`)
 * beside programs of one length each, in one alternating run.
 *
 *   npm run bench:bounded -- [--target wasm|native] [--lengths 8]
 *
 * For each random length: the first call of the one (its program is made) and then the best of five calls of both.
 */
import { parseArgs } from "node:util";
import { compile } from "../src/api/compile.ts";
import { installPart } from "../src/api/host.ts";
import { random, type Tensor } from "../src/api/index.ts";
import { languageModel } from "../src/cli/programs/gpt.ts";
import { nodeHost } from "../src/node/host.ts";
import type { TargetName } from "../src/runtime/choose-target.ts";

installPart("host", nodeHost);

const { values } = parseArgs({
  options: { target: { type: "string", default: "wasm" }, lengths: { type: "string", default: "8" } },
});
const target = values.target as TargetName;
const MAX = 512;
const size = { batch: 2, time: MAX, width: 128, heads: 4, blocks: 4, vocabulary: 512, tied: false };
const model = languageModel("gpt", "with 512 positions", size);
type State = ReturnType<typeof model.init>;
const step = (state: State, x: Tensor, y: Tensor) => model.step(state, x, y);

const bounded = compile(step, {
  ...{ target, programs: MAX, shapes: { T: { max: MAX } } },
  axes: model.axes as NonNullable<typeof model.axes>,
});
const exact = compile(step, { target, programs: MAX });
const state = model.init();
const [x, y] = model.batch() as [Tensor, Tensor];

const ms = (work: () => unknown): number => {
  const started = performance.now();
  work();
  return performance.now() - started;
};

const planned = ms(() => bounded.family(state, x, y));
console.log(`planned at ${MAX}: ${planned.toFixed(0)} ms, arena ${bounded.family(state, x, y).arenaBytes}`);
const ratios: number[] = [];
const lengths = random.randint(random.key(7), [Number(values.lengths)], 1, MAX + 1).data();
for (const n of lengths) {
  const [a, b] = [x, y].map((ids) => ids.slice([null, [0, n]]).copy()) as [Tensor, Tensor];
  const first = ms(() => bounded(state, a, b));
  const [, want] = exact(state, a, b);
  const [, loss] = bounded(state, a, b);
  const best = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] as [number, number];
  for (let i = 0; i < 5; i++) {
    best[0] = Math.min(
      best[0],
      ms(() => bounded(state, a, b)),
    );
    best[1] = Math.min(
      best[1],
      ms(() => exact(state, a, b)),
    );
  }
  ratios.push(best[0] / best[1]);
  const own = `${best[0].toFixed(1)} ms, exact ${best[1].toFixed(1)}, ratio ${(best[0] / best[1]).toFixed(3)}`;
  const equal = loss.item() === want.item() ? "same bits" : "other bits";
  console.log(`T = ${String(n).padStart(3)}   first call ${first.toFixed(0)} ms, then ${own}; ${equal}`);
}
const mean = Math.exp(ratios.reduce((sum, r) => sum + Math.log(r), 0) / ratios.length);
const { planned: plans, arenaBytes } = bounded.stats();
console.log(
  `ratio: mean ${mean.toFixed(3)}, largest ${Math.max(...ratios).toFixed(3)}; ${plans} plans, arena ${arenaBytes}`,
);
