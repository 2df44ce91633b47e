/**
 * @file `compileAsync`: the same plan and the same bits as `compile`, made by a worker; progress, cancellation and errors. The
 * worker's text is bundled from the sources (scripts/worker-source.mjs).
 */
import { afterEach, describe, expect, it } from "vitest";
import * as tm from "../src/api/index.ts";
import { nodeHost } from "../src/node/host.ts";
import { adam } from "../src/optim/index.ts";
import { printPlan } from "../src/plan/print.ts";
import type { TaskStarter } from "../src/runtime/task-worker.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { testHost } from "./support/host.ts";

const optimizer = adam({ lr: 0.01 });
const WIDTHS = [32, 48, 48, 48, 48, 10];

function init() {
  const weights = WIDTHS.slice(1).map((n, i) => {
    return [`w${i}`, tm.random.normal(tm.random.key(i), [WIDTHS[i] as number, n]).mul(0.1)] as const;
  });
  return optimizer.init(Object.fromEntries(weights));
}
type State = ReturnType<typeof init>;

function lossOf(params: State["params"], x: tm.Tensor): tm.Tensor {
  const outputs = Object.values(params).reduce((h, w) => h.matmul(w).tanh(), x);
  return outputs.square().mean();
}

function step(state: State, x: tm.Tensor) {
  const [loss, gradients] = tm.valueAndGrad(lossOf)(state.params, x);
  return [optimizer.update(state, gradients), loss] as const;
}

const batch = tm.random.normal(tm.random.key(99), [512, 32]);
const options = { donate: [0], memory: "640KB", cache: false } as const;

type Step = (state: State, x: tm.Tensor) => readonly [State, tm.Tensor];

/** Losses of some steps, as they are in memory. */
function losses(run: Step): readonly number[] {
  let state = init();
  return [0, 1, 2].map(() => {
    const [next, loss] = run(state, batch);
    state = next;
    return loss.item();
  });
}

/** Counts workers that were started and that ended or were ended. */
function countWorkers() {
  const counts = { started: 0, ended: 0, posted: 0 };
  const starter: TaskStarter = (text, listener) => {
    const worker = nodeHost.startTask(text, listener);
    if (typeof worker === "string") return worker;
    counts.started++;
    const post = (message: unknown): void => {
      counts.posted++;
      worker.post(message);
    };
    return {
      post,
      end() {
        counts.ended++;
        worker.end();
      },
    };
  };
  testHost.startTask = starter;
  return counts;
}

afterEach(() => {
  testHost.startTask = nodeHost.startTask;
});

/** What an error says; fails where there is none. */
async function refusal(promise: Promise<unknown>): Promise<tm.TidemarkError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(tm.TidemarkError);
  return error as tm.TidemarkError;
}

