/**
 * @file RNN, GRU and LSTM: a scan over time for each direction. Weights come stacked by gate; activations, clipping, peepholes and lengths
 * of sequences are options. Where a sequence has ended its state stays and its output is zero.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Call, Operator, Result } from "./call.ts";

type Activation = (x: Tensor) => Tensor;

const ACTIVATIONS: Readonly<Record<string, (alpha: number | undefined, beta: number | undefined) => Activation>> = {
  relu: () => t.relu,
  tanh: () => t.tanh,
  sigmoid: () => t.sigmoid,
  affine:
    (alpha = 1, beta = 0) =>
    (x) =>
      t.add(t.mul(x, alpha), beta),
  leakyrelu:
    (alpha = 0.01) =>
    (x) =>
      t.leakyRelu(x, alpha),
  thresholdedrelu:
    (alpha = 1) =>
    (x) =>
      t.where(t.greater(x, alpha), x, t.zerosLike(x)),
  scaledtanh:
    (alpha = 1, beta = 1) =>
    (x) =>
      t.mul(t.tanh(t.mul(x, beta)), alpha),
  hardsigmoid:
    (alpha = 0.2, beta = 0.5) =>
    (x) =>
      t.clamp(t.add(t.mul(x, alpha), beta), 0, 1),
  elu:
    (alpha = 1) =>
    (x) =>
      t.elu(x, alpha),
  softsign: () => t.softsign,
  softplus: () => (x) => t.softplus(x),
};

/** What one direction computes with. */
interface Direction {
  readonly call: Call;
  readonly hidden: number;
  readonly w: Tensor;
  readonly r: Tensor;
  readonly b: Tensor | null;
  readonly peephole: Tensor | null;
  readonly activations: readonly Activation[];
}

/** From the parts of an input row (x · Wᵀ + b) and a state to the next state; the first of a state is its output. */
type Step = (row: Tensor, state: readonly Tensor[], of: Direction) => readonly Tensor[];

interface Recurrent {
  readonly gates: number;
  readonly states: number;
  readonly usual: readonly string[];
  readonly step: Step;
}

const gate = (x: Tensor, k: number, hidden: number): Tensor => t.slice(x, [null, [k * hidden, (k + 1) * hidden]]);
const part = (v: Tensor, k: number, hidden: number): Tensor => t.slice(v, [[k * hidden, (k + 1) * hidden]]);

function clipped(x: Tensor, { call }: Direction): Tensor {
  const limit = call.attribute("clip")?.float;
  return limit === undefined ? x : t.clamp(x, -limit, limit);
}

const rnnStep: Step = (row, [h], of) => {
  const z = t.add(row, t.matmul(h as Tensor, of.r, { tb: true }));
  return [at(of.activations, 0)(clipped(of.b ? t.add(z, part(of.b, 1, of.hidden)) : z, of))];
};

/** Gates z, r, h. */
const gruStep: Step = (row, [h], of) => {
  const { hidden, r, b } = of;
  const [f, g] = [at(of.activations, 0), at(of.activations, 1)];
  const state = h as Tensor;
  const rows = (k: number, to: number): Tensor => t.slice(r, [[k * hidden, to * hidden]]);
  const bias = (k: number): Tensor => (b ? part(b, 3 + k, hidden) : t.zeros([hidden], state.dtype));
  const both = t.matmul(state, rows(0, 2), { tb: true });
  const sum = (k: number): Tensor => t.add(t.add(gate(row, k, hidden), gate(both, k, hidden)), bias(k));
  const z = f(clipped(sum(0), of));
  const reset = f(clipped(sum(1), of));
  const after = of.call.int("linear_before_reset", 0) !== 0;
  const inner = after
    ? t.mul(reset, t.add(t.matmul(state, rows(2, 3), { tb: true }), bias(2)))
    : t.add(t.matmul(t.mul(reset, state), rows(2, 3), { tb: true }), bias(2));
  const next = g(clipped(t.add(gate(row, 2, hidden), inner), of));
  return [t.add(t.mul(t.sub(1, z), next), t.mul(z, state))];
};

/** Gates i, o, f, c; peepholes i, o, f. */
const lstmStep: Step = (row, [h, c], of) => {
  const { hidden, r, b, peephole } = of;
  const [f, g, last] = of.activations as readonly [Activation, Activation, Activation];
  const [state, cell] = [h as Tensor, c as Tensor];
  const product = t.add(row, t.matmul(state, r, { tb: true }));
  const all = b ? t.add(product, t.slice(b, [[4 * hidden, 8 * hidden]])) : product;
  const peeped = (k: number, p: number, from: Tensor): Tensor =>
    peephole ? t.add(gate(all, k, hidden), t.mul(part(peephole, p, hidden), from)) : gate(all, k, hidden);
  const i = f(clipped(peeped(0, 0, cell), of));
  const forget = of.call.flag("input_forget") ? t.sub(1, i) : f(clipped(peeped(2, 2, cell), of));
  const next = t.add(t.mul(forget, cell), t.mul(i, g(clipped(gate(all, 3, hidden), of))));
  return [t.mul(f(clipped(peeped(1, 1, next), of)), last(next)), next];
};

