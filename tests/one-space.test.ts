/**
 * @file A plan with one memory space and one queue is, in every form in which it is shown, byte for byte what it was before
 * there could be several: hashes of small plans that were taken then.
 */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { printCsv } from "../src/plan/csv.ts";
import { planJson } from "../src/plan/json.ts";
import { memoryChart } from "../src/plan/memory-chart.ts";
import { memoryMap } from "../src/plan/memory-map.ts";
import { planProgram } from "../src/plan/plan.ts";
import { printPlan } from "../src/plan/print.ts";
import { reportText } from "../src/plan/report.ts";
import { pictureOfPlan } from "../src/view/from-plan.ts";
import { trainingStep } from "./support/plan-programs.ts";

it.each([
  [1, "c61a95340deaeea2"],
  [2, "624bc8d676667a64"],
  [3, "983d024efec16551"],
  [5, "af3b8f24125a866e"],
])("the plan of %i layers", (layers, hash) => {
  const plan = planProgram(trainingStep(layers));
  const json = planJson(plan, { stories: true });
  const forms = [
    printPlan(plan),
    JSON.stringify(json),
    memoryMap(plan),
    memoryChart(plan),
    reportText(plan),
    printCsv(plan.problem, plan.offsets),
    JSON.stringify(pictureOfPlan(json)),
  ];
  const text = forms.join("\n");
  expect(text).not.toMatch(/queue|"space/);
  expect(createHash("sha256").update(text).digest("hex").slice(0, 16)).toBe(hash);
});
