/** @file Samples of losses of layers, against their formulas. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, type Plain, total } from "../plain.ts";
import { type Family, type FunctionSample, i32 } from "../sample.ts";

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

export const losses: Family = (t) => [...linear(t)];
