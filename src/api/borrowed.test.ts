/** @file Results that stay in the arena until the next call, and state that is read without a copy. */
import { describe, expect, it } from "vitest";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { compile } from "./compile.ts";
import "./methods.ts";

describe("borrowed results", () => {
  const twice = (x: Tensor): Tensor => x.mul(2);

  it("are read without a copy, and with one", () => {
    const run = compile(twice, { results: "borrowed" });
    const y = run(tensor([1, 2, 3]));
    expect([...y.borrow()]).toEqual([2, 4, 6]);
    expect(y.borrow().buffer).toBe(y.borrow().buffer);
    expect(y.data().buffer).not.toBe(y.borrow().buffer);
    expect(y.toArray()).toEqual([2, 4, 6]);
  });

  it("are stale after the next call, of other shapes too, and after dispose", () => {
    const run = compile(twice, { results: "borrowed" });
    const [first, second] = [run(tensor([1, 2, 3])), run(tensor([4, 5, 6]))];
    expect(() => first.data()).toThrow(/^StaleResult: this f32\[3\] was borrowed/);
    expect(() => first.borrow()).toThrow(/StaleResult/);
    expect(() => compile(twice)(first)).toThrow(/StaleResult/);
    expect([...second.borrow()]).toEqual([8, 10, 12]);
    run(tensor([1]));
    expect(() => second.item()).toThrow(/StaleResult/);
    const last = run(tensor([7]));
    run.dispose();
    expect(() => last.item()).toThrow(/StaleResult/);
  });

  it("can be given to the next call, which reads them first", () => {
    const run = compile(twice, { results: "borrowed" });
    let x = tensor([1, 2, 3]);
    for (let i = 0; i < 4; i++) x = run(x);
    expect(x.toArray()).toEqual([16, 32, 48]);
  });

  it("are refused under another word", () => {
    expect(() => compile(twice, { results: "lent" as "copied" })).toThrow(/compile: results is the string "lent"/);
  });
});

describe("borrow", () => {
  it("reads state in the arena without a copy, until it is donated", () => {
    const step = compile((s: Tensor) => s.add(1), { donate: [0] });
    const first = step(tensor([1, 2]));
    expect([...first.borrow()]).toEqual([2, 3]);
    const second = step(first);
    expect([...second.borrow()]).toEqual([3, 4]);
    expect(() => first.borrow()).toThrow(/DonatedTensor/);
  });

  it("reads any other tensor where it is", () => {
    expect([...tensor([1, 2]).borrow()]).toEqual([1, 2]);
  });
});
