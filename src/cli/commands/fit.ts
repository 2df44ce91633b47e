/** @file `tidemark fit`: what a training step of a model takes in PyTorch as it is, and what planned memory takes for it. */
import { formatBytes } from "../../base/bytes.ts";
import { TidemarkError } from "../../base/errors.ts";
import type { ProgramPlans } from "../../compiler/assemble.ts";
import { largestBatch } from "../../fit/largest-batch.ts";
import type { KeptOperation } from "../../fit/policy/blocks.ts";
import { choosePolicy, type Policy } from "../../fit/policy/choose.ts";
import { policyText, RECEIVERS } from "../../fit/policy/print.ts";
import { OPTIMIZERS } from "../../fit/torch/optimizer.ts";
import { type EagerStep, eagerStep } from "../../fit/torch/step.ts";
import { table } from "../../plan/table.ts";
import {
  type Arguments,
  type Command,
  choice,
  type Io,
  integerOption,
  sizeOf,
  usageError,
  writeJson,
} from "../command.ts";
import { type FitCase, type FitSettings, type FitSource, fitSource, requireOneBatch } from "../fit-source.ts";
import { SIZE_OPTION, sizesOf } from "../model-program.ts";
import { type PersistentFigures, persistentFigures, plansOfLoaded, progressTo } from "../plan-figures.ts";
import { PROGRESS_OPTION } from "../progress.ts";
import { TARGET_OPTIONS, targetFor, targetSettings } from "../target-settings.ts";

/** One plan between keeping everything and the least memory. */
interface FitPoint {
  readonly arenaBytes: number;
  readonly predictedMs: number;
}

interface PlanSide {
  readonly planPeakBytes: number;
  readonly persistentBytes: number;
  readonly minimumBytes: number;
  readonly points: readonly FitPoint[];
}

export interface FitReport {
  readonly model: string;
  readonly batch: number | null;
  readonly optimizer: string;
  readonly dtype: string;
  /** What `torch.cuda.max_memory_allocated` reports. */
  readonly torchPeakBytes: number;
  readonly torchHeldBytes: number;
  /** The same peak by what it is for, and what the step does there. */
  readonly torchPeak: Readonly<Record<string, number>>;
  readonly torchPeakAt: string;
  readonly planPeakBytes: number | null;
  readonly persistentBytes: number | null;
  readonly minimumBytes: number | null;
  readonly points: readonly FitPoint[];
  readonly budgetBytes: number | null;
  /** Of PyTorch as it is; null without a budget, or where the batch cannot be changed. */
  readonly largestBatch: number | null;
  readonly unknown: readonly string[];
}

/** The first is the default. */
const USUAL_FIRST = ["adamw", ...OPTIMIZERS.filter((name) => name !== "adamw")] as const;
const DTYPES = ["f32", "bf16"] as const;
const FLOAT_BYTES: Readonly<Record<(typeof DTYPES)[number], number | undefined>> = { f32: undefined, bf16: 2 };

function settingsOf(args: Arguments): FitSettings {
  return {
    optimizer: choice(args, "optimizer", USUAL_FIRST),
    sizes: sizesOf(args),
    floatBytes: FLOAT_BYTES[choice(args, "dtype", DTYPES)],
    dropout: args.has("dropout"),
  };
}

async function planSide(args: Arguments, io: Io, { loaded }: FitCase, budget: number | null): Promise<PlanSide> {
  const progress = progressTo(io, () => "planning", false);
  const settings = { ...targetSettings(await targetFor(args, loaded), args, io), memory: {}, progress };
  const { plans, paths } = plansOfLoaded(loaded, settings);
  const storeAll = plans.choose();
  const { persistentBytes }: PersistentFigures = persistentFigures(storeAll.result.plan, paths);
  const count = integerOption(args, "points", 6, { least: 2 });
  const points = [...plans.curve("auto", count)].map(({ plan }) => ({
    arenaBytes: plan.arenaBytes,
    predictedMs: plan.predictedMs,
  }));
  points.sort((a, b) => b.arenaBytes - a.arenaBytes);
  const minimumBytes = Math.min(...points.map(({ arenaBytes }) => arenaBytes));
  const isEnough = budget === null || storeAll.arenaBytes <= budget;
  const planPeakBytes = isEnough ? storeAll.arenaBytes : (arenaWithin(plans, budget) ?? minimumBytes);
  return { planPeakBytes, persistentBytes, minimumBytes: Math.min(minimumBytes, planPeakBytes), points };
}

