/**
 * @file The form in which a step is shared among devices, of several that compute the same: every one is planned for one device, within its
 * memory, and the one with the least predicted time is taken. Planning is the whole of it: recomputation where a form does not fit otherwise, and
 * exchanges by the bytes that they send.
 */
import { currentHost } from "../api/host.ts";
import { placedFigures } from "../api/placed-figures.ts";
import { plansOf } from "../api/plan.ts";
import { formatBytes, parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { TargetCosts } from "../compiler/node-costs.ts";
import type { Plan } from "../plan/problem.ts";
import { chooseTarget } from "../runtime/choose-target.ts";
import type { TargetDescription } from "../target/description.ts";
import { type CostModel, networkMs } from "../target/work.ts";
import { describe, fail, type OptionKinds, requireArray, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";

/** A way of sharing a step among devices: a function of one device, as `dataParallel` gives it, and its arguments or their specs. */
export interface ParallelForm {
  readonly name: string;
  /** Its first argument is the state, which is given up. */
  readonly step: (...args: never) => unknown;
  readonly args: readonly unknown[];
}

/** What devices have. */
export interface ChooseFormOptions {
  /** Of one device. Default: as much as a form takes. */
  readonly memory?: string | number;
  /** Bytes a second that a device sends to others. Default: as the target has it. */
  readonly network?: number;
  /** Seconds until a message arrives. Default: as the target has it. */
  readonly latency?: number;
  /** Where there are fewer cores than devices, the share of one that each has: 0.5 for four processes on two cores. Default: 1. */
  readonly coresPerDevice?: number;
  /** How fast a device is. Default: as the target has it. */
  readonly costs?: CostModel;
}

const OPTIONS: OptionKinds<ChooseFormOptions> = {
  ...{ memory: "anything", network: "a number", latency: "a number", coresPerDevice: "a number", costs: "anything" },
};

/** What a form takes of a device. */
export interface FormFigures {
  readonly name: string;
  /** Of its fastest plan within the memory, or where it does not fit of the smallest. */
  readonly arenaBytes: number;
  readonly predictedMs: number;
  /** Of its collectives, one after the other; those in flight beside other steps are hidden behind them. */
  readonly exchangeMs: number;
  readonly fits: boolean;
  /** Which strategy decided what is recomputed. */
  readonly strategy: string;
}

/** The form that was chosen, and why. */
export interface ChosenForm<F extends ParallelForm> extends FormFigures {
  readonly form: F;
  /** A line for each form. */
  readonly why: string;
  /** All of them: those that fit, the fastest first, then the others. */
  readonly forms: readonly FormFigures[];
}

type Plans = ReturnType<typeof plansOf>["plans"];

/** The fastest plan within the memory, or the smallest there is. @internal */
export function planWithin(
  plans: Plans,
  memoryBytes: number | null,
): { readonly chosen: ReturnType<Plans["choose"]>; readonly fits: boolean } {
  if (memoryBytes === null) return { chosen: plans.choose(), fits: true };
  try {
    return { chosen: plans.choose({ budgetBytes: memoryBytes }), fits: true };
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.code !== "PlanInfeasible") throw error;
    return { chosen: plans.smallest({ budgetBytes: memoryBytes }), fits: false };
  }
}

/** A form with the plan of one device. @internal */
export interface PlannedForm<F extends ParallelForm = ParallelForm> {
  readonly form: F;
  readonly figures: FormFigures;
  /** What stays between steps: no plan takes less. */
  readonly persistentBytes: number;
  readonly plan: Plan;
}

/** The plan of one device in a form. @internal */
export function plannedForm<F extends ParallelForm>(
  form: F,
  memoryBytes: number | null,
  description: TargetDescription,
): PlannedForm<F> {
  const options = { donate: [0], name: form.name, effort: "quick", costs: description.rates } as const;
  const { plans } = plansOf(form.step as AnyFunction, form.args, options, { description });
  const { chosen, fits } = planWithin(plans, memoryBytes);
  const placed = plans.placed(chosen, 0);
  const { arenaBytes, predictedMs, strategy, persistentBytes } = placedFigures(placed);
  const costs = new TargetCosts(description, { rates: description.rates });
  const exchangeMs = networkMs(costs.workOfGraph(placed.graph), description.rates);
  const figures = { name: form.name, arenaBytes, predictedMs, exchangeMs, fits, strategy };
  return { form, figures, persistentBytes, plan: placed.plan };
}

function lineOf(one: FormFigures, best: FormFigures): string {
  const bytes = formatBytes(one.arenaBytes);
  if (!one.fits) return `${one.name} does not fit: it takes ${bytes} at least`;
  const how = one.strategy === "store-all" ? "" : `, recomputing (${one.strategy})`;
  const time =
    one === best
      ? `${one.predictedMs.toPrecision(3)} ms`
      : `${(one.predictedMs / best.predictedMs).toFixed(2)} × the time`;
  return `${one.name}: ${time}, ${bytes}${how}`;
}

/**
 * The fastest of several forms of a step that fits the memory of a device. All are planned; nothing runs, and no other device has to be there.
 *
 * @memory Nothing is allocated for the programs: arguments may be specs.
 *
 * @example
 * import { random, specsOf, type Tensor } from "tidemark";
 * import { adam } from "tidemark/optim";
 * import { chooseForm, dataParallel, mesh } from "tidemark/parallel";
 *
 * const lossOf = (w: Tensor, x: Tensor) => x.matmul(w).tanh().square().mean();
 * const w = random.normal(random.key(0), [64, 64]);
 * const forms = ([0, 1, 2, 3] as const).map((zero) => {
 *   const train = dataParallel(lossOf, adam(), { mesh: mesh({ data: 4 }), over: "data", zero });
 *   return { name: `zero ${zero}`, step: train.step, args: [specsOf(train.init)(w), random.normal(random.key(1), [8, 64])], train };
 * });
 * const { form, why } = chooseForm(forms, { memory: "64KiB", network: 1e9 });
 * console.log(form.name, why.split("\n").length); // zero 1 4
 */
export function chooseForm<F extends ParallelForm>(
  forms: readonly F[],
  options: ChooseFormOptions = {},
): ChosenForm<F> {
  const example = "chooseForm([{ name, step: train.step, args: [state, x] }], { memory })";
  requireArray("chooseForm", "forms", forms, example);
  requireOptions("chooseForm", options, OPTIONS);
  if (forms.length === 0) fail("InvalidArgument", "chooseForm: there are no forms", example);
  const memoryBytes = options.memory === undefined ? null : parseBytes(options.memory);
  const description = formDescription(options);
  const all = forms.map((form) => {
    requireFunction("chooseForm", "step", form?.step, example);
    requireArray("chooseForm", "args", form.args, example);
    if (typeof form.name !== "string")
      fail("InvalidArgument", `chooseForm: the name of a form is ${describe(form.name)}`, example);
    const { figures } = plannedForm(form, memoryBytes, description);
    return { form, figures };
  });
  return fastest("chooseForm", all, memoryBytes);
}

/** The target with the rates that options say. @internal */
export function formDescription(options: ChooseFormOptions): TargetDescription {
  const { network, latency, coresPerDevice = 1 } = options;
  for (const [name, rate] of Object.entries({ network, latency, coresPerDevice })) {
    if (rate === undefined || (rate > 0 && Number.isFinite(rate))) continue;
    fail("InvalidArgument", `chooseForm: ${name} is ${describe(rate)}`, "give a number above 0");
  }
  const host = currentHost();
  const { description: own } = chooseTarget(host, host.targets.native ? "native" : "wasm", { isPlanned: true }).target;
  const { costs = own.rates } = options;
  const rates = {
    ...costs,
    ...(network !== undefined && { networkRate: network }),
    ...(latency !== undefined && { messageSeconds: latency }),
    ...(coresPerDevice < 1 && { coresPerDevice }),
  };
  return { ...own, collectives: true, rates };
}

/** @internal */
export const noneFits = (name: string, least: string, memoryBytes: number | null): TidemarkError =>
  new TidemarkError(
    "PlanInfeasible",
    `${name}: the least that a device takes is ${least}, and it has ${formatBytes(memoryBytes ?? 0)}`,
    { help: "give more devices, a smaller batch, or more memory" },
  );

/** The fastest of planned forms that fits; all of them with their figures. @internal */
export function fastest<F extends ParallelForm>(
  name: string,
  all: readonly Pick<PlannedForm<F>, "form" | "figures">[],
  memoryBytes: number | null,
): ChosenForm<F> {
  const sorted = all.toSorted(
    ({ figures: a }, { figures: b }) =>
      Number(b.fits) - Number(a.fits) || a.predictedMs - b.predictedMs || a.arenaBytes - b.arenaBytes,
  );
  const { form, figures } = at(sorted, 0);
  const least = Math.min(...all.map((one) => one.figures.arenaBytes));
  if (!figures.fits) throw noneFits(name, formatBytes(least), memoryBytes);
  const figuresOfAll = sorted.map((one) => one.figures);
  return { form, ...figures, forms: figuresOfAll, why: figuresOfAll.map((one) => lineOf(one, figures)).join("\n") };
}
