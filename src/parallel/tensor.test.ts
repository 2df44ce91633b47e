/** @file Layers with weights in parts: values and gradients of one device with all of them. */
import { describe, expect, it } from "vitest";
import { leavesOf, onDevices, trainedOnDevices } from "../../tests/support/devices.ts";
import { Random } from "../../tests/support/random.ts";
import { attention, grad, type Tensor, tensor, valueAndGrad } from "../api/index.ts";
import { evaluate } from "../ir/evaluate.ts";
import { byteLength } from "../ir/type.ts";
import { adam } from "../optim/index.ts";
import { type AnyFunction, traceFunction } from "../trace/function.ts";
import { allGather, allReduce } from "./collectives.ts";
import { dataParallel } from "./data-parallel.ts";
import { mesh } from "./mesh.ts";
import {
  type LinearParams,
  parallelAttention,
  parallelCrossEntropy,
  parallelEmbedding,
  parallelMlp,
  part,
} from "./tensor.ts";

const T = { over: "t" };
const [TOKENS, WIDTH, HIDDEN, CLASSES] = [4, 8, 16, 12];

function draws(shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Array.from({ length: count }, () => random.next() - 0.5)).reshape(shape);
}

const params = {
  table: draws([CLASSES, WIDTH], 1),
  q: draws([WIDTH, WIDTH], 2),
  k: draws([WIDTH, WIDTH], 3),
  v: draws([WIDTH, WIDTH], 4),
  out: draws([WIDTH, WIDTH], 5),
  up: draws([WIDTH, HIDDEN], 6),
  a: draws([HIDDEN], 7),
  down: draws([HIDDEN, WIDTH], 8),
  b: draws([WIDTH], 9),
  head: draws([WIDTH, CLASSES], 10),
};
type Params = typeof params;
interface Mlp {
  readonly up: Tensor;
  readonly down: Tensor;
}
const tokens = tensor([3, 0, 11, 7], "i32");
const targets = tensor([0, 11, 7, 5], "i32");

function alone(p: Params): Tensor {
  const byHead = (x: Tensor) => x.reshape([TOKENS, 4, 2]).swapAxes(0, 1);
  const x = p.table.take(tokens);
  const y = attention(byHead(x.matmul(p.q)), byHead(x.matmul(p.k)), byHead(x.matmul(p.v)), { causal: true });
  const h = x.add(y.swapAxes(0, 1).reshape([TOKENS, WIDTH]).matmul(p.out));
  const z = h.add(h.matmul(p.up).add(p.a).gelu().matmul(p.down).add(p.b));
  return z.matmul(p.head).crossEntropy(targets);
}

/** The same with weights in parts, and with `sequence` tokens in parts in between. */
const parted =
  (sequence: boolean) =>
  (p: Params): Tensor => {
    const options = sequence ? { ...T, sequence: 0 } : T;
    const cut = (w: Tensor, axis: number) => part(w, { ...T, axis });
    const x = parallelEmbedding(cut(p.table, 0), tokens, options);
    const heads = { q: { w: cut(p.q, 1) }, k: { w: cut(p.k, 1) }, v: { w: cut(p.v, 1) }, out: { w: cut(p.out, 0) } };
    const h = x.add(parallelAttention(x, heads, { ...options, heads: 4, causal: true }));
    const mlp = { up: { w: cut(p.up, 1), b: cut(p.a, 0) }, down: { w: cut(p.down, 0), b: p.b } };
    const z = h.add(parallelMlp(h, mlp, options));
    const all = sequence ? allGather(z, { ...T, axis: 0 }) : z;
    return parallelCrossEntropy(all.matmul(cut(p.head, 1)), targets, T);
  };

function close(made: ArrayLike<number>, expected: ArrayLike<number>): void {
  expect(made.length).toBe(expected.length);
  for (let e = 0; e < made.length; e++) expect(made[e]).toBeCloseTo(expected[e] as number, 10);
}

