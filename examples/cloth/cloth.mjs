/**
 * @file A cloth of masses and springs, hung up at two corners, in a wind that is looked for: the wind that makes the
 * middle of the lower edge be at a given place at the end. The gradient goes through every step of the motion.
 *
 *   ●━━●━━●━━●      springs to the right and down (stretch), across (shear) and two further (bend)
 *   ┃╲╱┃╲╱┃╲╱┃
 *   ●━━●━━●━━●      v ← v + dt (springs + gravity + drag · (wind - v)),  p ← p + dt v
 */
import { compile, forLoop, tensor, valueAndGrad, zeros } from "tidemark";
import { adam, cosine } from "tidemark/optim";

const DT = 0.002;
/** Over the mass of a node, like all forces here; √(24 · this) · DT < 2 keeps the steps stable. */
const STIFFNESS = 4000;
const GRAVITY = -9.8;
const DRAG = 0.6;
/** Down and to the right, in cells. */
const SPRINGS = [
  [0, 1],
  [1, 0],
  [1, 1],
  [1, -1],
  [0, 2],
  [2, 0],
];

/** A square cloth of side 1 in the plane y = 0, hanging from z = 0. */
export function clothOf(size) {
  const gap = 1 / (size - 1);
  const places = Array.from({ length: size * size }, (_, i) => [
    (i % size) * gap - 0.5,
    0,
    -Math.floor(i / size) * gap,
  ]);
  const held = Array.from({ length: size * size }, (_, i) => Number(i !== 0 && i !== size - 1));
  return {
    size,
    gap,
    places: tensor(new Float32Array(places.flat()), { shape: [size, size, 3] }),
    /** 0 where the cloth is held, 1 elsewhere. */
    free: tensor(new Float32Array(held), { shape: [size, size, 1] }),
  };
}

/** The part of a grid of masses that has a neighbour (down, right) away, and the part of those neighbours. */
function ends(p, size, [down, right]) {
  const rows = (from) => [from, from + size - down];
  const columns = (from) => [from, from + size - Math.abs(right)];
  const [first, second] = right < 0 ? [-right, 0] : [0, right];
  return [p.slice([rows(0), columns(first), null]), p.slice([rows(down), columns(second), null])];
}

/** Forces at both ends of all springs of one kind, on the whole grid. */
function springForce(p, { size, gap }, spring) {
  const [down, right] = spring;
  const [a, b] = ends(p, size, spring);
  const apart = b.sub(a);
  const length = apart.square().sum(-1, { keepDims: true }).add(1e-9).sqrt();
  const rest = gap * Math.hypot(down, right);
  const pull = apart.mul(length.sub(rest).div(length)).mul(STIFFNESS);
  const wide = Math.abs(right);
  const [first, second] = right < 0 ? [wide, 0] : [0, wide];
  const placed = (row, column) =>
    pull.pad([
      [row, down - row],
      [column, wide - column],
      [0, 0],
    ]);
  return placed(0, first).sub(placed(down, second));
}

function step(cloth, [p, v], wind) {
  const springs = SPRINGS.map((spring) => springForce(p, cloth, spring)).reduce((sum, force) => sum.add(force));
  const weight = tensor([0, 0, GRAVITY]);
  const speed = v
    .add(springs.mul(DT))
    .add(wind.sub(v).mul(DRAG * DT))
    .add(weight.mul(DT))
    .mul(cloth.free);
  return [p.add(speed.mul(DT)), speed];
}

/** The places of all masses after `steps` steps in a wind given by vectors that hold for equal parts of the time. */
export function blow(cloth, wind, steps) {
  const parts = wind.shape[0];
  const advance = (i, state) => {
    const part = i
      .cast("f32")
      .mul(parts / steps)
      .floor()
      .cast("i32");
    return step(cloth, state, wind.take(part));
  };
  return forLoop(steps, [cloth.places, zeros(cloth.places.shape)], advance)[0];
}

/** How far the middle of the lower edge is from the target, and a little for strong winds. */
function lossOf(cloth, wind, steps, target) {
  const { size } = cloth;
  const places = blow(cloth, wind, steps);
  const tip = places.slice([[size - 1, size], [Math.floor(size / 2), Math.floor(size / 2) + 1], null]).reshape([3]);
  return [tip.sub(target).square().sum().add(wind.square().mean().mul(1e-5)), [places, tip]];
}

/** Finds a wind in at most `memory` bytes. */
export function optimise({ size, steps, parts, iterations, memory, target, each = () => {} }) {
  const cloth = clothOf(size);
  const optimizer = adam({ lr: cosine(0.6, Math.max(1, iterations)) });
  let state = optimizer.init(zeros([parts, 3]));
  const compiled = compile(
    (now, goal) => {
      const loss = (wind) => lossOf(cloth, wind, steps, goal);
      const [[value, [places]], slope] = valueAndGrad(loss, { hasAux: true })(now.params);
      return [optimizer.update(now, slope), value, places];
    },
    { memory },
  );
  const goal = tensor(target);
  const info = compiled.program(state, goal);
  const losses = [];
  let places = cloth.places;
  for (let i = 0; i < iterations; i++) {
    const [next, loss, now] = compiled(state, goal);
    state = next;
    places = now;
    losses.push(loss.item());
    each(i, losses[i], places);
  }
  return { wind: state.params, losses, places, info };
}
