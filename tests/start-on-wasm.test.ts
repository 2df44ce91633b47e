/**
 * @file `startOnWasm` of `compileAsync`: the program runs on WebAssembly until native code is there. What is posted to workers is held
 * back by target, so that tests decide what is ready first.
 */
import { afterEach, describe, expect, it } from "vitest";
import * as tm from "../src/api/index.ts";
import { nodeHost } from "../src/node/host.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import type { TaskStarter } from "../src/runtime/task-worker.ts";
import { testHost } from "./support/host.ts";

const hasNative = typeof nativeTarget() !== "string";

/** Tasks for a target wait until they are let go. */
function heldTasks(target: "native" | "wasm") {
  const held: (() => void)[] = [];
  const counts = { started: 0, ended: 0 };
  let isOpen = false;
  const starter: TaskStarter = (text, listener) => {
    const worker = nodeHost.startTask(text, listener);
    if (typeof worker === "string") return worker;
    counts.started++;
    const post = (message: unknown): void => {
      const { settings } = message as { readonly settings: { readonly target: string } };
      const isHeld = settings.target.startsWith(target) && !isOpen;
      if (isHeld) held.push(() => worker.post(message));
      else worker.post(message);
    };
    const end = (): void => {
      counts.ended++;
      worker.end();
    };
    return { post, end };
  };
  testHost.startTask = starter;
  const letGo = (): void => {
    isOpen = true;
    for (const go of held.splice(0)) go();
  };
  return { letGo, counts };
}

afterEach(() => {
  testHost.startTask = nodeHost.startTask;
});

/** Is told of progress, and waits for the move. */
function watched() {
  let moved = (_: tm.CompileProgress): void => undefined;
  const done = new Promise<tm.CompileProgress>((resolve) => {
    moved = resolve;
  });
  const onProgress = (progress: tm.CompileProgress): void => {
    if (progress.stage === "move") moved(progress);
  };
  return { done, onProgress };
}

const weights = () => tm.random.normal(tm.random.key(3), [40, 24]).mul(0.3);
const rows = tm.random.normal(tm.random.key(4), [64, 40]);

/** With a product: bits depend on the target. */
function descend(w: tm.Tensor, x: tm.Tensor) {
  const [loss, dw] = tm.valueAndGrad((v: tm.Tensor) => x.matmul(v).tanh().square().mean())(w);
  return [w.sub(dw.mul(0.1)), loss] as const;
}

/** Without one, with sums and functions: the same bits everywhere. */
function relax(u: tm.Tensor, f: tm.Tensor) {
  const next = u.add(tm.tanh(u.sub(f)).mul(-0.05)).add(u.sum(0).mul(1e-3));
  return [next, next.square().sum()] as const;
}

const asked = { donate: [0], target: "auto" } as const;

/** The state after so many steps. */
function after<F extends (state: tm.Tensor, x: tm.Tensor) => readonly [tm.Tensor, tm.Tensor]>(
  run: F,
  state: tm.Tensor,
  steps: number,
): tm.Tensor {
  let now = state;
  for (let i = 0; i < steps; i++) [now] = run(now, rows);
  return now;
}

