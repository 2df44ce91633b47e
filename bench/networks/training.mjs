/**
 * @file A training step of a network, as `tidemark bench MODULE` takes it, and the parts that the networks beside this file
 * share. networks.py has the same networks for PyTorch: the same layers, shapes, batches and optimizers.
 */
import { crossEntropy, random, tensor, valueAndGrad } from "tidemark";
import { batchNorm, conv2d, sequential } from "tidemark/nn";

/** A size: the network's own, or a smaller one with NETWORKS=small, for tests. */
export const size = (full, small) => (process.env.NETWORKS === "small" ? small : full);

/** Numbers of a batch; the same on every run. */
export const images = (shape) => random.normal(random.key(1), shape);
export const classes = (count, of) => tensor(Int32Array.from({ length: count }, (_, i) => (i * 7) % of));

/** Convolution without offset, and batch normalisation. */
export const convNorm = (from, to, kernel, options = {}) =>
  sequential(conv2d(from, to, kernel, { bias: false, padding: (kernel - 1) / 2, ...options }), batchNorm(to));

/** x ↦ act(body(x) + shortcut(x)), layers with state. */
export function residual(body, shortcut = null, act = (x) => x) {
  return {
    init: (key) => ({ body: body.init(key), ...(shortcut ? { shortcut: shortcut.init(key) } : {}) }),
    initState: () => ({ body: body.initState(), ...(shortcut ? { shortcut: shortcut.initState() } : {}) }),
    apply(params, state, x, options) {
      const [y, after] = body.apply(params.body, state.body, x, options);
      if (!shortcut) return [act(y.add(x)), { body: after }];
      const [z, besides] = shortcut.apply(params.shortcut, state.shortcut, x, options);
      return [act(y.add(z)), { body: after, shortcut: besides }];
    },
  };
}

/** A program of a model with state: parameters, optimizer state, running averages. */
export function training(name, { model, optimizer, batch, loss = crossEntropy }) {
  const gradients = valueAndGrad(
    (params, stats, x, y) => {
      const [logits, next] = model.apply(params, stats, x, { train: true });
      return [loss(logits, y), next];
    },
    { hasAux: true },
  );
  return {
    name,
    init: () => ({ ...optimizer.init(model.init(0)), stats: model.initState?.() ?? {} }),
    batch,
    step({ stats, ...state }, x, y) {
      const [[value, next], grads] = gradients(state.params, stats, x, y);
      return [{ ...optimizer.update(state, grads), stats: next }, value];
    },
  };
}

/** The same interface for a model without state. */
export const withoutState = ({ init, apply }) => ({
  init,
  initState: () => ({}),
  apply: (params, state, x, options) => [apply(params, x, options), state],
});
