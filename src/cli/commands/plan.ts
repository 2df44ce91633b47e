/** @file `tidemark plan`: what a program needs, where its values are, and whether it fits a budget. */
import { formatBytes } from "../../base/bytes.ts";
import { explainText } from "../../plan/explain.ts";
import { memoryChart } from "../../plan/memory-chart.ts";
import { memoryMap } from "../../plan/memory-map.ts";
import { printPlan } from "../../plan/print.ts";
import { reportText } from "../../plan/report.ts";
import { type Command, writeJson } from "../command.ts";
import { CONTRACT } from "../contract.ts";
import { loadProgram } from "../load.ts";
import { PLAN_OPTIONS, type PlanFigures, planLoaded, planSettings } from "../plan-figures.ts";

function persistentText(f: PlanFigures): string {
  const parts = [
    [f.parameterBytes, "parameters"],
    [f.optimizerBytes, "optimizer state"],
    [f.constantBytes, "constants"],
  ] as const;
  return `kept between runs: ${parts.map(([bytes, what]) => `${formatBytes(bytes)} of ${what}`).join(", ")}`;
}

export const plan: Command = {
  name: "plan",
  positionals: ["PROGRAM"],
  summary: "plan a program's memory and show the plan",
  details: `Shows the numbers and live bytes over time. Exit code 1 when the program does not fit the budget.\n\n${CONTRACT}`,
  options: {
    ...PLAN_OPTIONS,
    explain: { value: "VALUE", help: "where one value (h, state.params.w0) or buffer (b12) is, how long, and why" },
    map: { help: "draw the arena: time across, addresses up" },
    text: { help: "print the program with the address of every value" },
    json: { help: "print one line of JSON in place of the report" },
  },
  async run(args, io) {
    const settings = planSettings(args);
    const loaded = await loadProgram(args.positionals[0] as string);
    const { planned, figures, refusal } = planLoaded(loaded, settings);
    const asked = args.value("explain");
    if (refusal === null && asked !== undefined) io.out(explainText(planned.plan, asked));
    else if (refusal === null) {
      if (args.has("text")) io.out(`${printPlan(planned.plan)}\n`);
      if (args.has("map")) io.out(`${memoryMap(planned.plan)}\n`);
      if (!args.has("json")) {
        io.out(`${reportText(planned.plan)}\n${memoryChart(planned.plan)}\n`);
        io.out(`${persistentText(figures)}\n`);
        io.out(
          `planned in ${figures.planMs.toFixed(0)} ms, a step is predicted to take ${figures.predictedMs.toFixed(1)} ms\n`,
        );
      }
    }
    if (args.has("json")) writeJson(io, figures);
    if (refusal) throw refusal;
  },
};