describe("compileAsync", () => {
  it("has the plan, the figures and the bits of compile", async () => {
    const now = tm.compile(step, options);
    const later = await tm.compileAsync(step, [init(), batch], { ...options, refine: false });
    const [a, b] = [now.program(init(), batch), later.program(init(), batch)];
    expect(b.slowdown).toBeGreaterThan(1);
    expect(printPlan(b.plan)).toBe(printPlan(a.plan));
    const { planMs, traceMs, compileMs, graph, plan, planCached, ...figures } = a;
    expect(b).toMatchObject({ ...figures, planCached: false });
    expect(losses(later)).toEqual(losses(now));
    expect(later.usage()).toEqual(now.usage());
    // after the first run it is planned again where it is asked for
    expect(printPlan(later.program(init(), batch).plan)).toBe(printPlan(plan));
  });

  it("reports stages in order and a share that never decreases, and uses this thread for nothing", async () => {
    const told: tm.CompileProgress[] = [];
    const counts = countWorkers();
    const plans: unknown[] = [];
    await tm.compileAsync(step, [init(), batch], {
      ...options,
      refine: false,
      onProgress: (progress) => told.push(progress),
      progress: (plan) => plans.push(plan),
    });
    expect(told.flatMap(({ note }) => note ?? [])).toEqual([]);
    expect([...new Set(told.map(({ stage }) => stage))]).toEqual(["trace", "plan", "generate", "load"]);
    const order = ["trace", "plan", "generate", "load"];
    expect(told.map(({ stage }) => order.indexOf(stage))).toEqual(
      told.map(({ stage }) => order.indexOf(stage)).sort((a, b) => a - b),
    );
    const shares = told.map(({ share }) => share);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect([shares[0], shares.at(-1)]).toEqual([0, 1]);
    expect(told.at(-1)?.plans).toBeGreaterThan(3);
    expect(told.at(-1)?.plans).toBe(plans.length);
    expect(told.some(({ estimateMs = 0 }) => estimateMs > 0)).toBe(true);
    expect(counts).toMatchObject({ started: 1, ended: 1, posted: 1 });
  });

  it("takes specs, and compiles other shapes as compile does", async () => {
    const scale = await tm.compileAsync((x: tm.Tensor) => x.mul(2).add(1), [tm.spec([3])]);
    expect(scale.usage().programs).toBe(1);
    expect(scale(tm.tensor([1, 2, 3])).toArray()).toEqual([3, 5, 7]);
    expect(scale.usage().programs).toBe(1);
    expect(scale(tm.tensor([1])).toArray()).toEqual([3]);
    expect(scale.usage().programs).toBe(2);
  });

  it("compiles two functions at once, each in a worker of its own", async () => {
    const counts = countWorkers();
    const made = await Promise.all([
      tm.compileAsync(step, [init(), batch], { ...options, refine: false }),
      tm.compileAsync(step, [init(), batch], { ...options, memory: "750KB", refine: false }),
    ]);
    const [tight, wide] = made.map((run) => run.program(init(), batch).arenaBytes);
    expect(tight).toBeLessThan(wide as number);
    expect(losses(made[0])).toEqual(losses(made[1]));
    expect(counts).toMatchObject({ started: 2, ended: 2 });
  });

  it("runs on several threads with the same bits", async () => {
    const run = await tm.compileAsync(step, [init(), batch], {
      ...options,
      memory: "780KB",
      threads: 2,
      refine: false,
    });
    expect(losses(run)).toEqual(losses(tm.compile(step, { ...options, memory: "780KB", threads: 2 })));
  });

  it("takes the value of numbers that decide something", async () => {
    const power = (x: tm.Tensor, n: number): tm.Tensor => (n === 2 ? x.square() : x);
    const run = await tm.compileAsync(power, [tm.spec([2]), 2]);
    expect(run(tm.tensor([3, 4]), 2).toArray()).toEqual([9, 16]);
    expect(run(tm.tensor([3, 4]), 1).toArray()).toEqual([3, 4]);
  });
});

