/** @file The layers of activations are the functions of the same names. */
import { describe, expect, it } from "vitest";
import * as activations from "../api/activations.ts";
import { softplus, type Tensor, tensor } from "../api/index.ts";
import * as nn from "./index.ts";

const x = tensor([
  [-4, -1, -0.25, 0.25],
  [0.5, 1, 4, 7],
]);

describe("layers of activations", () => {
  const layers = new Map<string, unknown>(Object.entries(nn));

  it.each(Object.entries(activations))("%s", (name, fn) => {
    const layer = (layers.get(name) as () => nn.Layer<object>)();
    const expected = name === "prelu" ? activations.prelu(x, 0.25) : (fn as (x: Tensor) => Tensor)(x);
    expect(layer.apply(layer.init(0), x).toArray()).toEqual(expected.toArray());
  });

  it("take the options of the functions", () => {
    const applied = (layer: nn.Layer<nn.NoParams>) => layer.apply({}, x).toArray();
    expect(applied(nn.leakyRelu(0.5))).toEqual(activations.leakyRelu(x, 0.5).toArray());
    expect(applied(nn.celu(2))).toEqual(activations.celu(x, 2).toArray());
    expect(applied(nn.hardTanh(-2, 3))).toEqual(activations.hardTanh(x, -2, 3).toArray());
    expect(applied(nn.glu(0))).toEqual(activations.glu(x, 0).toArray());
    expect(applied(nn.softplus({ beta: 2 }))).toEqual(softplus(x, { beta: 2 }).toArray());
    const { slope } = nn.prelu(4, 0.1).init(0);
    expect(slope.shape).toEqual([4]);
  });
});
