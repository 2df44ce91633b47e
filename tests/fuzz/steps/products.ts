/** @file Steps around products, convolutions and attention. */
import {
  attention,
  avgPool1d,
  avgPool2d,
  conv1d,
  conv2d,
  convTranspose2d,
  einsum,
  matmul,
  maxPool1d,
  maxPool2d,
  type Tensor,
} from "../../../src/api/index.ts";
import { rowsOf, type Scene, type Step, tame, weights } from "../scene.ts";

/** A matrix with as many rows as x has columns. */
function matrixFor({ x, dtype, extent, other }: Scene): Tensor {
  const columns = x.shape.at(-1) as number;
  return other((w) => w.rank === 2 && w.shape[0] === columns) ?? weights(x, [columns, extent()], dtype);
}

const linear: Step = (scene) => {
  const { x, random } = scene;
  if (x.rank < 1 || x.elements === 0) return null;
  const y = tame(x)
    .matmul(tame(matrixFor(scene)))
    .mul(0.5);
  return random.chance(0.5) ? y.relu() : y;
};

/** A small network: two products with an activation between, beside x where it has x's shape. */
const residualBlock: Step = (scene) => {
  const { x, dtype, extent } = scene;
  if (x.rank < 1 || x.elements === 0) return null;
  const [columns, hidden] = [x.shape.at(-1) as number, extent()];
  const h = x
    .layerNorm()
    .matmul(weights(x, [columns, hidden], dtype))
    .gelu();
  return x.add(h.matmul(weights(h, [hidden, columns], dtype)).mul(0.5));
};

const gram: Step = ({ x, random, largest }) => {
  if (x.rank < 2 || x.elements === 0) return null;
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  const isLeft = random.chance(0.5);
  const side = isLeft ? columns : rows;
  if ((x.elements / (rows * columns)) * side * side > largest) return null;
  return matmul(tame(x), tame(x), isLeft ? { ta: true } : { tb: true }).mul(0.3);
};

const contracted: Step = ({ x, random }) => {
  if (x.rank !== 2 || x.elements === 0) return null;
  const spec = random.pick(["ij,ij->i", "ij,ij->j", "ij,kj->ik", "ij,ij->"]);
  if (spec === "ij,kj->ik" && (x.shape[0] as number) > 96) return null;
  return einsum(spec, tame(x), x.cos()).mul(0.2);
};

const attended: Step = ({ x, random, key: _ }) => {
  const [rows = 0] = x.shape.slice(-2);
  if (x.rank < 2 || x.rank > 4 || x.elements === 0 || rows > 128) return null;
  const q = tame(x);
  return attention(q, q.mul(0.7), q.add(0.1), { causal: random.chance(0.5) });
};

/** x as one image of as many channels as divide it. */
function imageOf({ x, random }: Scene): Tensor | null {
  const width = x.shape.at(-1) ?? 0;
  if (x.rank < 2 || width < 3) return null;
  const rows = rowsOf(x);
  const channels = random.pick([1, 2, 3, 4].filter((c) => rows % c === 0));
  if (rows / channels < 3) return null;
  return tame(x).reshape([1, channels, rows / channels, width]);
}

const convolved: Step = (scene) => {
  const { random, dtype, x } = scene;
  const image = imageOf(scene);
  if (!image) return null;
  const channels = image.shape[1] as number;
  const groups = random.chance(0.2) ? channels : 1;
  const filters = weights(x, [groups * (1 + random.int(3)), channels / groups, 3, 3], dtype);
  return conv2d(image, filters, { padding: random.int(2), stride: random.chance(0.3) ? 2 : 1, groups });
};

/** Convolution, activation, pooling, as networks have them. */
const convolvedAndPooled: Step = (scene) => {
  const y = convolved(scene);
  if (!y || !("rank" in y)) return null;
  return pooled({ ...scene, x: y.relu() }) ?? y;
};

const upsampled: Step = (scene) => {
  const { random, dtype, x, largest } = scene;
  const image = imageOf(scene);
  if (!image || image.elements * 8 > largest) return null;
  const filters = weights(x, [image.shape[1] as number, 1 + random.int(2), 2, 2], dtype);
  return convTranspose2d(image, filters, { stride: 1 + random.int(2) });
};

const convolvedLine: Step = ({ x, random, dtype }) => {
  const length = x.shape.at(-1) ?? 0;
  if (x.rank < 2 || length < 3 || x.elements === 0) return null;
  const channels = Math.min(8, rowsOf(x));
  if (rowsOf(x) % channels !== 0) return null;
  const line = tame(x).reshape([rowsOf(x) / channels, channels, length]);
  const padding = random.chance(0.5) ? "same" : 0;
  return conv1d(line, weights(x, [1 + random.int(4), channels, 3], dtype), { padding });
};

const pooled: Step = ({ x, random }) => {
  const [height = 0, width = 0] = x.shape.slice(-2);
  if (x.rank < 2 || height < 2 || width < 2 || x.elements === 0) return null;
  const isMax = random.chance(0.5);
  if (random.chance(0.3)) {
    const line = x.reshape([-1, height, width]);
    return isMax ? maxPool1d(line, 2) : avgPool1d(line, 2, { stride: 1 });
  }
  const image = x.reshape([-1, 1, height, width]);
  const stride = 1 + random.int(2);
  return isMax ? maxPool2d(image, 2, { stride }) : avgPool2d(image, 2, { stride });
};

export const products = {
  linear,
  residualBlock,
  gram,
  contracted,
  attended,
  convolved,
  convolvedAndPooled,
  upsampled,
  convolvedLine,
  pooled,
} as const;
