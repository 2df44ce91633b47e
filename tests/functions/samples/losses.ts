/** @file Samples of losses of layers, against their formulas. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { average, build, each, get, type Index, indices, type Plain, reduceBy, softmaxOf, total } from "../plain.ts";
import { bool, type Family, type FunctionSample, i32 } from "../sample.ts";

/** Losses of tokens h [..., width] with w [width, classes], as loops. */
function linearLosses(
  [h, w, targets, bias]: readonly (Plain | undefined)[],
  { ignoreIndex, labelSmoothing: s = 0, zLoss: z = 0 }: tm.LinearCrossEntropyOptions,
): Plain {
  const [width = 0, classes = 0] = w!.shape;
  return build(targets!.shape, (i) => {
    const target = get(targets!, i);
    if (target === ignoreIndex) return 0;
    const logits = Array.from({ length: classes }, (_, c) =>
      total([
        ...Array.from({ length: width }, (_, k) => get(h!, [...i, k]) * get(w!, [k, c])),
        bias ? get(bias, [c]) : 0,
      ]),
    );
    const all = Math.log(total(logits.map(Math.exp)));
    return all - (1 - s) * logits[target]! - (s / classes) * total(logits) + z * all ** 2;
  });
}

const swapped = (w: Plain): Plain => build([...w.shape].reverse(), (i) => get(w, [...i].reverse()));

const linear: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const everything = { ignoreIndex: 2, labelSmoothing: 0.25, zLoss: 0.125 };
  const made = (reduction: tm.Reduction, losses: Plain, targets: Plain, ignored?: number): Plain => {
    if (reduction === "none") return losses;
    const counted = Array.from(targets.data).filter((target) => target !== ignored).length;
    const sum = total(Array.from(losses.data));
    return build([], () => (reduction === "mean" ? sum / counted : sum));
  };
  const range = [
    [-2, 2],
    [-2, 2],
    [0, 4],
    [-2, 2],
  ] as const;
  return [
    {
      name: "linearCrossEntropy",
      inputs: [x(5, 3), x(3, 4), i32(5)],
      range,
      call: (h, w, y) => tm.linearCrossEntropy(h!, w!, y!, { strip: 2 }),
      reference: (h, w, y) => made("mean", linearLosses([h, w, y], {}), y!),
    },
    ...(["none", "mean"] as const).map(
      (reduction): FunctionSample => ({
        name: "linearCrossEntropy",
        inputs: [x(2, 3, 2), x(4, 2), i32(2, 3), x(4)],
        range,
        call: (h, w, y, bias) =>
          tm.linearCrossEntropy(h!, w!, y!, { ...everything, reduction, strip: 3, bias: bias!, transposed: true }),
        reference: (h, w, y, bias) =>
          made(reduction, linearLosses([h, swapped(w!), y, bias], everything), y!, everything.ignoreIndex),
      }),
    ),
    {
      name: "linearCrossEntropy",
      inputs: [x(3, 2), x(2, 4), i32(3), x(4)],
      range,
      call: (h, w, y, bias) => tm.linearCrossEntropy(h!, w!, y!, { reduction: "sum", bias: bias! }),
      reference: (h, w, y, bias) => made("sum", linearLosses([h, w, y, bias], {}), y!),
    },
  ];
};

const REDUCTIONS = { none: (x: Plain) => x, sum: reduceBy(total), mean: reduceBy(average) } as const;
const KINDS = ["none", "sum", "mean"] as const;

type PairLoss = (x: tm.Tensor, y: tm.Tensor, options: tm.LossOptions) => tm.Tensor;

/** Losses of the elements of two tensors, with every reduction. */
function elements(
  t: "f32" | "f64",
  name: string,
  [call, reference]: readonly [PairLoss, (x: number, y: number) => number],
  second: readonly [number, number] = [-2, 2],
): readonly FunctionSample[] {
  return KINDS.map((reduction) => ({
    name,
    inputs: [tensorType(t, [3, 4]), tensorType(t, [3, 4])],
    range: [[-3, 3], second],
    call: (x, y) => call(x!, y!, { reduction }),
    reference: (x, y) => REDUCTIONS[reduction](each(reference)(x!, y!)),
  }));
}

const cut = (d: number, most: number): number => (Math.abs(d) <= most ? d ** 2 / 2 : most * (Math.abs(d) - most / 2));

