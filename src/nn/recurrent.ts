/**
 * @file Recurrent cells: functions from an input and a state to the next state. Gates are computed together, one product
 * for the input and one for the state, and cut apart afterwards; their order and their equations are PyTorch's.
 *
 *   x₀      x₁      x₂
 *   │       │       │
 *   s₀ ─ cell ─ s₁ ─ cell ─ s₂ ─ cell ─ s₃       unroll, scanCell: outputs of s₁ s₂ s₃, and s₃
 */
import { scan } from "../api/control.ts";
import { add, mul, sub } from "../api/elementwise.ts";
import { split } from "../api/join.ts";
import { matmul } from "../api/linear.ts";
import { sigmoid, tanh } from "../api/math.ts";
import { slice, transpose } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import type { Tree } from "../trace/tree.ts";
import { fanInUniform, type Initializer, type ParamDType, zeros } from "./distributions.ts";
import { type Key, partKey } from "./key.ts";
import { requireCounts, requireExtent } from "./layer.ts";

/** One step of a recurrent network. */
export interface Cell<P extends Tree = Tree, S extends Tree = Tree> {
  init(key: Key): P;
  /** The state before the first input: zeros. */
  initState(batch: number): S;
  /** The state after one input [batch, features]. */
  step(params: P, x: Tensor, state: S): S;
  /** The part of the state that is the output: [batch, hidden]. */
  output(state: S): Tensor;
}

/** Options of {@link lstmCell} and {@link gruCell}. */
export interface CellOptions {
  /** Of the weights that meet the state; all parameters start uniform in ±√(1 / hidden) by default. */
  readonly recurrent?: Initializer;
  /** Of the weights that meet the input. */
  readonly weight?: Initializer;
  readonly offset?: Initializer;
  readonly dtype?: ParamDType;
}

const OPTIONS: OptionKinds<CellOptions> = {
  recurrent: "a function",
  weight: "a function",
  offset: "a function",
  dtype: "a float type",
};

interface Draws {
  readonly weight: Initializer;
  readonly recurrent: Initializer;
  readonly offset: Initializer;
  readonly dtype: ParamDType;
}

function drawsOf(name: string, hidden: number, options: CellOptions): Draws {
  requireOptions(name, options, OPTIONS);
  const usual = fanInUniform({ fanIn: hidden, fanOut: hidden });
  const { weight = usual, recurrent = usual, offset = usual, dtype = "f32" } = options;
  return { weight, recurrent, offset, dtype };
}

/** State of {@link lstmCell}. */
export interface LstmState {
  /** The output. */
  readonly h: Tensor;
  /** The memory. */
  readonly c: Tensor;
}

/** Parameters of {@link lstmCell}. */
export interface LstmParams {
  /** `[in, 4 · hidden]`: input gate, forget gate, candidate, output gate. */
  readonly wx: Tensor;
  /** [hidden, 4 · hidden]. */
  readonly wh: Tensor;
  /** [4 · hidden]. */
  readonly b: Tensor;
}

/**
 * Long short-term memory (S. Hochreiter, J. Schmidhuber, 1997; F. Gers and others, 2000):
 *
 *   i, f, o = sigmoid(x·wx + h·wh + b)    g = tanh(…)    c' = f·c + i·g    h' = o · tanh c'
 *
 * @memory As part of `scanCell`: states are kept or recomputed, as the plan of the loop decides.
 *
 * @example
 * import { ones } from "tidemark";
 * import { lstmCell } from "tidemark/nn";
 *
 * const cell = lstmCell(3, 5);
 * const params = cell.init(0);
 * console.log(cell.output(cell.step(params, ones([2, 3]), cell.initState(2))).shape); // → [2, 5]
 */
export function lstmCell(inFeatures: number, hidden: number, options: CellOptions = {}): Cell<LstmParams, LstmState> {
  requireCounts("lstmCell", { inFeatures, hidden });
  const { weight, recurrent, offset, dtype } = drawsOf("lstmCell", hidden, options);
  return {
    init: (key) => ({
      wx: weight(partKey(key, 0), [inFeatures, 4 * hidden], dtype),
      wh: recurrent(partKey(key, 1), [hidden, 4 * hidden], dtype),
      b: offset(partKey(key, 2), [4 * hidden], dtype),
    }),
    initState: (batch) => ({ h: zeros()(0, [batch, hidden], dtype), c: zeros()(0, [batch, hidden], dtype) }),
    step: ({ wx, wh, b }, x, { h, c }) => {
      requireExtent("lstmCell", x, -1, ["features", inFeatures]);
      requireExtent("lstmCell", h, -1, ["hidden features", hidden]);
      return asFunction("lstmCell", () => {
        const gates = add(add(matmul(x, wx), matmul(h, wh)), b);
        const [i, f, g, o] = split(gates, 4, -1) as readonly Tensor[] as readonly [Tensor, Tensor, Tensor, Tensor];
        const memory = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)));
        return { h: mul(sigmoid(o), tanh(memory)), c: memory };
      });
    },
    output: ({ h }) => h,
  };
}

/** State of {@link gruCell}. */
export interface GruState {
  readonly h: Tensor;
}

/** Parameters of {@link gruCell}. */
export interface GruParams {
  /** `[in, 3 · hidden]`: reset gate, update gate, candidate. */
  readonly wx: Tensor;
  /** [hidden, 3 · hidden]. */
  readonly wh: Tensor;
  /** [3 · hidden], added to the input part. */
  readonly bx: Tensor;
  /** [3 · hidden], added to the state part; the candidate's is inside the reset gate. */
  readonly bh: Tensor;
}

