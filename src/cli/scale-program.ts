/** @file `tidemark scale` of a program or a model file: the step of one device on an axis `data`, planned as it would run there. */

import { currentHost } from "../api/host.ts";
import { formatBytes } from "../base/bytes.ts";
import { counted, TidemarkError } from "../base/errors.ts";
import type { ZeroStage } from "../fit/scale/states.ts";
import { byteLength } from "../ir/type.ts";
import { table } from "../plan/table.ts";
import { chooseTarget } from "../runtime/choose-target.ts";
import { flatten } from "../trace/tree.ts";
import type { DeviceColumn, DevicesData } from "../view/devices-page.ts";
import { type Arguments, type Io, integerOption, sizeOf, usageError, writeJson } from "./command.ts";
import { type FitSource, fitSource, requireOneBatch } from "./fit-source.ts";
import type { Loaded } from "./load.ts";
import { sizesOf } from "./model-program.ts";
import { devicesAsked, meshOf, ratesOf } from "./scale-options.ts";
import { writePage } from "./scale-page.ts";
import { type PlannedStep, plannedStep, type StepParts } from "./scale-step.ts";
import { argumentsOf } from "./target-settings.ts";

/** What says how a transformer is shared out, of which a program has nothing to say. */
const OF_CONFIGS = [
  "microbatch",
  "recompute",
  "recipe",
  "chunks",
  "no-sequence",
  "scores",
  "dropout",
  "node",
  "link",
  "plan",
];
const STAGES: readonly ZeroStage[] = [0, 1, 2, 3];

function devicesOf(args: Arguments): number {
  const mesh = meshOf(args);
  if (!mesh) return devicesAsked(args, null);
  const { data, ...others } = mesh;
  const other = Object.entries(others).find(([, extent]) => extent > 1);
  if (!other) return devicesAsked(args, data);
  throw usageError(
    `--mesh ${args.value("mesh")}: where a program could be cut along ${other[0]} is not known`,
    "give an axis data alone: --mesh data=8; a config.json has the other axes too",
  );
}

/** The rows of one device: those of the program, or its part of `--batch`. */
function atBatch(args: Arguments, source: FitSource, devices: number): Loaded {
  if (!args.has("batch")) return source.at(undefined).loaded;
  const batch = integerOption(args, "batch", devices, { least: 1 });
  if (batch % devices !== 0)
    throw usageError(`--batch ${batch} on ${counted(devices, "device")}`, `give a multiple of ${devices}`);
  return source.at(batch / devices).loaded;
}

function partsOf(loaded: Loaded): StepParts {
  const model = loaded.kind === "training" ? loaded.program.model : undefined;
  if (loaded.kind !== "training" || !model) {
    throw usageError(
      `scale: ${loaded.name} is a step as a whole, and it takes its loss and its optimizer`,
      "export program.model = { loss, optimizer } as well, or give a config.json, .pt2 or .onnx",
    );
  }
  const [state, ...batch] = argumentsOf(loaded.program) as [{ readonly params: object }, ...StepParts["batch"]];
  const { loss, optimizer } = model as unknown as Pick<StepParts, "loss" | "optimizer">;
  return { name: loaded.name, params: state.params, batch, loss, optimizer };
}

const formOf = (devices: number, { zero }: PlannedStep): string =>
  devices === 1 ? "one device" : `data=${devices}, ZeRO ${zero}`;