describe("layers with weights in parts", () => {
  const { graph, captures } = traceFunction(((p: Params) => valueAndGrad(alone)(p)) as AnyFunction, [params]);
  const expected = evaluate(graph, [...leavesOf([params]), ...leavesOf(captures.map((c) => c.tensor))]);

  it.each([
    [1, false],
    [2, false],
    [4, false],
    [1, true],
    [2, true],
    [4, true],
  ] as const)("on %i devices, tokens in parts: %s, are those of one", (p, sequence) => {
    const step = (own: Params) => valueAndGrad(parted(sequence))(own);
    const { results } = onDevices(step as never, { mesh: mesh({ t: p }), in: [[]], out: [] }, () => [params]);
    for (const own of results) for (const [i, leaf] of own.entries()) close(leaf, expected[i] ?? []);
  });

  it.each([0, 2, 3] as const)("train on a mesh of two axes, zero %i", (zero) => {
    const loss = (p: Mlp, x: Tensor, y: Tensor) => {
      const { up, down } = p;
      return parallelMlp(x, { up: { w: up }, down: { w: down } }, T)
        .sub(y)
        .square()
        .mean();
    };
    const train = (axes: Record<string, number>, more: object) =>
      dataParallel(loss, adam({ lr: 0.1 }), { mesh: mesh(axes), over: "data", params: "t", ...more });
    const rows = (rank: number, step: number) => [
      draws([2, WIDTH], 20 + rank + 4 * step),
      draws([2, WIDTH], 40 + rank + 4 * step),
    ];
    const course = { steps: 2, round: false };
    const whole = { up: params.up, down: params.down };
    const joined = (_: number, step: number) =>
      [0, 1].map((i) => tensor([0, 1].flatMap((rank) => rows(rank, step)[i]?.toArray() as number[][])));
    const one = trainedOnDevices(train({ data: 1, t: 1 }, { microbatches: 2 }) as never, 1, {
      ...course,
      start: () => whole,
      rows: joined,
    });
    // rank 2·d + t: the columns of up and the rows of down that are t's
    const own = (rank: number) => {
      const half = [(rank % 2) * (HIDDEN / 2), (rank % 2) * (HIDDEN / 2) + HIDDEN / 2] as const;
      return { up: params.up.slice([null, half]), down: params.down.slice([half]) };
    };
    const four = trainedOnDevices(train({ data: 2, t: 2 }, { zero }) as never, 4, {
      ...course,
      start: own,
      rows: (rank, step) => rows(Math.floor(rank / 2), step),
    });
    for (const [i, losses] of four.losses.entries())
      for (const made of losses) expect(made).toBeCloseTo(one.losses[i]?.[0] ?? 0, 9);
    const down = [...(four.params[0]?.[1] ?? []), ...(four.params[1]?.[1] ?? [])];
    close(down, one.params[0]?.[1] ?? []);
  });

  it("keep a part of the activations for the backward pass, to the byte", () => {
    const norm = (x: Tensor) => {
      const centred = x.sub(x.mean(-1, { keepDims: true }));
      return centred.mul(centred.square().mean(-1, { keepDims: true }).add(1e-5).rsqrt());
    };
    const [tokens, width, hidden] = [16, 16, 64];
    const kept = (p: number) => {
      const options = { ...T, sequence: 0 };
      const block = (ws: readonly Tensor[], x: Tensor) => {
        const [q, k, v, out, up, down] = ws.map((w) => ({ w })) as [
          LinearParams,
          LinearParams,
          LinearParams,
          LinearParams,
          LinearParams,
          LinearParams,
        ];
        const h = x.add(parallelAttention(norm(x), { q, k, v, out }, { ...options, heads: 8, causal: true }));
        return allReduce(
          h
            .add(parallelMlp(norm(h), { up, down }, options))
            .square()
            .sum(),
          T,
        );
      };
      const [w, n] = [width / p, hidden / p];
      const shapes = [
        [width, w],
        [width, w],
        [width, w],
        [w, width],
        [width, n],
        [n, width],
      ];
      const step = (ws: readonly Tensor[], x: Tensor) => grad((u: readonly Tensor[]) => block(u, x))(ws);
      const args = [shapes.map((shape) => draws(shape, 1)), draws([tokens / p, width], 2)];
      const { passed } = onDevices(step as never, { mesh: mesh({ t: p }), in: ["t", "t"], out: "t" }, () => args);
      const later = new Set(passed.nodes.filter(({ phase }) => phase === "backward").flatMap(({ inputs }) => inputs));
      const made = passed.nodes.filter(
        ({ phase, op }) => phase === "forward" && op.alias === null && !op.facts?.constant,
      );
      return made
        .flatMap(({ outputs }) => outputs)
        .reduce((bytes, value) => bytes + (later.has(value) ? byteLength(value.type) : 0), 0);
    };
    expect(kept(2) * 2).toBe(kept(1));
    expect(kept(4) * 4).toBe(kept(1));
  });

  it("say what does not come out even", () => {
    const run = (fn: (x: Tensor) => Tensor) => () =>
      onDevices(fn as never, { mesh: mesh({ t: 3 }), in: [[]], out: ["t"] }, () => [params.q]);
    expect(run((x) => part(x, { ...T, axis: 0 }))).toThrow("part: axis 0 of 8 in 3 parts");
    const heads = { q: { w: params.q }, k: { w: params.q }, v: { w: params.q }, out: { w: params.q } };
    expect(run((x) => parallelAttention(x, heads, { ...T, heads: 4 }))).toThrow("4 heads on 3 devices");
  });
});
