/** @file Products of matrices: what `linear` and `matmul` become, and what their gradients keep. */
import type { Autograd, EagerTensor } from "../autograd.ts";
import type { Call, Rule } from "../call.ts";
import { elementsOf, isContiguous, type Shape } from "../layout.ts";
import { matrixLike, product, reshaped, sumTo, transposed } from "./shared.ts";

/** x · w, each with its gradient from the other; `bias` is added by the product's kernel. */
function multiply(g: Autograd, name: string, [x, w, bias]: readonly (EagerTensor | null)[], shape: Shape): EagerTensor {
  const [a, b] = [x as EagerTensor, w as EagerTensor];
  const [needsA, needsB] = [g.needsGradient(a), g.needsGradient(b)];
  const y = product(g, [a, b], () => g.fresh(shape, a));
  g.record({
    ...{ name, inputs: [bias ?? null, a, b], outputs: [y] },
    saved: [needsB ? a : null, needsA ? b : null],
    backward: ([dy]) => {
      if (!dy) return [];
      const [da, dw] = [needsA ? matrixLike(g, a, b, dy) : null, needsB ? matrixLike(g, b, a, dy) : null];
      // the sum over rows is the engine's, after the node has run
      const db = bias && g.needsGradient(bias) ? sumTo(g, g.view(dy), bias.shape) : null;
      return [db, da, dw];
    },
  });
  return y;
}

function transposedMatrix(g: Autograd, w: EagerTensor): EagerTensor {
  const y = transposed(g, w, 0, 1);
  g.record({ name: "t", inputs: [w], outputs: [y], backward: ([dy]) => [dy ? transposed(g, dy, 0, 1) : null] });
  return y;
}

function reshapedStep(g: Autograd, x: EagerTensor, shape: Shape): EagerTensor {
  const y = reshaped(g, x, shape);
  g.record({ name: "view", inputs: [x], outputs: [y], backward: ([dy]) => [dy ? reshaped(g, dy, x.shape) : null] });
  return y;
}

/** Releases what only a composite operation holds. */
function releasing<T>(g: Autograd, tensors: readonly EagerTensor[], made: T): T {
  for (const tensor of tensors) g.release(tensor);
  return made;
}

/** Rows of all leading axes times one matrix. */
function rowsTimes(
  g: Autograd,
  x: EagerTensor,
  [w, bias]: readonly [EagerTensor, EagerTensor | null],
  name: string,
): EagerTensor {
  const [inner, columns] = [x.shape.at(-1) ?? 1, w.shape[1] ?? 1];
  const rows = elementsOf(x.shape) / Math.max(inner, 1);
  if (x.shape.length === 2) return multiply(g, name, [x, w, bias], [rows, columns]);
  const flat = reshapedStep(g, x, [rows, inner]);
  const y = multiply(g, name, [flat, w, bias], [rows, columns]);
  return releasing(g, [flat, y], reshapedStep(g, y, [...x.shape.slice(0, -1), columns]));
}

const linear: Rule = (call) => {
  const { g } = call;
  const [x, w, bias] = [call.t("input"), call.t("weight"), call.maybe("bias")];
  const turned = transposedMatrix(g, w);
  const isOneCall = x.shape.length === 2 || (x.shape.length === 3 && isContiguous(x.shape, x.strides));
  const y = rowsTimes(g, x, [turned, isOneCall ? bias : null], "linear");
  g.release(turned);
  if (!bias || isOneCall) return [y];
  const sum = g.view(y);
  g.record({
    ...{ name: "add_", inputs: [y, bias], outputs: [sum] },
    backward: ([dy]) => (dy ? [g.view(dy), g.needsGradient(bias) ? sumTo(g, g.view(dy), bias.shape) : null] : []),
  });
  return releasing(g, [y], [sum]);
};

/** Batches of matrices; operands are expanded and reshaped to three axes, which copies where they do not lie so. */
function batched(call: Call, a: EagerTensor, b: EagerTensor): EagerTensor {
  const { g } = call;
  const { shape } = call.type();
  const batch = elementsOf(shape.slice(0, -2));
  const threeAxes = (x: EagerTensor): EagerTensor => {
    const [rows, columns] = [x.shape.at(-2) ?? 1, x.shape.at(-1) ?? 1];
    const isWhole = elementsOf(x.shape) === batch * rows * columns;
    if (isWhole) return reshapedStep(g, x, [batch, rows, columns]);
    const copy = g.fresh([batch, rows, columns], x);
    g.record({
      ...{ name: "expand", inputs: [x], outputs: [copy] },
      backward: ([dy]) => [dy ? sumTo(g, g.view(dy), x.shape) : null],
    });
    return copy;
  };
  const [left, right] = [threeAxes(a), threeAxes(b)];
  const y = multiply(g, "bmm", [left, right], [batch, a.shape.at(-2) ?? 1, b.shape.at(-1) ?? 1]);
  return releasing(g, [left, right, y], reshapedStep(g, y, shape));
}

const matmul: Rule = (call) => {
  const { g } = call;
  const [a, b] = [call.t("self"), call.maybe("other") ?? call.t("mat2")];
  const { shape } = call.type();
  if (a.shape.length >= 2 && b.shape.length === 2) return [rowsTimes(g, a, [b, null], "mm")];
  if (a.shape.length < 2 || b.shape.length < 2) {
    const y = g.fresh(shape, a);
    g.record({
      ...{ name: "mv", inputs: [a, b], outputs: [y], saved: [a, b] },
      backward: ([dy]) => (dy ? [a, b].map((x) => (g.needsGradient(x) ? g.fresh(x.shape, x) : null)) : []),
    });
    return [y];
  }
  return [batched(call, a, b)];
};

const addmm: Rule = (call) => {
  const operands = [call.maybe("mat1") ?? call.t("batch1"), call.maybe("mat2") ?? call.t("batch2"), call.t("self")];
  return [multiply(call.g, "addmm", operands, call.type().shape)];
};

const mm: Rule = (call) => [multiply(call.g, "mm", [call.t("self"), call.t("mat2")], call.type().shape)];

/** Products of several operands: permuted and multiplied pairwise; each pair keeps both of its sides. */
const einsum: Rule = (call) => {
  const { g } = call;
  const list = call.list("tensors");
  const y = call.out();
  g.record({
    ...{ name: "einsum", inputs: list, outputs: [y], saved: list },
    backward: ([dy]) => (dy ? list.map((x) => (g.needsGradient(x) ? g.fresh(x.shape, x) : null)) : []),
  });
  return [y];
};

export const PRODUCTS: Readonly<Record<string, Rule>> = {
  ...{ linear, matmul, addmm, mm, einsum },
  bmm: mm,
  baddbmm: addmm,
  addbmm: addmm,
  mv: matmul,
  dot: matmul,
};