describe.runIf(hasNative)("a program that starts on WebAssembly", () => {
  it("moves to native code between two calls, with its state", async () => {
    const { letGo } = heldTasks("native");
    const { done, onProgress } = watched();
    const run = await tm.compileAsync(descend, [weights(), rows], { ...asked, startOnWasm: "any-bits", onProgress });
    expect(run.program(weights(), rows)).toMatchObject({
      target: "wasm",
      targetNote: "wasm until native code is compiled",
    });
    const state = after(run, weights(), 3);
    letGo();
    const { plan, note } = await done;
    expect(note).toBe("wasm for the first 3 calls");
    const now = run.program(weights(), rows);
    expect(now).toMatchObject({ target: "native", targetNote: note });
    expect(plan?.arenaBytes).toBe(now.arenaBytes);
    const [wasm, native] = (["wasm", "native"] as const).map((target) => tm.compile(descend, { donate: [0], target }));
    const expected = after(native as typeof run, after(wasm as typeof run, weights(), 3), 2);
    expect(after(run, state, 2).toArray()).toEqual(expected.toArray());
    expect(() => state.data()).toThrow(/donated/);
    expect(run.stats()).toMatchObject({ programs: 1, calls: 5, compiled: 2, dropped: 0 });
    expect(printed(now)).toBe(printed(tm.compile(descend, { donate: [0], target: "native" }).program(weights(), rows)));
  });

  it("keeps what callers hold: results, state that is not passed on, constants that were donated meanwhile", async () => {
    const { letGo } = heldTasks("native");
    const { done, onProgress } = watched();
    const [constant, lazy] = [tm.tensor([1, 2, 3]), tm.random.normal(tm.random.key(5), [3])];
    const scale = (x: tm.Tensor) => [x.add(1), x.mul(constant).add(lazy)] as const;
    const options = { ...asked, startOnWasm: "same-bits" as const, onProgress };
    const run = await tm.compileAsync(scale, [tm.spec([3])], options);
    const [state, result] = run(tm.tensor([1, 1, 1]));
    tm.compile((c: tm.Tensor) => c.mul(2), { donate: [0] })(constant);
    letGo();
    await done;
    const values = state.toArray();
    expect(values).toEqual([2, 2, 2]);
    tm.compile((c: tm.Tensor) => c.mul(2), { donate: [0] })(lazy);
    const [, next] = run(tm.tensor([1, 1, 1]));
    expect(next.toArray()).toEqual(result.toArray());
    expect(run(state)[0].toArray()).toEqual([3, 3, 3]);
  });

  it("with the same bits only where it has no products of floats", async () => {
    const { letGo } = heldTasks("native");
    const plain = tm.compile(relax, { donate: [0], target: "native" });
    const first = watched();
    const run = await tm.compileAsync(relax, [rows, rows], {
      ...asked,
      startOnWasm: "same-bits",
      onProgress: first.onProgress,
    });
    expect(run.program(rows, rows).target).toBe("wasm");
    const state = after(run, rows.mul(1), 2);
    const waiting = tm.compileAsync(descend, [weights(), rows], { ...asked, startOnWasm: "same-bits" });
    letGo();
    await first.done;
    expect(after(run, state, 2).toArray()).toEqual(after(plain, rows.mul(1), 4).toArray());
    expect((await waiting).program(weights(), rows)).toMatchObject({ target: "native", targetNote: null });
  });

  it("has the same bits on both in every kind of kernel but products", () => {
    const image = tm.random.normal(tm.random.key(6), [2, 3, 10, 10]);
    const matrix = tm.random.normal(tm.random.key(7), [9, 9]).mul(0.1).add(tm.eye(9));
    const kinds: readonly (readonly [(x: tm.Tensor) => tm.Tensor, tm.Tensor])[] = [
      [(x) => tm.softmax(x), rows],
      [(x) => x.layerNorm().gelu(), rows],
      [(x) => tm.cumsum(x, 1).max(1), rows],
      [(x) => tm.sort(x, 0), rows],
      [(x) => x.abs().add(0.1).log().pow(1.7).sum(0), rows],
      [(x) => tm.maxPool2d(x, 3, { stride: 2, padding: 1 }), image],
      [(x) => tm.take(x, tm.tensor([3, 3, 1], { dtype: "i32" }), 0), rows],
    ];
    const bits = (f: (x: tm.Tensor) => readonly tm.Tensor[], x: tm.Tensor, target: "wasm" | "native") =>
      tm
        .compile(f, { target })(x)
        .map((y) => new Uint32Array(new Float32Array(y.data() as Float32Array).buffer));
    for (const [f, x] of kinds) {
      const both = (y: tm.Tensor) => [f(y), tm.grad((z: tm.Tensor) => f(z).square().sum())(y)] as const;
      expect(bits(both, x, "native"), String(f)).toEqual(bits(both, x, "wasm"));
    }
    const inverse = (y: tm.Tensor) => [tm.linalg.inv(y)];
    expect(bits(inverse, matrix, "native")).toEqual(bits(inverse, matrix, "wasm"));
  });

  it("is native from the first call on where that is ready first", async () => {
    const { counts } = heldTasks("wasm");
    const run = await tm.compileAsync(descend, [weights(), rows], { ...asked, startOnWasm: "any-bits" });
    expect(run.program(weights(), rows)).toMatchObject({ target: "native", targetNote: null });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(counts).toEqual({ started: 2, ended: 2 });
  });

  it("compiles other shapes for the target it is on", async () => {
    const { letGo } = heldTasks("native");
    const { done, onProgress } = watched();
    const double = (x: tm.Tensor) => x.mul(2);
    const run = await tm.compileAsync(double, [tm.spec([3])], {
      target: "auto",
      startOnWasm: "same-bits",
      onProgress,
    });
    expect(run(tm.tensor([1])).toArray()).toEqual([2]);
    expect(run.program(tm.spec([1])).target).toBe("wasm");
    letGo();
    await done;
    expect(run.program(tm.spec([3])).target).toBe("native");
    expect(run(tm.tensor([1])).toArray()).toEqual([2]);
    expect(run.program(tm.spec([1])).target).toBe("native");
  });

  it("stays on WebAssembly where the compilation is aborted, and says so", async () => {
    const { counts } = heldTasks("native");
    const { done, onProgress } = watched();
    const controller = new AbortController();
    const { signal } = controller;
    const run = await tm.compileAsync(descend, [weights(), rows], {
      ...asked,
      ...{ startOnWasm: "any-bits", onProgress, signal },
    });
    controller.abort("enough");
    const note = "wasm to the end: Aborted: the compilation of descend was aborted: enough";
    expect((await done).note).toBe(note);
    expect(run.program(weights(), rows)).toMatchObject({ target: "wasm", targetNote: note });
    after(run, weights(), 1);
    expect(counts).toEqual({ started: 2, ended: 2 });
  });

  it("is not compiled any further once it is disposed of, and never moves", async () => {
    const { counts } = heldTasks("native");
    const told: string[] = [];
    const run = await tm.compileAsync(descend, [weights(), rows], {
      ...asked,
      startOnWasm: "any-bits",
      onProgress: ({ stage }) => told.push(stage),
    });
    run.dispose();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(counts).toEqual({ started: 2, ended: 2 });
    expect(told).not.toContain("move");
    expect(() => run(weights(), rows)).toThrow(/disposed/);
  });

  it("is aborted as a whole before it is ready", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const making = tm.compileAsync(descend, [weights(), rows], { ...asked, startOnWasm: "any-bits", signal });
    controller.abort("too late");
    await expect(making).rejects.toThrow(/descend was aborted: too late/);
  });

  it("has the errors of the function and of the plan", async () => {
    const wrong = (x: tm.Tensor) => x.matmul(x);
    const options = { target: "auto", startOnWasm: "any-bits" } as const;
    await expect(tm.compileAsync(wrong, [tm.spec([2, 3])], options)).rejects.toThrow(/inner dimensions/);
  });
});

