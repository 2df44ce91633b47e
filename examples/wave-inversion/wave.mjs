/**
 * @file Sound through an unknown medium. Waves go out from a few sources, one shot each, and are heard at receivers all
 * around; the medium is found from what was heard, by the gradient of the misfit through all time steps (full-waveform
 * inversion). In f64, on a square grid, second order in space and time:
 *
 *   u'' = c² Δu + source        uₙ₊₁ = 2uₙ - uₙ₋₁ + (c dt / dx)² Δ uₙ + dt² s(tₙ)
 *
 *   ┌ r r r r r ┐     s sources, r receivers; a sponge at the edges swallows what would come back
 *   s           r
 *   s    ░▒░    r     c = 1 but for an anomaly, which is what is looked for
 *   s           r
 *   └ r r r r r ┘
 */
import { compile, scan, tensor, valueAndGrad } from "tidemark";
import { adam } from "tidemark/optim";

/** Waves cross about half a cell a step: below 1/√2 the scheme is stable. */
const COURANT = 0.5;

const f64 = (data, shape) => tensor(new Float64Array(data), { shape });

/** Everything about a survey that is known. */
export function survey({ size, shots, steps, margin = 4 }) {
  const cells = (fn) =>
    f64(
      Array.from({ length: size * size }, (_, i) => fn(Math.floor(i / size), i % size)),
      [size, size],
    );
  const toEdge = (row, column) => Math.min(row, column, size - 1 - row, size - 1 - column);
  const spread = Array.from({ length: shots }, (_, k) => Math.round(((k + 1) * (size - 1)) / (shots + 1)));
  const sources = Array.from({ length: shots * size * size }, (_, i) => {
    const [shot, row, column] = [Math.floor(i / size ** 2), Math.floor(i / size) % size, i % size];
    return Number(row === spread[shot] && column === margin);
  });
  const ring = Array.from({ length: size * size }, (_, i) => i).filter((i) => {
    const [row, column] = [Math.floor(i / size), i % size];
    return toEdge(row, column) === margin && column !== margin;
  });
  // A pulse of about ten steps' half-width, with its first and last values near zero (N. Ricker, 1953).
  const width = 8;
  const pulse = Array.from({ length: steps }, (_, n) => {
    const a = ((n - 3 * width) / width) ** 2;
    return (1 - 2 * a) * Math.exp(-a);
  });
  return {
    size,
    shots,
    steps,
    sources: f64(sources, [shots, size, size]),
    receivers: tensor(new Int32Array(ring)),
    pulse: f64(pulse, [steps]),
    sponge: cells((row, column) => Math.exp(-((Math.max(0, margin - toEdge(row, column)) * 0.12) ** 2))),
    // Cells that are looked for: inside of the ring of receivers.
    inside: cells((row, column) => Number(toEdge(row, column) > margin + 1)),
  };
}

/** The medium to be found, as (c / c₀)² - 1: faster in one place, slower in another. */
export function anomaly({ size }) {
  const blob = (row, column, [r, c], radius) =>
    Math.exp(-((row - r * size) ** 2 + (column - c * size) ** 2) / radius ** 2);
  const values = Array.from({ length: size * size }, (_, i) => {
    const [row, column] = [Math.floor(i / size), i % size];
    return 0.25 * blob(row, column, [0.38, 0.55], size / 9) - 0.2 * blob(row, column, [0.66, 0.42], size / 11);
  });
  return f64(values, [size, size]);
}

function laplacian(u) {
  const [shots, rows, columns] = u.shape;
  const wide = u.pad([
    [0, 0],
    [1, 1],
    [1, 1],
  ]);
  const part = (r, c) =>
    wide.slice([
      [0, shots],
      [r, r + rows],
      [c, c + columns],
    ]);
  return part(0, 1).add(part(2, 1)).add(part(1, 0)).add(part(1, 2)).sub(u.mul(4));
}

/** One step of all shots at once, as a function of [u, the one before] and the value of the pulse. */
function stepper({ sources, sponge, inside }, medium) {
  const speed = medium
    .mul(inside)
    .add(1)
    .mul(COURANT ** 2);
  return ([u, before], s) => {
    const next = u.mul(2).sub(before).add(laplacian(u).mul(speed)).add(sources.mul(s)).mul(sponge);
    return [next, u.mul(sponge)];
  };
}

const atReceivers = ({ size, shots, receivers }, u) => u.reshape([shots, size * size]).take(receivers, 1);

/** What the receivers hear, [steps, shots, receivers]. */
export function record(known, medium) {
  const step = stepper(known, medium);
  const still = known.sources.mul(0);
  const [, heard] = scan(
    (state, s) => {
      const next = step(state, s);
      return [next, atReceivers(known, next[0])];
    },
    [still, still],
    known.pulse,
  );
  return heard;
}

/** Half the squared difference from what was heard, summed up on the way: what is heard is not kept. */
export function misfit(known, medium, heard) {
  const step = stepper(known, medium);
  const still = known.sources.mul(0);
  const [[, total]] = scan(
    ([state, sum], [s, wanted]) => {
      const next = step(state, s);
      const off = atReceivers(known, next[0]).sub(wanted);
      return [[next, sum.add(off.square().sum())], []];
    },
    [[still, still], f64([0], [])],
    [known.pulse, heard],
  );
  return total.mul(0.5);
}

/** What finding the medium needs: the recording, the first state, and a step to be compiled. */
export function inversion(known, { rate = 0.012 } = {}) {
  const optimizer = adam({ lr: rate });
  return {
    /** To be compiled as well, and called with the true medium. */
    observe: (medium) => record(known, medium),
    init: () => optimizer.init(f64(new Float64Array(known.size ** 2), [known.size, known.size])),
    step(state, heard) {
      const [loss, slope] = valueAndGrad((medium) => misfit(known, medium, heard))(state.params);
      return [optimizer.update(state, slope.mul(known.inside)), loss];
    },
  };
}

/** Finds the medium again, in at most `memory` bytes. `each` is called with the number of the iteration, the misfit and the medium so far. */
export function invert(known, { iterations, memory, rate, each = () => {} }) {
  const { observe, init, step } = inversion(known, { rate });
  const observed = compile(observe)(anomaly(known));
  let state = init();
  const compiled = compile(step, { donate: [0], memory });
  const info = compiled.program(state, observed);
  const misfits = [];
  for (let i = 0; i < iterations; i++) {
    const [next, loss] = compiled(state, observed);
    state = next;
    misfits.push(loss.item());
    each(i, misfits[i], state.params);
  }
  return { medium: state.params, misfits, info, observedBytes: observed.data().byteLength };
}

/** How alike two media are: the cosine of the angle between them. */
export function likeness(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  const [left, right] = [a.data(), b.data()];
  return dot(left, right) / Math.sqrt(dot(left, left) * dot(right, right));
}
