/**
 * @file Steps that look rows of large tables up, beside PyTorch with sparse gradients (tables.py): word2vec with negative samples, and a
 * classifier of bags of words. Needs a build; PyTorch from Debian's python3-torch.
 *
 *   node bench/tables.mjs [--rounds=3] [--seconds=1]
 *
 * Processes alternate; what counts is the least processor time of a step on one thread. "dense" is a step whose gradient is
 * made for the whole table.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as tm from "../dist/api/index.js";
import "../dist/node/index.js";
import { embeddingBag, linear } from "../dist/nn/index.js";
import { adagrad, adam, sgd } from "../dist/optim/index.js";

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "1" },
    one: { type: "string" },
  },
});
const [ROWS, WIDTH, BATCH, NEGATIVES, BAG, CLASSES] = [50_000, 128, 1024, 5, 16, 10];

const ids = (shape, by) => {
  const count = shape.reduce((a, n) => a * n, 1);
  return tm.tensor(Int32Array.from({ length: count }, (_, i) => (i * 7919 * by) % ROWS)).reshape(shape);
};
const table = (key) => tm.random.normal(tm.random.key(key), [ROWS, WIDTH]).mul(0.1);

const PROGRAMS = {
  word2vec: () => ({
    params: { centers: table(1), contexts: table(2) },
    batch: [ids([BATCH], 1), ids([BATCH], 3), ids([BATCH, NEGATIVES], 5)],
    loss: (p, c, o, n) => {
      const u = p.centers.take(c);
      const near = tm.softplus(u.mul(p.contexts.take(o)).sum(1).neg()).sum();
      return near.add(tm.softplus(u.reshape([BATCH, 1, WIDTH]).mul(p.contexts.take(n)).sum(2)).sum());
    },
  }),
  bag: () => {
    const [bag, last] = [embeddingBag(ROWS, WIDTH, { mode: "sum" }), linear(WIDTH, CLASSES)];
    return {
      params: { bag: { table: table(1) }, last: last.init(2) },
      batch: [ids([BATCH, BAG], 1), tm.tensor(Int32Array.from({ length: BATCH }, (_, i) => i % CLASSES))],
      loss: (p, words, y) => tm.crossEntropy(last.apply(p.last, bag.apply(p.bag, words)), y),
    };
  },
};
const isTable = (path) => /centers|contexts|table/.test(path);
const OPTIMIZERS = {
  sgd: () => sgd({ lr: 0.1 }),
  adagrad: () => adagrad({ lr: 0.1 }),
  adam: (dense) => adam(dense ? {} : { lazy: isTable }),
};

/** The least processor time of a step, in ms. */
function measure(program, optimizerName, target, dense) {
  const { params, batch, loss } = PROGRAMS[program]();
  const optimizer = OPTIMIZERS[optimizerName](dense);
  const through = (g) => (dense ? tm.tree.map((leaf) => leaf.mul(1), g) : g);
  const step = tm.compile(
    (state, ...rest) => {
      const [value, g] = tm.valueAndGrad(loss)(state.params, ...rest);
      return [optimizer.update(state, through(g)), value];
    },
    { donate: [0], target },
  );
  let state = optimizer.init(params);
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + 1000 * Number(options.seconds);
  for (let i = 0; i < 5 || performance.now() < end; i++) {
    const before = process.cpuUsage();
    [state] = step(state, ...batch);
    const { user, system } = process.cpuUsage(before);
    if (i > 1) best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

function printed(command, ...args) {
  const env = { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" };
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout).ms;
}

if (options.one) {
  const [program, optimizer, target, dense] = options.one.split(",");
  console.log(JSON.stringify({ ms: measure(program, optimizer, target, dense === "dense") }));
} else {
  const self = fileURLToPath(import.meta.url);
  const seconds = `--seconds=${options.seconds}`;
  const ours = (program, optimizer, how) =>
    printed(process.execPath, self, seconds, `--one=${program},${optimizer},${how}`);
  const theirs = fileURLToPath(new URL("tables.py", import.meta.url));
  console.log("| ms | PyTorch, sparse | native | native, dense | wasm | PyTorch / native |");
  console.log("| --- | ---: | ---: | ---: | ---: | ---: |");
  for (const program of Object.keys(PROGRAMS)) {
    for (const optimizer of Object.keys(OPTIMIZERS)) {
      const best = new Array(4).fill(Number.POSITIVE_INFINITY);
      for (let round = 0; round < Number(options.rounds); round++) {
        const all = [
          printed("/usr/bin/python3", theirs, program, optimizer, options.seconds),
          ...["native", "native,dense", "wasm"].map((how) => ours(program, optimizer, how)),
        ];
        for (const [i, ms] of all.entries()) best[i] = Math.min(best[i], ms);
      }
      const cells = best.map((ms) => ms.toPrecision(3)).join(" | ");
      console.log(`| ${program}, ${optimizer} | ${cells} | ${(best[0] / best[1]).toFixed(2)} × |`);
    }
  }
}
