/**
 * @file The numbers that the explainer's pages show when they open, computed here by the public functions of the library from the
 * programs as a reader would write them, and by hand where there is a formula. Nothing of the pages' own code is used.
 */
import * as api from "../../src/api/index.ts";
import { leastAdvances, reach, repetitions } from "../../src/loops/binomial.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import { tapeAccount } from "../../src/tape/index.ts";

const { additiveCoupling, attention, checkpoint, plan, reversibleChain, spec, valueAndGrad } = api;
type Tensor = api.Tensor;
type PlanInfo = ReturnType<ReturnType<typeof plan>>;
type PlanOptions = NonNullable<Parameters<typeof plan>[1]>;

/** By the names that elements have in their attribute `data-number`. */
export type Figures = Readonly<Record<string, number>>;

const target = wasmTarget(false);

/** The loss and the gradients with respect to the first argument, planned. */
function step(loss: (...args: never[]) => Tensor, args: readonly unknown[], options: PlanOptions = {}): PlanInfo {
  const gradient = valueAndGrad(loss as (...args: readonly Tensor[]) => Tensor);
  const planned = plan(gradient as (...args: never[]) => unknown, { target, cache: false, ...options });
  return planned(...(args as unknown as never[]));
}

const specs = (count: number, shape: readonly number[]): Tensor[] =>
  Array.from({ length: count }, () => spec([...shape]));

const block = (h: Tensor, w: Tensor): Tensor => api.scope("block", () => h.add(h.matmul(w).gelu()));
const chain = (ws: readonly Tensor[], x: Tensor): Tensor => ws.reduce(block, x).square().mean();

function tape(): Figures {
  const [a, b] = [1.5, 0.7];
  const params = { w1: spec([128, 128]), w2: spec([128, 10]), g: spec([128]), b: spec([128]) };
  const layer = (p: typeof params, x: Tensor, y: Tensor): Tensor =>
    api.layerNorm(x.matmul(p.w1), { scale: p.g, offset: p.b }).gelu().matmul(p.w2).crossEntropy(y);
  const { overloadBytes, namedSavesBytes, tapeBytes, plannedBytes } = tapeAccount(layer)(
    params,
    spec([256, 128]),
    spec([256], "i32"),
  );
  return {
    f: Math.sin(a * b) + a * a,
    da: Math.cos(a * b) * b + 2 * a,
    db: Math.cos(a * b) * a,
    ...{ overloadBytes, namedSavesBytes, tapeBytes, plannedBytes },
  };
}

function explosion(): Figures {
  const [depth, batch, width] = [32, 256, 64];
  const args = [specs(depth, [width, width]), spec([batch, width])] as const;
  const training = step(chain, args).arenaBytes;
  const alone = plan(chain as (...args: never[]) => Tensor, { target })(...(args as unknown as never[])).arenaBytes;
  const head = (isWhole: boolean) => (ws: readonly Tensor[], x: Tensor) => {
    const [q, k, v] = ws.map((w) => x.matmul(w)) as [Tensor, Tensor, Tensor];
    const seen = isWhole
      ? q
          .matmul(k, { tb: true })
          .mul(1 / 8)
          .softmax(-1)
          .matmul(v)
      : attention(q, k, v);
    return seen.sub(x).square().mean();
  };
  const sizes = [specs(3, [64, 64]), spec([2048, 64])];
  const [whole, fused] = [true, false].map((isWhole) => step(head(isWhole), sizes).arenaBytes) as [number, number];
  return {
    ...{ training, whole, fused },
    factor: training / alone,
    weights: depth * width * width * 4,
    "attention.ratio": whole / fused,
  };
}

