/** @file Steps that change tensors, also through views of them. */
import type { Step } from "../scene.ts";
import { tame } from "../scene.ts";

const changedAt: Step = ({ x, random, indices }) => {
  const y = x.copy();
  const rows = x.shape[0] ?? 0;
  if (rows === 0) return y.mulInPlace(0.5);
  const way = random.int(4);
  if (way === 0) y.setAt(random.int(rows), 0.5);
  if (way === 1) y.addAt(indices.minimum(rows - 1), 0.25);
  if (way === 2) y.slice([[0, Math.ceil(rows / 2)]]).mulInPlace(0.5);
  if (way === 3) y.addInPlace(tame(x));
  return y.mulInPlace(0.9);
};

/** Through a view of a view; what was read before keeps its value. */
const changedThroughViews: Step = ({ x, random }) => {
  if (x.rank < 2 || x.elements === 0) return null;
  const y = x.copy();
  const before = y.sin();
  const row = y.T.slice([0]);
  row.fill(0.3);
  y.slice([random.int(x.shape[0] as number)]).addInPlace(1);
  return [row.copy(), y.mul(before)];
};

/** Rows written one after the other, as a table is filled. */
const filledRows: Step = ({ x, random }) => {
  const rows = x.shape[0] ?? 0;
  if (rows === 0) return null;
  const y = x.zerosLike();
  for (let i = Math.min(rows, 2 + random.int(4)) - 1; i >= 0; i--)
    y.setAt(
      i,
      x
        .slice([i])
        .mul(0.5 + i)
        .tanh(),
    );
  return y;
};

const swapped: Step = ({ x }) => {
  const [a, b] = [x.copy(), x.cos()];
  const kept = a.copy();
  a.assign(b);
  b.assign(kept);
  return [a.subInPlace(b), b.divInPlace(2)];
};

export const mutations = { changedAt, changedThroughViews, filledRows, swapped } as const;
