/** @file The options that say in which form devices share a step, and how fast they exchange. */
import { FORM_AXES, type FormSettings } from "../parallel/forms.ts";
import { mesh as makeMesh } from "../parallel/mesh.ts";
import { type PipelineScheduleName, SCHEDULES } from "../parallel/pipeline/schedule.ts";
import { type Arguments, choice, integerOption, type OptionSpec, usageError } from "./command.ts";

/** How fast devices exchange. */
export const RATE_OPTIONS = {
  network: { value: "N", help: "bytes a second that a device sends to others; default: measured, or the target's" },
  latency: { value: "SECONDS", help: "until a message arrives; default: measured, or the target's" },
  cores: { value: "N", help: "cores that the devices share; default: those of this machine" },
} as const satisfies Record<string, OptionSpec>;

export const FORM_OPTIONS = {
  zero: {
    value: "STAGE",
    help: "with --mesh: 0 to 3, what is shared out along data (optimizer, gradients, parameters)",
  },
  schedule: { value: "NAME", help: `with --mesh pipeline=2: ${SCHEDULES.join(", ")}; default: 1f1b` },
  chunks: { value: "N", help: "with --schedule interleaved: pieces of the model on each stage; default: 2" },
  ...RATE_OPTIONS,
} as const satisfies Record<string, OptionSpec>;

/** The word that leaves the form to be chosen. */
export const AUTO = "auto";

/** A rate that was given. */
export function rateOf(args: Arguments, name: keyof typeof RATE_OPTIONS | "flops"): number | undefined {
  const text = args.value(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw usageError(`--${name} ${text}`, "give a number above 0, as 2e9");
}

/** `data=2,pipeline=2` → extents of all axes; null where there is another axis. */
function extentsOf(mesh: string): FormSettings["mesh"]["axes"] | null {
  const extents = { data: 1, pipeline: 1, tensor: 1 };
  for (const part of mesh.split(",")) {
    const [, name, extent] = /^\s*([a-z]+)=([1-9]\d*)\s*$/.exec(part) ?? [];
    const axis = FORM_AXES.find((known) => known === name);
    if (!axis) return null;
    extents[axis] = Number(extent);
  }
  return extents;
}

/** The form that options spell out; `auto` where it is to be chosen; null where they ask for none of what forms have beside a mesh. */
export function formAsked(args: Arguments): FormSettings | typeof AUTO | null {
  const mesh = args.value("mesh");
  const other = (["zero", "schedule", "chunks"] as const).find((name) => args.has(name));
  if (mesh === undefined) {
    if (other === undefined) return null;
    throw usageError(`--${other} without --mesh`, "give --mesh data=4, or pipeline=4");
  }
  if (mesh === AUTO) {
    const fixed = other ?? (args.has("microbatches") ? "microbatches" : undefined);
    if (fixed === undefined) return AUTO;
    throw usageError(`--${fixed} with --mesh auto, which chooses it`, `leave --${fixed} out, or name the axes`);
  }
  const axes = extentsOf(mesh);
  if (!axes || (other === undefined && axes.pipeline === 1)) {
    if (other === undefined) return null;
    throw usageError(`--mesh ${mesh} with --${other}`, `axes are ${FORM_AXES.join(", ")}: --mesh data=2,pipeline=2`);
  }
  const stages = axes.pipeline;
  if (stages === 1 && (args.has("schedule") || args.has("chunks"))) {
    throw usageError(`--${args.has("schedule") ? "schedule" : "chunks"} with one stage`, "give --mesh pipeline=2");
  }
  const schedule = args.has("schedule") ? (choice(args, "schedule", SCHEDULES) as PipelineScheduleName) : "1f1b";
  return {
    mesh: makeMesh(axes),
    zero: integerOption(args, "zero", 0, { least: 0, most: 3 }) as FormSettings["zero"],
    microbatches: integerOption(args, "microbatches", stages, { least: 1 }),
    schedule: stages === 1 ? null : schedule,
    chunks: integerOption(args, "chunks", schedule === "interleaved" ? 2 : 1, { least: 1 }),
  };
}

/** The options that spell a form out. */
export function formArguments({
  mesh: { axes },
  zero,
  microbatches,
  schedule,
  chunks,
}: FormSettings): readonly string[] {
  const extents = FORM_AXES.filter((axis) => axes[axis] > 1 || axis === "data").map((axis) => `${axis}=${axes[axis]}`);
  return [
    ...["--mesh", extents.join(), "--zero", String(zero), "--microbatches", String(microbatches)],
    ...(schedule ? ["--schedule", schedule] : []),
    ...(chunks > 1 ? ["--chunks", String(chunks)] : []),
  ];
}
