/**
 * @file What the browser test of `compileAsync` runs in a page: a small transformer with a budget, compiled by a worker, while the
 * page's thread measures for how long it is kept busy. Planning functions that run in the page are counted by the bundle
 * (tests/browser-async.test.ts).
 */
import { type CompileProgress, compile, compileAsync, random, type Tensor, valueAndGrad } from "../../src/api/index.ts";
import { transformerBlock } from "../../src/nn/index.ts";
import { sgd } from "../../src/optim/index.ts";

export interface AsyncOutcome {
  /** Calls of planning functions on the page's thread. */
  readonly planned: number;
  /** The longest time without a timer, and the longest task that the browser reports, in milliseconds. */
  readonly longestGapMs: number;
  readonly longestTaskMs: number;
  readonly compileMs: number;
  readonly progress: readonly CompileProgress[];
  readonly traceMs: number;
  readonly arenaBytes: number;
  readonly slowdown: number;
  readonly planCached: boolean;
  readonly losses: readonly number[];
}

const [FEATURES, LENGTH, BATCH] = [32, 32, 8];
const blocks = [0, 1].map(() => transformerBlock(FEATURES, { heads: 4, causal: true }));
const optimizer = sgd({ lr: 0.05 });

const init = () => optimizer.init(blocks.map((block, i) => block.init(i)));
type State = ReturnType<typeof init>;

function lossOf(params: State["params"], x: Tensor): Tensor {
  const last = blocks.reduce((h, block, i) => block.apply(params[i] as never, h), x);
  return last.sub(x.mul(0.5)).square().mean();
}

function step(state: State, x: Tensor) {
  const [loss, gradients] = valueAndGrad(lossOf)(state.params, x);
  return [optimizer.update(state, gradients as State["params"]), loss] as const;
}

const batch = (): Tensor => random.normal(random.key(7), [BATCH, LENGTH, FEATURES]);

const counted = (): number => (globalThis as { planned?: number }).planned ?? 0;

/** Watches the thread until it is stopped. */
function watchThread() {
  let [longestGapMs, longestTaskMs, last] = [0, 0, performance.now()];
  const timer = setInterval(() => {
    const now = performance.now();
    longestGapMs = Math.max(longestGapMs, now - last);
    last = now;
  }, 5);
  const { PerformanceObserver } = globalThis as unknown as {
    PerformanceObserver: new (see: (list: Entries) => void) => Observer;
  };
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestTaskMs = Math.max(longestTaskMs, duration);
  });
  observer.observe({ type: "longtask" });
  return () => {
    clearInterval(timer);
    observer.disconnect();
    return { longestGapMs: Math.max(longestGapMs, performance.now() - last), longestTaskMs };
  };
}

interface Entries {
  getEntries(): readonly { readonly duration: number }[];
}

interface Observer {
  observe(what: { readonly type: string }): void;
  disconnect(): void;
}

type Run = (state: State, x: Tensor) => readonly [State, Tensor];

function losses(run: Run): readonly number[] {
  let state = init();
  return [0, 1, 2].map(() => {
    const [next, loss] = run(state, batch());
    state = next;
    return loss.item();
  });
}

async function compileLater(memory: string, cache: boolean): Promise<AsyncOutcome> {
  const args = [init(), batch()] as const;
  await new Promise((resolve) => setTimeout(resolve, 50));
  const [before, stop, progress] = [counted(), watchThread(), [] as CompileProgress[]];
  const onProgress = (told: CompileProgress): void => void progress.push(told);
  const run = await compileAsync(step, [...args], { donate: [0], memory, cache, onProgress });
  // long tasks are reported a moment later
  await new Promise((resolve) => setTimeout(resolve, 20));
  const [planned, busy] = [counted() - before, stop()];
  const { graph, plan, ...info } = run.program(...args);
  return { ...info, planned, ...busy, progress, losses: losses(run) };
}

/** The same on the page's thread. */
function compileNow(memory: string): Pick<AsyncOutcome, "arenaBytes" | "losses" | "planned" | "compileMs"> {
  const before = counted();
  const run = compile(step, { donate: [0], memory });
  const { arenaBytes, compileMs } = run.program(init(), batch());
  return { arenaBytes, compileMs, planned: counted() - before, losses: losses(run) };
}

Object.assign(globalThis, { compileLater, compileNow });
