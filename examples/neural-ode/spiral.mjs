/**
 * @file A differential equation found from a few points of one of its solutions: a small network is the right side, and
 * is trained through the solver (R. Chen and others, "Neural ordinary differential equations", NeurIPS 2018). The truth
 * is a spiral, y' = A y³. Training looks at short pieces of it, all at once:
 *
 *   points   ●──●──●──●──●──●──●──●            piece 0  ●──●──●──●
 *                                              piece 1     ●──●──●──●      from each point on, as a batch
 */
import { compile, tensor, valueAndGrad } from "tidemark";
import { lambda, linear, sequential, tanh } from "tidemark/nn";
import { adam, cosine } from "tidemark/optim";
import { odeint } from "tidemark/sim";

const START = [1.5, 0];

/** Steps of equal size. */
const FIXED = { method: "rk4", substeps: 2 };

/** Points of the true solution, [points, 2], and when they were. */
export function spiral({ points, duration }) {
  const a = tensor([
    [-0.1, -2],
    [2, -0.1],
  ]);
  const times = Array.from({ length: points }, (_, i) => (i * duration) / (points - 1));
  const solve = compile((y0) => odeint((y) => y.pow(3).matmul(a), y0, times));
  return { times, truth: solve(tensor([START])).reshape([points, 2]) };
}

export function modelOf(hidden) {
  // Cubes as inputs, as the truth has them; what is made of them is for the network to find.
  return sequential(
    lambda((y) => y.pow(3)),
    linear(2, hidden),
    tanh(),
    linear(hidden, 2),
  );
}

/** All pieces of `length` points: where they begin [pieces, 2], and where they go [length, pieces, 2]. */
function pieces(truth, length) {
  const count = truth.shape[0] - length + 1;
  const rows = (from) => truth.slice([[from, from + count], null]);
  const goals = Array.from({ length }, (_, i) => rows(i).data());
  return {
    starts: rows(0),
    goals: tensor(new Float32Array(goals.flatMap((row) => [...row])), { shape: [length, count, 2] }),
  };
}

/** Trains a network to move like the truth, in at most `memory` bytes. `solver` has the options of odeint. */
export function learn(
  { times, truth },
  { hidden, length, iterations, memory, solver = FIXED, seed = 1, each = () => {} },
) {
  const model = modelOf(hidden);
  const optimizer = adam({ lr: cosine(0.03, iterations, 1e-5) });
  const { starts, goals } = pieces(truth, length);
  const step = (state, y0, wanted) => {
    const loss = (params) => {
      const found = odeint((y) => model.apply(params, y), y0, times.slice(0, length), solver);
      return found.sub(wanted).square().mean();
    };
    const [value, slopes] = valueAndGrad(loss)(state.params);
    return [optimizer.update(state, slopes), value];
  };
  let state = optimizer.init(model.init(seed));
  const compiled = compile(step, { donate: [0], memory });
  const info = compiled.program(state, starts, goals);
  const losses = [];
  for (let i = 0; i < iterations; i++) {
    const [next, loss] = compiled(state, starts, goals);
    state = next;
    losses.push(loss.item());
    each(i, losses[i]);
  }
  const solve = compile((params, y0) => odeint((y) => model.apply(params, y), y0, times));
  const learned = solve(state.params, tensor([START])).reshape([times.length, 2]);
  return { learned, losses, info };
}

/** The mean distance between two lists of points. */
export function distance(a, b) {
  return a.sub(b).square().sum(-1).sqrt().mean().item();
}
