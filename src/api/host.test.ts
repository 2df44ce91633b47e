/** @file The host of a process: there is one, and it is read when it is needed. */
import { describe, expect, it } from "vitest";
import { testHost } from "../../tests/support/host.ts";
import { compile } from "./compile.ts";
import { currentHost, installPart, plainHost } from "./host.ts";
import "./methods.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";

describe("a host", () => {
  it("is installed once: the same one again is accepted, another one is an error", () => {
    installPart("host", testHost);
    expect(() => installPart("host", { ...testHost })).toThrow("another host is installed already");
    expect(currentHost()).toBe(testHost);
  });

  it("is read when a compiled function is first called", () => {
    const twice = compile((x: Tensor) => x.mul(2), { target: "auto" });
    const { targets } = testHost;
    testHost.targets = { native: () => "there is no compiler here" };
    try {
      const { targetNote } = twice.program(tensor([1]));
      expect(targetNote).toBe("wasm, not native: there is no compiler here");
    } finally {
      testHost.targets = targets;
    }
  });

  it("of an engine by itself has neither native code, plans on disk nor a solver", () => {
    const { targets, planStore, findSolver } = plainHost();
    expect([Object.keys(targets), planStore, findSolver()]).toEqual([["webgpu"], null, undefined]);
  });
});
