/** @file `tidemark scale`: what every device takes when a model is trained on many of them, and how it is best shared out. */
import { basename } from "node:path";
import { formatBytes } from "../../base/bytes.ts";
import { counted } from "../../base/errors.ts";
import type { DeviceMemory } from "../../fit/scale/device.ts";
import { RECOMPUTES } from "../../fit/scale/kept.ts";
import { devicesOf, LAYOUT, type Layout } from "../../fit/scale/layout.ts";
import { type PlannedBlock, plannedBlock } from "../../fit/scale/planned.ts";
import { described, type Found, search } from "../../fit/scale/search.ts";
import { RECIPES, type RecipeName, type ZeroStage } from "../../fit/scale/states.ts";
import { RATES } from "../../fit/scale/time.ts";
import { type Transformer, transformerOf } from "../../fit/scale/transformer.ts";
import { table } from "../../plan/table.ts";
import type { DeviceColumn, DevicesData } from "../../view/devices-page.ts";
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
import { jsonOf } from "../fit-source.ts";
import { SIZE_OPTION, sizesOf } from "../model-program.ts";
import { AXES, type Axis, devicesAsked, meshOf, ratesOf } from "../scale-options.ts";
import { writePage } from "../scale-page.ts";
import { scaleProgram } from "../scale-program.ts";

/** What the options fix; the rest is chosen. */
function fixedOf(args: Arguments): Partial<Layout> {
  const { T: tokens, ...unknown } = sizesOf(args);
  const [other] = Object.keys(unknown);
  if (other !== undefined)
    throw usageError(`--size ${other}`, "tokens of a sequence are T; sequences of a step are --batch");
  const zero = args.has("zero") ? { zero: integerOption(args, "zero", 0, { least: 0, most: 3 }) as ZeroStage } : {};
  const recipe = choice(args, "recipe", Object.keys(RECIPES) as [RecipeName, ...RecipeName[]]);
  return {
    ...{ recipe, hasScores: args.has("scores"), hasDropout: args.has("dropout"), ...zero },
    ...(tokens === undefined ? {} : { tokens }),
    ...(args.has("recompute") ? { recompute: choice(args, "recompute", RECOMPUTES) } : {}),
    ...(args.has("microbatch") ? { microbatch: integerOption(args, "microbatch", 1, { least: 1 }) } : {}),
    ...(args.has("chunks") ? { chunks: integerOption(args, "chunks", 1, { least: 1 }) } : {}),
    ...(args.has("no-sequence") ? { isSequence: false } : {}),
  };
}

function given(args: Arguments, mesh: Readonly<Record<Axis, number>>, fixed: Partial<Layout>): Layout {
  const microbatch = fixed.microbatch ?? 1;
  const batch = integerOption(args, "batch", mesh.data * microbatch * mesh.pipeline, { least: 1 });
  const microbatches = batch / mesh.data / microbatch;
  if (!Number.isInteger(microbatches)) {
    const help = `give a multiple of ${mesh.data * microbatch}: data × microbatch`;
    throw usageError(`--batch ${batch} for data=${mesh.data} and microbatches of ${microbatch}`, help);
  }
  const isSequence = fixed.isSequence ?? mesh.tensor > 1;
  return { ...LAYOUT, ...fixed, ...mesh, microbatch, microbatches, isSequence };
}

/** The layout that is asked for, or all that fit, the fastest first. */
function found(args: Arguments, model: Transformer): readonly Found[] {
  const [mesh, fixed, rates] = [meshOf(args), fixedOf(args), ratesOf(args)];
  const layout = mesh && given(args, mesh, fixed);
  const devices = devicesAsked(args, layout && devicesOf(layout));
  if (layout) return [described(model, layout, rates)];
  const batch = integerOption(args, "batch", devices, { least: 1 });
  const memoryBytes = sizeOf(args, "memory") ?? Number.POSITIVE_INFINITY;
  const mostTensor = integerOption(args, "node", 8, { least: 1 });
  return search(model, { devices, batch, memoryBytes, rates, fixed, mostTensor });
}

const meshText = (layout: Layout): string =>
  AXES.flatMap((axis) => (layout[axis] > 1 ? [`${axis}=${layout[axis]}`] : [])).join(",") || "one device";

function howText({ zero, recompute, microbatch, microbatches, isSequence, chunks }: Layout): string {
  const words = [`ZeRO ${zero}`, `recompute ${recompute}`, `${counted(microbatches, "microbatch")} of ${microbatch}`];
  if (isSequence) words.push("sequence parallel");
  if (chunks > 1) words.push(`${counted(chunks, "piece")} a stage`);
  return words.join(", ");
}

