/**
 * @file Two small models for measurements of training: a GPT over the bytes of this repository's first fifty decisions, and a network that classifies
 * points of spirals. Both are functions of a seed; data are the same for all seeds.
 */
import { readdirSync, readFileSync } from "node:fs";
import { add, arange, crossEntropy, type Tensor, tensor } from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";

/** A model to be trained. */
export interface Model {
  readonly name: string;
  init(seed: number): object;
  loss(params: object, x: Tensor, y: Tensor): Tensor;
  /** Of a step of a run, or of validation from step -1 down. */
  batch(step: number, seed: number): readonly [Tensor, Tensor];
}

/** A number in [0, 1) for a position of a stream. */
function noise(stream: number, i: number): number {
  const v = Math.sin(127.1 * (i + 1) + 311.7 * (stream + 1)) * 43758.5453;
  return v - Math.floor(v);
}

const whole = (values: readonly number[], shape: readonly number[]): Tensor => tensor(values, { dtype: "i32", shape });

export interface GptSizes {
  readonly width: number;
  readonly heads: number;
  readonly blocks: number;
  readonly length: number;
  readonly sequences: number;
}

const SIZES: GptSizes = { width: 64, heads: 4, blocks: 2, length: 64, sequences: 16 };

export function byteGpt({ width, heads, blocks, length, sequences }: GptSizes = SIZES): Model {
  const folder = new URL("../../docs/decisions/", import.meta.url);
  const files = readdirSync(folder).filter((name) => /^00[0-4]/.test(name));
  const text = files.sort().flatMap((name) => [...readFileSync(new URL(name, folder))]);
  const held = Math.floor(text.length * 0.9);
  const token = nn.embedding(256, width);
  const place = nn.embedding(length, width);
  const block = nn.transformerBlock(width, { heads, causal: true });
  const norm = nn.layerNorm(width);
  const head = nn.linear(width, 256);
  const init = (seed: number) => ({
    token: token.init(1000 * seed + 1),
    place: place.init(1000 * seed + 2),
    blocks: Array.from({ length: blocks }, (_, i) => block.init(1000 * seed + 10 + i)),
    norm: norm.init(0),
    head: head.init(1000 * seed + 3),
  });
  type Params = ReturnType<typeof init>;
  return {
    name: "byte GPT",
    init,
    loss(given, x, y) {
      const params = given as Params;
      const first = add(token.apply(params.token, x), place.apply(params.place, arange(length)));
      const last = params.blocks.reduce((h, own) => block.apply(own, h), first);
      return crossEntropy(head.apply(params.head, norm.apply(params.norm, last)), y);
    },
    batch(step, seed) {
      const [from, to] = step < 0 ? [held, text.length] : [0, held];
      const starts = Array.from({ length: sequences }, (_, i) => {
        return from + Math.floor(noise(step < 0 ? 7 : 100 + seed, step * sequences + i) * (to - from - length - 1));
      });
      const rows = (shift: number) => starts.flatMap((at) => text.slice(at + shift, at + shift + length));
      return [whole(rows(0), [sequences, length]), whole(rows(1), [sequences, length])];
    },
  };
}

/** Points of three spirals with noise,, through two layers of 128. */
export function spirals(points = 256): Model {
  const layers = nn.sequential(nn.linear(2, 128), nn.tanh(), nn.linear(128, 128), nn.tanh(), nn.linear(128, 3));
  return {
    name: "spirals",
    init: (seed) => layers.init(seed) as object,
    loss: (params, x, y) => crossEntropy(layers.apply(params as ReturnType<typeof layers.init>, x), y),
    batch(step, seed) {
      const stream = step < 0 ? 7 : 100 + seed;
      const rows = Array.from({ length: points }, (_, i) => {
        const n = 3 * (step * points + i);
        const [t, arm] = [0.2 + 1.1 * noise(stream, n), Math.floor(3 * noise(stream, n + 1))];
        const angle = 2 * Math.PI * (t + arm / 3) + 0.25 * (noise(stream, n + 2) - 0.5);
        return { at: [t * Math.cos(angle), t * Math.sin(angle)], arm };
      });
      const x = tensor(
        rows.flatMap(({ at }) => at),
        { shape: [points, 2] },
      );
      return [
        x,
        whole(
          rows.map(({ arm }) => arm),
          [points],
        ),
      ];
    },
  };
}
