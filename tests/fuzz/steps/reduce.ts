/** @file Steps that reduce, scan along an axis, or normalise. */
import { batchNorm, crossEntropy, gather, groupNorm, logsumexp, type Tensor } from "../../../src/api/index.ts";
import { rowsOf, type Scene, type Step, someAxes, tame } from "../scene.ts";

/** Over some axes, kept or not; of everything now and then. */
function reduced(scene: Scene, over: (axes: readonly number[] | undefined, keepDims: boolean) => Tensor): Tensor {
  const { x, random } = scene;
  const axes = x.rank === 0 || random.chance(0.15) ? undefined : someAxes(scene);
  return over(axes, random.chance(0.5));
}

/** Means and extrema of nothing are not numbers. */
const ofSome =
  (step: Step): Step =>
  (scene) =>
    scene.x.elements === 0 ? null : step(scene);

const sum: Step = (scene) => reduced(scene, (axes, keepDims) => scene.x.sum(axes, { keepDims }).mul(0.2));
const mean = ofSome((scene) => reduced(scene, (axes, keepDims) => scene.x.mean(axes, { keepDims })));
const max = ofSome((scene) => reduced(scene, (axes, keepDims) => scene.x.max(axes, { keepDims })));
const min = ofSome((scene) => reduced(scene, (axes, keepDims) => scene.x.min(axes, { keepDims })));
const prod: Step = (scene) => reduced(scene, (axes, keepDims) => tame(scene.x).prod(axes, { keepDims }));
const variance = ofSome((scene) => reduced(scene, (axes, keepDims) => scene.x.var(axes, { keepDims }).add(0.1).sqrt()));

const cumulated: Step = ({ x, random }) =>
  x.rank === 0
    ? null
    : tame(x)
        .cumsum(random.int(x.rank), { reverse: random.chance(0.5) })
        .mul(0.3);

const softmax = ofSome(({ x, random }) => {
  if (x.rank === 0) return null;
  const axis = random.int(x.rank);
  const way = random.int(3);
  if (way === 0) return x.softmax(axis);
  return way === 1 ? x.logSoftmax(axis).tanh() : logsumexp(x, [axis]);
});

const layerNorm = ofSome(({ x, random }) => {
  if (x.rank === 0) return null;
  return random.chance(0.5) ? x.layerNorm() : x.rmsNorm();
});

/** Normalised over batch and space, or over groups of channels. */
const channelNorm = ofSome(({ x, random }) => {
  if (x.rank < 2) return null;
  if (random.chance(0.5)) {
    const { y, mean: means } = batchNorm(x);
    // statistics of halves are f32
    return [y, means.cast(y.dtype)];
  }
  const channels = x.shape[1] as number;
  return groupNorm(x, random.pick([1, 2, channels].filter((g) => channels % g === 0)));
});

/** The largest along an axis, by its place. */
const picked = ofSome(({ x, random }) => {
  if (x.rank === 0) return null;
  const axis = random.int(x.rank);
  const place = random.chance(0.5) ? x.argmax(axis, { keepDims: true }) : x.argmin(axis, { keepDims: true });
  return gather(x, place, axis);
});

const classified = ofSome(({ x, random }) => {
  if (x.rank < 1) return null;
  const classes = x.shape.at(-1) as number;
  const logits = x.reshape([rowsOf(x), classes]);
  const targets = logits.argmin(-1);
  return crossEntropy(logits, targets, { reduction: random.chance(0.5) ? "none" : "mean" });
});

export const reductions = {
  sum,
  mean,
  max,
  min,
  prod,
  variance,
  cumulated,
  softmax,
  layerNorm,
  channelNorm,
  picked,
  classified,
} as const;
