/** @file The target that a command was asked for, and the rates that predict times on it. */
import { currentHost } from "../api/host.ts";
import { MOST_THREADS } from "../api/request.ts";
import { TidemarkError } from "../base/errors.ts";
import { estimatedMs } from "../compiler/estimate.ts";
import type { Graph } from "../ir/graph.ts";
import {
  AWAITED_TARGET,
  chooseTarget,
  DEFAULT_TARGET,
  type NamedTarget,
  OWN_TARGETS,
  type TargetName,
} from "../runtime/choose-target.ts";
import type { Products, SecondMemory } from "../runtime/device.ts";
import type { TargetDescription } from "../target/description.ts";
import type { CostModel } from "../target/work.ts";
import { type AnyFunction, flattenArguments, traceFlat } from "../trace/function.ts";
import { type Arguments, choice, type Io, integerOption, type OptionSpec } from "./command.ts";
import type { Loaded } from "./load.ts";
import { type MachineModel, machineModel } from "./machine.ts";
import { PRODUCTS_OPTIONS, targetProducts } from "./products-option.ts";
import type { AnyProgram } from "./programs/built-in.ts";

/** Those that programs are measured on, and those that a command is given. */
export const MEASURED_TARGETS = [...OWN_TARGETS, AWAITED_TARGET] as const;
const COMMAND_TARGETS = [...MEASURED_TARGETS, "auto"] as const;

export const TARGET_OPTIONS = {
  target: {
    value: "NAME",
    help: `the target to compile for: ${COMMAND_TARGETS.join(", ")}; default: ${DEFAULT_TARGET}`,
  },
  products: PRODUCTS_OPTIONS.products,
  threads: { value: "N", help: "number of threads; default: 1" },
} as const satisfies Record<string, OptionSpec>;

export interface TargetSettings {
  readonly target: TargetName;
  readonly products?: Products | undefined;
  readonly threads?: number;
  readonly machine: MachineModel;
}

/** Example arguments of a program, or their types. */
export const argumentsOf = (program: AnyProgram): readonly unknown[] =>
  program.specs?.() ?? [program.init(), ...program.batch()];

function graphOf(loaded: Loaded): Graph {
  if (loaded.kind === "graph") return loaded.graph;
  const step = loaded.program.step as AnyFunction;
  return traceFlat(step, flattenArguments(step, argumentsOf(loaded.program))).graph;
}

/** Gets WebGPU where it is asked for; for `auto` where it can be had. */
export async function awaitTarget(name: TargetName): Promise<void> {
  if (name !== AWAITED_TARGET && name !== "auto") return;
  try {
    await currentHost().webgpu.target();
  } catch (error) {
    if (name === AWAITED_TARGET || !(error instanceof TidemarkError)) throw error;
  }
}

/** Of this machine where it was calibrated; what is wrong with a file is said once a target is chosen. */
const measuredRates = ({ rates }: TargetDescription): CostModel => machineModel(() => undefined, rates).costs;

/** With `auto` the fastest for the program. `runs`: it must be here; `second`: the memory that values are moved to. */
export async function targetFor(
  args: Arguments,
  loaded: Loaded,
  { runs = false, second }: { readonly runs?: boolean; readonly second?: SecondMemory | undefined } = {},
): Promise<NamedTarget> {
  const threads = integerOption(args, "threads", 1, { least: 1, most: MOST_THREADS });
  const products = targetProducts(args);
  const request = { threads, products, isPlanned: !runs, second };
  const name = choice(args, "target", COMMAND_TARGETS);
  await awaitTarget(name);
  const chosen = chooseTarget(currentHost(), name, request);
  if (!chosen.fastest) return chosen;
  const graph = graphOf(loaded);
  return chosen.fastest((description) => estimatedMs(graph, { ...description, rates: measuredRates(description) }));
}

/** Says why the target is not another. */
export function targetSettings({ name, target, note }: NamedTarget, args: Arguments, io: Io): TargetSettings {
  if (note !== null) io.err(`${note}\n`);
  const machine = machineModel(io.err, target.description.rates);
  const products = targetProducts(args);
  return { target: name, products, threads: target.threads, machine };
}
