/** @file Steps with regions: loops, branches, checkpoints, rules for derivatives, reversible blocks, parts with names. */
import {
  additiveCoupling,
  checkpoint,
  cond,
  customJvp,
  customVjp,
  forLoop,
  reversible,
  reversibleChain,
  reversibleLoop,
  scan,
  scope,
  switchCase,
  type Tensor,
  tensor,
  whileLoop,
} from "../../../src/api/index.ts";
import { drawBody } from "../body.ts";
import { type Step, tame, weights } from "../scene.ts";

const MOST_ROWS = 24;

/** Over the rows of x, with and without a result for each. */
const scanRows: Step = ({ x, random }) => {
  const rows = x.shape[0] ?? 0;
  if (rows === 0 || rows > MOST_ROWS) return null;
  const inner = drawBody(random, 1);
  const options = {
    reverse: random.chance(0.3),
    reversal: random.pick(["auto", "auto", "store-all", "binomial", "periodic"] as const),
  };
  const turn = (state: Tensor, row: Tensor): readonly [Tensor, Tensor] => {
    const next = inner(state.mul(0.6).add(tame(row).mul(0.3))).tanh();
    return [next, next.mul(row)];
  };
  const [last, ys] = scan(turn, tame(x.slice([0])), x, options);
  return [ys, last];
};

/** A state of several tensors, and a captured one. */
const scanPair: Step = ({ x, random, dtype }) => {
  const length = 2 + random.int(8);
  const scale = x.elements > 0 ? tame(x).mean() : tensor(0.3, { dtype });
  const inner = drawBody(random, 0);
  type State = readonly [Tensor, Tensor];
  const turn = ([a, b]: State, _: null, i: Tensor): readonly [State, Tensor] => {
    const c = inner(a.mul(0.5).add(b)).tanh();
    const next: State = [b.mul(0.9).add(scale.mul(i.cast(dtype)).mul(0.01)), c];
    return [next, c.sum().mul(0.1)];
  };
  const [[a, b], sums] = scan<State, null, Tensor>(turn, [tame(x), x.cos()], null, { length });
  return [sums, a, b];
};

const counted: Step = ({ x, random }) => {
  const y = tame(x);
  const inner = drawBody(random, 2);
  return forLoop(1 + random.int(7), y, (_, state) => inner(state.mul(y).add(0.2)).tanh());
};

/** A simulation: many turns of little work. */
const longLoop: Step = ({ x, random }) => {
  if (x.elements > 512) return null;
  const inner = drawBody(random, 0);
  return forLoop(16 + random.int(100), tame(x), (_, state) => inner(state).mul(0.3).add(state.mul(0.7)).tanh());
};

const untilSmall: Step = ({ x, random }) => {
  if (x.elements === 0) return null;
  const inner = drawBody(random, 0);
  type State = readonly [Tensor, Tensor];
  const limit = 2 + random.int(6);
  const options = random.chance(0.5) ? { maxSteps: 6 } : {};
  const [, last] = whileLoop<State>(
    ([k, state]) => k.less(limit).logicalAnd(state.square().mean().greater(0.02)),
    ([k, state]) => [k.add(1), inner(state).mul(0.7).sin()],
    [tensor(0, { dtype: "i32" }), tame(x)],
    options,
  );
  return last;
};

const branch: Step = ({ x, random }) => {
  if (x.elements === 0) return null;
  const [a, b] = [drawBody(random, 1), drawBody(random, 1)];
  return cond(tame(x).mean().greater(0.05), a, b, tame(x));
};

const choice: Step = ({ x, random }) => {
  if (x.elements === 0) return null;
  const branches = Array.from({ length: 2 + random.int(2) }, () => drawBody(random, 1));
  return switchCase(tame(x).square().mean().mul(9).cast("i32"), branches, tame(x));
};

const checkpointed: Step = ({ x, random }) => {
  const inner = checkpoint(drawBody(random, 2));
  return inner(x).tanh();
};

/** A network of blocks, each under a request to keep only its input. */
const checkpointedBlocks: Step = ({ x, random, dtype }) => {
  if (x.rank < 1 || x.elements === 0) return null;
  const columns = x.shape.at(-1) as number;
  const block = checkpoint((state: Tensor, w: Tensor) => state.add(state.layerNorm().matmul(w).gelu()));
  let y = x;
  for (let i = 2 + random.int(4); i > 0; i--) y = block(y, weights(x, [columns, columns], dtype).add(0.01 * i));
  return y;
};

const named: Step = ({ x, random }) => {
  const inner = drawBody(random, 2);
  return scope("outer", () => scope(`block${random.int(2)}`, () => inner(x)).add(x.cos()));
};

const customReverse: Step = ({ x, random, forwardMode }) => {
  if (forwardMode) return null;
  const inner = drawBody(random, 0);
  const rule = customVjp((a: Tensor) => inner(a).tanh(), {
    forward: (a: Tensor) => {
      const y = inner(a).tanh();
      return [y, [y]];
    },
    backward: ([y]: readonly Tensor[], ct: Tensor) => [ct.mul((y as Tensor).square().neg().add(1)).clamp(-2, 2)],
  });
  return rule(x);
};

const customForward: Step = ({ x }) => {
  const rule = customJvp(
    (a: Tensor) => a.tanh(),
    ([a], [t]) => t.mul(a.tanh().square().neg().add(1)),
  );
  return rule(x);
};

/** Additive couplings, one after the other or as a loop, on both halves of an axis. */
const coupled: Step = ({ x, random, forwardMode }) => {
  if (forwardMode || x.elements === 0) return null;
  const [f, g] = [drawBody(random, 0), drawBody(random, 0)];
  const block = additiveCoupling(
    (a: Tensor) => f(a).tanh(),
    (a: Tensor) => g(a).sin(),
  );
  const many = random.chance(0.5) ? reversibleChain(block, block, block) : reversibleLoop(block, 1 + random.int(5));
  const [a, b] = (many as typeof block)([tame(x), x.cos()]);
  return [a, b.tanh()];
};

const scaledBack: Step = ({ x, forwardMode }) => {
  if (forwardMode) return null;
  const block = reversible(
    (a: Tensor, p: Tensor) => a.mul(p.exp()),
    (a: Tensor, p: Tensor) => a.div(p.exp()),
  );
  return block(x, tame(x).mul(0.3)).tanh();
};

export const controls = {
  scanRows,
  scanPair,
  counted,
  longLoop,
  untilSmall,
  branch,
  choice,
  checkpointed,
  checkpointedBlocks,
  named,
  customReverse,
  customForward,
  coupled,
  scaledBack,
} as const;
