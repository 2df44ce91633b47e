/** @file Steps that work element by element. */
import { random as draws, dropout, maximum, minimum, type Tensor, where } from "../../../src/api/index.ts";
import { type Step, tame } from "../scene.ts";

const UNARY: readonly ((x: Tensor) => Tensor)[] = [
  (x) => x.neg(),
  (x) => x.abs(),
  (x) => x.sin(),
  (x) => x.cos(),
  (x) => x.tanh(),
  (x) => x.sigmoid(),
  (x) => x.erf(),
  (x) => x.relu(),
  (x) => x.gelu(),
  (x) => x.silu(),
  (x) => x.softplus(),
  (x) => tame(x).square(),
  (x) => tame(x).exp(),
  (x) => tame(x).expm1(),
  (x) => x.square().add(1).log(),
  (x) => x.square().log1p(),
  (x) => x.square().add(0.1).sqrt(),
  (x) => x.square().add(0.5).rsqrt(),
  (x) => tame(x).div(x.square().add(1)),
  (x) => tame(x).add(2).pow(1.5),
  (x) => x.clamp(-0.5, 0.7),
  (x) => x.mul(3).round().mul(0.2).add(x),
  (x) => x.stopGradient().mul(x),
  (x) => x.sign().mul(0.3).add(x),
];

const BINARY: readonly ((x: Tensor, y: Tensor) => Tensor)[] = [
  (x, y) => x.add(y),
  (x, y) => x.sub(y),
  (x, y) => x.mul(y),
  (x, y) => x.div(y.square().add(0.5)),
  minimum,
  maximum,
];

const unary: Step = ({ x, random }) => random.pick(UNARY)(x);

/** With any tensor that broadcasts against it. */
const binary: Step = ({ x, random, other }) => {
  const y = other(({ shape }) => {
    const [long, short] = shape.length > x.rank ? [shape, x.shape] : [x.shape, shape];
    const from = long.length - short.length;
    return short.every((extent, axis) => {
      const beside = long[axis + from] as number;
      return extent === beside || extent === 1 || beside === 1;
    });
  });
  return random.pick(BINARY)(tame(x), tame(y ?? x));
};

/** Much elementwise work without a product or a sum in it. */
const chain: Step = ({ x, random }) => {
  let y = x;
  for (let i = 4 + random.int(12); i > 0; i--) y = random.pick(UNARY)(y).mul(0.8);
  return y;
};

/** Everything in it computed twice from equal expressions. */
const twice: Step = ({ x, random }) => {
  const f = random.pick(UNARY);
  const g = random.pick(UNARY);
  return tame(
    f(g(x))
      .add(g(x))
      .mul(f(g(x))),
  );
};

/** One value with many readers, each of which makes a result of its own. */
const fanOut: Step = ({ x, random }) => {
  const parts = Array.from({ length: 3 + random.int(6) }, (_, i) => random.pick(UNARY)(x.add(0.1 * i)));
  return parts.reduce((sum, part) => sum.add(part.mul(0.3)));
};

const chosen: Step = ({ x, random }) => where(x.greater(random.next() - 0.5), tame(x), x.mul(0.3).cos());

/** By way of other element types. */
const casted: Step = ({ x, random, dtype }) => {
  if (random.chance(0.5)) return tame(x).mul(5).cast("i32").cast(dtype).mul(0.1).add(x);
  return x
    .cast(dtype === "f32" ? "f64" : "f32")
    .tanh()
    .cast(dtype);
};

const masked: Step = ({ x, dtype }) => x.greater(0.2).logicalAnd(x.less(0.9)).logicalOr(x.isnan()).cast(dtype).mul(x);

const dropped: Step = ({ x, key }) => dropout(x, 0.3, key());

const noise: Step = ({ x, key, dtype, random }) => {
  const drawn = random.chance(0.5) ? draws.normal(key(), x.shape, { dtype }) : draws.uniform(key(), x.shape, { dtype });
  return drawn.mul(0.1).add(x);
};

export const elementwise = { unary, binary, chain, twice, fanOut, chosen, casted, masked, dropped, noise } as const;
