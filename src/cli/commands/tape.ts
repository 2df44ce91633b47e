/** @file `tidemark tape`: what four ways of differentiating a program hold between its forward and its backward pass. */
import { formatBytes } from "../../base/bytes.ts";
import type { AccountRow } from "../../tape/account.ts";
import { type ProgramAccount, programAccount } from "../../tape/account-program.ts";
import { type Command, writeJson } from "../command.ts";
import { CONTRACT } from "../contract.ts";
import { loadProgram } from "../load.ts";
import { planLoaded, planSettings } from "../plan-figures.ts";
import { TARGET_OPTIONS } from "../target-settings.ts";

const HEADS = ["operation", "count", "inputs and outputs", "named saves", "tape", "planned"] as const;

const cells = ({ operation, count, ...bytes }: AccountRow): readonly string[] => [
  operation,
  String(count),
  ...[bytes.overloadBytes, bytes.namedSavesBytes, bytes.tapeBytes, bytes.plannedBytes].map(formatBytes),
];

function table(name: string, { rows, passes, ...totals }: ProgramAccount): string {
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  const each = (passes.length > 1 ? passes : []).map((pass, i) => {
    const [, , ...bytes] = cells({ operation: "", count: 0, ...pass });
    return [`backward pass ${i + 1}`, "", ...bytes];
  });
  const all = [HEADS, ...rows.map(cells), cells({ operation: "all", count, ...totals }), ...each];
  const widths = HEADS.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  const lines = all.map((row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  "),
  );
  const about = "held for the backward pass when the forward pass is done, without arguments and constants";
  return `${name}: ${about}\n\n${lines.join("\n")}\n`;
}

export const tape: Command = {
  name: "tape",
  positionals: ["PROGRAM"],
  summary: "compare what a tape, named saves and the plan hold for the backward pass",
  details: [
    "inputs and outputs   of every operation, as a tape of TensorFlow.js holds them",
    "named saves          what derivatives read, with the storage that views are of, as PyTorch holds them",
    "tape                 what a tape of tidemark/tape holds",
    "planned              what the planned program holds; fused kernels under the name of their main operation",
    "",
    CONTRACT,
  ].join("\n"),
  options: { ...TARGET_OPTIONS, json: { help: "print one line of JSON instead of the table" } },
  async run(args, io) {
    const loaded = await loadProgram(args.positionals[0] as string);
    const { planned, traced } = planLoaded(loaded, await planSettings(args, io, loaded));
    const account = programAccount(traced, planned.plan);
    if (args.has("json")) writeJson(io, { program: loaded.name, ...account });
    else io.out(table(loaded.name, account));
  },
};