/**
 * Gated recurrent unit (K. Cho and others, 2014), with the reset gate behind the product:
 *
 *   r, z = sigmoid(x·wx + bx + h·wh + bh)    n = tanh(x·wx + bx + r·(h·wh + bh))    h' = n + z·(h - n)
 *
 * @memory As part of `scanCell`: states are kept or recomputed, as the plan of the loop decides.
 *
 * @example
 * import { ones } from "tidemark";
 * import { gruCell } from "tidemark/nn";
 *
 * const cell = gruCell(3, 5);
 * const params = cell.init(0);
 * console.log(cell.output(cell.step(params, ones([2, 3]), cell.initState(2))).shape); // → [2, 5]
 */
export function gruCell(inFeatures: number, hidden: number, options: CellOptions = {}): Cell<GruParams, GruState> {
  requireCounts("gruCell", { inFeatures, hidden });
  const { weight, recurrent, offset, dtype } = drawsOf("gruCell", hidden, options);
  return {
    init: (key) => ({
      wx: weight(partKey(key, 0), [inFeatures, 3 * hidden], dtype),
      wh: recurrent(partKey(key, 1), [hidden, 3 * hidden], dtype),
      bx: offset(partKey(key, 2), [3 * hidden], dtype),
      bh: offset(partKey(key, 3), [3 * hidden], dtype),
    }),
    initState: (batch) => ({ h: zeros()(0, [batch, hidden], dtype) }),
    step: ({ wx, wh, bx, bh }, x, { h }) => {
      requireExtent("gruCell", x, -1, ["features", inFeatures]);
      requireExtent("gruCell", h, -1, ["hidden features", hidden]);
      return asFunction("gruCell", () => {
        const [xr, xz, xn] = split(add(matmul(x, wx), bx), 3, -1) as [Tensor, Tensor, Tensor];
        const [hr, hz, hn] = split(add(matmul(h, wh), bh), 3, -1) as [Tensor, Tensor, Tensor];
        const candidate = tanh(add(xn, mul(sigmoid(add(xr, hr)), hn)));
        return { h: add(candidate, mul(sigmoid(add(xz, hz)), sub(h, candidate))) };
      });
    },
    output: ({ h }) => h,
  };
}

/** What {@link unroll} returns. */
export interface Unrolled<S> {
  /** One for each input, [batch, hidden]; `stack(outputs, 1)` makes one tensor of them. */
  readonly outputs: readonly Tensor[];
  /** After the last input. */
  readonly state: S;
}

/**
 * Runs a cell over a sequence: [batch, time, features], or a list of [batch, features]. The outputs are a list, which the
 * next layer takes as it is, so that no copy of all of them is made between layers.
 *
 * @example
 * import { ones, stack } from "tidemark";
 * import { lstmCell, unroll } from "tidemark/nn";
 *
 * const cell = lstmCell(3, 5);
 * const { outputs, state } = unroll(cell, cell.init(0), ones([2, 7, 3]));
 * console.log(stack(outputs, 1).shape, state.c.shape); // [2, 7, 5] [2, 5]
 */
export function unroll<P extends Tree, S extends Tree>(
  cell: Cell<P, S>,
  params: P,
  inputs: Tensor | readonly Tensor[],
  initial?: S,
): Unrolled<S> {
  const list = inputs instanceof Tensor ? alongTime(inputs) : inputs;
  let state = initial ?? cell.initState(batchOf(list));
  const outputs = list.map((x) => {
    state = cell.step(params, x, state);
    return cell.output(state);
  });
  return { outputs, state };
}

/** What {@link scanCell} returns. */
export interface Scanned<S> {
  /** [batch, time, hidden]. */
  readonly outputs: Tensor;
  /** After the last input. */
  readonly state: S;
}

/**
 * Runs a cell over a sequence [batch, time, features] as a loop of the program: the same numbers as `unroll`, with code
 * and compile time that do not depend on how long the sequence is.
 *
 * @example
 * import { ones } from "tidemark";
 * import { lstmCell, scanCell } from "tidemark/nn";
 *
 * const cell = lstmCell(3, 5);
 * const { outputs, state } = scanCell(cell, cell.init(0), ones([2, 7, 3]));
 * console.log(outputs.shape, state.c.shape); // [2, 7, 5] [2, 5]
 */
export function scanCell<P extends Tree, S extends Tree>(
  cell: Cell<P, S>,
  params: P,
  inputs: Tensor,
  initial?: S,
): Scanned<S> {
  requireSequence("scanCell", inputs);
  const first = initial ?? cell.initState(at(inputs.shape, 0));
  const [state, outputs] = scan<S, Tensor, Tensor>(
    (before, x) => {
      const after = cell.step(params, x, before);
      return [after, cell.output(after)];
    },
    first,
    transpose(inputs, [1, 0, 2]),
  );
  return { outputs: transpose(outputs, [1, 0, 2]), state };
}

function requireSequence(name: string, x: Tensor): void {
  if (x.rank !== 3) fail("ShapeMismatch", `${name}: takes [batch, time, features], got ${typeText(x)}`, "reshape it");
}

function alongTime(x: Tensor): readonly Tensor[] {
  requireSequence("unroll", x);
  return Array.from({ length: at(x.shape, 1) }, (_, t) => slice(x, [null, t]));
}

function batchOf(list: readonly Tensor[]): number {
  const first = list[0]?.shape[0];
  if (first !== undefined) return first;
  return fail("InvalidArgument", "unroll: an empty sequence has no batch", "pass the initial state, or check first");
}
