/**
 * @file Random functions from a tensor to one of the same shape: what stands inside loops, branches, checkpoints and rules.
 * Everything random is drawn before, so that such a function is the same whenever it is traced; and they nest.
 */
import { checkpoint, cond, forLoop, scan, scope, type Tensor } from "../../src/api/index.ts";
import type { Random } from "../support/random.ts";

export type Body = (x: Tensor) => Tensor;
type Draw = (random: Random, depth: number) => Body;

const FUNCTIONS: readonly Body[] = [
  (x) => x.tanh(),
  (x) => x.sin(),
  (x) => x.sigmoid(),
  (x) => x.gelu(),
  (x) => x.silu(),
  (x) => x.erf(),
  (x) => x.square().add(1).log(),
  (x) => x.sin().exp().mul(0.4),
  (x) => x.cos().mul(x),
  (x) => x.softplus().sub(0.5),
];

const affine: Draw = (random) => {
  const [scale, offset] = [0.3 + random.next(), random.next() - 0.5];
  return (x) => x.mul(scale).add(offset);
};

/** Reads the whole tensor for every element. */
const shifted: Draw = (random) => {
  const scale = random.next();
  return (x) => (x.elements === 0 ? x.neg() : x.sub(x.mean().mul(scale)));
};

const normalized: Draw = (random) => {
  const isSoftmax = random.chance(0.5);
  return (x) => {
    if (x.rank === 0 || x.elements === 0) return x.tanh();
    return isSoftmax ? x.softmax(-1) : x.layerNorm();
  };
};

/** tanh(x xᵀ) x, of the size of x. */
const product: Draw = () => (x) => {
  const [rows = 0, columns = 0] = x.shape.slice(-2);
  if (x.rank < 2 || rows > 96 || rows * columns === 0) return x.cos();
  return x.matmul(x, { tb: true }).tanh().matmul(x).mul(0.2);
};

const summed: Draw = (random) => {
  const reverse = random.chance(0.5);
  return (x) =>
    x.rank === 0
      ? x.tanh()
      : x
          .cumsum(x.rank - 1, { reverse })
          .mul(0.3)
          .tanh();
};

const residual: Draw = (random, depth) => {
  const inner = drawBody(random, depth - 1);
  return (x) => x.add(inner(x).mul(0.5));
};

const checkpointed: Draw = (random, depth) => checkpoint(drawBody(random, depth - 1));

const scoped: Draw = (random, depth) => {
  const inner = drawBody(random, depth - 1);
  const name = `part${random.int(3)}`;
  return (x) => scope(name, () => inner(x));
};

const repeated: Draw = (random, depth) => {
  const inner = drawBody(random, depth - 1);
  const turns = 1 + random.int(4);
  return (x) => forLoop(turns, x, (_, state) => inner(state).tanh());
};

/** The function sees a row and what it made of the row before. */
const scanned: Draw = (random, depth) => {
  const inner = drawBody(random, depth - 1);
  const reverse = random.chance(0.3);
  return (x) => {
    const rows = x.shape[0] ?? 0;
    if (rows === 0 || rows > 24) return x.tanh();
    const [, ys] = scan(
      (state: Tensor, row: Tensor) => {
        const next = inner(state.mul(0.5).add(row)).tanh();
        return [next, next];
      },
      x.slice([0]).sin(),
      x,
      { reverse },
    );
    return ys;
  };
};

const branched: Draw = (random, depth) => {
  const [a, b] = [drawBody(random, depth - 1), drawBody(random, depth - 1)];
  const limit = random.next() * 0.4 - 0.2;
  return (x) => (x.elements === 0 ? x : cond(x.mean().greater(limit), a, b, x));
};

const PLAIN: readonly Draw[] = [
  (random) => random.pick(FUNCTIONS),
  (random) => random.pick(FUNCTIONS),
  affine,
  shifted,
  normalized,
  product,
  summed,
];
const NESTED: readonly Draw[] = [residual, residual, checkpointed, checkpointed, scoped, repeated, scanned, branched];

/** Some functions one after the other; `depth`: how often others may stand inside them. */
export function drawBody(random: Random, depth: number): Body {
  const parts = Array.from({ length: 1 + random.int(3) }, () => {
    const isNested = depth > 0 && random.chance(0.35);
    return random.pick(isNested ? NESTED : PLAIN)(random, depth);
  });
  return (x) => parts.reduce((state, part) => part(state), x);
}
