/**
 * @file Operations one by one beside PyTorch: a step of gradient descent on the sum of squares of one operation's
 * result, so forward, backward and update, with everything in place. Finds slow kernels that whole programs hide. Needs
 * a build; PyTorch from Debian's python3-torch.
 *
 *   node bench/operations.mjs [NAME …] [--seconds=0.3] [--write]
 *
 * The least processor time of a step on one thread counts: other work on the machine takes from the caches, but no time of this
 * process. The operations are the same here and in operations.py, by name.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as tm from "../dist/api/index.js";
import "../dist/node/index.js";
import { publish } from "./speed-page.mjs";

const { values: options, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "0.3" }, write: { type: "boolean" } },
});

const numbers = (shape) => {
  let state = 12345;
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x7fffffff - 0.5;
  };
  return tm.tensor(Float32Array.from({ length: shape.reduce((a, e) => a * e, 1) }, next)).reshape(shape);
};
const ids = (count, below) =>
  tm.tensor(
    Int32Array.from({ length: count }, (_, i) => (i * 7919) % below),
    { dtype: "i32" },
  );

/** Each: the operation, the shapes of what is learned, and further inputs. */
const OPERATIONS = {
  "sum of rows": [(x) => x.sum(1), [[2048, 1024]]],
  "sum of columns": [(x) => x.sum(0), [[2048, 1024]]],
  "largest of rows": [(x) => x.max(1), [[2048, 1024]]],
  "running sum of rows": [(x) => tm.cumsum(x, 1), [[2048, 1024]]],
  "running sum of columns": [(x) => tm.cumsum(x, 0), [[2048, 1024]]],
  softmax: [(x) => tm.softmax(x), [[2048, 1024]]],
  "cross-entropy": [(x, y) => tm.crossEntropy(x, y), [[2048, 1024]], [ids(2048, 1024)]],
  "layer norm": [(x, a, b) => tm.layerNorm(x, { scale: a, offset: b }), [[2048, 1024], [1024], [1024]]],
  gelu: [(x) => tm.gelu(x), [[2048, 1024]]],
  transposition: [(x) => x.transpose([1, 0]).tanh(), [[2048, 1024]]],
  "bias and relu": [(x, b) => tm.relu(x.add(b)), [[2048, 1024], [1024]]],
  embedding: [(w, i) => tm.take(w, i, 0), [[10000, 256]], [ids(4096, 10000)]],
  "max pool 2 × 2": [(x) => tm.maxPool2d(x, 2), [[16, 64, 56, 56]]],
  "mean pool 2 × 2": [(x) => tm.avgPool2d(x, 2), [[16, 64, 56, 56]]],
  "max pool 3 × 3, stride 2": [(x) => tm.maxPool2d(x, 3, { stride: 2, padding: 1 }), [[16, 64, 56, 56]]],
  "convolution 3 × 3": [
    (x, w) => tm.conv2d(x, w, { padding: 1 }),
    [
      [8, 64, 28, 28],
      [64, 64, 3, 3],
    ],
  ],
  "convolution 1 × 1": [
    (x, w) => tm.conv2d(x, w),
    [
      [8, 256, 28, 28],
      [64, 256, 1, 1],
    ],
  ],
  "convolution 7 × 7, stride 2": [
    (x, w) => tm.conv2d(x, w, { stride: 2, padding: 3 }),
    [
      [4, 3, 112, 112],
      [64, 3, 7, 7],
    ],
  ],
  "convolution of each channel": [
    (x, w) => tm.conv2d(x, w, { padding: 1, groups: 64 }),
    [
      [8, 64, 56, 56],
      [64, 1, 3, 3],
    ],
  ],
  "convolution in one dimension": [
    (x, w) => tm.conv1d(x, w, { padding: 2 }),
    [
      [8, 64, 512],
      [64, 64, 5],
    ],
  ],
  "transposed convolution": [
    (x, w) => tm.convTranspose2d(x, w, { stride: 2 }),
    [
      [8, 64, 14, 14],
      [64, 32, 2, 2],
    ],
  ],
  "4,096 products 8 × 8": [
    (x, w) => tm.matmul(x, w),
    [
      [4096, 8, 8],
      [4096, 8, 8],
    ],
  ],
  "vector × matrix": [
    (x, w) => tm.matmul(x, w),
    [
      [1, 1024],
      [1024, 1024],
    ],
  ],
  "vector × transposed matrix": [
    (x, w) => tm.matmul(x, w, { tb: true }),
    [
      [1, 1024],
      [1024, 1024],
    ],
  ],
  "matrix × 4 columns": [
    (x, w) => tm.matmul(x, w),
    [
      [4096, 512],
      [512, 4],
    ],
  ],
  attention: [
    (q, k, v) => tm.attention(q, k, v, { causal: true }),
    [
      [16, 512, 32],
      [16, 512, 32],
      [16, 512, 32],
    ],
  ],
};

/** Milliseconds of the process. */
function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The least processor time of a step, in ms. */
function measure([operation, shapes, inputs = []], target) {
  const loss = (params, ...rest) =>
    operation(...params, ...rest)
      .square()
      .sum();
  const gradient = tm.grad(loss);
  const step = tm.compile(
    (params, ...rest) => {
      const slopes = gradient(params, ...rest);
      return params.map((p, i) => p.sub(slopes[i].mul(1e-6)));
    },
    { donate: [0], target },
  );
  let params = shapes.map(numbers);
  let best = Number.POSITIVE_INFINITY;
  const end = performance.now() + 1000 * Number(options.seconds);
  for (let i = 0; i < 4 || performance.now() < end; i++) {
    const started = processorMs();
    params = step(params, ...inputs);
    // compiling is in the first
    if (i > 0) best = Math.min(best, processorMs() - started);
  }
  return best;
}

function torch() {
  const script = fileURLToPath(new URL("operations.py", import.meta.url));
  const { stdout, stderr, status } = spawnSync("/usr/bin/python3", [script, options.seconds, ...names], {
    encoding: "utf8",
    // one thread in its libraries too
    env: { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" },
  });
  if (status !== 0) {
    console.error(`no figures of PyTorch: ${stderr.trim().split("\n").at(-1)}`);
    return {};
  }
  return JSON.parse(stdout);
}

const names = wanted.length > 0 ? wanted : Object.keys(OPERATIONS);
const cell = (ms) => (ms === undefined ? "" : ms.toPrecision(3));
const theirs = torch();
const rows = names.map((name) => {
  const [native, wasm] = ["native", "wasm"].map((target) => measure(OPERATIONS[name], target));
  const ratio = theirs[name] === undefined ? "" : `${(theirs[name] / native).toPrecision(3)} ×`;
  console.error(`${name}: ${cell(theirs[name])} ${cell(native)} ${cell(wasm)}`);
  return `| ${name} | ${cell(theirs[name])} | ${cell(native)} | ${cell(wasm)} | ${ratio} |`;
});
const head = ["| ms | PyTorch | native | wasm | PyTorch / native |", "| --- | ---: | ---: | ---: | ---: |"];
publish("operations", [...head, ...rows].join("\n"), options.write);