describe("the better plan", () => {
  /** Four normalised products and their updates: at this budget the whole search finds a plan that is 9 % faster. */
  const normalised = (ws: readonly tm.Tensor[], x: tm.Tensor) => {
    const lossOfAll = (own: readonly tm.Tensor[]): tm.Tensor =>
      own
        .reduce((h, w) => h.layerNorm().gelu().matmul(w), x)
        .square()
        .sum();
    const [loss, gradients] = tm.valueAndGrad(lossOfAll)(ws);
    return [ws.map((w, i) => w.sub((gradients[i] as tm.Tensor).mul(1e-4))), loss] as const;
  };
  const weights = () => [0, 1, 2, 3].map((i) => tm.random.normal(tm.random.key(i), [32, 32]).mul(0.2));
  const rows = tm.random.normal(tm.random.key(9), [256, 32]);
  const asked = { donate: [0], memory: 294_500, cache: false } as const;

  it("replaces the first between two calls, within the same budget, with state and bits as they were", async () => {
    const counts = countWorkers();
    const told: tm.CompileProgress[] = [];
    let refined = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      refined = resolve;
    });
    const run = await tm.compileAsync(normalised, [weights(), rows], {
      ...asked,
      onProgress(progress) {
        told.push(progress);
        if (progress.stage === "refine") refined();
      },
    });
    const first = run.program(weights(), rows);
    expect(first.planVersion).toBe(1);
    const same = tm.compile(normalised, asked);
    let [state, expected] = [weights(), weights()] as (readonly tm.Tensor[])[];
    const steps = (count: number): void => {
      for (let i = 0; i < count; i++) {
        [state] = run(state as tm.Tensor[], rows);
        [expected] = same(expected as tm.Tensor[], rows);
      }
    };
    steps(2);
    await done;
    const better = run.program(weights(), rows);
    expect(better.planVersion).toBe(2);
    expect(better.predictedMs).toBeLessThan(first.predictedMs);
    expect(told.at(-1)).toMatchObject({ stage: "refine", share: 1, plan: { predictedMs: better.predictedMs } });
    steps(2);
    expect((state as tm.Tensor[]).map((w) => w.toArray())).toEqual((expected as tm.Tensor[]).map((w) => w.toArray()));
    expect(run.usage().arenaBytes).toBeLessThanOrEqual(asked.memory);
    expect(run.usage().programs).toBe(1);
    expect(better.plan.height).toBe(better.arenaBytes);
    expect(counts).toMatchObject({ started: 2, ended: 2 });
  });

  it("is not used where the program was dropped meanwhile, and the plan that is told is not the better one", async () => {
    let refined = (_: tm.CompileProgress): void => undefined;
    const done = new Promise<tm.CompileProgress>((resolve) => {
      refined = resolve;
    });
    const run = await tm.compileAsync(normalised, [weights(), rows], {
      ...asked,
      programs: 1,
      onProgress: (progress) => (progress.stage === "refine" ? refined(progress) : undefined),
    });
    const first = run.program(weights(), rows);
    run.program(weights(), rows.slice([[0, 128]]));
    expect((await done).plan).toMatchObject({ predictedMs: first.predictedMs });
    expect([run.program(weights(), rows).planVersion, run.usage().programs]).toEqual([1, 1]);
  });

  it("is not looked for any more once the function is disposed of", async () => {
    const counts = countWorkers();
    const run = await tm.compileAsync(normalised, [weights(), rows], asked);
    run.dispose();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(counts.started).toBe(counts.ended);
  });
});

describe("errors of compileAsync", () => {
  it("are those of compile, with the line of the call", async () => {
    const infeasible = { ...options, memory: "100KB" };
    const later = await refusal(tm.compileAsync(step, [init(), batch], infeasible));
    const now = await refusal((async () => tm.compile(step, infeasible).program(init(), batch))());
    expect(later.code).toBe("PlanInfeasible");
    expect([later.code, later.summary, later.help]).toEqual([now.code, now.summary, now.help]);
    expect(later.where).toMatch(/^compile-async\.test\.ts:\d+:\d+/);
  });

  it("come from the function when it is traced, and no worker is started", async () => {
    const counts = countWorkers();
    const shapes = await refusal(tm.compileAsync((x: tm.Tensor) => x.matmul(tm.ones([5, 5])), [tm.spec([2, 3])]));
    expect(shapes.code).toBe("ShapeMismatch");
    expect(shapes.where).toContain("compile-async.test.ts");
    const own = new RangeError("mine");
    const thrown = tm.compileAsync(() => {
      throw own;
    }, []);
    await expect(thrown).rejects.toThrow("mine");
    expect(counts.started).toBe(0);
  });

  it("are about options and arguments too", async () => {
    const wrong = { memry: 1 } as object;
    expect((await refusal(tm.compileAsync(step, [init(), batch], wrong))).message).toContain("no option memry");
    const args = { 0: init() } as unknown as [State, tm.Tensor];
    expect((await refusal(tm.compileAsync(step, args))).message).toContain("compileAsync: its second argument");
  });

  it("go on from onProgress, and end the worker", async () => {
    const counts = countWorkers();
    const failing = tm.compileAsync(step, [init(), batch], {
      ...options,
      onProgress({ plans }) {
        if (plans > 1) throw new RangeError("the page is gone");
      },
    });
    await expect(failing).rejects.toThrow("the page is gone");
    expect(counts).toMatchObject({ started: 1, ended: 1 });
  });
});

