/**
 * @file What the browser test of `webgpu` runs in a page and in a worker: a training step on the GPU that the browser has, the same on
 * WebAssembly, and what a read without waiting says.
 */
import { compile, compileAsync, random, type Target, type Tensor, valueAndGrad, webgpu } from "../../src/api/index.ts";
import { adam } from "../../src/optim/index.ts";

export interface WebgpuOutcome {
  readonly arithmetic: string;
  /** Losses of three steps, in each way that the target is asked for. */
  readonly byObject: readonly number[];
  readonly byName: readonly number[];
  readonly later: readonly number[];
  readonly onWasm: readonly number[];
  /** Messages of errors. */
  readonly tooEarly: string;
  readonly notReady: string;
}

const optimizer = adam({ lr: 0.1 });
const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape);
const init = () => optimizer.init({ w: draw(1, [6, 4]), b: draw(2, [4]) });
type State = ReturnType<typeof init>;

function step(state: State, x: Tensor) {
  const lossOf = ({ w, b }: State["params"]): Tensor => x.matmul(w).add(b).tanh().square().mean();
  const [loss, gradients] = valueAndGrad(lossOf)(state.params);
  return [optimizer.update(state, gradients), loss] as const;
}

async function losses(run: typeof step): Promise<readonly number[]> {
  const found: number[] = [];
  let state = init();
  for (let i = 0; i < 3; i++) {
    const [next, loss] = run(state, draw(9, [8, 6]));
    found.push(...(await loss.dataAsync()));
    state = next;
  }
  return found;
}

function messageOf(act: () => unknown): string {
  try {
    act();
    return "nothing";
  } catch (error) {
    return String(error);
  }
}

async function outcome(): Promise<WebgpuOutcome> {
  const tooEarly = messageOf(() => compile(step, { target: "webgpu" })(init(), draw(9, [8, 6])));
  const target: Target = await webgpu();
  const y = compile((x: Tensor) => x.mul(2), { target })(draw(3, [2]));
  const notReady = messageOf(() => y.data());
  return {
    arithmetic: target.description.arithmetic.name,
    byObject: await losses(compile(step, { target, donate: [0] })),
    byName: await losses(compile(step, { target: "webgpu", donate: [0] })),
    later: await losses(await compileAsync(step, [init(), draw(9, [8, 6])], { target: "webgpu", donate: [0] })),
    onWasm: await losses(compile(step, { donate: [0] })),
    tooEarly,
    notReady,
  };
}

interface Scope {
  document?: object;
  webgpuOutcome?: typeof outcome;
  postMessage(message: unknown): void;
}

/** A page calls it; a worker sends its outcome. */
const scope = globalThis as unknown as Scope;
if (scope.document) scope.webgpuOutcome = outcome;
else
  outcome().then(
    (done) => scope.postMessage(done),
    (error) => scope.postMessage(String(error)),
  );
