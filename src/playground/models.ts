/**
 * @file The two models of the playground: a transformer that learns a short text letter by letter, and a convolutional
 * network that classifies four drawn shapes. Both train in seconds on a phone and are large enough for planning to
 * matter.
 */
import { add } from "../api/elementwise.ts";
import { crossEntropy } from "../api/loss.ts";
import { reshape } from "../api/shape.ts";
import { belowFromBits, hostRandom, threefry } from "../base/random.ts";
import { tensorType } from "../ir/type.ts";
import { flatten, gelu } from "../nn/activation.ts";
import { conv2d } from "../nn/conv.ts";
import { heUniform, uniform } from "../nn/distributions.ts";
import { partKey } from "../nn/key.ts";
import { embedding, linear } from "../nn/linear.ts";
import { layerNorm } from "../nn/norm.ts";
import { sequential } from "../nn/sequential.ts";
import { transformerBlock } from "../nn/transformer.ts";
import { adam } from "../optim/adam.ts";
import { asPart } from "../trace/trace.ts";
import { BLOCKS, CATALOG, PICTURES, SIDE, TEXTS, TIME, WIDTH } from "./catalog.ts";
import { type Batch, type PlaygroundModel, playgroundModel } from "./model.ts";

const TEXT =
  "The tide comes in and the tide goes out, and the mark on the wall says how far it came. Every value has a place and a " +
  "time: it is written, it is read, and when it has been read for the last time its place is free for another. What is " +
  "kept takes room, what is not kept takes time, and the plan says which before anything runs. A smaller room makes a " +
  "longer way to the same place, for what was forgotten is computed again, bit by bit as it was the first time. ";

const LETTERS = [...new Set(TEXT)].sort();
const CODES = Int32Array.from(TEXT, (letter) => LETTERS.indexOf(letter));

/** Pieces of the text, and the same shifted by one letter. */
function letters(step: number): Batch {
  const [x, y] = [new Int32Array(TEXTS * TIME), new Int32Array(TEXTS * TIME)];
  for (let row = 0; row < TEXTS; row++) {
    const from = belowFromBits(threefry([1, 0], [step, row])[0], CODES.length);
    for (let i = 0; i < TIME; i++) {
      x[row * TIME + i] = CODES[(from + i) % CODES.length] as number;
      y[row * TIME + i] = CODES[(from + i + 1) % CODES.length] as number;
    }
  }
  return [x, y];
}

function transformer(): PlaygroundModel {
  // Uniform, so that the weights do not depend on the engine's cosine.
  const weight = uniform(-0.08, 0.08);
  const token = embedding(LETTERS.length, WIDTH, { table: weight });
  const block = transformerBlock(WIDTH, { heads: 4, causal: true, weight });
  const norm = layerNorm(WIDTH);
  const head = linear(WIDTH, LETTERS.length);
  return playgroundModel({
    ...CATALOG.transformer,
    optimizer: adam({ lr: 3e-3 }),
    inputs: [tensorType("i32", [TEXTS, TIME]), tensorType("i32", [TEXTS, TIME])],
    params: () => ({
      token: token.init(1),
      place: weight(2, [TIME, WIDTH]),
      blocks: Array.from({ length: BLOCKS }, (_, i) => block.init(partKey(3, i))),
      norm: norm.init(4),
      head: head.init(5),
    }),
    batch: letters,
    loss(p, x, y) {
      const embedded = add(token.apply(p.token, x), p.place);
      const last = p.blocks.reduce((h, b, i) => asPart(`block${i}`, () => block.apply(b, h)), embedded);
      const logits = head.apply(p.head, norm.apply(p.norm, last));
      return crossEntropy(reshape(logits, [TEXTS * TIME, LETTERS.length]), reshape(y, [TEXTS * TIME]));
    },
  });
}

/**
 * Whether a point, relative to the centre in units of the shape's size, is on the shape: ring, square, cross, triangle.
 */
const SHAPES: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => Math.abs(Math.sqrt(x * x + y * y) - 0.8) < 0.25,
  (x, y) => Math.abs(Math.max(Math.abs(x), Math.abs(y)) - 0.75) < 0.25,
  (x, y) => Math.abs(x) < 1 && Math.abs(y) < 1 && Math.abs(Math.abs(x) - Math.abs(y)) < 0.25,
  (x, y) => y > -0.9 && y < 0.9 && Math.abs(x) < (y + 0.9) / 1.8,
];

/** Shapes of different sizes in different places, under noise. */
function pictures(step: number): Batch {
  const random = hostRandom(1000 + step);
  const [x, y] = [new Float32Array(PICTURES * SIDE * SIDE), new Int32Array(PICTURES)];
  for (let p = 0; p < PICTURES; p++) {
    const kind = Math.floor(random.next() * SHAPES.length);
    const isOn = SHAPES[kind] as (x: number, y: number) => boolean;
    const [size, left, top] = [3.5 + 3 * random.next(), 5.5 + 4 * random.next(), 5.5 + 4 * random.next()];
    y[p] = kind;
    for (let i = 0; i < SIDE * SIDE; i++) {
      const on = isOn(((i % SIDE) - left) / size, (Math.floor(i / SIDE) - top) / size);
      x[p * SIDE * SIDE + i] = (on ? 1 : 0) + 0.8 * (random.next() - 0.5);
    }
  }
  return [x, y];
}

function cnn(): PlaygroundModel {
  const conv = (from: number, to: number, stride = 1) =>
    conv2d(from, to, 3, { padding: 1, stride, weight: heUniform() });
  const model = sequential(
    ...[conv(1, 8), gelu(), conv(8, 8), gelu(), conv(8, 8), gelu(), conv(8, 16, 2), gelu()],
    ...[conv(16, 16), gelu(), conv(16, 16), gelu(), conv(16, 16, 2), gelu(), flatten()],
    linear((16 * SIDE * SIDE) / 16, SHAPES.length),
  );
  return playgroundModel({
    ...CATALOG.cnn,
    optimizer: adam({ lr: 2e-3 }),
    inputs: [tensorType("f32", [PICTURES, 1, SIDE, SIDE]), tensorType("i32", [PICTURES])],
    params: () => model.init(6),
    batch: pictures,
    loss: (p, x, y) => crossEntropy(model.apply(p, x), y),
  });
}

export const MODELS: readonly PlaygroundModel[] = [transformer(), cnn()];
