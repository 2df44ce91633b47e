/**
 * @file Recomputation on published graphs: cost over the cost without repetition, at fractions of the peak, beside the
 * lower bound and the best figure known for each point. `npm run bench:remat -- [SECONDS] [PART OF A NAME]`.
 *
 * The published graphs are not part of this project (their licences do not allow it) and are read from the folder beside it.
 * `skipping` in the name: random layered graphs like them, made here.
 */
import { existsSync, readFileSync } from "node:fs";
import { findSolver } from "../src/node/highs.ts";
import { baseSequence, type RecomputeProblem } from "../src/plan/recompute/problem.ts";
import { readGraph } from "../src/plan/recompute/read-graph.ts";
import { simulate } from "../src/plan/recompute/simulate.ts";
import { planGraph } from "../src/remat/plan-graph.ts";
import { renumbered } from "../src/remat/reorder.ts";
import { skippingGraph } from "./layered-graphs.ts";

interface Row {
  readonly file: string;
  /** Made here instead of read from the file. */
  readonly make?: () => RecomputeProblem;
  /** Peak that fractions are of, where published figures count releases of their own. */
  readonly peakBytes?: number;
  /** Budget as a fraction, and the best published cost. */
  readonly points: readonly (readonly [number, number | null])[];
}

const FOLDER = "../shared/bench/instances/";

const ROWS: readonly Row[] = [
  {
    file: "checkmate-graphs/random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14.json",
    points: [
      [0.9, 1.0079],
      [0.8, 1.023],
      [0.7, null],
    ],
  },
  {
    file: "checkmate-graphs/random_layered_n250_w0.43_nlv0.75_ed0.2_scd0.14.json",
    points: [
      [0.9, 1.011],
      [0.8, 1.0571],
    ],
  },
  {
    file: "checkmate-graphs/MobileNet_512_224x224x3_train.json",
    points: [
      [0.5, 1.0164],
      [0.4, 1.0249],
    ],
  },
  {
    file: "checkmate-graphs/VGG16_256_224x224x3_train.json",
    points: [
      [0.95, null],
      [0.9, null],
    ],
  },
  {
    file: "checkmate-graphs/vgg_unet_32_416x608x3_train.json",
    points: [
      [0.9, null],
      [0.7, null],
    ],
  },
  {
    file: "dtr-graphs/ResNet-32.json",
    peakBytes: 10.06e9,
    points: [
      [0.9, 1.013],
      [0.8, 1.025],
      [0.7, 1.039],
      [0.6, 1.067],
      [0.5, 1.098],
      [0.4, 1.14],
      [0.3, 1.175],
      [0.2, 1.234],
      [0.15, 1.365],
    ],
  },
  {
    file: "dtr-graphs/U-Net.json",
    peakBytes: 8.42e9,
    points: [
      [0.9, 1.016],
      [0.8, 1.031],
      [0.7, 1.052],
      [0.6, 1.083],
      [0.5, 1.126],
    ],
  },
  {
    file: "dtr-graphs/Transformer.json",
    peakBytes: 9.86e9,
    points: [
      [0.9, 1.004],
      [0.8, 1.013],
      [0.7, 1.026],
      [0.6, 1.04],
      [0.5, 1.054],
      [0.4, 1.069],
      [0.3, 1.09],
      [0.2, 1.156],
      [0.15, 1.21],
    ],
  },
];

/** Random layered graphs, as large as those that are published without a file. */
const LAYERED: readonly Row[] = [500, 1000].flatMap((count) =>
  [1, 2, 3, 4, 5].map(
    (seed): Row => ({
      file: `skipping-${count}-${seed}`,
      make: () => skippingGraph(seed, count),
      points: [
        [0.8, null],
        [0.6, null],
      ],
    }),
  ),
);

const [seconds = "10", part = ""] = process.argv.slice(2);
const solver = findSolver()?.solve;
console.log("| graph | budget | best known | tidemark | bound | proven | s |");
console.log("| --- | --- | --- | --- | --- | --- | --- |");
for (const { file, make, peakBytes, points } of [...ROWS, ...LAYERED].filter((row) => row.file.includes(part))) {
  if (!make && !existsSync(FOLDER + file)) {
    console.log(`| ${file} is absent: skipped |`);
    continue;
  }
  const problem = make ? make() : readGraph(readFileSync(FOLDER + file, "utf8"));
  const peak = peakBytes ?? simulate(problem, baseSequence(problem)).peakBytes;
  for (const [fraction, known] of points) {
    const began = performance.now();
    const budget = Math.floor(fraction * peak);
    const { sequence, boundCost, baseCost, feasible, proven } = planGraph(problem, budget, {
      seconds: Number(seconds),
      solver,
      order: "any",
    });
    const inOrder = renumbered(problem, sequence);
    const checked = simulate(inOrder.problem, inOrder.sequence);
    if (feasible && (checked.violations.length > 0 || checked.peakBytes > budget))
      throw new Error(`${file}: wrong plan`);
    const cost = feasible ? (checked.cost / baseCost).toFixed(4) : "-";
    const name = file.replace(/^.*\/|\.json$/g, "").slice(0, 22);
    const took = ((performance.now() - began) / 1000).toFixed(1);
    const bound = (boundCost / baseCost).toFixed(4);
    console.log(`| ${name} | ${fraction} | ${known ?? ""} | ${cost} | ${bound} | ${proven ? "yes" : ""} | ${took} |`);
  }
}
