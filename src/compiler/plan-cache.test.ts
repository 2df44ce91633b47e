/**
 * @file Plans from a cache are the plans that would have been made, byte for byte; whatever else is found there changes
 * nothing. The store is a map here; src/node/plan-store.test.ts is about files.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testHost } from "../../tests/support/host.ts";
import { descriptionOf } from "../api/described.ts";
import { plan, plansOf } from "../api/plan.ts";
import type { PlanInfo } from "../api/plan-info.ts";
import type { PlanningOptions } from "../api/request.ts";
import { ALL_PROGRAMS, type AnyProgram } from "../cli/programs/built-in.ts";
import { print } from "../ir/print.ts";
import { planJson } from "../plan/json.ts";
import { exactPlanner } from "../remat/exact-planner.ts";
import type { Target } from "../runtime/device.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import type { TargetDescription } from "../target/description.ts";
import { memorySpace } from "../target/space.ts";
import type { AnyFunction } from "../trace/function.ts";
import { OPS } from "./known-ops.ts";
import type { PlanStore, PlanTask } from "./plan-cache.ts";

class MapStore implements PlanStore {
  readonly ops = OPS;
  readonly planner: string;
  readonly leastMs = 0;
  readonly texts = new Map<string, string>();
  found = 0;

  constructor(planner = "this one") {
    this.planner = planner;
  }

  read(key: string): string | null {
    const text = this.texts.get(key) ?? null;
    if (text !== null) this.found++;
    return text;
  }

  write(key: string, text: string): void {
    this.texts.set(key, text);
  }
}

/** A store beside another process, which makes no plans and keeps what it is asked. */
class AskedStore extends MapStore {
  readonly asked: PlanTask[] = [];

  planInProcess(task: PlanTask): void {
    this.asked.push(task);
  }
}

let store: MapStore;

beforeEach(() => {
  store = new MapStore();
  testHost.planStore = store;
});
afterEach(() => {
  testHost.planStore = null;
});

function programNamed(name: string): AnyProgram {
  const program = ALL_PROGRAMS.find((p) => p.name === name);
  if (!program) throw new Error(`there is no program ${name}`);
  return program;
}

const argumentsOf = (program: AnyProgram): readonly unknown[] =>
  program.specs?.() ?? [program.init(), ...program.batch()];

function planned(name: string, options: PlanningOptions): PlanInfo {
  const program = programNamed(name);
  const ask = plan(program.step as AnyFunction, { donate: [0], ...options }) as (
    ...args: readonly unknown[]
  ) => PlanInfo;
  return ask(...argumentsOf(program));
}

/** Everything that a plan says. */
function textOf({ graph, plan: made, planMs, traceMs, planCached, ...numbers }: PlanInfo): string {
  return [
    JSON.stringify(planJson(made, { stories: true })),
    print(graph, { locations: true }),
    JSON.stringify(numbers),
  ].join("\n");
}

/** A request whose plan is soon made, where it does not matter which one it is. */
const QUICK = { memory: "min", strategy: "sqrt" } as const;

const REQUESTS: readonly (readonly [string, PlanningOptions])[] = [
  ["unet", {}],
  ["mlp", { memory: "min" }],
  ["lstm", { memory: "min" }],
  ["cnn", { maxSlowdown: 1.2 }],
  ["mlp", QUICK],
];

