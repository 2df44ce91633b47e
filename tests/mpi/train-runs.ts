/** @file Training runs in a folder on all processes: killed and continued, on other meshes, and failing in one way or another. */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { compile, random, type Tensor } from "../../src/api/index.ts";
import { type Files, NODE_FILES } from "../../src/node/files.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { train } from "../../src/node/train.ts";
import type { ParallelTrainOptions } from "../../src/node/train-options.ts";
import { adam } from "../../src/optim/index.ts";
import { type DataParallelOptions, dataParallel, mesh, parallelMlp } from "../../src/parallel/index.ts";
import { flatten } from "../../src/trace/tree.ts";
import { hashOf } from "./training.ts";

const [WIDTH, ROWS] = [7, 8];

interface Params {
  readonly w: Tensor;
  readonly b: Tensor;
}

const weights = (): Params => ({
  w: random.normal(random.key(1), [WIDTH, WIDTH]).mul(0.3),
  b: random.normal(random.key(2), [1]),
});
const lossOf = ({ w, b }: Params, x: Tensor): Tensor => x.matmul(w).add(b).tanh().square().mean();
const rowsOf = (i: number, part: number, parts: number): Tensor =>
  random.normal(random.key(100 + i), [ROWS, WIDTH]).slice([[(part * ROWS) / parts, ((part + 1) * ROWS) / parts]]);

type Given = Partial<ParallelTrainOptions<Params, [Tensor]>> &
  Pick<DataParallelOptions, "zero" | "microbatches"> & { readonly directory: string };

/** A run on the first so many processes; what rank 0 may print. */
async function run(devices: number, given: Given, files: Files = NODE_FILES) {
  const { zero = 0, microbatches = 1, ...options } = given;
  const spread = { mesh: mesh({ data: devices }), over: "data", deterministic: true, zero, microbatches };
  const parallel = dataParallel(lossOf, adam({ lr: 0.05 }), spread);
  const losses: number[] = [];
  const result = await train(
    {
      parallel,
      params: weights(),
      steps: 12,
      every: 3,
      target: "wasm",
      batch: (i, { part, parts }) => [rowsOf(i, part, parts)],
      onStep: (_, loss) => losses.push(loss.item()),
      ...options,
    },
    files,
  );
  const whole = compile(parallel.whole, { target: "wasm" })(result.state);
  const { ran, resumed, resumedFrom, damaged, loss } = result;
  const hash = hashOf(flatten(whole, "state").leaves);
  return { hash, loss: loss?.item() ?? null, losses, ran, resumed, resumedFrom, damaged };
}

const [, , , directory = "", count = ""] = process.argv;
type Zero = 0 | 1 | 2 | 3;

/** One is killed in the middle of its steps. */
const killed = () =>
  run(mpi().size, {
    directory,
    zero: 2,
    batch(i, { rank, part, parts }) {
      if (i === 8 && rank === 1) {
        writeSync(2, `killed at ${Date.now()}\n`);
        process.kill(process.pid, "SIGKILL");
      }
      return [rowsOf(i, part, parts)];
    },
  });

/** Many steps on all processes, or on one with as many microbatches: the same bits. Says which processes there are. */
const long = () => {
  const [, , , , zero, steps] = process.argv;
  const { size } = mpi();
  writeSync(2, `process ${process.pid}\n`);
  return run(size, {
    ...{ directory, every: 5, steps: Number(steps), zero: Number(zero) as Zero, microbatches: 4 / size },
    async batch(i, { part, parts }) {
      await sleep(2);
      return [rowsOf(i, part, parts)];
    },
  });
};

/** A file system that has no room for one rank's third file. */
const full = (): Promise<unknown> => {
  let written = 0;
  const files: Files = {
    ...NODE_FILES,
    async write(path, contents) {
      if (mpi().rank === 1 && /state-\d+\.1-of/.test(path) && contents.length > 1 && ++written === 3) {
        throw Object.assign(new Error("full"), { code: "ENOSPC" });
      }
      await NODE_FILES.write(path, contents);
    },
  };
  return run(mpi().size, { directory }, files);
};

/** What an error is on each rank, which all go on from. */
async function refused(act: () => Promise<unknown>): Promise<string> {
  return act().then(
    () => "it ran",
    (error: Error) => error.message.replaceAll(directory, "FOLDER"),
  );
}

