/** @file Initial texts of the editor, each about one aspect of a plan. */

export interface Example {
  readonly name: string;
  readonly text: string;
}

const PERCEPTRON = `import { spec, type Tensor } from "tidemark";

// Edit anything: the graph, its derivative and the plan follow.
// \`args\` are the arguments of \`loss\`: specs are enough to plan.
export const args = [
  { w1: spec([64, 256]), w2: spec([256, 256]), w3: spec([256, 10]) },
  spec([128, 64]),
  spec([128], "i32"),
];

type Params = { w1: Tensor; w2: Tensor; w3: Tensor };

export function loss(p: Params, x: Tensor, y: Tensor): Tensor {
  const h1 = x.matmul(p.w1).gelu();
  const h2 = h1.matmul(p.w2).gelu();
  return h2.matmul(p.w3).crossEntropy(y);
}
`;

const ATTENTION = `import { spec, type Tensor } from "tidemark";

// One head of attention, written out: drag the budget and see
// which of the large squares are recomputed.
export const args = [
  { q: spec([64, 64]), k: spec([64, 64]), v: spec([64, 64]) },
  spec([256, 64]),
];

type Params = { q: Tensor; k: Tensor; v: Tensor };

export function loss(p: Params, x: Tensor): Tensor {
  const [q, k, v] = [x.matmul(p.q), x.matmul(p.k), x.matmul(p.v)];
  const scores = q.matmul(k, { tb: true }).div(8);
  const seen = scores.softmax(-1).matmul(v);
  return seen.sub(x).square().mean();
}
`;

const NETWORK = `import { spec, specsOf, type Tensor } from "tidemark";
import { conv2d, flatten, gelu, linear, sequential } from "tidemark/nn";

const model = sequential(
  conv2d(1, 8, 3, { padding: 1 }), gelu(),
  conv2d(8, 8, 3, { padding: 1 }), gelu(),
  conv2d(8, 16, 3, { padding: 1, stride: 2 }), gelu(),
  flatten(), linear(16 * 14 * 14, 10),
);

// Parameters as specs: nothing is drawn to plan.
const params = specsOf(() => model.init(0))();
export const args = [params, spec([32, 1, 28, 28]), spec([32], "i32")];

export function loss(p: typeof params, x: Tensor, y: Tensor): Tensor {
  return model.apply(p, x).crossEntropy(y);
}
`;

const RESIDUAL = `import { scope, spec, type Tensor } from "tidemark";

// A deep chain of blocks: without a budget every block keeps its
// activations; with one the planner keeps every few of them.
const BLOCKS = 16;

export const args = [
  Array.from({ length: BLOCKS }, () => spec([64, 64])),
  spec([128, 64]),
];

export function loss(ws: Tensor[], x: Tensor): Tensor {
  const block = (h: Tensor, w: Tensor) => h.add(h.matmul(w).gelu());
  const last = ws.reduce((h, w, i) => scope(\`block\${i}\`, () => block(h, w)), x);
  return last.square().mean();
}
`;

const LOOP = `import { scan, spec, type Tensor } from "tidemark";

// A loop in the program: its body is planned once, and the values that
// an iteration keeps for the derivative are a stack. "look inside" shows the body.
export const args = [spec([32, 32]), spec([16, 32]), spec([40, 16, 32])];

export function loss(w: Tensor, h0: Tensor, xs: Tensor): Tensor {
  const [last] = scan((h: Tensor, x: Tensor) => {
    const next = h.matmul(w).add(x).tanh();
    return [next, next.mean()] as const;
  }, h0, xs);
  return last.square().mean();
}
`;

export const EXAMPLES: readonly Example[] = [
  { name: "perceptron", text: PERCEPTRON },
  { name: "residual blocks", text: RESIDUAL },
  { name: "attention", text: ATTENTION },
  { name: "convolutions", text: NETWORK },
  { name: "a loop", text: LOOP },
];
