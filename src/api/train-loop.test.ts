/** @file The loop runs the steps that were asked for, in order, lets the event loop run in between, and can be ended. */
import { describe, expect, it } from "vitest";
import { nextTask } from "./event-loop.ts";
import { compile, type Tensor, tensor, trainLoop } from "./index.ts";

const halve = compile((x: Tensor) => [x.mul(0.5), x.sum()] as const);

describe("trainLoop", () => {
  it("has the state and the loss of the same steps without it", async () => {
    const seen: number[] = [];
    const { state, loss, steps } = await trainLoop({
      state: tensor([8, 16]),
      steps: 3,
      step: (x, i) => (i === 1 ? Promise.resolve(halve(x)) : halve(x)),
      onStep: (i, of) => seen.push(i, of.item()),
    });
    expect([state.toArray(), loss?.item(), steps]).toEqual([[1, 2], 6, 3]);
    expect(seen).toEqual([0, 24, 1, 12, 2, 6]);
    expect(await trainLoop({ state, steps: 0, step: halve })).toEqual({ state, loss: null, steps: 0 });
  });

  it("lets timers fire while it runs", async () => {
    let fired = 0;
    const timer = setInterval(() => fired++, 1);
    const busy = (x: Tensor): readonly [Tensor, Tensor] => {
      const until = performance.now() + 2;
      while (performance.now() < until);
      return [x, x];
    };
    await trainLoop({ state: tensor(1), steps: 60, step: busy });
    clearInterval(timer);
    expect(fired).toBeGreaterThan(2);
  });

  it("ends after the step in which it is aborted, and keeps the state", async () => {
    const controller = new AbortController();
    const { state, steps } = await trainLoop({
      state: tensor([8]),
      steps: 100,
      step: halve,
      signal: controller.signal,
      onStep: (i) => (i === 1 ? controller.abort() : undefined),
    });
    expect([state.toArray(), steps]).toEqual([[2], 2]);
  });

  it("checks what it is given", async () => {
    const step = halve;
    await expect(trainLoop({ state: tensor(1), steps: -1, step })).rejects.toThrow("trainLoop: steps is -1");
    await expect(trainLoop({ state: tensor(1), steps: 1, step, yieldEvery: -1 })).rejects.toThrow("yieldEvery is -1");
    const wrong = { state: tensor(1), steps: 1, step, every: 3 };
    await expect(trainLoop(wrong)).rejects.toThrow("there is no option every");
    await expect(trainLoop(undefined as never)).rejects.toThrow("trainLoop: its argument is");
    await expect(trainLoop({ state: tensor(0), steps: 1, step: () => 3 as never })).rejects.toThrow("step returned");
    await expect(trainLoop({ state: tensor(0), steps: 1, step: () => 3 as never, signal: 5 as never })).rejects.toThrow(
      "trainLoop: signal is",
    );
  });
});

describe("yielding", () => {
  it("uses what the environment has", async () => {
    const used: string[] = [];
    const setTimeout = (run: () => void): void => {
      used.push("timer");
      run();
    };
    const setImmediate = (run: () => void): void => {
      used.push("immediate");
      run();
    };
    const scheduler = {
      async yield() {
        used.push("scheduler");
      },
    };
    await nextTask({ setTimeout });
    await nextTask({ setTimeout, setImmediate });
    await nextTask({ setTimeout, setImmediate, scheduler });
    await nextTask({ setTimeout, MessageChannel: MessageChannel as never });
    expect(used).toEqual(["timer", "immediate", "scheduler"]);
  });
});
