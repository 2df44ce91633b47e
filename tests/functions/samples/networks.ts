/** @file Samples of normalisations, losses, attention and dropout, against their formulas. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import {
  along,
  average,
  build,
  each,
  get,
  inGroups,
  type Plain,
  reduceBy,
  softmaxOf,
  spread,
  standardOf,
  total,
} from "../plain.ts";
import { attentionOf } from "../plain-windows.ts";
import { bool, type Family, type FunctionSample, i32 } from "../sample.ts";

/** x · scale + offset, with vectors over one axis. */
const scaled = (x: Plain, axis: number, scale?: Plain, offset?: Plain): Plain =>
  build(x.shape, (index) => {
    const at = [index.at(axis)!];
    return get(x, index) * (scale ? get(scale, at) : 1) + (offset ? get(offset, at) : 0);
  });

const rms =
  (eps: number) =>
  (v: readonly number[]): number[] =>
    v.map((e) => e / Math.sqrt(average(v.map((d) => d * d)) + eps));

const probabilities: Family = (t) =>
  (
    [
      [[3, 5], -1],
      [[5, 3], 0],
      [[2, 3, 4], 1],
      [[7], -1],
      [[4, 1], -1],
      [[0, 3], -1],
    ] as const
  ).flatMap(([shape, axis]): readonly FunctionSample[] => {
    const inputs = [tensorType(t, shape)];
    return [
      { name: "softmax", inputs, call: (x) => tm.softmax(x!, axis), reference: (x) => along(x!, [axis], softmaxOf) },
      {
        name: "logSoftmax",
        inputs,
        call: (x) => tm.logSoftmax(x!, axis),
        reference: (x) => along(x!, [axis], (v) => softmaxOf(v).map(Math.log)),
      },
    ];
  });

const layers: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const affine = [x(3, 5), x(5), x(5)];
  return [
    {
      name: "layerNorm",
      inputs: [x(3, 5)],
      call: (a) => tm.layerNorm(a!),
      reference: (a) => along(a!, [-1], standardOf()),
    },
    {
      name: "layerNorm",
      inputs: affine,
      call: (a, scale, offset) => tm.layerNorm(a!, { scale: scale!, offset: offset!, eps: 0.1 }),
      reference: (a, scale, offset) => scaled(along(a!, [-1], standardOf(0.1)), -1, scale, offset),
    },
    {
      name: "layerNorm",
      inputs: [x(2, 3, 4)],
      call: (a) => tm.layerNorm(a!, { axes: [-2, -1] }),
      reference: (a) => along(a!, [-2, -1], standardOf()),
    },
    { name: "rmsNorm", inputs: [x(3, 5)], call: (a) => tm.rmsNorm(a!), reference: (a) => along(a!, [-1], rms(1e-5)) },
    {
      name: "rmsNorm",
      inputs: [x(2, 3, 5), x(5)],
      call: (a, scale) => tm.rmsNorm(a!, { scale: scale!, eps: 0.01 }),
      reference: (a, scale) => scaled(along(a!, [-1], rms(0.01)), -1, scale),
    },
  ];
};

const channels: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const batchStats = (a: Plain, axes: readonly number[]): readonly Plain[] => [
    reduceBy(average, axes)(a),
    reduceBy((v) => spread(v), axes)(a),
  ];
  const listed = ({ y, mean, variance }: tm.BatchNormResult) => [y, mean, variance];
  return [
    {
      name: "batchNorm",
      inputs: [x(4, 3)],
      call: (a) => listed(tm.batchNorm(a!)),
      reference: (a) => [along(a!, [0], standardOf()), ...batchStats(a!, [0])],
    },
    {
      name: "batchNorm",
      inputs: [x(2, 3, 4, 2), x(3), x(3)],
      call: (a, scale, offset) => listed(tm.batchNorm(a!, { scale: scale!, offset: offset!, eps: 0.01 })),
      reference: (a, scale, offset) => {
        const axes = [0, 2, 3];
        return [scaled(along(a!, axes, standardOf(0.01)), 1, scale, offset), ...batchStats(a!, axes)];
      },
    },
    {
      name: "batchNorm",
      inputs: [x(2, 3, 4), x(3), x(3)],
      range: [
        [-2, 2],
        [-1, 1],
        [0.5, 2],
      ],
      call: (a, mean, variance) => tm.batchNorm(a!, { mean: mean!, variance: variance! }).y,
      reference: (a, mean, variance) =>
        build(a!.shape, (i) => (get(a!, i) - get(mean!, [i[1]!])) / Math.sqrt(get(variance!, [i[1]!]) + 1e-5)),
    },
    {
      name: "groupNorm",
      inputs: [x(2, 6, 3)],
      call: (a) => tm.groupNorm(a!, 3),
      reference: (a) => inGroups(a!, ([n, c]) => `${n},${c! >> 1}`, standardOf()),
    },
    {
      name: "groupNorm",
      inputs: [x(2, 4, 2, 3), x(4), x(4)],
      call: (a, scale, offset) => tm.groupNorm(a!, 1, { scale: scale!, offset: offset! }),
      reference: (a, scale, offset) =>
        scaled(
          inGroups(a!, ([n]) => `${n}`, standardOf()),
          1,
          scale,
          offset,
        ),
    },
  ];
};

const surprise = (logits: Plain, index: readonly number[], weight: (c: number) => number): number => {
  const classes = logits.shape.at(-1)!;
  const p = softmaxOf(Array.from({ length: classes }, (_, c) => get(logits, [...index, c])));
  return -total(p.map((v, c) => weight(c) * Math.log(v)));
};

