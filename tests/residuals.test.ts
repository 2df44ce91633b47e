/**
 * @file What a layer leaves behind for the backward pass, measured as what one more layer adds to the arena: a bit an
 * element where backward only compares, one map where it can compute the other again, and nothing more than before where a
 * value is kept anyway. With the bits that the same program has with everything kept as the rules of derivatives read it.
 */
import { describe, expect, test } from "vitest";
import * as activations from "../src/api/activations.ts";
import {
  abs,
  checkpoint,
  clamp,
  compile,
  forLoop,
  gelu,
  less,
  max,
  maximum,
  maxPool2d,
  minimum,
  mul,
  plan,
  relu,
  silu,
  softplus,
  spec,
  stopGradient,
  type Tensor,
  tensor,
  valueAndGrad,
  whileLoop,
} from "../src/api/index.ts";

const { hardShrink, hardSigmoid, hardTanh, leakyRelu, relu6, softShrink } = activations;

type Activation = (x: Tensor) => Tensor;

const SIZE = 256;
const ELEMENTS = SIZE * SIZE;

/** Layers whose product needs no weights' gradient, so that nobody else keeps what the activation reads. */
const layers =
  (activation: Activation, count: number) =>
  (x: Tensor, w: Tensor): Tensor => {
    let h = x;
    for (let i = 0; i < count; i++) h = activation(h.add(stopGradient(h.matmul(w))));
    return h.sum();
  };

const arenaOf = (activation: Activation, count: number): number =>
  plan(valueAndGrad(layers(activation, count)))(spec([SIZE, SIZE]), spec([SIZE, SIZE])).arenaBytes;

/** Bytes that one more layer takes. */
const layerBytes = (activation: Activation): number => (arenaOf(activation, 12) - arenaOf(activation, 8)) / 4;

const COMPARING: readonly (readonly [name: string, activation: Activation, bitsAnElement: number])[] = [
  ["relu", relu, 1],
  ["leakyRelu", leakyRelu, 1],
  ["prelu", (h) => activations.prelu(h, 0.1), 1],
  ["hardShrink", hardShrink, 1],
  ["softShrink", softShrink, 1],
  ["clamp", (h) => clamp(h, -1, 1), 1],
  ["abs", abs, 2],
  ["relu6", relu6, 2],
  ["hardTanh", hardTanh, 2],
  ["hardSigmoid", hardSigmoid, 2],
  ["maximum", (h) => maximum(h, 0), 2],
  ["minimum", (h) => minimum(h, stopGradient(mul(h, h))), 2],
];

/** Those that keep their input or their output. */
const WHOLE: readonly (readonly [name: string, activation: Activation])[] = [
  ["gelu", gelu],
  ["silu", silu],
  ["softplus", softplus],
  ["elu", activations.elu],
  ["selu", activations.selu],
  ["celu", (h) => activations.celu(h, 0.5)],
  ["hardSwish", activations.hardSwish],
  ["mish", activations.mish],
  ["softsign", activations.softsign],
  ["logSigmoid", activations.logSigmoid],
  ["tanhShrink", activations.tanhShrink],
];

