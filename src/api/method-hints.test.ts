/** @file Names that tensors do not have are slow to look up, so that operations and calls of compiled functions look none up. */
import { expect, it } from "vitest";
import "../../tests/support/host.ts";
import { Tensor } from "../trace/tensor.ts";
import { compile, grad, tensor } from "./index.ts";

/** Names that were looked up and not found while a function ran. */
function missedNames(body: () => void): readonly string[] {
  const hints = Object.getPrototypeOf(Tensor.prototype) as object;
  const missed: string[] = [];
  const watch = new Proxy(hints, {
    get(target, name, receiver) {
      if (typeof name === "string" && !(name in Object.prototype)) missed.push(name);
      return Reflect.get(target, name, receiver);
    },
  });
  Object.setPrototypeOf(Tensor.prototype, watch);
  try {
    body();
  } finally {
    Object.setPrototypeOf(Tensor.prototype, hints);
  }
  return missed;
}

it("operations and calls look up what tensors have", () => {
  const x = tensor([1, 2, 3]);
  const f = compile((v: Tensor, scale: number) => v.mul(scale).tanh());
  const steps = (): void => {
    x.mul(x).add(1).sum().item();
    f(x, 2).data();
  };
  steps();
  grad((v: Tensor) => v.square().sum())(x);
  expect(missedNames(steps)).toEqual([]);
  expect(missedNames(() => (x as unknown as { multply: unknown }).multply)).toEqual(["multply"]);
});
