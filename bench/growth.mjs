/**
 * @file How the time of a training step grows when one side of a model is doubled five times, beside its floating-point
 * operations: batch, width, depth, and the sequence of an attention block and of a recurrent loop. Needs a build.
 *
 *   node bench/growth.mjs [batch width depth attention recurrent] [--target=wasm] [--threads=1] [--seconds=1] [--cpu] [--json|--write]
 *
 * `time` and `flops` are ratios to the row before; `time / flops` above 1 is growth beyond that of the work. Small
 * sizes have constant overheads (calls, reading the loss), so their ratios are below 1. A time is the fastest step:
 * other work on the machine makes steps slower and never faster; with `--cpu`, of the processor's time of all threads.
 */
import { parseArgs } from "node:util";
import { add, attention, compile, crossEntropy, matmul, mse, relu, scan, tanh, zeros } from "../dist/api/index.js";
import { machineModel, planLoaded } from "../dist/bench/insides.js";
import { classIds, he, INPUT_STREAM, TARGET_STREAM } from "../dist/cli/programs/data.js";
import { training } from "../dist/cli/programs/training.js";
import "../dist/node/index.js";
import { adam, sgd } from "../dist/optim/index.js";
import { publish } from "./speed-page.mjs";

const DOUBLINGS = 5;
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ target: { type: "string", default: "wasm" }, threads: { type: "string", default: "1" } },
    ...{
      seconds: { type: "string", default: "1" },
      cpu: { type: "boolean" },
      write: { type: "boolean" },
      json: { type: "boolean" },
    },
  },
});
const [target, threads] = [options.target, Number(options.threads)];

/** A classifier of three layers, as `mlp`. */
function dense(batch, width) {
  const sides = [784, width, width, 10];
  return training({
    ...{ name: "dense", title: "dense", optimizer: adam({ lr: 1e-3 }) },
    params: (p) => ({ layers: [0, 1, 2].map((i) => p.draw([sides[i], sides[i + 1]], he(sides[i]))) }),
    batch: (n) => [n.data([batch, 784], INPUT_STREAM), n.ids([batch], () => classIds(batch, TARGET_STREAM, 10))],
    loss: ({ layers: [a, b, c] }, x, y) => crossEntropy(matmul(relu(matmul(relu(matmul(x, a)), b)), c), y),
  });
}

/** Residual blocks, as `chain64`. */
function deep(blocks) {
  const [width, batch] = [128, 128];
  const shape = [width, width];
  return training({
    ...{ name: "deep", title: "deep", optimizer: sgd({ lr: 1e-3 }) },
    params: (p) => ({
      blocks: Array.from({ length: blocks }, () => ({ a: p.draw(shape, he(width)), b: p.draw(shape, 0.01) })),
    }),
    batch: (n) => [n.data([batch, width], INPUT_STREAM), n.data([batch, width], TARGET_STREAM)],
    loss: (p, x, y) =>
      mse(
        p.blocks.reduce((h, { a, b }) => add(h, matmul(relu(matmul(h, a)), b)), x),
        y,
      ),
  });
}

/** One block of causal attention with four heads. */
function attentive(time) {
  const [batch, heads, width] = [4, 4, 128];
  const headsOf = (x) => x.reshape([batch, time, heads, width / heads]).transpose([0, 2, 1, 3]);
  const sides = ["q", "k", "v", "o"];
  return training({
    ...{ name: "attention", title: "attention", optimizer: sgd({ lr: 1e-3 }) },
    params: (p) => Object.fromEntries(sides.map((name) => [name, p.draw([width, width], 0.05)])),
    batch: (n) => [n.data([batch * time, width], INPUT_STREAM), n.data([batch * time, width], TARGET_STREAM)],
    loss(p, x, y) {
      const [q, k, v] = ["q", "k", "v"].map((name) => headsOf(matmul(x, p[name])));
      const seen = attention(q, k, v, { causal: true })
        .transpose([0, 2, 1, 3])
        .reshape([batch * time, width]);
      return mse(add(x, matmul(seen, p.o)), y);
    },
  });
}

/** A recurrent network over a sequence: its time steps are a loop of the program. */
function recurrent(time) {
  const [batch, width] = [32, 128];
  return training({
    ...{ name: "recurrent", title: "recurrent", optimizer: sgd({ lr: 1e-3 }) },
    params: (p) => ({ w: p.draw([width, width], 0.05), u: p.draw([width, width], 0.05) }),
    batch: (n) => [n.data([time, batch, width], INPUT_STREAM), n.data([batch, width], TARGET_STREAM)],
    loss({ w, u }, x, y) {
      const step = (h, now) => [tanh(add(matmul(h, w), matmul(now, u))), []];
      const [last] = scan(step, zeros([batch, width]), x);
      return mse(last, y);
    },
  });
}

const SIDES = {
  batch: [16, (n) => dense(n, 512)],
  width: [64, (n) => dense(128, n)],
  depth: [4, deep],
  attention: [32, attentive],
  recurrent: [16, recurrent],
};

function now() {
  if (!options.cpu) return performance.now();
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Flops by the plan; the fastest step of some seconds. */
function measure(program) {
  const settings = { target, threads, memory: {}, machine: machineModel(() => {}), solver: undefined };
  const { totalFlops } = planLoaded({ kind: "training", name: program.name, program }, settings).figures();
  const step = compile(program.step, { donate: [0], target, threads });
  const batch = program.batch();
  let state = program.init();
  let best = Number.POSITIVE_INFINITY;
  let end = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 5 || performance.now() < end; i++) {
    const started = now();
    const [next, loss] = step(state, ...batch);
    loss.item();
    state = next;
    // compiling is in the first
    if (i === 0) end = performance.now() + 1000 * Number(options.seconds);
    else best = Math.min(best, now() - started);
  }
  return { ms: best, flops: totalFlops };
}

const cell = (x, digits = 2) => (x === null ? "" : x.toFixed(digits));

function rowsOf(side) {
  const [first, make] = SIDES[side];
  const rows = [];
  for (let i = 0; i <= DOUBLINGS; i++) {
    const [size, before] = [first * 2 ** i, rows.at(-1)];
    const { ms, flops } = measure(make(size));
    const [time, work] = before ? [ms / before.ms, flops / before.flops] : [null, null];
    rows.push({ side, size, ms, flops, time, work, excess: before ? time / work : null });
  }
  return rows;
}

/** Rows of Markdown, with the whole range as the last. */
function textOf(side, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const each = rows.map(({ size, ms, flops, time, work, excess }) => {
    const figures = [
      cell(ms, 3),
      cell(flops / 1e9, 3),
      cell(flops / ms / 1e6, 1),
      cell(time),
      cell(work),
      cell(excess),
    ];
    return line([side, size, ...figures]);
  });
  const [time, work] = [rows.at(-1).ms / rows[0].ms, rows.at(-1).flops / rows[0].flops];
  return [...each, line([side, "all", "", "", "", cell(time, 1), cell(work, 1), cell(time / work)])];
}

const found = (positionals.length > 0 ? positionals : Object.keys(SIDES)).map((side) => ({ side, rows: rowsOf(side) }));
if (options.json) {
  console.log(JSON.stringify({ target, threads, sides: found }));
} else {
  const text = [
    `${target}, ${threads} ${threads === 1 ? "thread" : "threads"}, ${options.cpu ? "processor" : "wall"} time:\n`,
    "| side | size | step, ms | GFLOP | GFLOP/s | time | flops | time / flops |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...found.flatMap(({ side, rows }) => textOf(side, rows)),
  ];
  publish(`growth ${target}`, text.join("\n"), options.write);
}
