/** @file A language model with buckets of 64 to 512 positions at a hundred random lengths: padding changes no bit, and the loss by 1e-6. */
import { expect, test } from "vitest";
import { compile, type Lengths, random, type Tensor, tensor } from "../src/api/index.ts";
import { languageModel } from "../src/cli/programs/gpt.ts";
import "./support/host.ts";

const BUCKETS = [64, 128, 256, 512];
const size = { batch: 2, time: 512, width: 64, heads: 4, blocks: 2, vocabulary: 128, tied: false };
const model = languageModel("gpt", "a small one with 512 positions", size);

type State = ReturnType<typeof model.init>;
const padded = model.step as unknown as (
  state: State,
  x: Tensor,
  y: Tensor,
  lengths: Lengths<"T">,
) => readonly [State, Tensor];

/** The first tokens of each text, and random ones behind them. */
function withNoise(ids: Tensor, n: number, length: number, key: number): Tensor {
  const noise = random.randint(random.key(key), [size.batch, length], 0, size.vocabulary);
  const [data, own] = [Int32Array.from(noise.data()), ids.data()];
  for (let b = 0; b < size.batch; b++) {
    for (let i = 0; i < n; i++) data[b * length + i] = own[b * size.time + i] as number;
  }
  return tensor(data).reshape([size.batch, length]);
}

test("a hundred random lengths", { timeout: 1_200_000 }, () => {
  const family = compile(padded, {
    shapes: { T: BUCKETS },
    axes: model.axes as NonNullable<typeof model.axes>,
    pad: true,
  });
  const noisy = compile(padded);
  const exact = compile((state: State, x: Tensor, y: Tensor) => model.step(state, x, y), { programs: 4 });
  const state = model.init();
  const [x, y] = model.batch() as [Tensor, Tensor];
  const lengths = random.randint(random.key(7), [100], 1, size.time + 1).data();
  let worst = 0;
  for (const [i, n] of [...lengths].entries()) {
    const first = (ids: Tensor): Tensor => ids.slice([null, [0, n]]);
    const [next, loss] = family(state, first(x), first(y));
    const bucket = BUCKETS.find((length) => length >= n) as number;
    const T = tensor(n, { dtype: "i32" });
    const [other, same] = noisy(state, withNoise(x, n, bucket, i), withNoise(y, n, bucket, 1000 + i), { T });
    expect(same.item()).toBe(loss.item());
    for (const part of ["tok", "pos", "lnfg", "head"] as const) {
      expect(other.params[part]?.data()).toEqual(next.params[part]?.data());
    }
    const [, want] = exact(state, first(x), first(y));
    worst = Math.max(worst, Math.abs(loss.item() - want.item()) / want.item());
  }
  console.log(`losses differ from those of exact lengths by at most ${worst.toExponential(2)}`);
  expect(worst).toBeLessThanOrEqual(1e-6);
  expect(family.stats()).toMatchObject({ calls: 100, planned: 4, compiled: 4 });
});
