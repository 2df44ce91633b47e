/** @file Collections after programs are made, in threads that change the flags of one engine. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { EngineHeap } from "./engine-heap.ts";

afterEach(() => void vi.unstubAllGlobals());

/** An engine whose heap grows, and in which the function that collects is there after so many looks. */
function engineThatHas(looks: number) {
  let [physical, looked, collected] = [0, 0, 0];
  const modules: Record<string, unknown> = {
    "node:v8": {
      setFlagsFromString: () => undefined,
      getHeapStatistics: () => {
        physical += 2 ** 30;
        return { used_heap_size: 0, total_physical_size: physical };
      },
    },
    "node:vm": { runInNewContext: () => (++looked > looks ? () => void collected++ : undefined) },
  };
  const node = { execArgv: [], env: {}, versions: { node: "20.0.0" } };
  vi.stubGlobal("process", { ...node, getBuiltinModule: (name: string) => modules[name] });
  const heap = new EngineHeap();
  return () => {
    heap.keptSmall(() => 1);
    heap.giveBack();
    return collected;
  };
}

describe("the heap of the engine", () => {
  it("is collected after a program is made", () => {
    const made = engineThatHas(0);
    expect([made(), made()]).toEqual([1, 2]);
  });

  it("is collected where another thread has taken the flag back for a moment", () => {
    expect(engineThatHas(2)()).toBe(1);
  });

  it("is left as it is where the flag is not there, and is collected another time", () => {
    const made = engineThatHas(6);
    expect([made(), made(), made()]).toEqual([0, 1, 2]);
  });
});