function segments(): Figures {
  const [depth, batch, width] = [24, 256, 32];
  const args = [specs(depth, [width, width]), spec([batch, width])];
  const segment = checkpoint((h: Tensor, ws: readonly Tensor[]): Tensor => ws.reduce(block, h));
  const every = (k: number) => (ws: readonly Tensor[], x: Tensor) => {
    let h = x;
    for (let i = 0; i < ws.length; i += k) h = segment(h, ws.slice(i, i + k));
    return h.square().mean();
  };
  const [stored, four, one, all] = [chain, every(4), every(1), every(depth)].map((loss) => step(loss, args)) as [
    ...[PlanInfo, PlanInfo, PlanInfo, PlanInfo],
  ];
  return {
    "segment.stored": stored.arenaBytes,
    "segment.arena": four.arenaBytes,
    "segment.more": four.predictedMs / stored.predictedMs - 1,
    "segment.c": 1 + (all.arenaBytes - one.arenaBytes) / (batch * width * 4 * (depth - 1)),
  };
}

function schedules(): Figures {
  const [steps, slots] = [35, 4];
  const recomputed = leastAdvances(steps, slots);
  return {
    ...{ slots, recomputed, runs: repetitions(steps, slots) + 1 },
    ratio: (steps + recomputed) / steps,
    reach: reach(slots, repetitions(steps, slots)),
  };
}

function packing(): Figures {
  const head = (ws: readonly Tensor[], x: Tensor): Tensor => {
    const [q, k, v] = ws.map((w) => x.matmul(w)) as [Tensor, Tensor, Tensor];
    return q
      .matmul(k, { tb: true })
      .mul(1 / 4)
      .softmax(-1)
      .matmul(v)
      .sub(x)
      .square()
      .mean();
  };
  return { "reuse.fused": step(head, [specs(3, [16, 16]), spec([128, 16])]).arenaBytes };
}

function elsewhere(): Figures {
  const half = (x: Tensor, w: Tensor): Tensor => x.matmul(w).tanh();
  const coupled = reversibleChain(...Array.from({ length: 16 }, () => additiveCoupling(half, half)));
  type Params = readonly (readonly [Tensor, Tensor])[];
  const ends = ([c, d]: readonly [Tensor, Tensor]): Tensor => c.square().mean().add(d.square().mean());
  const plain = (ps: Params, a: Tensor, b: Tensor): Tensor =>
    ends(
      ps.reduce<readonly [Tensor, Tensor]>(
        ([x, y], [f, g]) => {
          const first = x.add(half(y, f));
          return [first, y.add(half(first, g))];
        },
        [a, b],
      ),
    );
  const inverted = (ps: Params, a: Tensor, b: Tensor): Tensor => ends(coupled([a, b], ps) as [Tensor, Tensor]);
  const args = [Array.from({ length: 16 }, () => specs(2, [32, 32])), ...specs(2, [128, 32])];
  const [stored, inverse] = [step(plain, args), step(inverted, args)];
  const blocks = [specs(6, [64, 64]), spec([256, 64])];
  const lossy = { residuals: { linear: 8, rest: 8 } } as const;
  const logits = (w: Tensor, h: Tensor, y: Tensor): Tensor => h.matmul(w).crossEntropy(y);
  const words = [spec([64, 16384]), spec([2048, 64]), spec([2048], "i32")];
  const [whole, cut] = [step(logits, words), step(logits, words, { memory: "min" })];
  return {
    "inverse.stored": stored.arenaBytes,
    "inverse.bytes": inverse.arenaBytes,
    "inverse.time": inverse.predictedMs / stored.predictedMs,
    "lossy.32": step(chain, blocks).arenaBytes,
    "lossy.8": step(chain, blocks, { lossy }).arenaBytes,
    "strips.whole": whole.arenaBytes,
    "strips.cut": cut.arenaBytes,
    "strips.time": cut.predictedMs / whole.predictedMs,
  };
}

function own(): Figures {
  const params = { w1: spec([64, 256]), w2: spec([256, 256]), w3: spec([256, 10]) };
  const loss = (p: typeof params, x: Tensor, y: Tensor): Tensor =>
    x.matmul(p.w1).gelu().matmul(p.w2).gelu().matmul(p.w3).crossEntropy(y);
  return { "own.arena": step(loss, [params, spec([128, 64]), spec([128], "i32")]).arenaBytes };
}

/** By page. */
export const FIGURES: Readonly<Record<string, () => Figures>> = {
  ...{ tape, explosion, segments, schedules, packing, elsewhere },
  "your-function": own,
};
