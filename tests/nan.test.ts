/** @file NaN: it passes through programs unharmed, and `checkNaN` says where it came from. */
import { expect, test } from "vitest";
import { compile, type Tensor, tensor } from "../src/api/index.ts";

const bad = [1, Number.NaN, -3];

test("NaN in data passes through and does not spread to other elements", () => {
  const f = compile((x) => x.mul(2).relu());
  expect(f(tensor(bad)).toArray()).toEqual([2, Number.NaN, 0]);
});

test("checkNaN names the argument that holds it", () => {
  const f = compile((x) => x.mul(2), { checkNaN: true });
  expect(() => f(tensor([bad, [4, 5, 6]]))).toThrow(/NotANumber: argument x has 1 NaN, the first at \[0,1\]/);
});

test("checkNaN names the operation and the line that made it", () => {
  const f = compile((x) => x.sub(2).log().sum(), { checkNaN: true });
  expect(() => f(tensor([3, 1, 0]))).toThrow(
    /x\.log = log\(x\.sub\) made 2 NaN, the first at \[1\]\n {2}at .*nan\.test\.ts:\d+:\d+/,
  );
});

test("checkNaN leaves clean programs alone, donated or not", () => {
  const step = compile((s: Tensor, x: Tensor) => [s.add(x), s.mul(x).sum()] as const, { donate: [0], checkNaN: true });
  let state = tensor([1, 2]);
  for (let i = 0; i < 3; i++) [state] = step(state, tensor([1, 1]));
  expect(state.toArray()).toEqual([4, 5]);
});
