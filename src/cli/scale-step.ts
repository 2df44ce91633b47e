/**
 * @file One device's training step on a data axis, planned by this library's planner as it would run there: any loss, with as much of the
 * state on each device as a stage of ZeRO leaves it. Nothing runs, and no other device has to be here.
 */
import { plansOf } from "../api/plan.ts";
import { specsOf } from "../api/specs-of.ts";
import type { ZeroStage } from "../fit/scale/states.ts";
import { type Rates, unhiddenMs } from "../fit/scale/time.ts";
import { byteLength } from "../ir/type.ts";
import { graphCost } from "../ops/control.ts";
import type { Optimizer } from "../optim/optimizer.ts";
import { planWithin } from "../parallel/choose.ts";
import { dataParallel } from "../parallel/data-parallel.ts";
import { mesh } from "../parallel/mesh.ts";
import type { Plan } from "../plan/problem.ts";
import { reportPlan } from "../plan/report.ts";
import type { TargetDescription } from "../target/description.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten } from "../trace/tree.ts";

/** What a step on one device is made of. */
export interface StepParts {
  readonly name: string;
  readonly loss: (params: object, ...batch: readonly Tensor[]) => Tensor;
  readonly optimizer: Optimizer;
  readonly params: object;
  /** The other arguments of the loss: the batch of one device. */
  readonly batch: readonly Tensor[];
}

export interface PlannedStep {
  readonly zero: ZeroStage;
  readonly bytes: number;
  /** What is live at the tightest step, by kind; `rest` is what the placement adds. */
  readonly perDeviceBytes: Readonly<Record<string, number>>;
  readonly fits: boolean;
  readonly strategy: string;
  readonly computeMs: number;
  readonly dataMs: number;
  readonly totalMs: number;
}

export interface PlannedStepRequest {
  readonly devices: number;
  readonly zero: ZeroStage;
  readonly memoryBytes: number | null;
  readonly rates: Rates;
  readonly description: TargetDescription;
}

export function plannedStep(parts: StepParts, request: PlannedStepRequest): PlannedStep {
  const { devices, zero, memoryBytes, rates, description } = request;
  const { loss, optimizer, params, batch } = parts;
  const settings = { mesh: mesh({ data: devices }), over: "data", zero } as const;
  const train = dataParallel(loss as never, optimizer, settings);
  const state = specsOf(train.init)(params as never);
  const { plans } = plansOf(
    train.step as AnyFunction,
    [state, ...batch],
    { donate: [0], name: parts.name, effort: "quick" },
    {
      description: { ...description, collectives: true },
    },
  );
  const { chosen, fits } = planWithin(plans, memoryBytes);
  const { plan, graph } = plans.placed(chosen, 0);
  const computeMs = (1e3 * graphCost(graph).flops) / rates.flops;
  const sentBytes = flatten(params, "params").leaves.reduce((sum, w) => sum + byteLength(w), 0);
  const dataMs = unhiddenMs({ bytes: sentBytes, devices, zero, computeMs }, rates);
  return {
    ...{ zero, fits, bytes: plan.height, perDeviceBytes: bytesByKind(plan, state) },
    ...{ strategy: chosen.strategy, computeMs, dataMs, totalMs: computeMs + dataMs },
  };
}

/** The state is told apart by what it is for; everything else as the planner does. */
function bytesByKind(plan: Plan, state: { readonly params: unknown; readonly slots: unknown }): Record<string, number> {
  const bytesOf = (tree: unknown): number =>
    flatten(tree as never, "state").leaves.reduce((sum, x) => sum + byteLength(x), 0);
  const kinds = reportPlan(plan).kinds.filter(({ bytesAtPeak }) => bytesAtPeak > 0);
  const atPeak = Object.fromEntries(kinds.map(({ kind, bytesAtPeak }) => [kind, bytesAtPeak]));
  const { persistent = 0, ...others } = atPeak;
  const [parameters, optimizer] = [bytesOf(state.params), bytesOf(state.slots)];
  const named = { parameters, optimizer, constants: persistent - parameters - optimizer, ...others };
  const rest = plan.height - Object.values(named).reduce((sum, bytes) => sum + bytes, 0);
  return Object.fromEntries(Object.entries({ ...named, rest }).filter(([, bytes]) => bytes > 0));
}