/** Output [time, batch, hidden] and last states of one direction. */
function along(direction: Direction, of: Recurrent, sequence: Sequence): readonly [Tensor, readonly Tensor[]] {
  const { hidden, w, b } = direction;
  const { x, initial, lengths, reverse } = sequence;
  const product = t.matmul(x, w, { tb: true });
  const rows = b ? t.add(product, t.slice(b, [[0, of.gates * hidden]])) : product;
  const [last, ys] = t.scan(
    (state: readonly Tensor[], row: Tensor, i: Tensor) => {
      const next = of.step(row, state, direction);
      if (!lengths) return [next, at(next, 0)] as const;
      const isOn = t.reshape(t.less(i, lengths), [-1, 1]);
      const kept = next.map((one, k) => t.where(isOn, one, at(state, k)));
      return [kept, t.where(isOn, at(next, 0), 0)] as const;
    },
    initial as readonly Tensor[],
    rows,
    { reverse },
  );
  return [ys, last];
}

interface Sequence {
  readonly x: Tensor;
  readonly initial: readonly Tensor[];
  readonly lengths: Tensor | null;
  readonly reverse: boolean;
}

function activationsOf(call: Call, of: Recurrent, direction: number): readonly Activation[] {
  const names = call.attribute("activations")?.texts ?? [];
  const [alphas, betas] = [call.floats("activation_alpha") ?? [], call.floats("activation_beta") ?? []];
  return of.usual.map((usual, k) => {
    const place = direction * of.usual.length + k;
    const name = (names[place] ?? names[k] ?? usual).toLowerCase();
    const made = Object.hasOwn(ACTIVATIONS, name) ? ACTIVATIONS[name] : undefined;
    return made ? made(alphas[place], betas[place]) : call.fail(`activation ${name}`);
  });
}

function recurrent(call: Call, of: Recurrent): readonly Result[] {
  const isBatchFirst = call.int("layout", 0) === 1;
  const given = call.x(0);
  const x = isBatchFirst ? t.swapAxes(given, 0, 1) : given;
  const hidden = call.int("hidden_size", at(call.x(2).shape, 2));
  const mode = call.text("direction", "forward");
  const reverses = mode === "bidirectional" ? [false, true] : [mode === "reverse"];
  const row = (i: number, d: number): Tensor => t.slice(call.x(i), [d]);
  const batch = at(x.shape, 1);
  const initial = (d: number): readonly Tensor[] =>
    Array.from({ length: of.states }, (_, k) => {
      if (!call.has(5 + k)) return t.zeros([batch, hidden], x.dtype);
      return t.slice(isBatchFirst ? t.swapAxes(call.x(5 + k), 0, 1) : call.x(5 + k), [d]);
    });
  const lengths = call.has(4) ? call.x(4) : null;
  const directions = reverses.map((reverse, d) => {
    const direction: Direction = {
      ...{ call, hidden, w: row(1, d), r: row(2, d), b: call.has(3) ? row(3, d) : null },
      peephole: call.has(7) ? row(7, d) : null,
      activations: activationsOf(call, of, d),
    };
    return along(direction, of, { x, initial: initial(d), lengths, reverse });
  });
  const states = Array.from({ length: of.states }, (_, k) =>
    t.stack(
      directions.map(([, last]) => at(last, k)),
      0,
    ),
  );
  const y = t.stack(
    directions.map(([ys]) => ys),
    1,
  );
  if (!isBatchFirst) return [y, ...states];
  return [t.transpose(y, [2, 0, 1, 3]), ...states.map((state) => t.swapAxes(state, 0, 1))];
}

const RNN: Recurrent = { gates: 1, states: 1, usual: ["tanh"], step: rnnStep };
const GRU: Recurrent = { gates: 3, states: 1, usual: ["sigmoid", "tanh"], step: gruStep };
const LSTM: Recurrent = { gates: 4, states: 2, usual: ["sigmoid", "tanh", "tanh"], step: lstmStep };

export const RECURRENT: Readonly<Record<string, Operator>> = {
  RNN: (call) => recurrent(call, RNN),
  GRU: (call) => recurrent(call, GRU),
  LSTM: (call) => recurrent(call, LSTM),
};
