/** @file Loss scales that follow the gradients: what a step that overflows changes, and what the scale comes to. */
import { describe, expect, it } from "vitest";
import { autocast } from "../api/autocast.ts";
import { compile } from "../api/compile.ts";
import { valueAndGrad } from "../api/grad.ts";
import "../api/methods.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { adamw } from "./adam.ts";
import { dynamicLossScale, type ScaledState } from "./loss-scale.ts";
import { sgd } from "./sgd.ts";

type Params = { readonly w: Tensor };
const weights = (): Params => ({
  w: tensor(
    Array.from({ length: 32 }, (_, i) => Math.sin(i)),
    { dtype: "f32" },
  ).reshape([8, 4]),
});
const inputs = (scale = 1): Tensor =>
  tensor(Array.from({ length: 40 }, (_, i) => scale * Math.cos(i * 1.3))).reshape([5, 8]);
const lossOf = ({ w }: Params, x: Tensor): Tensor => x.matmul(w).square().mean();

function stepOf(optimizer: ReturnType<typeof dynamicLossScale>) {
  return compile(
    (state: ScaledState<Params>, x: Tensor) => {
      const cast = autocast(lossOf, { products: "f16", lossScale: state.scale });
      const [loss, grads] = valueAndGrad(cast)(state.params, x);
      return [optimizer.update(state, grads), loss] as const;
    },
    { donate: [0] },
  );
}

const numbers = (state: ScaledState<Params>): readonly number[] =>
  [state.params.w, ...Object.values(state.slots).map(({ w }) => w), state.step].flatMap((x) =>
    [...x.data()].map(Number),
  );

describe("a dynamic loss scale", () => {
  it("leaves parameters, moments and step as they are where gradients overflow, and is halved", () => {
    const optimizer = dynamicLossScale(adamw({ lr: 0.01 }));
    const step = stepOf(optimizer);
    const [first] = step(optimizer.init(weights()), inputs());
    const before = numbers(first);
    expect([first.scale.item(), first.step.item(), first.updates.item()]).toEqual([2 ** 15, 1, 1]);
    const [second, loss] = step(first, inputs(1e5));
    expect(Number.isFinite(loss.item())).toBe(false);
    expect(numbers(second)).toEqual(before);
    expect([second.scale.item(), second.step.item(), second.updates.item()]).toEqual([2 ** 14, 1, 0]);
    const [third] = step(second, inputs());
    expect(numbers(third)).not.toEqual(before);
    expect(numbers(third).every(Number.isFinite)).toBe(true);
  });

  it("grows after so many updates in a row, and comes down to what fits", () => {
    const optimizer = dynamicLossScale(sgd({ lr: 1e-3 }), { initial: 2 ** 40, every: 3, backoff: 2 ** -4 });
    const step = stepOf(optimizer);
    let state = optimizer.init(weights());
    const scales = Array.from({ length: 40 }, () => {
      [state] = step(state, inputs());
      return state.scale.item();
    });
    expect(scales[0]).toBe(2 ** 36);
    expect(Math.max(...scales.slice(10))).toBeLessThan(2 ** 22);
    expect(scales.some((scale, i) => i > 0 && scale > (scales[i - 1] ?? 0))).toBe(true);
  });

  it("changes no bit of updates that are in range", () => {
    const fixed = sgd({ lr: 0.1 });
    const scaled = dynamicLossScale(fixed, { initial: 1024 });
    const [state] = stepOf(scaled)(scaled.init(weights()), inputs());
    const step = compile((s: ReturnType<typeof fixed.init<Params>>, x: Tensor) => {
      const grads = valueAndGrad(autocast(lossOf, { products: "f16", lossScale: 1024 }))(s.params, x)[1];
      return fixed.update(s, grads);
    });
    expect([...state.params.w.data()]).toEqual([...step(fixed.init(weights()), inputs()).params.w.data()]);
  });

  it("is refused where it could not come back", () => {
    const asked = (options: object) => () => dynamicLossScale(sgd({ lr: 1 }), options);
    expect(asked({ growth: 0.5 })).toThrow("dynamicLossScale: growth 0.5");
    expect(asked({ backoff: 1 })).toThrow("dynamicLossScale: backoff 1");
    expect(asked({ every: 2.5 })).toThrow("dynamicLossScale: every 2.5");
    expect(asked({ initial: Number.NaN })).toThrow("dynamicLossScale: initial NaN");
    expect(asked({ start: 1 })).toThrow("start");
  });
});
