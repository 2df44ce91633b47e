/** @file PyTorch's LSTM, GRU and RNN over whole sequences: layers, directions, and weights as one list. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Args, Operator, Value } from "./args.ts";

interface Weights {
  readonly input: Tensor;
  readonly state: Tensor;
  readonly inputBias: Tensor | null;
  readonly stateBias: Tensor | null;
}

/** From the gates of the input and a state to the next one; the first of a state is its output. */
type Step = (row: Tensor, state: readonly Tensor[], weights: Weights) => readonly Tensor[];

const gates = (x: Tensor, count: number): readonly Tensor[] => t.split(x, count, 1);

const fromState = (h: Tensor, { state, stateBias }: Weights): Tensor => {
  const y = t.matmul(h, state, { tb: true });
  return stateBias ? t.add(y, stateBias) : y;
};

/** Gates i, f, g, o. */
const lstmStep: Step = (row, [h, c], weights) => {
  const [i, f, g, o] = gates(t.add(row, fromState(h as Tensor, weights)), 4) as [Tensor, Tensor, Tensor, Tensor];
  const next = t.add(t.mul(t.sigmoid(f), c as Tensor), t.mul(t.sigmoid(i), t.tanh(g)));
  return [t.mul(t.sigmoid(o), t.tanh(next)), next];
};

/** Gates r, z, n. */
const gruStep: Step = (row, [h], weights) => {
  const [xr, xz, xn] = gates(row, 3) as [Tensor, Tensor, Tensor];
  const [hr, hz, hn] = gates(fromState(h as Tensor, weights), 3) as [Tensor, Tensor, Tensor];
  const [r, z] = [t.sigmoid(t.add(xr, hr)), t.sigmoid(t.add(xz, hz))];
  const n = t.tanh(t.add(xn, t.mul(r, hn)));
  return [t.add(n, t.mul(z, t.sub(h as Tensor, n)))];
};

const rnnStep =
  (of: (x: Tensor) => Tensor): Step =>
  (row, [h], weights) => [of(t.add(row, fromState(h as Tensor, weights)))];

function along(x: Tensor, initial: readonly Tensor[], weights: Weights, how: { step: Step; reverse: boolean }) {
  const product = t.matmul(x, weights.input, { tb: true });
  const rows = weights.inputBias ? t.add(product, weights.inputBias) : product;
  return t.scan(
    (state: readonly Tensor[], row: Tensor) => {
      const next = how.step(row, state, weights);
      return [next, at(next, 0)] as const;
    },
    initial,
    rows,
    { reverse: how.reverse },
  );
}

function recurrent(args: Args, step: Step, states: number): Value {
  const isBatchFirst = args.flag("batch_first");
  const given = args.t("input");
  const [layers, directions] = [args.n("num_layers", 1), args.flag("bidirectional") ? 2 : 1];
  const params = args.tensors("params");
  const hasBias = args.flag("has_biases", true);
  const width = hasBias ? 4 : 2;
  const first = states === 1 ? [args.t("hx")] : args.tensors("hx");
  const dropout = args.flag("train") ? args.n("dropout", 0) : 0;
  let x = isBatchFirst ? t.swapAxes(given, 0, 1) : given;
  const last: Tensor[][] = Array.from({ length: states }, () => []);
  for (let layer = 0; layer < layers; layer++) {
    const outputs = Array.from({ length: directions }, (_, d) => {
      const k = layer * directions + d;
      const own = params.slice(k * width, (k + 1) * width);
      const weights: Weights = {
        input: at(own, 0),
        state: at(own, 1),
        inputBias: hasBias ? at(own, 2) : null,
        stateBias: hasBias ? at(own, 3) : null,
      };
      const initial = first.map((state) => t.slice(state, [k]));
      const [end, ys] = along(x, initial, weights, { step, reverse: d === 1 });
      end.forEach((state, s) => {
        last[s]?.push(state);
      });
      return ys;
    });
    x = outputs.length === 1 ? at(outputs, 0) : t.concat(outputs, 2);
    if (dropout > 0 && layer < layers - 1) x = t.dropout(x, dropout, args.key());
  }
  return [isBatchFirst ? t.swapAxes(x, 0, 1) : x, ...last.map((list) => t.stack(list, 0))];
}

export const RECURRENT: Readonly<Record<string, Operator>> = {
  lstm: (args) => recurrent(args, lstmStep, 2),
  gru: (args) => recurrent(args, gruStep, 1),
  rnn_tanh: (args) => recurrent(args, rnnStep(t.tanh), 1),
  rnn_relu: (args) => recurrent(args, rnnStep(t.relu), 1),
};