const REDUCTIONS = { none: (x: Plain) => x, sum: reduceBy(total), mean: reduceBy(average) } as const;

const losses: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return (["none", "sum", "mean"] as const).flatMap((reduction): readonly FunctionSample[] => [
    {
      name: "crossEntropy",
      inputs: [x(4, 5), i32(4)],
      range: [
        [-2, 2],
        [0, 5],
      ],
      call: (a, y) => tm.crossEntropy(a!, y!, { reduction }),
      reference: (a, y) => REDUCTIONS[reduction](build([4], (i) => surprise(a!, i, (c) => Number(c === get(y!, i))))),
    },
    {
      name: "crossEntropy",
      inputs: [x(2, 3, 4), i32(2, 3)],
      range: [
        [-9, 9],
        [0, 4],
      ],
      call: (a, y) => tm.crossEntropy(a!, y!, { reduction }),
      reference: (a, y) =>
        REDUCTIONS[reduction](build([2, 3], (i) => surprise(a!, i, (c) => Number(c === get(y!, i))))),
    },
    {
      name: "crossEntropy",
      inputs: [x(3, 4), x(3, 4)],
      range: [
        [-2, 2],
        [0.25, 1],
      ],
      call: (a, y) => tm.crossEntropy(a!, y!, { reduction }),
      reference: (a, y) => REDUCTIONS[reduction](build([3], (i) => surprise(a!, i, (c) => get(y!, [...i, c])))),
    },
    {
      name: "mse",
      inputs: [x(3, 4), x(3, 4)],
      call: (a, y) => tm.mse(a!, y!, { reduction }),
      reference: (a, y) => REDUCTIONS[reduction](each((p, q) => (p - q) ** 2)(a!, y!)),
    },
  ]);
};

const attentionsOf = (t: "f32" | "f64", form: tm.AttentionForm): readonly FunctionSample[] => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const heads = [x(2, 3, 4, 5), x(2, 3, 6, 5), x(2, 3, 6, 2)];
  return [
    {
      name: "attention",
      inputs: [x(4, 3), x(6, 3), x(6, 2)],
      call: (q, k, v) => tm.attention(q!, k!, v!, { form }),
      reference: (q, k, v) => attentionOf([q!, k!, v!], () => true),
    },
    {
      name: "attention",
      inputs: heads,
      call: (q, k, v) => tm.attention(q!, k!, v!, { causal: true, form }),
      // four queries are the last four of six positions
      reference: (q, k, v) => attentionOf([q!, k!, v!], (i, j) => j <= i + 2),
    },
    {
      name: "attention",
      inputs: [...heads, bool(4, 6)],
      call: (q, k, v, mask) => {
        const own = tm.greaterEqual(tm.arange(4).expandDims(1), tm.arange(6)); // so that every query sees a key
        return tm.attention(q!, k!, v!, { mask: mask!.logicalOr(own), scale: 0.7, form });
      },
      reference: (q, k, v, mask) => attentionOf([q!, k!, v!], (i, j) => get(mask!, [i, j]) === 1 || i >= j, 0.7),
    },
    {
      name: "attention",
      inputs: [...heads, x(3, 4, 6)],
      call: (q, k, v, bias) => tm.attention(q!, k!, v!, { mask: bias!, causal: true, scale: 0.7, form }),
      reference: (q, k, v, bias) =>
        attentionOf(
          [q!, k!, v!],
          (i, j) => j <= i + 2,
          0.7,
          ([, head], i, j) => get(bias!, [head!, i, j]),
        ),
    },
    {
      name: "attention",
      inputs: heads,
      // four queries are the last four of five positions
      call: (q, k, v) => tm.attention(q!, k!, v!, { causal: true, length: tm.tensor([5, 5], { dtype: "i32" }), form }),
      reference: (q, k, v) => attentionOf([q!, k!, v!], (i, j) => j <= i + 1),
    },
    {
      name: "attention",
      inputs: [x(2, 5, 4)],
      call: (q) => tm.attention(q!, q!, q!, { causal: true, form }),
      reference: (q) => attentionOf([q!, q!, q!], (i, j) => j <= i),
    },
  ];
};

/** Two of four heads of queries share one of keys. */
const grouped = (t: "f32" | "f64", form: tm.AttentionForm): FunctionSample => ({
  name: "attention",
  inputs: [tensorType(t, [4, 3, 2]), tensorType(t, [2, 5, 2]), tensorType(t, [2, 5, 3])],
  call: (q, k, v) => tm.attention(q!, k!, v!, { window: 2, form }),
  reference: (q, k, v) => {
    const twice = (x: Plain): Plain => build([4, ...x.shape.slice(1)], ([h, i, c]) => get(x, [h! >> 1, i!, c!]));
    return attentionOf([q!, twice(k!), twice(v!)], (i, j) => Math.abs(i + 2 - j) < 2);
  },
});

const attentions: Family = (t) =>
  (["stored", "streamed"] as const).flatMap((form) => [...attentionsOf(t, form), grouped(t, form)]);

const KEY = [-0x80000000, 0x80000000] as const;

const drawn: Family = (t) => [
  ...[0, 0.25, 0.9].map(
    (rate): FunctionSample => ({
      name: "dropout",
      inputs: [tensorType(t, [5, 7]), i32(2)],
      range: [[-2, 2], KEY],
      call: (x, key) => tm.dropout(x!, rate, key!),
    }),
  ),
];

export const networks: Family = (t) => [
  ...probabilities(t),
  ...layers(t),
  ...channels(t),
  ...losses(t),
  ...attentions(t),
  ...drawn(t),
];
