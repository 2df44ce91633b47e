/** @file What users read when they call functions that order, combine, rearrange and resize with wrong arguments. */
import { join } from "node:path";
import { describe } from "vitest";
import * as tm from "../src/api/index.ts";
import { checkErrors, wrong } from "./support/errors.ts";

const x = tm.tensor([1, 2, 3]);
const m = tm.tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const labels = tm.tensor([1, 0], { dtype: "i32" });

const cases: Readonly<Record<string, () => unknown>> = {
  "roll-shifts": () => tm.roll(m, [1, 2], 0),
  "diag-rank": () => tm.diag(tm.zeros([2, 2, 2])),
  "cross-extent": () => tm.cross(tm.zeros([2]), tm.zeros([2])),
  "tensordot-axes": () => tm.tensordot(m, m, 1),
  "meshgrid-matrix": () => tm.meshgrid([m]),
  "chunk-none": () => tm.chunk(m, 0),
  "fold-columns": () => tm.fold(tm.zeros([1, 4, 5]), [3, 3], 2),
  "pixel-shuffle": () => tm.pixelShuffle(tm.zeros([3, 2, 2]), 2),
  "pad-mode": () => m.pad(1, wrong<"reflect">("mirror")),
  "pad-reflect": () =>
    m.pad(
      [
        [2, 0],
        [0, 0],
      ],
      "reflect",
    ),
  "resize-size": () => tm.resize(m, [0, 2]),
  "resize-mode": () => tm.resize(m, [4], { mode: wrong<"nearest">("area") }),
  "grid-sample-shapes": () => tm.gridSample(m, m),
  "global-pool-rank": () => tm.globalAvgPool(m),
  "top-k": () => tm.topK(m, 9),
  "quantile-range": () => tm.quantile(m, 1.5),
  "quantile-method": () => tm.quantile(m, 0.5, 0, { method: wrong<"linear">("middle") }),
  "median-empty": () => tm.median(tm.zeros([0])),
  "searchsorted-shapes": () => tm.searchsorted(m, x),
  "histogram-range": () => tm.histogram(m, 3, { range: [1, 0] }),
  "bincount-floats": () => tm.bincount(m, 3),
  "unique-size": () => tm.unique(m, -1),
  "unique-options": () => tm.unique(m, wrong<number>({ size: 3 })),
  "pad-options": () => tm.pad(m, 1, wrong<"reflect">({ mode: "reflect" })),
  "multinomial-order": () => tm.random.multinomial(tm.random.key(0), wrong<number>(x), wrong<typeof x>(3)),
  "normal-shape": () => tm.random.normal(tm.random.key(0), wrong<number[]>(3)),
  "solve-vectors": () => tm.linalg.solve(tm.zeros([3, 2, 2]), tm.zeros([3, 2])),
  "scatter-set-updates": () => tm.scatterSet(m, labels, x),
  "segment-ids": () => tm.segmentSum(m, tm.zeros([5], "i32"), 2),
  "sort-axis": () => m.sort(2),
};

describe("errors of functions", () => {
  checkErrors(join(import.meta.dirname, "function-errors"), cases);
});
