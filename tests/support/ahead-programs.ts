/**
 * @file Programs for the tests of ahead-of-time builds, the arguments of their calls, and what `compile` computes for them: a forward
 * pass, training steps, a transformer under a budget, the gradient of a loop, branches, integers, bools and plain numbers.
 */

import type { BuildOptions } from "../../src/api/ahead.ts";
import {
  compile,
  cond,
  grad,
  scan,
  type Tensor,
  take,
  tensor,
  valueAndGrad,
  where,
  whileLoop,
} from "../../src/api/index.ts";
import { languageModel } from "../../src/cli/programs/gpt.ts";
import type { DType, TypedArray } from "../../src/kernel/dtype.ts";
import { adam } from "../../src/optim/index.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import type { AnyFunction } from "../../src/trace/function.ts";
import { spareTensor } from "../../src/trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../../src/trace/tree.ts";

/** A tensor that is given for a call, as JSON has it. */
export interface GivenTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

export type Given = GivenTensor | number;

export interface AheadCase {
  readonly name: string;
  readonly fn: AnyFunction;
  /** The first argument, if it stays. */
  readonly first?: object;
  readonly options: BuildOptions;
  /** The other arguments of each call. */
  readonly calls: readonly (readonly Given[])[];
}

function given(dtype: DType, shape: readonly number[], at: (i: number) => number): GivenTensor {
  const elements = shape.reduce((n, extent) => n * extent, 1);
  return { dtype, shape, data: Array.from({ length: elements }, (_, i) => at(i)) };
}

const wave = (shape: readonly number[], phase: number): GivenTensor =>
  given("f32", shape, (i) => Math.fround(Math.sin(i * 0.7 + phase)));

export function tensorOf({ dtype, shape, data }: GivenTensor): Tensor {
  return tensor([...data], { dtype }).reshape([...shape]);
}

const wavy = (shape: readonly number[], phase: number): Tensor => tensorOf(wave(shape, phase));

interface Dense {
  readonly w: Tensor;
  readonly b: Tensor;
}

interface Net {
  readonly layers: readonly [Dense, Dense];
}

const initialNet = (): Net => ({
  layers: [
    { w: wavy([12, 20], 1), b: wavy([20], 2) },
    { w: wavy([20, 5], 3), b: wavy([5], 4) },
  ],
});

function classify(net: Net, x: Tensor) {
  const [first, last] = net.layers;
  const logits = x.matmul(first.w).add(first.b).relu().matmul(last.w).add(last.b);
  return { logits, best: logits.max(1) };
}

const forward: AheadCase = {
  name: "forward",
  fn: classify as AnyFunction,
  first: initialNet(),
  options: { resident: [0] },
  calls: [0, 1].map((i) => [wave([7, 12], i)]),
};

const optimizer = adam({ lr: 0.01 });

function trainStep(state: ReturnType<typeof optimizer.init<Net>>, x: Tensor, y: Tensor) {
  const loss = (params: Net): Tensor => classify(params, x).logits.sub(y).square().mean();
  const [value, gradients] = valueAndGrad(loss)(state.params);
  return [optimizer.update(state, gradients), value] as const;
}

const training: AheadCase = {
  name: "training",
  fn: trainStep as AnyFunction,
  first: optimizer.init(initialNet()),
  options: { donate: [0] },
  calls: [0, 1, 2, 3].map((i) => [wave([7, 12], i), wave([7, 5], i + 10)]),
};

const model = languageModel("small-gpt", "", {
  ...{ batch: 2, time: 12, width: 16, heads: 2, blocks: 2, vocabulary: 24, tied: false },
});

const ids = (phase: number): GivenTensor => given("i32", [2, 12], (i) => (i * 5 + phase) % 24);

const gpt: AheadCase = {
  name: "small-gpt",
  fn: model.step as AnyFunction,
  first: model.init(),
  options: { donate: [0], memory: "140KB", effort: "quick" },
  calls: [0, 1, 2].map((i) => [ids(i), ids(i + 1)]),
};