function reportText(name: string, model: Transformer, all: readonly Found[], more: Shown): string {
  const { planned, memoryBytes } = more;
  const [best, ...others] = all as readonly [Found, ...Found[]];
  const { memory, layout, time } = best;
  const terms = Object.keys(memory[0]?.terms ?? {}) as (keyof (typeof memory)[number]["terms"])[];
  const rows = [
    [
      "",
      ...memory.map(
        ({ role }) => `${role.name}${role.name === "only" ? "" : " stage"}, ${counted(role.layers, "layer")}`,
      ),
    ],
    ...terms.map((term) => [term, ...memory.map((device) => formatBytes(device.terms[term]))]),
    ["peak", ...memory.map(({ bytes, peakAt }) => `${formatBytes(bytes)} at the ${peakAt}`)],
  ];
  const lines = [
    `${name}: ${model.parameters.total.toLocaleString("en")} parameters on ${meshText(layout)}`,
    `${howText(layout)}, ${layout.tokens} tokens`,
    ...table(rows, ["left", ...memory.map(() => "right" as const)]).map((line) => line.trimEnd()),
    `a step: ${(time.totalMs / 1e3).toFixed(2)} s (computing ${(time.computeMs / 1e3).toFixed(2)}, bubbles ${(time.bubbleMs / 1e3).toFixed(2)}, tensor axis ${(time.tensorMs / 1e3).toFixed(2)}, data axis ${(time.dataMs / 1e3).toFixed(2)})`,
  ];
  if (planned) lines.push(`planned here, a block keeps ${formatBytes(planned.keptBytes)} for one microbatch`);
  if (memoryBytes !== null)
    lines.push(`${best.bytes <= memoryBytes ? "fits" : "does not fit"} ${formatBytes(memoryBytes)}`);
  for (const other of others.slice(0, OTHERS)) {
    const ratio = (other.time.totalMs / time.totalMs).toFixed(2);
    lines.push(`${ratio} × the time, ${formatBytes(other.bytes)}: ${meshText(other.layout)}, ${howText(other.layout)}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Those that no faster way is smaller than; the fastest first. */
function leastBytes(all: readonly Found[]): readonly Found[] {
  let least = Number.POSITIVE_INFINITY;
  return all.filter(({ bytes }) => {
    if (bytes >= least) return false;
    least = bytes;
    return true;
  });
}

/** Alternatives that are printed. */
const OTHERS = 4;

/** Those that are drawn. */
const WAYS = 12;

/** Where a device has the most, how much of it is for what. */
const mostLoaded = ({ memory }: Found): DeviceMemory =>
  memory.reduce((most, device) => (device.bytes > most.bytes ? device : most));

const formOf = ({ layout }: Found): string => `${meshText(layout)}, ${howText(layout)}`;

/** What is there at the peak: either a block or the loss is at work. */
function termsAtPeak({ terms, peakAt }: DeviceMemory): Readonly<Record<string, number>> {
  const { block, logits, ...always } = terms;
  return peakAt === "block" ? { ...always, block } : { ...always, logits };
}

/** Devices of each role, and the ways that no faster one is smaller than. */
function pageData(name: string, model: Transformer, all: readonly Found[], memoryBytes: number | null): DevicesData {
  const [best] = all as readonly [Found, ...Found[]];
  const { layout, memory } = best;
  const ofStage = devicesOf(layout) / layout.pipeline;
  const devices = memory.map((device): DeviceColumn => {
    const { role, bytes, peakAt } = device;
    const stages = role.name === "middle" ? layout.pipeline - 2 : 1;
    const notes = [counted(role.layers, "layer"), counted(ofStage * stages, "device"), `peak at the ${peakAt}`];
    return {
      name: role.name === "only" ? "each device" : `${role.name} stage`,
      notes,
      terms: termsAtPeak(device),
      bytes,
    };
  });
  const ways = leastBytes(all)
    .slice(0, WAYS)
    .map((one): DeviceColumn => {
      const notes = [howText(one.layout), `${(one.time.totalMs / 1e3).toFixed(2)} s a step`];
      return { name: meshText(one.layout), notes, terms: termsAtPeak(mostLoaded(one)), bytes: one.bytes };
    });
  const lines = [
    `${model.parameters.total.toLocaleString("en")} parameters, ${layout.tokens} tokens, ${formOf(best)}`,
    `a step: ${(best.time.totalMs / 1e3).toFixed(2)} s, by arithmetic`,
  ];
  return { title: `${name} on ${counted(devicesOf(layout), "device")}`, lines, memoryBytes, devices, ways };
}

interface Shown {
  readonly planned: PlannedBlock | null;
  readonly memoryBytes: number | null;
}

async function run(args: Arguments, io: Io): Promise<void> {
  const path = args.positionals[0] as string;
  if (!path.toLowerCase().endsWith(".json")) return scaleProgram(args, io);
  const model = transformerOf(jsonOf(path));
  const all = found(args, model);
  const [best] = all;
  const memoryBytes = sizeOf(args, "memory");
  if (!best) {
    throw usageError(
      `no way of sharing it among these devices fits ${formatBytes(memoryBytes ?? 0)}`,
      "give more devices, --recipe mixed, a smaller --batch, or fewer tokens",
    );
  }
  const planned = args.has("plan") ? plannedBlock(model, best.layout) : null;
  const page = args.value("html");
  if (page !== undefined) writePage(page, pageData(basename(path), model, all, memoryBytes), io);
  if (!args.has("json")) {
    io.out(reportText(basename(path), model, all, { planned, memoryBytes }));
    return;
  }
  const asJson = ({ layout, bytes, time, memory }: Found) => ({
    ...{ layout, devices: devicesOf(layout), bytes, time },
    roles: memory.map(({ role, terms, bytes: own, peakAt }) => ({ ...role, terms, bytes: own, peakAt })),
  });
  writeJson(io, {
    ...{ model: basename(path), parameters: model.parameters, memoryBytes },
    ...{ fits: memoryBytes === null ? null : best.bytes <= memoryBytes, ...asJson(best), planned },
    ...{ perDeviceBytes: mostLoaded(best).terms, stepMs: best.time.totalMs, form: formOf(best) },
    points: leastBytes(all).map((one) => ({ form: formOf(one), bytes: one.bytes, stepMs: one.time.totalMs })),
    others: all.slice(1, 1 + OTHERS).map(asJson),
  });
}

const DETAILS = [
  "MODEL is a config.json of Hugging Face: Llama, Mistral, Qwen2, Qwen3, GPT-2. Without --mesh every way of sharing the model among",
  "--devices is tried, and the fastest that fits --memory is shown. Figures are what published systems keep, by term; --plan adds what",
  "the planner of this library keeps of a block.",
  "",
  "Or it is a .pt2 or .onnx file, a module that exports program.model, or a built-in program: the step of one device is planned by this",
  "library within --memory in every form that the program has, on axes data, tensor and pipeline, and the fastest that fits is shown.",
].join("\n");

export const scale: Command = {
  name: "scale",
  positionals: ["MODEL"],
  summary: "what each of many devices takes to train a model, and how to share it among them",
  details: DETAILS,
  options: {
    devices: { value: "N", help: "how many there are; default: 1" },
    mesh: { value: "AXES", help: `how they are arranged: data=64,tensor=8; axes are ${AXES.join(", ")}` },
    memory: { value: "SIZE", help: "of one device: 80GB" },
    batch: { value: "N", help: "sequences of a step over all devices" },
    ...SIZE_OPTION,
    microbatch: { value: "N", help: "sequences that a replica works on at a time" },
    zero: { value: "STAGE", help: "0 to 3: what is shared out along data (optimizer, gradients, parameters)" },
    recompute: { value: "WHAT", help: RECOMPUTES.join(", ") },
    recipe: { value: "NAME", help: "mixed: parameters of 16 bits with a copy in f32; f32: everything in f32" },
    chunks: { value: "N", help: "interleaved pipeline: pieces of the model on each stage" },
    "no-sequence": { help: "norms and sums are not shared along tensor" },
    scores: { help: "attention stores its scores" },
    dropout: { help: "with dropout, as masks" },
    node: { value: "N", help: "devices of a tensor axis at most, where the mesh is chosen; default: 8" },
    flops: { value: "N", help: `operations a second of a device; default: ${RATES.flops}` },
    link: { value: "N", help: `bytes a second along tensor; default: ${RATES.linkBytes}` },
    network: {
      value: "N",
      help: `bytes a second along the other axes; default: ${RATES.networkBytes}, of a program the target's`,
    },
    latency: { value: "SECONDS", help: "of a program: until a message arrives; default: the target's" },
    cores: { value: "N", help: "of a program: cores that the devices share; default: one for each" },
    plan: { help: "plan a block of one device with this library too" },
    html: { value: "FILE", help: "write a page of the devices side by side" },
    json: { help: "print one line of JSON" },
  },
  run,
};