describe("a layer leaves behind", () => {
  test.each(COMPARING)("the bits of what %s compares", (_, activation, bits) => {
    expect(layerBytes(activation)).toBe((ELEMENTS / 8) * bits);
  });

  test.each(WHOLE)("one map for %s", (_, activation) => {
    expect(layerBytes(activation)).toBe(4 * ELEMENTS);
  });

  test("a list of what every activation leaves behind", () => {
    const listed = [...COMPARING, ...WHOLE].map(([name]) => name);
    const all = Object.keys(activations).filter((name) => name !== "glu");
    expect(all.filter((name) => !listed.includes(name))).toEqual([]);
  });

  test("the bits of who is the largest, not what it is the largest of", () => {
    const top: Activation = (h) => h.add(max(h, 1, { keepDims: true }));
    expect(layerBytes(top)).toBeLessThan(ELEMENTS);
  });

  test("a row of bits a turn of a loop, also where the number of turns is not known", () => {
    const turns = (count: number, loop: (count: number, x: Tensor, w: Tensor) => Tensor): number =>
      plan(valueAndGrad((x: Tensor, w: Tensor) => loop(count, x, w).sum()))(spec([SIZE, SIZE]), spec([SIZE, SIZE]))
        .arenaBytes;
    const layer = (h: Tensor, w: Tensor): Tensor => relu(h.add(stopGradient(h.matmul(w))));
    const counted = (count: number, x: Tensor, w: Tensor): Tensor => forLoop(count, x, (_, h) => layer(h, w));
    const tested = (count: number, x: Tensor, w: Tensor): Tensor =>
      whileLoop(
        ({ i }) => less(i, count),
        ({ i, h }) => ({ i: i.add(1), h: layer(h, w) }),
        { i: tensor(0, { dtype: "i32" }), h: x },
        { maxSteps: count },
      ).h;
    for (const loop of [counted, tested]) {
      expect((turns(40, loop) - turns(24, loop)) / 16).toBe(ELEMENTS / 8);
    }
  });

  test("nothing but the output of relu where a product keeps that for its weights", () => {
    const trained =
      (count: number) =>
      (w: Tensor, x: Tensor): Tensor => {
        let h = x;
        for (let i = 0; i < count; i++) h = relu(h.matmul(w));
        return h.sum();
      };
    const arena = (count: number): number => {
      const { graph, arenaBytes } = plan(valueAndGrad(trained(count)))(spec([SIZE, SIZE]), spec([SIZE, SIZE]));
      // the last layer's output is only compared
      const words = graph.nodes.flatMap(({ outputs }) => outputs).filter(({ type }) => type.dtype === "i32");
      expect(words).toHaveLength(1);
      return arenaBytes;
    };
    expect((arena(12) - arena(8)) / 4).toBe(4 * ELEMENTS);
  });
});

describe("bits", () => {
  const random = (seed: number, elements: number, shape: readonly number[]): Tensor => {
    let state = seed;
    const data = Float32Array.from({ length: elements }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      // zeros too, which comparisons treat in a way of their own
      return state % 16 === 0 ? 0 : state / 2 ** 32;
    });
    return tensor(data, { shape });
  };

  /** Stepwise, every operation is a kernel of its own and everything is kept. */
  const sameBits = (fn: (x: Tensor, w: Tensor) => Tensor, x: Tensor, w: Tensor): void => {
    const expected = compile(valueAndGrad(fn, { argnums: [0] }), { checkNaN: true })(x, w);
    const made = compile(valueAndGrad(fn, { argnums: [0] }), { validate: true })(x, w);
    expect(made[0].data()).toEqual(expected[0].data());
    expect(made[1][0].data()).toEqual(expected[1][0].data());
  };

  test.each([...COMPARING, ["gelu", gelu, 32] as const])(
    "are those of a program that keeps everything: %s",
    (_, act) => {
      const square = [SIZE, SIZE];
      sameBits(layers(act, 3), random(1, ELEMENTS, square), random(2, ELEMENTS, square).mul(0.1));
      // a number of elements that fills no last word, and rows that fill no register
      const odd = (x: Tensor): Tensor => act(act(x.mul(1.5)).sub(0.1)).sum();
      sameBits(odd, random(3, 199 * 177, [199, 177]), random(4, 1, [1]));
    },
  );

  test("are the same through pooling, checkpoints and loops", () => {
    const images = random(5, 2 * 3 * 64 * 64, [2, 3, 64, 64]);
    sameBits(
      (x) =>
        maxPool2d(relu(x.mul(2)), 2)
          .square()
          .sum(),
      images,
      images,
    );
    const block = checkpoint((h: Tensor) => relu(relu(h.sub(0.1)).mul(1.5).sub(0.2)));
    const x = random(6, ELEMENTS, [SIZE, SIZE]);
    sameBits((h) => block(block(h)).sum(), x, x);
    sameBits((h) => forLoop(5, h, (_, c) => relu(c.mul(1.01).sub(0.01))).sum(), x, x);
  });
});
