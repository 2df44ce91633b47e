/**
 * @file What recomputing without a budget is worth: steps in which everything cheap is computed where it is read (fuse-inline.ts,
 * smaller-residuals.ts) beside steps in which all of it is stored. One thread, processor time, the fastest run of each; the two take turns. Their
 * results must be equal to the last bit.
 *
 *   npm run bench:recomputed [-- gpt mlp --target wasm --rounds 20]
 */
import { parseArgs } from "node:util";
import "../src/node/index.ts";
import { add, mul, square } from "../src/api/elementwise.ts";
import { valueAndGrad } from "../src/api/grad.ts";
import { currentHost } from "../src/api/host.ts";
import { random } from "../src/api/index.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { crossEntropy } from "../src/api/loss.ts";
import { gelu } from "../src/api/math.ts";
import { layerNorm } from "../src/api/normalize.ts";
import { plansOf } from "../src/api/plan.ts";
import { mean } from "../src/api/reduce.ts";
import { at } from "../src/base/invariant.ts";
import { BUILT_IN } from "../src/cli/programs/built-in.ts";
import { fuseWithin } from "../src/passes/fuse.ts";
import { pipeline } from "../src/passes/pipeline.ts";
import { smallerResiduals } from "../src/passes/smaller-residuals.ts";
import { chooseTarget } from "../src/runtime/choose-target.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { tensor } from "../src/trace/literal.ts";
import type { Tensor } from "../src/trace/tensor.ts";
import { flatten, type Tree } from "../src/trace/tree.ts";
import { OTHERS } from "./cost-programs.ts";

const { values: options, positionals: asked } = parseArgs({
  allowPositionals: true,
  options: {
    target: { type: "string", default: "native" },
    rounds: { type: "string", default: "20" },
  },
});
const names = asked.length > 0 ? asked : ["gpt", "cnn", "large-loss", "large-norms"];
const { target } = chooseTarget(currentHost(), options.target === "wasm" ? "wasm" : "native", { threads: 1 });
const { fusion } = target.description;

const WAYS = {
  recomputed: [...pipeline, smallerResiduals, fuseWithin(fusion)],
  stored: [...pipeline, fuseWithin({ ...fusion, storesCheap: true })],
};

interface Measured {
  readonly name: string;
  init(): unknown;
  batch(): readonly unknown[];
  readonly step: unknown;
}

/** Values that no cache holds: 32 and 64 MiB. */
const LARGE: readonly Measured[] = [
  {
    name: "large-loss",
    init: () => random.normal(random.key(0), [2048]),
    batch: () => [
      random.normal(random.key(1), [8192, 2048]),
      tensor(Int32Array.from({ length: 8192 }, (_, i) => i % 2048)),
    ],
    step: valueAndGrad((w: Tensor, x: Tensor, y: Tensor) => crossEntropy(mul(x, w), y)),
  },
  {
    name: "large-norms",
    init: () => [0, 1, 2].map((i) => random.normal(random.key(i), [256])),
    batch: () => [random.normal(random.key(9), [32768, 256])],
    step: valueAndGrad((ws: readonly Tensor[], x: Tensor) =>
      mean(square(ws.reduce((h, scale) => add(h, gelu(layerNorm(h, { scale }))), x))),
    ),
  },
];

function milliseconds(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function measured(program: Measured): readonly { readonly ms: number; readonly bytes: number }[] {
  const args = [program.init(), ...program.batch()];
  const { source } = plansOf(program.step as AnyFunction, args, { cache: false });
  const captured = source.traced.captures.map(({ tensor }) => tensor);
  const inputs: readonly Tensor[] = [...flatten(args as Tree, "args").leaves, ...captured];
  const { params, results } = source.graph;
  const ways = Object.values(WAYS).map((passes) => {
    const executable = loadGraph(source.graph, { target, passes });
    const { placed } = executable;
    const write = (): void => {
      for (const [i, { type }] of params.entries()) {
        executable.write(type, at(placed.params, i), at(inputs, i).data() as Float32Array);
      }
    };
    write();
    executable.run();
    const bits = results.map(({ type }, i) => Buffer.from(executable.read(type, at(placed.results, i)).slice().buffer));
    const times: number[] = [];
    return { executable, write, bits, times };
  });
  const [usual, stored] = ways as [(typeof ways)[number], (typeof ways)[number]];
  if (!usual.bits.every((bytes, i) => bytes.equals(at(stored.bits, i))))
    throw new Error(`${program.name}: bits differ`);
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const { executable, write, times } of round % 2 === 0 ? ways : ways.toReversed()) {
      write();
      times.push(milliseconds(() => executable.run()));
    }
  }
  return ways.map(({ executable, times }) => ({ ms: Math.min(...times), bytes: executable.placed.plan.height }));
}

console.log("| program | stored | recomputed | time | arena |\n| --- | --- | --- | --- | --- |");
for (const name of names) {
  const program = [...(BUILT_IN as readonly Measured[]), ...OTHERS, ...LARGE].find((one) => one.name === name);
  if (!program) throw new Error(`no program ${name}`);
  const [usual, stored] = measured(program) as [{ ms: number; bytes: number }, { ms: number; bytes: number }];
  const cells = [usual.ms / stored.ms, usual.bytes / stored.bytes].map((ratio) => ratio.toFixed(3));
  console.log(`| ${name} | ${stored.ms.toFixed(1)} ms | ${usual.ms.toFixed(1)} ms | ${cells.join(" | ")} |`);
}
