/** @file What the browser test of files runs in a worker of a page: a training whose state and residuals wait in a file of the page. */
import { compile, pageFile, type Tensor, tensor, valueAndGrad } from "../../src/api/index.ts";
import { plan } from "../../src/api/plan.ts";
import { adam } from "../../src/optim/adam.ts";

const [LAYERS, ROWS, WIDTH] = [6, 96, 48];
const optimizer = adam({ lr: 0.01 });
type State = ReturnType<typeof optimizer.init<readonly Tensor[]>>;

const numbers = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898 + seed) / 8);
const matrix = (rows: number, seed: number): Tensor => tensor(numbers(rows * WIDTH, seed)).reshape([rows, WIDTH]);
const initial = (): State => optimizer.init(Array.from({ length: LAYERS }, (_, i) => matrix(WIDTH, i)));

function train(state: State, x: Tensor): readonly [State, Tensor] {
  const lossOf = (weights: readonly Tensor[]): Tensor =>
    weights
      .reduce((h, w) => h.matmul(w).tanh().add(h), x)
      .square()
      .mean();
  const [loss, d] = valueAndGrad(lossOf)(state.params);
  return [optimizer.update(state, d), loss];
}

export interface Outcome {
  readonly losses: readonly number[];
  readonly weights: number;
  readonly arenaBytes: number;
  readonly persistentBytes: number;
  readonly spillBytes: number;
  readonly spillPersistentBytes: number;
  readonly fileBytes: number;
  /** Names in the private file system: while it runs, and at the end. */
  readonly during: readonly string[];
  readonly after: readonly string[];
  readonly errors: readonly string[];
}

interface Scope {
  onmessage: ((event: { readonly data: string }) => void) | null;
  postMessage(outcome: unknown): void;
  readonly navigator: { readonly storage: { getDirectory(): Promise<{ keys(): AsyncIterable<string> }> } };
}

const scope = globalThis as unknown as Scope;

async function names(): Promise<string[]> {
  const found: string[] = [];
  for await (const name of (await scope.navigator.storage.getDirectory()).keys()) found.push(name);
  return found;
}

function trained(step: (state: State, x: Tensor) => readonly [State, Tensor]): Pick<Outcome, "losses" | "weights"> {
  let state = initial();
  const losses = [1, 2, 3].map((seed) => {
    const [next, loss] = step(state, matrix(ROWS, seed));
    state = next;
    return loss.item();
  });
  const weights = state.params.reduce((sum, w) => [...w.data()].reduce<number>((a, b) => a + Number(b), sum), 0);
  return { losses, weights };
}

async function failure(make: () => unknown): Promise<string> {
  try {
    await make();
    return "no error";
  } catch (error) {
    return String(error).split("\n")[0] ?? "";
  }
}

async function compute(how: string): Promise<Outcome | readonly string[]> {
  const sizes = plan(train, { donate: [0] })(initial(), matrix(ROWS, 0));
  const memory = Math.ceil(0.5 * sizes.arenaBytes);
  if (how === "stored") {
    const { losses, weights } = trained(compile(train, { donate: [0] }));
    const { arenaBytes, persistentBytes } = sizes;
    const none = { spillBytes: 0, spillPersistentBytes: 0, fileBytes: 0, during: [], after: await names(), errors: [] };
    return { losses, weights, arenaBytes, persistentBytes, ...none };
  }
  const file = await pageFile();
  if (how === "killed") return names();
  const spill = { to: file, bandwidth: "2GB/s" };
  const step = compile(train, { donate: [0], memory, spill, validate: true });
  const { arenaBytes, persistentBytes, spillBytes, spillPersistentBytes } = step.program(initial(), matrix(ROWS, 0));
  const result = trained(step);
  const fileBytes = step.stats().spillBytes;
  const during = await names();
  const other = compile(train, { donate: [0], memory, spill });
  const errors = [
    await failure(() => other(initial(), matrix(ROWS, 0))),
    await failure(() => compile(train, { spill })),
    await failure(() => compile(train, { memory, spill, threads: 2 })),
  ];
  step.dispose();
  const room = file as unknown as { take(owner: object, bytes: number): void };
  errors.push(await failure(() => room.take({}, 2 ** 50)));
  // after the function is gone another one may have the file, measured this time
  errors.push(
    await failure(() => compile(train, { donate: [0], memory, spill: { to: file } })(initial(), matrix(ROWS, 0))),
  );
  await file.close();
  errors.push(await failure(() => compile(train, { donate: [0], memory, spill })(initial(), matrix(ROWS, 0))));
  const figures = { arenaBytes, persistentBytes, spillBytes, spillPersistentBytes, fileBytes };
  return { ...result, ...figures, during, after: await names(), errors };
}

if ("document" in globalThis) {
  Object.assign(globalThis, { pageFile });
} else {
  scope.onmessage = ({ data }) => {
    void compute(data).then(
      (outcome) => scope.postMessage(outcome),
      (error) => scope.postMessage({ failed: String((error as Error).stack) }),
    );
  };
}
