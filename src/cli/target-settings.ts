/** @file The target that a command was asked for, and the rates that predict times on it. */
import { currentHost, fastestFor } from "../api/host.ts";
import { MOST_THREADS } from "../api/request.ts";
import type { Graph } from "../ir/graph.ts";
import {
  COMMAND_TARGETS,
  chooseTarget,
  DEFAULT_TARGET,
  type NamedTarget,
  type TargetName,
} from "../runtime/choose-target.ts";
import { PRODUCTS, type Products } from "../runtime/device.ts";
import { type AnyFunction, flattenArguments, traceFlat } from "../trace/function.ts";
import { type Arguments, choice, type Io, integerOption, type OptionSpec } from "./command.ts";
import type { Loaded } from "./load.ts";
import { type MachineModel, machineModel } from "./machine.ts";
import type { AnyProgram } from "./programs/built-in.ts";

export const TARGET_OPTIONS = {
  target: {
    value: "NAME",
    help: `the target to compile for: ${COMMAND_TARGETS.join(", ")}; default: ${DEFAULT_TARGET}`,
  },
  products: { value: "TYPE", help: `what cuda multiplies f32 in: ${PRODUCTS.join(", ")}; default: ${PRODUCTS[0]}` },
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

/** With `auto` the fastest for the program. `runs`: it must be here. */
export function targetFor(args: Arguments, loaded: Loaded, runs = false): NamedTarget {
  const threads = integerOption(args, "threads", 1, { least: 1, most: MOST_THREADS });
  const products = choice(args, "products", PRODUCTS);
  const request = { threads, products, isPlanned: !runs };
  const chosen = chooseTarget(currentHost(), choice(args, "target", COMMAND_TARGETS), request);
  return chosen.fastest ? fastestFor({ graph: graphOf(loaded) }, chosen) : chosen;
}

/** Says why the target is not another. */
export function targetSettings({ name, target, note }: NamedTarget, args: Arguments, io: Io): TargetSettings {
  if (note !== null) io.err(`${note}\n`);
  const machine = machineModel(io.err, target.description.rates);
  const products = args.value("products") === undefined ? undefined : choice(args, "products", PRODUCTS);
  return { target: name, products, threads: target.threads, machine };
}
