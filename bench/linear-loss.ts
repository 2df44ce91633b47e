/**
 * @file The loss of a language model's last layer with both gradients: `crossEntropy` of all logits against `linearCrossEntropy`
 * with strips of several lengths, in one run, one after the other in every round. Processor time of the fastest step of each,
 * its ratio to the form with all logits, and the bytes of the arena beyond operands and results. One thread.
 *
 *   npx rolldown bench/linear-loss.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/linear-loss.mjs
 *   node node_modules/.cache/linear-loss.mjs [--target=native] [--tokens=8192] [--width=768] [--classes=50257] [--strips=1024,512] [--rounds=3]
 */
import { parseArgs } from "node:util";
import {
  compile,
  crossEntropy,
  linearCrossEntropy,
  matmul,
  type Tensor,
  tensor,
  valueAndGrad,
} from "../src/api/index.ts";
import "../src/node/index.ts";

const { values: options } = parseArgs({
  options: {
    target: { type: "string", default: "native" },
    tokens: { type: "string", default: "8192" },
    width: { type: "string", default: "768" },
    classes: { type: "string", default: "50257" },
    strips: { type: "string", default: "1024,512" },
    rounds: { type: "string", default: "3" },
  },
});
const [tokens, width, classes] = [Number(options.tokens), Number(options.width), Number(options.classes)];

type Loss = (h: Tensor, w: Tensor, targets: Tensor) => Tensor;

const forms = new Map<string, Loss>([
  ["all logits", (h, w, targets) => crossEntropy(matmul(h, w, { tb: true }), targets)],
  ...options.strips
    .split(",")
    .map((n): [string, Loss] => [
      `strips of ${n}`,
      (h, w, targets) => linearCrossEntropy(h, w, targets, { transposed: true, strip: Number(n) }),
    ]),
]);

function drawn(rows: number, scale: number, seed: number): Tensor {
  return tensor(
    Float32Array.from({ length: rows * width }, (_, i) => scale * Math.sin(i * 12.9898 + seed)),
    { shape: [rows, width] },
  );
}

const args: [Tensor, Tensor, Tensor] = [
  drawn(tokens, 1, 1),
  drawn(classes, 0.05, 2),
  tensor(
    Int32Array.from({ length: tokens }, (_, i) => (i * 7919) % classes),
    { shape: [tokens] },
  ),
];
const steps = [...forms.values()].map((loss) =>
  compile((h: Tensor, w: Tensor, targets: Tensor) => valueAndGrad(loss, { argnums: [0, 1] })(h, w, targets), {
    target: options.target as "native",
    threads: 1,
  }),
);
const best = steps.map(() => Number.POSITIVE_INFINITY);
const losses = steps.map((step) => step(...args)[0].item());
for (let round = 0; round < Number(options.rounds); round++) {
  steps.forEach((step, i) => {
    const before = process.cpuUsage();
    step(...args);
    const { user, system } = process.cpuUsage(before);
    best[i] = Math.min(best[i] ?? 0, (user + system) / 1000);
  });
}
const operands = 4 * (2 * width * (tokens + classes) + tokens);
const logits = 4 * tokens * classes;
console.log(`${tokens} tokens, width ${width}, ${classes} classes, ${options.target}`);
console.log("form                     ms   ratio   MiB beyond operands   of all logits   loss");
[...forms.keys()].forEach((name, i) => {
  const beyond = (steps[i]?.usage().arenaBytes ?? 0) - operands;
  const cells = [
    name.padEnd(16),
    (best[i] ?? 0).toFixed(1).padStart(10),
    ((best[i] ?? 0) / (best[0] ?? 1)).toFixed(3).padStart(7),
    (beyond / 2 ** 20).toFixed(1).padStart(21),
    (beyond / logits).toFixed(4).padStart(15),
    ` ${losses[i]}`,
  ];
  console.log(cells.join(" "));
});
