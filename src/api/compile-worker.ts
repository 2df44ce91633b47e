/**
 * @file A worker that plans one program and generates its code (compile-async.ts). It is bundled to a text of its own
 * (scripts/worker-source.mjs), which is started after a text that defines `listen` and `tell` (runtime/task-worker.ts).
 */
import { TidemarkError } from "../base/errors.ts";
import { hasFloatProducts } from "../codegen/float-products.ts";
import type { PlanProgress } from "../compiler/request.ts";
import { planSent, type SentTask } from "../compiler/sent-plan.ts";
import { untouchedParams } from "../plan/untouched.ts";
import type { ProgramCode } from "../runtime/device.ts";
import { codeOf, descriptionOf } from "./described.ts";
import { type PlacedFigures, placedFigures } from "./placed-figures.ts";
import type { ProgramPlaces } from "./program.ts";

/** A program that was planned elsewhere. */
export interface SentProgram {
  readonly figures: PlacedFigures;
  readonly places: ProgramPlaces;
  /** Null where code is generated only by loading it. */
  readonly code: ProgramCode | null;
  /** Whether its bits depend on how the target rounds products (codegen/float-products.ts). */
  readonly hasFloatProducts: boolean;
  /** The plan in the form in which it is kept; null for small programs, which are planned as fast as they are read. */
  readonly kept: string | null;
}

/** An error of the user's, as data. */
export interface SentError {
  readonly code: TidemarkError["code"];
  readonly summary: string;
  readonly where: string | undefined;
  readonly help: string | undefined;
}

export type WorkerMessage =
  | { readonly told: "plan"; readonly plan: PlanProgress }
  | { readonly told: "generate" }
  | { readonly told: "done"; readonly program: SentProgram }
  | { readonly told: "error"; readonly error: SentError }
  | { readonly told: "failure"; readonly why: string };

declare function listen(handler: (task: SentTask) => void): void;
declare function tell(message: WorkerMessage, transferred: readonly ArrayBuffer[]): void;

/** The program; one line where the worker does not know its target. */
function program(task: SentTask): SentProgram | string {
  const target = descriptionOf(task.rebuild);
  if (!target) return `workers do not know the target ${task.rebuild.target}`;
  const { placed, kept } = planSent(task, target, (plan) => tell({ told: "plan", plan }, []));
  const figures = placedFigures(placed);
  const { params, results, plan } = placed;
  tell({ told: "generate" }, []);
  return {
    figures,
    places: { params, results, arenaBytes: plan.height, untouched: untouchedParams(plan) },
    code: codeOf(task.rebuild, placed),
    hasFloatProducts: hasFloatProducts(placed),
    kept,
  };
}

listen((task) => {
  try {
    const made = program(task);
    if (typeof made === "string") tell({ told: "failure", why: made }, []);
    else tell({ told: "done", program: made }, made.code ? [made.code.bytes.buffer] : []);
  } catch (error) {
    if (error instanceof TidemarkError) {
      const { code, summary, where, help } = error;
      tell({ told: "error", error: { code, summary, where, help } }, []);
    } else tell({ told: "failure", why: String(error) }, []);
  }
});