describe("a compilation that is aborted", () => {
  it("before it begins does nothing", async () => {
    const counts = countWorkers();
    let traced = 0;
    const fn = (x: tm.Tensor): tm.Tensor => {
      traced++;
      return x;
    };
    const error = await refusal(tm.compileAsync(fn, [tm.spec([2])], { signal: AbortSignal.abort() }));
    expect([error.code, traced, counts.started]).toEqual(["Aborted", 0, 0]);
    expect(error.where).toContain("compile-async.test.ts");
  });

  it("while it plans ends the worker at once", async () => {
    const counts = countWorkers();
    const controller = new AbortController();
    const told: tm.CompileProgress[] = [];
    const promise = tm.compileAsync(step, [init(), batch], {
      ...options,
      signal: controller.signal,
      onProgress(progress) {
        told.push(progress);
        if (progress.plans === 2) setTimeout(() => controller.abort(new Error("the user left")), 0);
      },
    });
    const error = await refusal(promise);
    expect([error.code, error.summary]).toEqual(["Aborted", "the compilation of step was aborted: the user left"]);
    expect(counts).toMatchObject({ started: 1, ended: 1 });
    expect(told.at(-1)?.stage).toBe("plan");
    const before = told.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(told).toHaveLength(before);
  });

  it("after it is done runs all the same", async () => {
    const controller = new AbortController();
    const scale = await tm.compileAsync((x: tm.Tensor) => x.mul(2), [tm.spec([1])], { signal: controller.signal });
    controller.abort();
    expect(scale(tm.tensor([2])).toArray()).toEqual([4]);
  });
});

describe("without a worker", () => {
  it.each<readonly [string, TaskStarter, string]>([
    ["where there is none", () => "there are no workers here", "there are no workers here"],
    [
      "where it is refused",
      (_, { onFailure }) => {
        setTimeout(() => onFailure("its text was refused"), 0);
        return { post: () => undefined, end: () => undefined };
      },
      "its text was refused",
    ],
    ["where it dies", (_, listener) => nodeHost.startTask("process.exit(3)", listener), "code 3"],
  ])("%s this thread plans and says so", async (_, starter, why) => {
    testHost.startTask = starter;
    const notes = new Set<string | undefined>();
    const shares: number[] = [];
    const run = await tm.compileAsync(step, [init(), batch], {
      ...options,
      onProgress({ note, share }) {
        notes.add(note);
        shares.push(share);
      },
    });
    expect([...notes].join()).toContain(`planned on this thread: `);
    expect([...notes].join()).toContain(why);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.at(-1)).toBe(1);
    testHost.startTask = nodeHost.startTask;
    expect(losses(run)).toEqual(losses(tm.compile(step, options)));
  });

  it.each([{ key: "toy" }, { name: "mine" }])("a target of the user's with %o is planned for here", async (changes) => {
    const built = wasmTarget();
    const target = { ...built, description: { ...built.description, ...changes } };
    const notes: (string | undefined)[] = [];
    const double = (x: tm.Tensor): tm.Tensor => x.mul(2);
    const onProgress = ({ note }: tm.CompileProgress): unknown => notes.push(note);
    const run = await tm.compileAsync(double, [tm.spec([1])], { target, onProgress });
    expect(notes.at(-1)).toBe(`planned on this thread: ${target.description.name} is a target of the user's`);
    expect(run(tm.tensor([2])).toArray()).toEqual([4]);
  });

  it("it is aborted between plans", async () => {
    testHost.startTask = () => "there are no workers here";
    const controller = new AbortController();
    const promise = tm.compileAsync(step, [init(), batch], {
      ...options,
      signal: controller.signal,
      onProgress({ plans }) {
        if (plans === 2) controller.abort();
      },
    });
    expect((await refusal(promise)).code).toBe("Aborted");
  });

  it("a program that is checked for NaN is made here", async () => {
    const notes: (string | undefined)[] = [];
    const log = (x: tm.Tensor): tm.Tensor => x.log();
    const run = await tm.compileAsync(log, [tm.spec([1])], {
      checkNaN: true,
      onProgress: ({ note }) => notes.push(note),
    });
    expect(notes.at(-1)).toContain("checked for NaN");
    expect(() => run(tm.tensor([-1]))).toThrow("NotANumber");
  });
});