/** Of the plan for a budget; null where it is too small for any. */
function arenaWithin(plans: ProgramPlans, budgetBytes: number): number | null {
  try {
    return plans.choose({ budgetBytes }).arenaBytes;
  } catch (error) {
    if (error instanceof TidemarkError && error.code === "PlanInfeasible") return null;
    throw error;
  }
}

/** Null where a program that PyTorch can run cannot be planned here. */
async function planOrNote(make: () => Promise<PlanSide>, io: Io): Promise<PlanSide | null> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.code === "UsageError") throw error;
    io.err(`no plan of it here: ${error.summary}\n`);
    return null;
  }
}

function mostWithin(source: FitSource, settings: FitSettings, budget: number | null, io: Io): number | null {
  if (budget === null || source.batch === null) return null;
  const peakAt = (batch: number): number => {
    io.progress?.({ doing: `the largest batch: trying ${batch}` });
    return eagerStep(source.at(batch).eager, settings.optimizer).peak.bytes;
  };
  return largestBatch(peakAt, budget);
}

const noZeros = (bytes: Readonly<Record<string, number>>): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(bytes).filter(([, each]) => each > 0));

/** Targets of unknown operations, of both sides. */
const unknownOf = (step: EagerStep, at: FitCase): readonly string[] => [
  ...new Set([...step.unknown.keys(), ...at.unknown]),
];

function reportText(report: FitReport): string {
  const { torchPeakBytes, planPeakBytes, minimumBytes, budgetBytes } = report;
  const of = report.batch === null ? "" : `, batch ${report.batch}`;
  const head = `${report.model}${of}, ${report.optimizer}, ${report.dtype}: a training step takes`;
  const rows: string[][] = [["PyTorch as it is", formatBytes(torchPeakBytes), `most during ${report.torchPeakAt}`]];
  for (const [what, bytes] of Object.entries(report.torchPeak)) rows.push([`  ${what}`, formatBytes(bytes), ""]);
  if (planPeakBytes !== null && minimumBytes !== null) {
    const isOver = budgetBytes !== null && planPeakBytes > budgetBytes;
    const forBudget = isOver ? "planned, over the budget" : "planned, for the budget";
    const within = budgetBytes === null ? "planned, everything kept" : forBudget;
    rows.push([
      within,
      formatBytes(planPeakBytes),
      `${formatBytes(report.persistentBytes ?? 0)} of it stay between steps`,
    ]);
    rows.push(["the least plan", formatBytes(minimumBytes), "with recomputation"]);
  }
  const lines = table(rows, ["left", "right", "left"]).map((line) => line.trimEnd());
  const [full] = report.points;
  if (full) {
    const each = report.points.map(
      ({ arenaBytes, predictedMs }) =>
        `${formatBytes(arenaBytes)} at ${(predictedMs / full.predictedMs).toFixed(2)} × the time`,
    );
    lines.push(`between: ${each.join("; ")}`);
  }
  if (budgetBytes !== null) {
    const word = torchPeakBytes <= budgetBytes ? "fits" : "does not fit";
    lines.push(`PyTorch as it is ${word} ${formatBytes(budgetBytes)}`);
    if (minimumBytes !== null && minimumBytes > budgetBytes) lines.push(`no plan fits ${formatBytes(budgetBytes)}`);
    if (report.largestBatch !== null)
      lines.push(`the largest batch that fits in PyTorch as it is: ${report.largestBatch}`);
  }
  if (report.unknown.length > 0)
    lines.push(`not known, counted as what they read and write: ${report.unknown.join(", ")}`);
  return `${[head, ...lines].join("\n")}\n`;
}