describe("a plan from the cache", () => {
  for (const [name, options] of REQUESTS) {
    it(`is the plan of ${name} with ${JSON.stringify(options)}, byte for byte`, () => {
      const plain = textOf(planned(name, { ...options, cache: false }));
      expect(store.texts.size).toBe(0);
      const first = planned(name, options);
      expect([first.planCached, store.texts.size]).toEqual([false, 1]);
      const second = planned(name, options);
      expect(second.planCached).toBe(true);
      expect(textOf(first)).toBe(plain);
      expect(textOf(second)).toBe(plain);
    });
  }

  it("is for one request, one model of costs, one target and one planner", () => {
    const costs = { name: "slow", productRate: 1e9, arithmeticRate: 1e9, byteRate: 1e9, callSeconds: 1e-9 };
    const all: readonly PlanningOptions[] = [{}, { costs }, { strategy: "every-k" }, { donate: [] }, { name: "other" }];
    for (const options of all) expect(planned("mlp", { ...QUICK, ...options }).planCached).toBe(false);
    expect(store.texts.size).toBe(all.length);
    testHost.planStore = new MapStore("another");
    expect(planned("mlp", QUICK).planCached).toBe(false);
  });

  it("is not asked for where a check, a solver or the user says so", () => {
    planned("mlp", QUICK);
    const solver = exactPlanner(() => ({ status: "unknown", objective: 0, bound: 0, value: () => 0 }));
    for (const options of [{ validate: true }, { cache: false }, { solver }]) {
      expect(planned("mlp", { ...QUICK, ...options }).planCached).toBe(false);
    }
    expect([store.texts.size, store.found]).toEqual([1, 0]);
  });

  it("tells the smallest budget that was known when it was made", () => {
    const smallest = (): number | null => {
      const { plans } = plansOf(programNamed("mlp").step as AnyFunction, argumentsOf(programNamed("mlp")), {
        donate: [0],
        ...QUICK,
      });
      plans.choose();
      return plans.minimumBudgetBytes();
    };
    const first = smallest();
    expect(store.texts.size).toBe(2);
    expect(smallest()).toBe(first);
    for (const [key, text] of store.texts) if (text.length < 20) store.texts.set(key, "many");
    expect(smallest()).toBe(first);
    expect(store.texts.size).toBe(2);
  });

  it("is the smallest one where a request was refused, and the error is the same", () => {
    const refusal = (): string => {
      try {
        return String(planned("mlp", { memory: 10_000 }).arenaBytes);
      } catch (error) {
        return String(error);
      }
    };
    const first = refusal();
    expect(first).toContain("needs 9,437,760 bytes, the budget is 10,000");
    expect([store.texts.size, store.found]).toEqual([1, 0]);
    expect([refusal(), store.found]).toEqual([first, 1]);
  });

  it("is not kept of small programs of which nothing is asked", () => {
    planned("mlp", {});
    expect(store.texts.size).toBe(0);
  });
});

describe("a target of the user's", () => {
  const built = wasmTarget();
  const target = (changes: Partial<TargetDescription>): Target => ({
    ...built,
    description: { ...built.description, ...changes },
  });
  const DONATED = { ...QUICK, donate: [0] } as const;

  it("may have any text as its key, under which its plans are kept, and no other process plans for it", () => {
    const asked = new AskedStore();
    testHost.planStore = asked;
    const options = { ...DONATED, target: target({ key: "toy" }) };
    const first = planned("gpt", options);
    const second = planned("gpt", options);
    expect([first.planCached, second.planCached, asked.asked.length]).toEqual([false, true, 0]);
    expect(textOf(second)).toBe(textOf(first));
    expect(planned("gpt", { ...options, target: target({ key: "other" }) }).planCached).toBe(false);
  });

  it("is not taken for the built-in one whose description it was copied from", () => {
    const asked = new AskedStore();
    testHost.planStore = asked;
    const own = planned("gpt", DONATED);
    // with its target, that process makes the plans of this one
    expect(asked.asked.map(({ rebuild }) => descriptionOf(rebuild)?.key)).toEqual([built.description.key]);
    const spaces = [memorySpace(4096)] as const;
    const copied = planned("gpt", { ...DONATED, target: target({ name: "mine", spaces }) });
    expect([copied.planCached, asked.asked.length]).toEqual([false, 1]);
    expect(copied.arenaBytes % 4096).toBe(0);
    expect(own.arenaBytes % 4096).not.toBe(0);
  });
});

