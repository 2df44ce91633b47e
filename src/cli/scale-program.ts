/** @file `tidemark scale` of a program or a model file: the step of one device in every form that there is, planned as it would run there. */
import { formatBytes } from "../base/bytes.ts";
import { counted } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { byteLength } from "../ir/type.ts";
import { FORM_AXES, type FormSettings, formSettings, searchForms } from "../parallel/forms.ts";
import { table } from "../plan/table.ts";
import { flatten, type Tree } from "../trace/tree.ts";
import type { DeviceColumn, DevicesData } from "../view/devices-page.ts";
import { type Arguments, type Io, integerOption, sizeOf, usageError, writeJson } from "./command.ts";
import { formArguments } from "./form-options.ts";
import { AXES, devicesAsked, meshOf } from "./scale-options.ts";
import { writePage } from "./scale-page.ts";
import { type Model, type PlannedStep, plannedStep, scaleCosts, scaledModel } from "./scale-step.ts";

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

/** Devices, and the forms that options leave open. */
function formsAsked(args: Arguments, model: Model, devices: number): readonly FormSettings[] {
  const mesh = meshOf(args);
  const other = AXES.find((axis) => (mesh?.[axis] ?? 1) > 1 && axis !== "data" && !model.parts?.[axis as "tensor"]);
  if (other !== undefined) {
    const has = ["data", ...Object.keys(model.parts ?? {})].join(", ");
    const summary = `--mesh ${args.value("mesh")}: where a program could be cut along ${other} is not known`;
    throw usageError(summary, `it has ${has}: --mesh data=8; a config.json has the other axes too`);
  }
  const zero = args.has("zero") ? integerOption(args, "zero", 0, { least: 0, most: 3 }) : null;
  const all = formSettings("scale", model as never, { devices });
  const asked = all.filter((one) => {
    const isMesh = mesh === null || FORM_AXES.every((axis) => one.mesh.axes[axis] === mesh[axis]);
    // on one device, and where parameters are updated together, there is no other stage
    const isStage = zero === null || one.zero === zero || one.mesh.axes.data === 1;
    return isMesh && isStage;
  });
  if (asked.length > 0) return asked;
  const given = ["mesh", "zero"].flatMap((name) => (args.has(name) ? [`--${name} ${args.value(name)}`] : [])).join(" ");
  const parts = Object.entries(model.parts ?? {}).map(([axis, count]) => `${count} parts along ${axis}`);
  const rows = `${(model.batch[0] as { shape?: readonly number[] } | undefined)?.shape?.[0]} rows`;
  throw usageError(`${given}: there is no such form of a model with ${[rows, ...parts].join(", ")}`, "leave one out");
}

/** Rows that are given must come out even, where all devices have parts of them. */
function requireRows(args: Arguments, devices: number, { parts = {} }: Model): void {
  if (!args.has("batch") || Object.keys(parts).length > 0) return;
  const batch = integerOption(args, "batch", devices, { least: 1 });
  if (batch % devices === 0) return;
  throw usageError(`--batch ${batch} on ${counted(devices, "device")}`, `give a multiple of ${devices}`);
}

/** All parameters, of one process. */
function parametersOf(model: Model): { readonly total: number; readonly bytes: number } {
  const [alone] = formSettings("scale", model as never, { devices: 1 });
  const { leaves } = flatten(model.on(alone as FormSettings).params as Tree, "params");
  const sum = (of: (leaf: (typeof leaves)[number]) => number): number =>
    leaves.reduce((all, leaf) => all + of(leaf), 0);
  return { total: sum(({ elements }) => elements), bytes: sum(byteLength) };
}