const printed = ({ arenaBytes, kernelCalls, predictedMs, plan }: tm.ProgramInfo) =>
  JSON.stringify({ arenaBytes, kernelCalls, predictedMs, offsets: plan.offsets });

describe("a start on WebAssembly is refused", () => {
  it.each([
    [{ target: "wasm" }, /startOnWasm is for the target auto/],
    [{ target: "auto", memory: "1MB" }, /startOnWasm and memory: .*there are two/],
    [{ target: "auto", maxSlowdown: 1.5 }, /startOnWasm and maxSlowdown/],
    [{ target: "auto", checkNaN: true }, /startOnWasm and checkNaN/],
    [{ target: "auto", startOnWasm: "often" }, /startOnWasm is the string "often"/],
    [{ target: "auto", startOnWasm: true }, /startOnWasm/],
  ])("%j", async (options, message) => {
    const wanted = { startOnWasm: "same-bits", ...options } as tm.CompileAsyncOptions;
    await expect(tm.compileAsync((x: tm.Tensor) => x.mul(2), [tm.spec([2])], wanted)).rejects.toThrow(message);
  });

  it("nowhere else: without a compiler it is WebAssembly from the first to the last call", async () => {
    const { targets } = testHost;
    testHost.targets = { ...testHost.targets, native: () => "no C compiler" };
    try {
      const run = await tm.compileAsync(relax, [rows, rows], { ...asked, startOnWasm: "same-bits" });
      expect(run.program(rows, rows)).toMatchObject({ target: "wasm", targetNote: "wasm, not native: no C compiler" });
    } finally {
      testHost.targets = targets;
    }
  });
});