const ofElements: Family = (t) => [
  ...elements(t, "l1", [tm.l1, (x, y) => Math.abs(x - y)]),
  ...elements(t, "huber", [(x, y, o) => tm.huber(x, y, { ...o, delta: 0.7 }), (x, y) => cut(x - y, 0.7)]),
  ...elements(t, "smoothL1", [(x, y, o) => tm.smoothL1(x, y, { ...o, beta: 0.7 }), (x, y) => cut(x - y, 0.7) / 0.7]),
  ...elements(t, "hinge", [tm.hinge, (x, y) => Math.max(0, 1 - x * y)]),
  ...elements(
    t,
    "binaryCrossEntropyWithLogits",
    [tm.binaryCrossEntropyWithLogits, (x, z) => z * Math.log1p(Math.exp(-x)) + (1 - z) * Math.log1p(Math.exp(x))],
    [0, 1],
  ),
  {
    name: "binaryCrossEntropyWithLogits",
    inputs: [tensorType(t, [3, 4]), tensorType(t, [3, 4]), tensorType(t, [4])],
    range: [
      [-3, 3],
      [0, 1],
      [0.5, 2],
    ],
    call: (x, y, posWeight) => tm.binaryCrossEntropyWithLogits(x!, y!, { posWeight: posWeight!, reduction: "none" }),
    reference: each((x, z, p) => p * z * Math.log1p(Math.exp(-x)) + (1 - z) * Math.log1p(Math.exp(x))),
  },
];

/** The vector along the last axis. */
const row = (x: Plain, index: Index): number[] =>
  Array.from({ length: x.shape.at(-1)! }, (_, c) => get(x, [...index, c]));

const distributions: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const lead = (a: Plain): readonly number[] => a.shape.slice(0, -1);
  return KINDS.flatMap((reduction): readonly FunctionSample[] => [
    {
      name: "klDivergence",
      inputs: [x(2, 3, 4), x(2, 3, 4)],
      range: [
        [-3, 0],
        [0.1, 1],
      ],
      call: (p, q) => tm.klDivergence(p!, q!, { reduction }),
      reference: (p, q) =>
        REDUCTIONS[reduction](
          build(lead(p!), (i) => total(row(q!, i).map((v, c) => v * (Math.log(v) - row(p!, i)[c]!)))),
        ),
    },
    {
      name: "klDivergence",
      inputs: [x(3, 4), x(3, 4)],
      call: (p, q) => tm.klDivergence(p!, q!, { reduction, logTarget: true }),
      reference: (p, q) =>
        REDUCTIONS[reduction](
          build(lead(p!), (i) => total(row(q!, i).map((v, c) => Math.exp(v) * (v - row(p!, i)[c]!)))),
        ),
      valuesOnly: true,
    },
  ]);
};

const classNumbers: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return KINDS.flatMap((reduction): readonly FunctionSample[] => [
    {
      name: "nll",
      inputs: [x(2, 3, 4), i32(2, 3), x(4)],
      range: [
        [-3, 0],
        [0, 4],
        [0.5, 2],
      ],
      call: (p, y, weight) => tm.nll(p!, y!, { reduction, weight: weight!, ignoreIndex: 1 }),
      reference: (p, y, weight) => {
        const weights = build(y!.shape, (i) => (get(y!, i) === 1 ? 0 : get(weight!, [get(y!, i)])));
        const losses = build(y!.shape, (i) => -get(weights, i) * row(p!, i)[get(y!, i)]!);
        if (reduction !== "mean") return REDUCTIONS[reduction](losses);
        return each((a, b) => a / b)(REDUCTIONS.sum(losses), REDUCTIONS.sum(weights));
      },
    },
    {
      name: "crossEntropy",
      inputs: [x(5, 4), i32(5), x(4)],
      range: [
        [-2, 2],
        [0, 4],
        [0.5, 2],
      ],
      call: (a, y, weight) =>
        tm.crossEntropy(a!, y!, { reduction, weight: weight!, ignoreIndex: 1, labelSmoothing: 0.25 }),
      reference: (a, y, weight) => {
        const weights = build(y!.shape, (i) => (get(y!, i) === 1 ? 0 : get(weight!, [get(y!, i)])));
        const losses = build(y!.shape, (i) => {
          if (get(y!, i) === 1) return 0;
          const logs = softmaxOf(row(a!, i)).map(Math.log);
          const spread = total(logs.map((v, c) => get(weight!, [c]) * v)) / 4;
          return -0.75 * get(weights, i) * logs[get(y!, i)]! - 0.25 * spread;
        });
        if (reduction !== "mean") return REDUCTIONS[reduction](losses);
        return each((p, q) => p / q)(REDUCTIONS.sum(losses), REDUCTIONS.sum(weights));
      },
    },
  ]);
};