export async function scaleProgram(args: Arguments, io: Io): Promise<void> {
  const other = OF_CONFIGS.find((name) => args.has(name));
  if (other !== undefined)
    throw usageError(`--${other} of a program`, "it is for a config.json, whose layers are known");
  const devices = devicesOf(args);
  const word = args.positionals[0] as string;
  const settings = { optimizer: "adamw", sizes: sizesOf(args), floatBytes: undefined, dropout: false } as const;
  const source = await fitSource(word, settings);
  requireOneBatch(args, source, settings);
  const parts = partsOf(atBatch(args, source, devices));
  const memoryBytes = sizeOf(args, "memory");
  const { description } = chooseTarget(currentHost(), "native", { isPlanned: true }).target;
  const stages = args.has("zero")
    ? [integerOption(args, "zero", 0, { least: 0, most: 3 }) as ZeroStage]
    : STAGES.slice(0, devices === 1 || parts.optimizer.perElement !== true ? 1 : STAGES.length);
  const all = stages.map((zero) => {
    io.progress?.({ doing: `planning a device with ZeRO ${zero}` });
    return plannedStep(parts, { devices, zero, memoryBytes, rates: ratesOf(args), description });
  });
  const fitting = all.filter(({ fits }) => fits).sort((a, b) => a.totalMs - b.totalMs || a.bytes - b.bytes);
  const [best] = fitting;
  if (!best) {
    const least = Math.min(...all.map(({ bytes }) => bytes));
    const summary = `scale: the least that a device takes for ${parts.name} is ${formatBytes(least)}, and it has ${formatBytes(memoryBytes ?? 0)}`;
    throw new TidemarkError("PlanInfeasible", summary, {
      help: "give more devices, a smaller --batch, or more memory",
    });
  }
  const parameters = flatten(parts.params, "params").leaves;
  const total = parameters.reduce((sum, { elements }) => sum + elements, 0);
  const page = args.value("html");
  if (page !== undefined) writePage(page, pageData(parts.name, { total, devices, memoryBytes }, fitting), io);
  if (!args.has("json")) {
    io.out(reportText(parts.name, { total, devices, memoryBytes }, fitting));
    return;
  }
  const shown = (one: PlannedStep) => ({ form: formOf(devices, one), bytes: one.bytes, stepMs: one.totalMs });
  writeJson(io, {
    ...{ model: parts.name, devices, memoryBytes, fits: memoryBytes === null ? null : true },
    parameters: { total, bytes: parameters.reduce((sum, w) => sum + byteLength(w), 0) },
    ...{ ...shown(best), perDeviceBytes: best.perDeviceBytes, strategy: best.strategy, zero: best.zero },
    time: { computeMs: best.computeMs, dataMs: best.dataMs, totalMs: best.totalMs },
    points: fitting.map(shown),
  });
}

interface Shown {
  readonly total: number;
  readonly devices: number;
  readonly memoryBytes: number | null;
}

/** All devices have one program; beside it, the step with other stages of ZeRO. */
function pageData(name: string, { total, devices, memoryBytes }: Shown, all: readonly PlannedStep[]): DevicesData {
  const [best] = all as readonly [PlannedStep, ...PlannedStep[]];
  const columnOf = (title: string, { perDeviceBytes: terms, bytes }: PlannedStep, notes: readonly string[]) =>
    ({ name: title, notes, terms, bytes }) satisfies DeviceColumn;
  const lines = [
    `${total.toLocaleString("en")} parameters, ${formOf(devices, best)}, planned by this library: ${best.strategy}`,
    `a step: ${(best.totalMs / 1e3).toPrecision(3)} s, by arithmetic`,
  ];
  return {
    ...{ title: `${name} on ${counted(devices, "device")}`, lines, memoryBytes },
    devices: [columnOf("each device", best, ["all have one program"])],
    ways: all.map((one) =>
      columnOf(formOf(devices, one), one, [`${(one.totalMs / 1e3).toPrecision(3)} s a step`, one.strategy]),
    ),
  };
}

function reportText(name: string, { total, devices, memoryBytes }: Shown, all: readonly PlannedStep[]): string {
  const [best, ...others] = all as readonly [PlannedStep, ...PlannedStep[]];
  const rows = Object.entries(best.perDeviceBytes).map(([kind, bytes]) => [kind, formatBytes(bytes)]);
  const lines = [
    `${name}: ${total.toLocaleString("en")} parameters, ${formOf(devices, best)}`,
    ...table([...rows, ["arena", formatBytes(best.bytes)]], ["left", "right"]),
    `a step: ${(best.totalMs / 1e3).toPrecision(3)} s (computing ${(best.computeMs / 1e3).toPrecision(3)}, data axis ${(best.dataMs / 1e3).toPrecision(3)}), ${best.strategy}`,
  ];
  if (memoryBytes !== null) lines.push(`fits ${formatBytes(memoryBytes)}`);
  for (const other of others) {
    const ratio = (other.totalMs / best.totalMs).toFixed(2);
    lines.push(`${ratio} × the time, ${formatBytes(other.bytes)}: ${formOf(devices, other)}`);
  }
  return `${lines.join("\n")}\n`;
}