/** Prints a policy, and says where it does not reach the budget. */
function printPolicy(args: Arguments, io: Io, at: FitCase, settings: FitSettings): void {
  const receiver = choice(args, "policy", RECEIVERS);
  const budget = sizeOf(args, "budget");
  if (budget === null) throw usageError("--policy without --budget", "say what the step may take: --budget 8GB");
  if (!at.model) throw usageError("--policy of a program without modules", "give a .pt2 file or a config.json");
  const request = { budget, optimizer: settings.optimizer, isHalf: settings.floatBytes !== undefined };
  const policy = choosePolicy(at.eager, { ...request, isSelective: receiver !== "megatron" });
  const { bytes } = policy.after.peak;
  if (args.has("json")) {
    const modules = (blocks: Policy["whole"]) => blocks.map(({ module }) => module);
    const saves = policy.selective.map(({ module, kept }) => ({ module, saves: kept.map(savedOf) }));
    writeJson(io, {
      ...{ receiver, budgetBytes: budget, torchPeakBytes: policy.before.peak.bytes, policyPeakBytes: bytes },
      ...{ whole: modules(policy.whole), selective: saves, text: policyText(policy, receiver) },
    });
  } else io.out(policyText(policy, receiver));
  if (bytes > budget) {
    io.err(
      `the least that checkpointing of blocks reaches is ${formatBytes(bytes)}, the budget is ${formatBytes(budget)}\n`,
    );
  }
}

const savedOf = ({ operation, occurrence }: KeptOperation) => ({ operation, occurrence });

async function run(args: Arguments, io: Io): Promise<void> {
  const settings = settingsOf(args);
  const source = await fitSource(args.positionals[0] as string, settings);
  requireOneBatch(args, source, settings);
  const asked = args.has("batch") ? integerOption(args, "batch", 1, { least: 1 }) : undefined;
  const budgetBytes = sizeOf(args, "budget");
  const at = source.at(asked);
  if (args.has("policy")) return printPolicy(args, io, at, settings);
  io.progress?.({ doing: "following the step in PyTorch", blocks: true });
  const step = eagerStep(at.eager, settings.optimizer);
  const side = await planOrNote(() => planSide(args, io, at, budgetBytes), io);
  const report: FitReport = {
    model: source.name,
    batch: asked ?? source.batch,
    optimizer: settings.optimizer,
    dtype: choice(args, "dtype", DTYPES),
    torchPeakBytes: step.peak.bytes,
    torchHeldBytes: step.heldBytes,
    torchPeak: noZeros(step.peak.byPurpose),
    torchPeakAt: step.peak.at,
    planPeakBytes: side?.planPeakBytes ?? null,
    persistentBytes: side?.persistentBytes ?? null,
    minimumBytes: side?.minimumBytes ?? null,
    points: side?.points ?? [],
    budgetBytes,
    largestBatch: mostWithin(source, settings, budgetBytes, io),
    unknown: unknownOf(step, at),
  };
  if (args.has("json")) writeJson(io, report);
  else io.out(reportText(report));
}

const DETAILS = [
  "FILE is a .pt2 (with or without weights), an .onnx, a config.json of Hugging Face (Llama family, GPT-2, BERT, ViT), or a PROGRAM as for plan.",
  "PyTorch's figure is what torch.cuda.max_memory_allocated() reports after a step: tensors, what autograd keeps, workspaces of",
  "libraries and rounding of the allocator. The loss is the mean of squared results, for a config.json the cross-entropy.",
].join("\n");

export const fit: Command = {
  name: "fit",
  positionals: ["FILE"],
  summary: "what a training step of a model takes in PyTorch, and what it takes planned",
  details: DETAILS,
  options: {
    batch: { value: "N", help: "the batch, also of a model that was exported with a fixed one" },
    ...SIZE_OPTION,
    optimizer: { value: "NAME", help: `${OPTIMIZERS.join(", ")}; default: adamw` },
    dtype: { value: "TYPE", help: `floats of the model: ${DTYPES.join(", ")}; default: f32` },
    budget: { value: "SIZE", help: "does it fit, and which batch does at most: 24GB" },
    policy: {
      value: "FOR",
      help: `print what to recompute, as code to paste, for ${RECEIVERS.join(", ")}; with --budget`,
    },
    dropout: { help: "for a config.json: with dropout, as while training" },
    points: { value: "N", help: "plans between keeping everything and the least; default: 6" },
    ...TARGET_OPTIONS,
    ...PROGRESS_OPTION,
    json: { help: "print one line of JSON" },
  },
  run,
};