describe("what is not the plan of a program", () => {
  const options: PlanningOptions = QUICK;

  /** Plans with a cache whose only text was changed. */
  function withChanged(change: (text: string) => string): PlanInfo {
    for (const [key, text] of store.texts) store.texts.set(key, change(text));
    return planned("mlp", options);
  }

  type Kept = Record<string, unknown> & { offsets: number[]; scratch: number[][]; graph: { values: number[][] } };

  const edited =
    (edit: (kept: Kept) => void) =>
    (text: string): string => {
      const kept = JSON.parse(text) as Kept;
      edit(kept);
      return JSON.stringify(kept);
    };

  const CHANGES: Readonly<Record<string, (text: string) => string>> = {
    "no JSON": (text) => text.slice(0, text.length / 2),
    nothing: () => "",
    "another thing": () => "[1,2,3]",
    "buffers on top of each other": edited((kept) => kept.offsets.fill(0)),
    "fewer buffers": edited((kept) => kept.offsets.pop()),
    "another arena": edited((kept) => {
      kept.arenaBytes = 1;
    }),
    "other workspaces": edited((kept) => kept.scratch.unshift([64])),
    "values that are not there": edited((kept) => kept.graph.values.pop()),
    "values of other types": edited((kept) => kept.graph.values.reverse()),
    "a time below zero": edited((kept) => {
      kept.storeAll = { arenaBytes: 1, predictedMs: -5 };
    }),
    "no bytes": edited((kept) => {
      kept.storeAll = { arenaBytes: 0.5, predictedMs: 5 };
    }),
    "no strategy": edited((kept) => {
      kept.strategy = 7;
    }),
  };

  for (const [name, change] of Object.entries(CHANGES)) {
    it(`changes nothing: ${name}`, () => {
      const right = textOf(planned("mlp", options));
      const again = withChanged(change);
      expect([again.planCached, store.found]).toEqual([false, 1]);
      expect(textOf(again)).toBe(right);
      expect(planned("mlp", options).planCached).toBe(true);
    });
  }

  it("changes nothing: a predicted time, which is predicted again", () => {
    const right = textOf(planned("mlp", options));
    const again = withChanged(
      edited((kept) => {
        kept.predictedMs = -5;
      }),
    );
    expect(again.planCached).toBe(true);
    expect(textOf(again)).toBe(right);
  });

  it("changes nothing: a plan that is larger than what was asked for", () => {
    const { arenaBytes } = planned("cnn", { memory: "min" });
    store.texts.clear();
    const large = planned("cnn", { strategy: "store-all" });
    expect(large.arenaBytes).toBeGreaterThan(arenaBytes);
    const [text = ""] = store.texts.values();
    store.texts.clear();
    const right = textOf(planned("cnn", { memory: arenaBytes }));
    for (const key of store.texts.keys()) store.texts.set(key, text);
    const again = planned("cnn", { memory: arenaBytes });
    expect(again.planCached).toBe(false);
    expect(textOf(again)).toBe(right);
  });

  it("changes nothing: a refusal with a plan that fits", () => {
    const { arenaBytes } = planned("mlp", options);
    store.texts.clear();
    const right = textOf(planned("mlp", { memory: arenaBytes }));
    for (const [key, text] of [...store.texts]) {
      store.texts.delete(key);
      store.texts.set(key.replace(/^plan /, "refused "), text);
    }
    const again = planned("mlp", { memory: arenaBytes });
    expect(again.planCached).toBe(false);
    expect(textOf(again)).toBe(right);
  });

  it("changes nothing: a smallest budget above the plan itself", () => {
    const smallest = (): number | null => {
      const program = programNamed("mlp");
      const asked = { donate: [0], ...QUICK } as const;
      const { plans } = plansOf(program.step as AnyFunction, argumentsOf(program), asked);
      plans.choose();
      return plans.minimumBudgetBytes();
    };
    const first = smallest();
    for (const [key, text] of store.texts) if (text.length < 20) store.texts.set(key, String((first ?? 0) + 1));
    expect(smallest()).toBe(first);
  });

  it("changes nothing: the plan of another program", () => {
    planned("cnn", options);
    const [other = ""] = store.texts.values();
    store.texts.clear();
    const right = textOf(planned("mlp", options));
    const again = withChanged(() => other);
    expect(again.planCached).toBe(false);
    expect(textOf(again)).toBe(right);
  });
});
