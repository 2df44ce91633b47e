/**
 * @file Attention forward, and forward and backward, scores stored against scores streamed (docs/decisions/0038-attend.md), in one run,
 * all taking turns: processor time of the fastest run of each, the ratios, and the bytes of the arenas of training beyond operands and
 * results. bench/attention.py has the same shapes in PyTorch, docs/lab/attention.md the figures.
 *
 *   npx rolldown bench/attention.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/attention.mjs
 *   node node_modules/.cache/attention.mjs [--target=native] [--positions=512,1024,2048,4096,8192] [--heads=4] [--width=64] [--seconds=3]
 */
import { parseArgs } from "node:util";
import { attention, compile, mul, sum, type Tensor, tensor, valueAndGrad } from "../src/api/index.ts";
import "../src/node/index.ts";

const { values: options } = parseArgs({
  options: {
    target: { type: "string", default: "native" },
    positions: { type: "string", default: "512,1024,2048,4096,8192" },
    heads: { type: "string", default: "4" },
    width: { type: "string", default: "64" },
    seconds: { type: "string", default: "3" },
  },
});
const [heads, width, seconds] = [Number(options.heads), Number(options.width), Number(options.seconds)];

const FORMS = ["stored", "streamed"] as const;
type Form = (typeof FORMS)[number];

function forwardOf(form: Form, causal: boolean) {
  return (q: Tensor, k: Tensor, v: Tensor) => attention(q, k, v, { causal, form });
}

function stepOf(form: Form, causal: boolean) {
  return (q: Tensor, k: Tensor, v: Tensor, w: Tensor) => {
    const loss = (...[a, b, c]: [Tensor, Tensor, Tensor]): Tensor => sum(mul(attention(a, b, c, { causal, form }), w));
    return valueAndGrad(loss, { argnums: [0, 1, 2] })(q, k, v);
  };
}

function drawn(positions: number, seed: number): Tensor {
  const elements = heads * positions * width;
  return tensor(
    Float32Array.from({ length: elements }, (_, i) => Math.sin(i * 12.9898 + seed)),
    { shape: [heads, positions, width] },
  );
}

function measure(positions: number, causal: boolean): void {
  const args = [1, 2, 3, 4].map((seed) => drawn(positions, seed)) as [Tensor, Tensor, Tensor, Tensor];
  const target = options.target as "native";
  const forwards = FORMS.map((form) => compile(forwardOf(form, causal), { target }));
  const steps = FORMS.map((form) => compile(stepOf(form, causal), { target }));
  const runs = [
    ...forwards.map((forward) => () => forward(args[0], args[1], args[2])),
    ...steps.map((step) => () => step(...args)),
  ];
  const best = runs.map(() => Number.POSITIVE_INFINITY);
  for (const run of runs) run();
  const end = performance.now() + 1000 * seconds;
  do {
    runs.forEach((run, i) => {
      const before = process.cpuUsage();
      run();
      const { user, system } = process.cpuUsage(before);
      best[i] = Math.min(best[i] ?? 0, (user + system) / 1000);
    });
  } while (performance.now() < end);
  const [stored = 0, streamed = 0, storedBoth = 0, streamedBoth = 0] = best;
  const operands = 4 * 7 * heads * positions * width;
  const scores = 4 * heads * positions ** 2;
  const beyond = steps.map((step) => step.usage().arenaBytes - operands);
  const row = [
    `${positions} ${causal ? "causal" : "full"}`.padEnd(12),
    ...[stored, streamed].map((ms) => ms.toFixed(1).padStart(9)),
    (streamed / stored).toFixed(3).padStart(7),
    ...[storedBoth, streamedBoth].map((ms) => ms.toFixed(1).padStart(9)),
    (streamedBoth / storedBoth).toFixed(3).padStart(7),
    ...beyond.map((bytes) => `${(bytes / 2 ** 20).toFixed(2)}`.padStart(9)),
    `1/${Math.round(scores / Math.max(1, beyond[1] ?? 1))}`.padStart(8),
  ];
  console.log(row.join(" "));
}

console.log("               forward, ms              with backward, ms         MiB beyond operands");
console.log("positions       stored  streamed  ratio    stored  streamed  ratio    stored  streamed  of scores");
for (const positions of options.positions.split(",").map(Number)) {
  for (const causal of [true, false]) measure(positions, causal);
}
