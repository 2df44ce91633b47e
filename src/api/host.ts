/**
 * @file The system that the library runs on, as one object, and the one place where its parts are installed.
 *
 *   tidemark/node, the command ── installPart("host") ──→ Host ── currentHost ──→ compile, plan, … ──┬─→ compiler   plans kept, a solver
 *                                                                                                    ╰─→ runtime    targets, workers, heap
 *   tidemark, tidemark/core/budget ── "budgets" ──╮
 *   whatever adds a loop or branch ── "loops" ────┴──→ what the host of a process has that installs none
 *
 * `import "tidemark/node"` must change what `compile` of `tidemark` can do, in modules that know nothing of each other, so one
 * record has to be written. This is it. Functions of the API read it when they are called and pass it on; nothing right or
 * left of them reads it. Each part is written once: another one is an error, so the order of imports cannot matter. Without a host
 * it is what every engine has by itself: a page, or a process that imports `tidemark` alone. Why it is no condition of the
 * package's `exports`: docs/decisions/0034-one-host.md; why planner and loops are parts: docs/decisions/0035-core-entry.md.
 */
import { invariant } from "../base/invariant.ts";
import { estimatedMs } from "../compiler/estimate.ts";
import { NO_HOST, type PlanningHost } from "../compiler/host.ts";
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

/** What is installed. */
interface Parts {
  /** Of Node. */
  host?: Host;
  /** What is imported to plan within budgets, and for families of shapes. */
  budgets?: Pick<Host, "planner" | "families">;
  /** What functions that add a loop or branch to a graph bring along, before they do. */
  loops?: LoopSupport;
}

const parts: Parts = {};
/** Made when it is first asked for. */
let plain: Host | null = null;

/** @internal */
export const plainHost = (): Host => ({
  ...{ ...NO_HOST, ...plainRuntime(), settleSpill: null },
  get planner() {
    return parts.budgets?.planner ?? storedPlanner;
  },
  get loops() {
    return parts.loops ?? null;
  },
  get families() {
    return parts.budgets?.families ?? null;
  },
});

/** Makes a part that of this process. @internal */
export function installPart<Name extends keyof Parts>(name: Name, part: Required<Parts>[Name]): void {
  parts[name] ??= part;
  invariant(parts[name] === part, () => `another ${name} is installed already`);
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
  if (parts.host) return parts.host;
  plain ??= plainHost();
  return plain;
}