/** Sums over a recurrence, and the derivative with respect to its matrix. */
function recurrence(w: Tensor, xs: Tensor) {
  const last = (v: Tensor): Tensor =>
    scan(
      (h: Tensor, x: Tensor) => {
        const next = h.matmul(v).add(x).tanh();
        return [next, next.sum()] as const;
      },
      xs.sum(0).mul(0),
      xs,
    )[1].sum();
  return { value: last(w), slope: grad(last)(w) };
}

const loop: AheadCase = {
  name: "loop",
  fn: recurrence as AnyFunction,
  options: { memory: "min", effort: "quick" },
  calls: [0, 1].map((i) => [wave([6, 6], i), wave([16, 3, 6], i + 5)]),
};

/** Integers, bools, a number that may differ, a branch, a loop without a fixed length, and a captured constant. */
const table = wavy([9, 4], 8);
function choices(index: Tensor, mask: Tensor, scale: number, parts: { readonly shift: Tensor }) {
  const rows = where(mask, take(table, index).sum(1).mul(scale), parts.shift.cast("f32"));
  const doubled = whileLoop(
    (v: Tensor) => v.abs().sum().less(100),
    (v: Tensor) => v.mul(2),
    rows.add(1),
  );
  return [
    cond(
      rows.sum().less(0),
      (v: Tensor) => v.neg(),
      (v: Tensor) => v,
      doubled,
    ),
    index.add(1),
    mask,
  ] as const;
}

const mixed: AheadCase = {
  name: "mixed",
  fn: ((index: Tensor, mask: Tensor, scale: number, shift: Tensor) =>
    choices(index, mask, scale, { shift })) as AnyFunction,
  options: {},
  calls: [0, 1].map((i) => [
    given("i32", [5], (n) => (n * 2 + i) % 9),
    given("bool", [5], (n) => (n + i) % 2),
    0.5 + i,
    given("i32", [5], (n) => n - 3 * i),
  ]),
};

export const AHEAD_CASES: readonly AheadCase[] = [forward, training, gpt, loop, mixed];

/** Arguments of a call as `build` and `compile` take them. */
export const argumentsOf = ({ first }: AheadCase, call: readonly Given[], stays = first): readonly Tree[] => {
  const others = call.map((value) => (typeof value === "number" ? value : tensorOf(value)));
  return stays ? [stays, ...others] : others;
};

export const bytesText = ({ buffer, byteOffset, byteLength }: TypedArray): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

/** Results of all calls and the state after them, as bytes in base64. */
export interface AheadOutcome {
  readonly results: readonly (readonly string[])[];
  readonly state: readonly string[];
}

function spareTree(tree: object): object {
  const { def, leaves } = flatten(tree, "first");
  return unflatten(def, leaves.map(spareTensor)) as object;
}

/** What `compile` makes of the calls on WebAssembly, with or without fused multiply-add. */
export function compiledOutcome(testCase: AheadCase, fma: boolean): AheadOutcome & { readonly arenaBytes: number } {
  const { fn, first, options, calls } = testCase;
  const { resident: _, ...planning } = options;
  const compiled = compile(fn as (...args: readonly Tree[]) => unknown, { ...planning, target: wasmTarget(fma) });
  const isState = options.donate !== undefined;
  // the case is run several times, and donates it
  let stays = first && isState ? spareTree(first) : first;
  const texts = (tree: unknown): readonly string[] =>
    flatten(tree, "result").leaves.map((leaf) => bytesText(leaf.data()));
  const [call] = calls;
  const { arenaBytes } = compiled.program(...argumentsOf(testCase, call ?? []));
  const results = calls.map((values) => {
    const result = compiled(...argumentsOf(testCase, values, stays));
    if (!isState) return texts(result);
    const [next, loss] = result as readonly [object, Tensor];
    stays = next;
    return texts(loss);
  });
  return { results, state: isState ? texts(stays) : [], arenaBytes };
}
