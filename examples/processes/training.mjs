/** @file Points on two spirals: which one is each of them on? Learned by any number of processes, in one folder. */
import { compile, random, stack } from "tidemark";
import { linear, relu, sequential } from "tidemark/nn";
import { train } from "tidemark/node";
import { adam } from "tidemark/optim";
import { dataParallel, mesh } from "tidemark/parallel";

const ROWS = 512;
const model = sequential(linear(2, 64), relu(), linear(64, 64), relu(), linear(64, 2));

/** Points with the spirals that they are on: all of a step, the same whatever the number of processes. */
function points(key) {
  const [a, b] = random.split(random.key(key));
  const radius = random.uniform(a, [ROWS], { hi: 9 });
  const spiral = random.bernoulli(b, 0.5, [ROWS]).cast("i32");
  const angle = radius.add(spiral.cast("f32").mul(Math.PI));
  return [stack([radius.mul(angle.cos()), radius.mul(angle.sin())], 1), spiral];
}

/** Trains on so many processes, each of which keeps its part of the moments. Every one of them calls this. */
export async function learnSpirals({ processes, directory, steps, every, onStep, zero = 2 }) {
  const parallel = dataParallel(
    (params, x, spiral) => model.apply(params, x).crossEntropy(spiral),
    adam({ lr: 3e-3 }),
    { mesh: mesh({ data: processes }), over: "data", zero, deterministic: true },
  );
  const rowsOf = (all, { part, parts }) => all.slice([[(part * ROWS) / parts, ((part + 1) * ROWS) / parts]]);
  const result = await train({
    parallel,
    params: model.init(0),
    steps,
    batch: (i, device) => points(i).map((all) => rowsOf(all, device)),
    directory,
    ...(every && { every }),
    ...(onStep && { onStep }),
  });
  return { ...result, params: compile(parallel.params)(result.state) };
}

/** The share of fresh points that are put onto the right spiral. */
export function rightOf(params) {
  const [x, spiral] = points(-1);
  const isRight = compile((p, at, truth) => model.apply(p, at).argmax(1).cast("i32").eq(truth).cast("f32").mean());
  return isRight(params, x, spiral).item();
}