export async function scaleProgram(args: Arguments, io: Io): Promise<void> {
  const other = OF_CONFIGS.find((name) => args.has(name));
  if (other !== undefined)
    throw usageError(`--${other} of a program`, "it is for a config.json, whose layers are known");
  const mesh = meshOf(args);
  const devices = devicesAsked(args, mesh && Object.values(mesh).reduce((n, extent) => n * extent, 1));
  const { name, model } = await scaledModel(args, devices);
  requireRows(args, devices, model);
  const memoryBytes = sizeOf(args, "memory");
  const all = formsAsked(args, model, devices);
  const planned = new Map<string, PlannedStep>();
  const options = { costs: scaleCosts(args, io, devices), ...(memoryBytes === null ? {} : { memory: memoryBytes }) };
  const chosen = searchForms(model, all, options, {
    name: "scale",
    planned: (one) => {
      planned.set(one.form.name, plannedStep(one));
      io.progress?.({ doing: `planned ${one.form.name}`, share: planned.size / all.length });
    },
  });
  const fitting = chosen.forms.flatMap((one) => (one.fits ? [planned.get(one.name) as PlannedStep] : []));
  const best = at(fitting, 0);
  const parameters = parametersOf(model);
  const shown: Shown = { total: parameters.total, devices, memoryBytes, why: chosen.why.split("\n") };
  const page = args.value("html");
  if (page !== undefined) writePage(page, pageData(name, shown, fitting), io);
  if (!args.has("json")) {
    io.out(reportText(name, shown, best));
    return;
  }
  const pointOf = (one: PlannedStep) => ({
    ...{ form: one.name, bytes: one.arenaBytes, stepMs: one.predictedMs, strategy: one.strategy },
    arguments: formArguments(one.settings),
  });
  writeJson(io, {
    ...{ model: name, devices, memoryBytes, fits: memoryBytes === null ? null : true, parameters },
    ...{ ...pointOf(best), perDeviceBytes: best.perDeviceBytes, zero: best.settings.zero },
    time: { exchangeMs: best.exchangeMs, totalMs: best.predictedMs },
    ...{ costs: options.costs, points: fitting.map(pointOf), why: shown.why },
  });
}

interface Shown {
  readonly total: number;
  readonly devices: number;
  readonly memoryBytes: number | null;
  readonly why: readonly string[];
}

/** Ways that are drawn. */
const WAYS = 12;

/** All devices have one program; beside it, the step in other forms. */
function pageData(name: string, { total, devices, memoryBytes }: Shown, all: readonly PlannedStep[]): DevicesData {
  const [best] = all as readonly [PlannedStep, ...PlannedStep[]];
  const columnOf = (
    title: string,
    { perDeviceBytes: terms, arenaBytes: bytes }: PlannedStep,
    notes: readonly string[],
  ) => ({ name: title, notes, terms, bytes }) satisfies DeviceColumn;
  const lines = [
    `${total.toLocaleString("en")} parameters, ${best.name}, planned by this library: ${best.strategy}`,
    `a step: ${secondsText(best.predictedMs)} s, predicted`,
  ];
  return {
    ...{ title: `${name} on ${counted(devices, "device")}`, lines, memoryBytes },
    devices: [columnOf("each device", best, ["all have one program"])],
    ways: all
      .slice(0, WAYS)
      .map((one) => columnOf(one.name, one, [`${secondsText(one.predictedMs)} s a step`, one.strategy])),
  };
}

const secondsText = (ms: number): string => (ms / 1e3).toPrecision(3);

function reportText(name: string, { total, memoryBytes, why }: Shown, best: PlannedStep): string {
  const rows = Object.entries(best.perDeviceBytes).map(([kind, bytes]) => [kind, formatBytes(bytes)]);
  const lines = [
    `${name}: ${total.toLocaleString("en")} parameters, ${best.name}`,
    ...table([...rows, ["arena", formatBytes(best.arenaBytes)]], ["left", "right"]),
    `a step: ${secondsText(best.predictedMs)} s (collectives ${secondsText(best.exchangeMs)}), ${best.strategy}`,
  ];
  if (memoryBytes !== null) lines.push(`fits ${formatBytes(memoryBytes)}`);
  return `${[...lines, ...why].join("\n")}\n`;
}
