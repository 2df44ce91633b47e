/** @file Steps that move elements: other shapes, parts, joins, look-ups, scatters. */
import {
  concat,
  diagonal,
  random as draws,
  dynamicSlice,
  dynamicUpdate,
  scatterAdd,
  scatterAddAlong,
  stack,
  type Tensor,
} from "../../../src/api/index.ts";
import type { Range } from "../../../src/api/shape.ts";
import type { Random } from "../../support/random.ts";
import { type Step, tame } from "../scene.ts";

const transposed: Step = ({ x, random }) =>
  x.rank < 2 ? null : x.transpose(random.shuffled(x.shape.map((_, axis) => axis)));

const reshaped: Step = ({ x, random }) => {
  if (x.elements === 0) return x.reshape([0, 3]);
  const first = random.pick([1, 2, 3, 4, 6, 8, 12, 16].filter((extent) => x.elements % extent === 0));
  return random.chance(0.2) ? x.reshape([-1]) : x.reshape([first, x.elements / first]);
};

/** Everything, one place, or every step-th from a start, backwards too. */
function rangeOf(extent: number, random: Random): Range {
  const way = random.int(5);
  if (extent === 0 || way < 2) return null;
  if (way === 2) return random.int(extent);
  if (way === 3) return [null, null, -1];
  const start = random.int(extent);
  return [start, start + 1 + random.int(extent - start), 1 + random.int(2)];
}

const sliced: Step = ({ x, random }) => x.slice(x.shape.map((extent) => rangeOf(extent, random)));

const padded: Step = ({ x, random, largest }) => {
  if (x.elements * 4 > largest) return null;
  return x.pad(
    x.shape.map(() => [random.int(3), random.int(2)] as const),
    random.chance(0.5) ? 0 : 0.5,
  );
};

const flipped: Step = ({ x, random }) => (x.rank === 0 ? null : x.flip([random.int(x.rank)]));

const joined: Step = ({ x, random, other }) => {
  if (x.rank === 0) return null;
  const axis = random.int(x.rank);
  const fits = ({ shape }: Tensor) => shape.length === x.rank && shape.every((n, i) => i === axis || n === x.shape[i]);
  const y = other(fits) ?? x.cos();
  return random.chance(0.7) ? concat([x, y, x.tanh()], axis) : stack([x, x.sin()], random.int(x.rank + 1));
};

/** Halves that are worked on apart and joined again. */
const splitAndJoined: Step = ({ x, random }) => {
  if (x.rank === 0) return null;
  const axis = random.int(x.rank);
  const first = Math.floor((x.shape[axis] as number) / 2);
  const [a, b] = x.split([first, (x.shape[axis] as number) - first], axis) as [Tensor, Tensor];
  return concat([b.tanh(), a.mul(0.5)], axis);
};

const tiled: Step = ({ x, random, largest }) => {
  if (x.rank === 0 || x.elements * 3 > largest) return null;
  const axis = random.int(x.rank);
  if (random.chance(0.5)) return x.repeat(1 + random.int(3), axis);
  return x.tile(x.shape.map((_, i) => (i === axis ? 2 : 1)));
};

const broadcast: Step = ({ x, random, largest }) => {
  const times = 1 + random.int(8);
  return x.elements * times > largest ? null : x.broadcastTo([times, ...x.shape]).mul(0.5);
};

const looked: Step = ({ x, random, indices }) =>
  x.rank === 0 ? null : x.take(random.chance(0.7) ? indices.minimum((x.shape[0] as number) - 1) : indices, 0);

const scattered: Step = ({ x, random, indices }) => {
  if (x.rank === 0) return null;
  const axis = random.int(x.rank);
  if ((x.shape[axis] as number) === 0) return null;
  const rows = indices.minimum((x.shape[axis] as number) - 1);
  return scatterAdd(tame(x), rows, tame(x).take(rows, axis).cos(), axis).mul(0.5);
};

const scatteredAlong: Step = ({ x, random }) => {
  if (x.rank === 0 || x.elements === 0) return null;
  const axis = random.int(x.rank);
  const place = x.argmax(axis, { keepDims: true });
  return scatterAddAlong(tame(x), place, x.max([axis], { keepDims: true }), axis);
};

const shuffled: Step = ({ x, key }) =>
  x.rank === 0 || x.shape[0] === 0 ? null : x.take(draws.permutation(key(), x.shape[0] as number), 0);

/** At a place that is computed. */
const windowed: Step = ({ x, random }) => {
  if (x.rank === 0 || x.elements === 0) return null;
  const starts = x.shape.map((_, axis) => (axis === 0 ? x.sum().mul(10).cast("i32") : 0));
  const sizes = x.shape.map((extent, axis) => (axis === 0 ? Math.max(1, extent >> 1) : extent));
  const part = dynamicSlice(x, starts, sizes);
  return random.chance(0.5) ? part : dynamicUpdate(tame(x), part.cos(), starts);
};

const triangular: Step = ({ x, random }) => {
  if (x.rank < 2) return null;
  if (random.chance(0.3)) return diagonal(x);
  return random.chance(0.5) ? x.tril() : x.triu(1);
};

export const shapes = {
  transposed,
  reshaped,
  sliced,
  padded,
  flipped,
  joined,
  splitAndJoined,
  tiled,
  broadcast,
  looked,
  scattered,
  scatteredAlong,
  shuffled,
  windowed,
  triangular,
} as const;
