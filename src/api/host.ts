/**
 * @file The system that the library runs on, as one object, and the one place where an import may install it.
 *
 *   tidemark/node, the command ── installHost ──→ Host ── currentHost ──→ compile, plan, … ──┬─→ compiler   plans kept, a solver
 *                                                                                            ╰─→ runtime    targets, workers, heap
 *
 * `import "tidemark/node"` must change what `compile` of `tidemark` can do, in modules that know nothing of each other, so one
 * variable has to be written. This is it. Functions of the API read it when they are called and pass it on; nothing right or
 * left of them reads it. It is written once: a second host is an error, so the order of imports cannot matter. Without one it is
 * what every engine has by itself: a page, or a process that imports `tidemark` alone. Why it is no condition of the package's
 * `exports`: docs/decisions/0034-one-host.md.
 */
import { invariant } from "../base/invariant.ts";
import { estimatedMs } from "../compiler/estimate.ts";
import { NO_HOST, type Planner, type PlanningHost } from "../compiler/host.ts";
import type { LoopSupport } from "../compiler/loops.ts";
import type { SourceProgram } from "../compiler/request.ts";
import { storedPlanner } from "../compiler/stored.ts";
import { type ChosenTarget, chooseTarget, DEFAULT_TARGET, type TimeOn } from "../runtime/choose-target.ts";
import { isTarget, secondMemoryOf } from "../runtime/device.ts";
import { plainRuntime, type RuntimeHost } from "../runtime/host.ts";
import { fail } from "../trace/arguments.ts";
import type { AskedTarget, CompileRequest } from "./request.ts";
import type { ShapeFamilies } from "./shape-family.ts";

export interface Host extends PlanningHost, RuntimeHost {
  /** Functions for several shapes; null: not imported. */
  readonly families: ShapeFamilies | null;
  /** Adds to a request what its option `spill` asks for; null: there are no files. */
  readonly settleSpill: ((request: CompileRequest) => CompileRequest) | null;
}

let installed: Host | null = null;
/** What is imported to plan within budgets. */
let budgets: Planner | null = null;
let families: Host["families"] = null;
/** What the functions that make loops and branches bring along. */
let loops: LoopSupport | null = null;
/** Made when it is first asked for. */
let plain: Host | null = null;

/** @internal */
export const plainHost = (): Host => ({
  ...{ ...NO_HOST, ...plainRuntime(), settleSpill: null },
  get planner() {
    return budgets ?? storedPlanner;
  },
  get loops() {
    return loops;
  },
  get families() {
    return families;
  },
});

/** Makes a host that of this process. @internal */
export function installHost(host: Host): void {
  invariant(installed === null || installed === host, () => "another host is installed already");
  installed = host;
}

/** Makes plans within budgets, and of families of shapes, possible where the host has none of its own. @internal */
export function installBudgets(planner: Planner, familyOf: Host["families"]): void {
  invariant(budgets === null || budgets === planner, () => "another planner is installed already");
  budgets = planner;
  families = familyOf;
}

/** Makes programs with loops and branches possible: called by whatever adds one to a graph, before it does. @internal */
export function installLoops(support: LoopSupport): void {
  loops = support;
}

/** The target that was asked for, of those that a host has. @internal */
export function targetOf(asked: AskedTarget, host: Host, isPlanned = false): ChosenTarget {
  const { target = DEFAULT_TARGET, threads, products, spillTo } = asked;
  if (isTarget(target)) return { target, note: target.note ?? null };
  return chooseTarget(host, target, { threads, products, isPlanned, second: spillTo && secondMemoryOf(spillTo) });
}

/** With `auto`: the fastest target for a program, where there is more than one. @internal */
export function fastestFor<C extends Choice<C>>({ graph }: Pick<SourceProgram, "graph">, chosen: C): C {
  return chosen.fastest?.((description) => estimatedMs(graph, description)) ?? chosen;
}

interface Choice<C> {
  readonly fastest?: (timeOn: TimeOn) => C;
}

/** The request with what its option `spill` asks for. @internal */
export function spilling(request: CompileRequest, { settleSpill }: Host): CompileRequest {
  const { spill } = request;
  if (spill === undefined) return request;
  if (typeof spill === "object" && typeof spill?.to === "object") return spill.to.settle(request, spill);
  return (
    settleSpill?.(request) ??
    fail(
      "TargetUnsupported",
      "spill: there are no folders here",
      'import "tidemark/node", or give a file from pageFile()',
    )
  );
}

/** The host of this process at the time of the call. @internal */
export function currentHost(): Host {
  if (installed) return installed;
  plain ??= plainHost();
  return plain;
}