const dot = (a: readonly number[], b: readonly number[]): number => total(a.map((v, i) => v * b[i]!));
const cosineOf = (a: readonly number[], b: readonly number[]): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
const apart = (a: readonly number[], b: readonly number[], p = 2): number =>
  total(a.map((v, i) => Math.abs(v - b[i]! + 1e-6) ** p)) ** (1 / p);

const vectors: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    {
      name: "cosineSimilarity",
      inputs: [x(2, 3, 4), x(2, 3, 4)],
      call: (a, b) => tm.cosineSimilarity(a!, b!),
      reference: (a, b) => build([2, 3], (i) => cosineOf(row(a!, i), row(b!, i))),
    },
    {
      name: "cosineSimilarity",
      inputs: [x(4, 3), x(4, 3)],
      call: (a, b) => tm.cosineSimilarity(a!, b!, { axis: 0 }),
      reference: (a, b) => {
        const column = (m: Plain, c: number) => Array.from({ length: 4 }, (_, r) => get(m, [r, c]));
        return build([3], ([c]) => cosineOf(column(a!, c!), column(b!, c!)));
      },
      valuesOnly: true,
    },
    {
      name: "cosineEmbedding",
      inputs: [x(2, 3, 4), x(2, 3, 4), bool(2, 3)],
      call: (a, b, same) =>
        tm.cosineEmbedding(a!, b!, tm.where(same!, tm.ones([2, 3], t), -1), { margin: -0.5, reduction: "none" }),
      reference: (a, b, same) =>
        build([2, 3], (i) => {
          const cosine = cosineOf(row(a!, i), row(b!, i));
          return get(same!, i) ? 1 - cosine : Math.max(0, cosine + 0.5);
        }),
    },
    ...[1, 2, 3].map(
      (p): FunctionSample => ({
        name: "tripletMargin",
        inputs: [x(5, 3), x(5, 3), x(5, 3)],
        call: (a, b, c) => tm.tripletMargin(a!, b!, c!, { p, swap: p === 3, margin: 0.5 }),
        reference: (a, b, c) =>
          REDUCTIONS.mean(
            build([5], (i) => {
              const [u, v, w] = [row(a!, i), row(b!, i), row(c!, i)];
              const far = p === 3 ? Math.min(apart(u, w, p), apart(v, w, p)) : apart(u, w, p);
              return Math.max(0, apart(u, v, p) - far + 0.5);
            }),
          ),
      }),
    ),
  ];
};

/** The probability that frames spell letters: that of all sequences of classes whose repeats and blanks (0) drop out to give them. */
function spelled(frames: readonly (readonly number[])[], letters: readonly number[]): number {
  const ways = indices(frames.map((p) => p.length)).filter((way) => {
    const read = way.filter((c, t) => c !== 0 && c !== way[t - 1]);
    return read.length === letters.length && read.every((c, i) => c === letters[i]);
  });
  return total(ways.map((way) => way.reduce((p, c, t) => p * frames[t]![c]!, 1)));
}

const sequences: Family = (t) =>
  (["none", "mean"] as const).map((reduction) => {
    const [targets, inputs, lengths] = [
      [
        [1, 1],
        [2, 9],
        [1, 2],
      ],
      [4, 3, 4],
      [2, 1, 2],
    ] as const;
    return {
      name: "ctc",
      inputs: [tensorType(t, [4, 3, 3])],
      range: [-3, 0],
      call: (logs) =>
        tm.ctc(
          logs!,
          tm.tensor(
            targets.map((list) => [...list]),
            { dtype: "i32" },
          ),
          {
            inputLengths: tm.tensor([...inputs], { dtype: "i32" }),
            targetLengths: tm.tensor([...lengths], { dtype: "i32" }),
            reduction,
          },
        ),
      reference: (logs) => {
        const losses = build([3], ([n]) => {
          const frames = Array.from({ length: inputs[n!]! }, (_, f) => row(logs!, [f, n!]).map(Math.exp));
          return -Math.log(spelled(frames, targets[n!]!.slice(0, lengths[n!]!)));
        });
        if (reduction === "none") return losses;
        return REDUCTIONS.mean(build([3], ([n]) => get(losses, [n!]) / lengths[n!]!));
      },
    };
  });

export const losses: Family = (t) => [
  ...linear(t),
  ...ofElements(t),
  ...distributions(t),
  ...classNumbers(t),
  ...vectors(t),
  ...sequences(t),
];