/** Layers whose weights are in parts along an axis of their own. */
async function inParts(axes: Readonly<Record<string, number>>, zero: Zero, steps: number) {
  const { rank } = mpi();
  const parts = axes.tensor ?? 1;
  const own = rank % parts;
  const up = random.normal(random.key(3), [WIDTH, 4]).slice([null, [(4 / parts) * own, (4 / parts) * (own + 1)]]);
  const down = random.normal(random.key(4), [4, WIDTH]).slice([[(4 / parts) * own, (4 / parts) * (own + 1)]]);
  const loss = (p: { up: Tensor; down: Tensor }, x: Tensor) =>
    parallelMlp(x, { up: { w: p.up }, down: { w: p.down } }, { over: "tensor" })
      .square()
      .mean();
  const spread = { mesh: mesh(axes), over: "data", params: "tensor", deterministic: true, zero };
  const parallel = dataParallel(loss, adam({ lr: 0.05 }), spread);
  const { state, resumedFrom, ran } = await train({
    ...{ parallel, params: { up, down }, steps, every: 2, target: "wasm" as const, directory: `${directory}/parts` },
    batch: (i, { part, parts: of }) => [rowsOf(i, part, of)],
  });
  return {
    hash: hashOf(flatten(compile(parallel.whole, { target: "wasm" })(state), "state").leaves),
    resumedFrom,
    ran,
  };
}

/** Runs on four processes and on the first of them, in one folder after the other. */
async function several() {
  const { rank, size } = mpi();
  const at = (name: string): string => `${directory}/${name}`;
  const first = await run(4, { directory: at("a"), zero: 2, steps: 6 });
  // the same state on two devices, each with a part, and again on four, each with all
  const two = rank < 2 ? await run(2, { directory: at("a"), zero: 3, steps: 6 }) : null;
  const more = rank < 2 ? await run(2, { directory: at("a"), zero: 3, steps: 8 }) : null;
  const again = await run(4, { directory: at("a"), zero: 0, steps: 8 });
  const parts = await inParts({ data: 2, tensor: 2 }, 1, 5);
  const onOneRow = rank < 2 ? await inParts({ data: 1, tensor: 2 }, 3, 5) : null;
  const otherParts = await refused(() => inParts({ data: 1, tensor: 4 }, 0, 6));
  const errors = {
    otherParts,
    parameters: await refused(() =>
      run(4, { directory: at("b"), params: { ...weights(), ...(rank === 2 && { b: weights().b.mul(2) }) } }),
    ),
    options: await refused(() => run(4, { directory: at("c"), every: rank === 3 ? 5 : 3 })),
    folders: await refused(() => run(4, { directory: at(`d${rank >> 1}`) })),
    invalid: await refused(() => run(4, { directory: at("e"), ...(rank === 1 && { every: -1 }) })),
    first: await refused(() =>
      run(4, {
        directory: at("f"),
        batch(i, { rank: own, part, parts: of }) {
          if (own === 2) throw new Error("the data is not there");
          return [rowsOf(i, part, of)];
        },
      }),
    ),
    loss: await refused(() => run(4, { directory: at("a"), zero: 2, steps: 9, microbatches: 2 })),
    // the folder is free again
    again: await refused(() => run(4, { directory: at("c"), steps: 1 })),
  };
  // other ranks have errors of their own
  const said = { 0: errors, 1: errors, 2: errors, 3: errors }[rank];
  writeSync(2, `errors ${rank} ${JSON.stringify(said)}\n`);
  return { size, first, two, more, again, parts, onOneRow };
}

export const trainRuns: Readonly<Record<string, () => unknown>> = {
  trainWhole: () => run(mpi().size, { directory, zero: Number(count || 2) as Zero }),
  trainAlone: () => run(1, { directory, microbatches: Number(count) }),
  trainKilled: killed,
  trainLong: long,
  trainFull: full,
  trainSeveral: several,
  /** One throws in its data. */
  trainThrows: async () => {
    const { failingRows } = (await import(count)) as { failingRows(): never };
    return run(mpi().size, {
      directory,
      batch(i, { rank, part, parts }) {
        if (i === 5 && rank === 1) failingRows();
        return [rowsOf(i, part, parts)];
      },
    });
  },
  /** The first one throws in a callback, and says nothing of it to the system. */
  trainCaught: () =>
    run(mpi().size, {
      directory,
      onStep(i) {
        if (i === 4) throw new Error("no terminal");
      },
    }).catch(() => undefined),
  /** One has another batch. */
  trainShape: () =>
    run(mpi().size, {
      directory,
      batch: (i, { rank, part, parts }) => [rowsOf(i, part, i === 4 && rank === 1 ? 4 : parts)],
    }),
};
