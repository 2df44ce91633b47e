/**
 * @file How planning time grows with the program: synthetic training steps of 5, 10, 20 and 50 thousand nodes, from a
 * seed, through passes, kernels, order, aliases and placement. Nothing is compiled or run.
 *
 *   node bench/plan-scale.ts                                              Node 22.18 or newer
 *   npx rolldown bench/plan-scale.ts -p node --file dist/bench.mjs &&     Node 20, which cannot run TypeScript
 *     node dist/bench.mjs
 *
 * Words after the command choose among kinds and sizes: `layered 5000`. Two kinds:
 *
 *   layered   layers of eight values; each is made from one or two values of the last three layers by a map, a product, or
 *             a reduction that is broadcast back; the gradient of everything, and updates of the weights
 *   chain     x ← x + relu(x w) v, with gradient and updates: deep, narrow, residual
 *
 * `growth` is the exponent of processor time between neighbouring sizes: 1 is linear, 2 quadratic.
 */
import { vjp } from "../src/autodiff/vjp.ts";
import { hostRandom } from "../src/base/random.ts";
import { Build } from "../src/ir/build.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import { tensorType } from "../src/ir/type.ts";
import { broadcast, sum } from "../src/ops/broadcast.ts";
import { full } from "../src/ops/create.ts";
import { add, mul, relu, sub } from "../src/ops/elementwise.ts";
import { tanh } from "../src/ops/math.ts";
import { matmul } from "../src/ops/matmul.ts";
import { assemble } from "../src/runtime/assemble.ts";
import { wasmTraits } from "../src/runtime/executable.ts";

const SIZES = [5000, 10000, 20000, 50000];
const WIDTH = 8;
const table = tensorType("f32", [256, 64]);
const weight = tensorType("f32", [64, 64]);

/** Σ of all elements. */
const total = (b: Build, x: Value): Value => b.call(sum, [x], { axes: x.type.shape.map((_, axis) => axis) });

const product = (b: Build, x: Value): Value => b.call(matmul, [x, b.param(weight)], { ta: false, tb: false });

/** Every row divided by nothing but moved by its own sum: a reduction that all elements of the row read. */
function centred(b: Build, x: Value): Value {
  const rows = b.call(sum, [x], { axes: [1] });
  return b.call(sub, [x, b.call(broadcast, [rows], { shape: table.shape, axes: [0] })], {});
}

function layered(seed: number, layers: number): Graph {
  const random = hostRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T;
  const b = new Build("layered");
  const made: Value[] = Array.from({ length: WIDTH }, () => b.param(table));
  for (let layer = 0; layer < layers; layer++) {
    const recent = made.slice(-3 * WIDTH);
    for (let i = 0; i < WIDTH; i++) {
      const [x, y] = [pick(recent), pick(recent)];
      const kind = random.next();
      if (kind < 0.35) made.push(b.call(pick([add, mul, sub]), [x, y], {}));
      else if (kind < 0.65) made.push(b.call(pick([relu, tanh]), [x], {}));
      else made.push(kind < 0.85 ? product(b, x) : centred(b, x));
    }
  }
  const last = made.slice(-WIDTH).map((x) => total(b, x));
  return b.finish([last.reduce((a, c) => b.call(add, [a, c], {}))]);
}

function chain(_: number, blocks: number): Graph {
  const b = new Build("chain");
  let x = b.param(table);
  for (let i = 0; i < blocks; i++) {
    const inner = b.call(relu, [product(b, x)], {});
    x = b.call(add, [x, product(b, inner)], {});
  }
  return b.finish([total(b, x)]);
}

interface Step {
  readonly graph: Graph;
  /** Weights, with the results that replace them. */
  readonly donated: ReadonlyMap<number, number>;
}

/** The gradient, and w ← w - 0.1 · ∂w for every weight. */
function trainingStep(forward: Graph): Step {
  const isWeight = forward.params.map((param) => param.type === weight);
  const joint = vjp(forward, isWeight);
  const b = new Build(forward.name);
  const params = forward.params.map((param) => b.param(param.type));
  // the cotangent of the loss is a parameter of the joint graph
  const one = b.call(full, [], { dtype: "f32", shape: [], value: 1 });
  const [loss, ...gradients] = b.inline(joint, [...params, one]);
  b.phase = "update";
  const weights = params.filter((_, i) => isWeight[i]);
  const updated = weights.map((w, i) => {
    const rate = b.call(full, [], { ...weight, value: 0.1 });
    return b.call(sub, [w, b.call(mul, [gradients[i] as Value, rate], {})], {});
  });
  const graph = b.finish([loss as Value, ...updated]);
  const donated = new Map(weights.map((w, i) => [params.indexOf(w), i + 1]));
  return { graph, donated };
}

const KINDS = { layered, chain } as const;
type Kind = keyof typeof KINDS;

/** A step of about that many nodes; their number grows in proportion to the layers. */
function stepOfSize(kind: Kind, nodes: number): Step {
  const probe = 50;
  const perLayer = trainingStep(KINDS[kind](1, probe)).graph.nodes.length / probe;
  return trainingStep(KINDS[kind](1, Math.round(nodes / perLayer)));
}

/** Time of this thread and of its helpers: other work on the machine does not count. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function measure(kind: Kind, nodes: number): { readonly ms: number; readonly text: string } {
  const { graph, donated } = stepOfSize(kind, nodes);
  const persistent = new Set(donated.keys());
  const started = [performance.now(), cpuMs()] as const;
  const { plan } = assemble(graph, wasmTraits(), { donated, persistent });
  const [wall, ms] = [performance.now() - started[0], cpuMs() - started[1]];
  const ratio = (plan.height / plan.bound.bytes).toFixed(4);
  const rss = (process.memoryUsage().rss / 2 ** 20).toFixed(0);
  const figures = [
    graph.nodes.length,
    plan.program.steps.length,
    plan.problem.buffers.length,
    wall.toFixed(0),
    ms.toFixed(0),
  ];
  return { ms, text: `${figures.map((f) => String(f).padStart(8)).join("")}  ${ratio}  ${rss.padStart(6)} MiB` };
}

for (const kind of ["layered", "chain"] as const) measure(kind, 2000); // so that the first figure is not the compiler's
const words = process.argv.slice(2);
const kinds = (Object.keys(KINDS) as Kind[]).filter((k) => words.includes(k) || !words.some((w) => w in KINDS));
const numbers = words.map(Number).filter((n) => n > 0);
for (const kind of kinds) {
  console.log(`${kind.padEnd(8)}   nodes   steps buffers      ms  cpu ms   ratio        rss  growth`);
  let before: { readonly nodes: number; readonly ms: number } | null = null;
  for (const nodes of numbers.length > 0 ? numbers : SIZES) {
    const { ms, text } = measure(kind, nodes);
    const growth = before ? (Math.log(ms / before.ms) / Math.log(nodes / before.nodes)).toFixed(2) : "";
    console.log(`${" ".repeat(8)}${text}  ${growth}`);
    before = { nodes, ms };
  }
}
