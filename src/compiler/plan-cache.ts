/**
 * @file Plans that outlive a process. Planning is a function of the traced graph, what is asked of memory, the target's
 * traits, the model of costs and the planner's own code; all of that is the key, and what was decided is the value: the
 * graph after all passes in its planned order, replays included, and the place of every buffer.
 *
 *   traced graph ──────────── key ──→ found? ─ no ──→ passes, fusion, order, placement, recomputation ─→ kept
 *                                       │ yes                                                             │
 *                                       ╰──→ kernels, buffers, validator ─→ the same plan ←───────────────╯
 *
 * Everything in a value that can be checked is checked: kernels are lowered, buffers are assigned and times are predicted
 * again, the graph must be well-formed and have the parameters and results of the traced one, workspaces must be what kernels
 * need now, the arena must fit what was asked for, and the independent validator must find nothing. Otherwise the program is
 * planned as if nothing had been found. What cannot be checked without planning (that the graph computes what was traced, the
 * figures of the plan that stores everything, that nothing smaller was found or nothing fits) is the store's to answer for.
 *
 * Where values are kept is not known here: the core has no files. The host has the store (host.ts).
 */
import type { Graph, Value } from "../ir/graph.ts";
import type { AnyOp } from "../ir/op.ts";
import { graphKey, isPackable, type PackedGraph, packGraph, unpackGraph } from "../ir/pack.ts";
import { sameType } from "../ir/type.ts";
import { violations } from "../ir/verify.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { validate } from "../plan/validate.ts";
import type { Rebuild } from "../target/description.ts";
import type { CostModel } from "../target/work.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import type { MemoryRequest, SourceProgram } from "./request.ts";

/** Texts by keys of any length; what is read was written whole, by a process that is trusted, or is not there. */
export interface PlanStore {
  /** Operations by name (known-ops.ts): programs with others are not kept. */
  readonly ops: ReadonlyMap<string, AnyOp>;
  /** Equal for equal code of the planner: another one's plans are not asked for. */
  readonly planner: string;
  /** A short text that is equal for equal texts only: the program is then digested once, not with every key. */
  digest?(text: string): string;
  /** Plans that were made in less time are not worth keeping. */
  readonly leastMs: number;
  read(key: string): string | null;
  write(key: string, text: string): void;
  /** Has a plan made and kept by another process, to save this one's memory. Where that fails the plan is not in the store. */
  planInProcess?(task: PlanTask): void;
}

/**
 * What is kept for a request: its plan, or where it was refused the smallest plan there is, which does not fit; and the bytes
 * of the smallest plan that is known.
 */
export type Entry = "plan" | "refused" | "least";

/** A plan that is asked for, as data. */
export interface PlanTask {
  /** Under which its entries are looked for. */
  readonly keys: Readonly<Record<Entry, string>>;
  readonly graph: PackedGraph;
  readonly rebuild: Rebuild;
  readonly settings: PlanSettings;
  readonly request: MemoryRequest;
}

/** All that plans depend on beside the graph and the request, as data. */
export interface PlanSettings {
  /** The key of the target's description. */
  readonly target: string;
  readonly rates: CostModel;
  readonly donated: readonly (readonly [param: number, result: number])[];
  readonly persistent: readonly number[];
}

export function settingsOf(source: SourceProgram, target: string, rates: CostModel): PlanSettings {
  const { donated = [], persistent = [] } = source;
  return { target, rates, donated: [...donated], persistent: [...persistent] };
}

/** The plan of a request, and what it was compared with. */
export interface ChosenPlan {
  readonly chosen: Candidate<PlannedProgram>;
  readonly storeAll: Pick<Candidate<PlannedProgram>, "arenaBytes" | "predictedMs">;
}

/** The same from the cache. */
export interface KeptAnswer extends ChosenPlan {
  /** Whether it is the smallest plan there is, and still above the budget. */
  readonly isRefused: boolean;
}

interface KeptPlan {
  readonly graph: PackedGraph;
  readonly offsets: readonly number[];
  readonly placer: string;
  /** Bytes of every step's workspaces, and of the arena. */
  readonly scratch: readonly (readonly number[])[];
  readonly arenaBytes: number;
  readonly strategy: string;
  /** Null where it is this plan. */
  readonly storeAll: ChosenPlan["storeAll"] | null;
}

/** Changes when what is kept is read differently. */
const FORMAT = 3;

const scratchOf = ({ program }: PlannedProgram["plan"]): KeptPlan["scratch"] =>
  program.steps.map(({ scratch }) => scratch);

/** The kept plans of one program. */
export class PlanCache {
  readonly #store: PlanStore;
  readonly #graph: Graph;
  readonly #settings: PlanSettings;
  #program: string | undefined;

  private constructor(store: PlanStore, graph: Graph, settings: PlanSettings) {
    this.#store = store;
    this.#graph = graph;
    this.#settings = settings;
  }

  /** Null where nothing is kept. */
  static of(store: PlanStore | null, graph: Graph, settings: PlanSettings): PlanCache | null {
    return store && isPackable(graph, store.ops) ? new PlanCache(store, graph, settings) : null;
  }

  #key(what: Entry, request: unknown): string {
    this.#program ??= this.#programText();
    return `${what} ${JSON.stringify(request)} ${this.#program}`;
  }

  #programText(): string {
    const text = `${JSON.stringify([FORMAT, this.#store.planner, this.#settings])} ${graphKey(this.#graph)}`;
    return this.#store.digest?.(text) ?? text;
  }

  /** Under which the plan of a request is kept. */
  keyOf(request: unknown): string {
    return this.#key("plan", request);
  }

  /** What was kept for a request: a plan within the budget, or where it was refused, the smallest, which is above it. */
  answer(request: unknown, tools: PlanTools, budgetBytes = Number.POSITIVE_INFINITY): KeptAnswer | null {
    const plan = this.#read("plan", request, tools);
    if (plan && plan.chosen.arenaBytes <= budgetBytes) return { ...plan, isRefused: false };
    const smallest = this.#read("refused", request, tools);
    return smallest && smallest.chosen.arenaBytes > budgetBytes ? { ...smallest, isRefused: true } : null;
  }

  #read(what: Entry, request: unknown, tools: PlanTools): ChosenPlan | null {
    const text = this.#store.read(this.#key(what, request));
    if (text === null) return null;
    try {
      return this.#restored(JSON.parse(text) as KeptPlan, tools);
    } catch {
      // not a plan of this program: it is planned again
      return null;
    }
  }

  #restored(kept: KeptPlan, tools: PlanTools): ChosenPlan | null {
    const { offsets, placer, strategy } = kept;
    if (typeof placer !== "string" || typeof strategy !== "string") return null;
    const graph = unpackGraph(kept.graph, this.#store.ops);
    if (!sameTypes(graph.params, this.#graph.params) || !sameTypes(graph.results, this.#graph.results)) return null;
    if (violations(graph).length > 0) return null;
    const result = tools.assembler.remake(graph, { offsets, strategy: placer });
    const { plan, program } = result;
    if (JSON.stringify(scratchOf(plan)) !== JSON.stringify(kept.scratch) || plan.height !== kept.arenaBytes)
      return null;
    if (validate(program, plan).length > 0) return null;
    const chosen = candidateOf(result, strategy, tools);
    const storeAll = kept.storeAll ?? chosen;
    return isFigures(storeAll) ? { chosen, storeAll } : null;
  }

  /** Whether plans can be made by another process. */
  get hasPlanProcess(): boolean {
    return this.#store.planInProcess !== undefined;
  }

  /** Has a plan made by another process; it is then in the store, unless something went wrong. */
  planInProcess(rebuild: Rebuild, request: MemoryRequest, asked: unknown): void {
    const key = (what: Entry): string => this.#key(what, asked);
    const keys = { plan: key("plan"), refused: key("refused"), least: key("least") };
    this.#store.planInProcess?.({ keys, graph: packGraph(this.#graph), rebuild, settings: this.#settings, request });
  }

  wants(ms: number): boolean {
    return ms >= this.#store.leastMs;
  }

  keepPlan(what: "plan" | "refused", request: unknown, { chosen, storeAll }: ChosenPlan): void {
    const { plan, graph } = chosen.result;
    // passes make nodes of operations that the traced graph has not
    if (!isPackable(graph, this.#store.ops)) return;
    const isChosen = storeAll === chosen;
    const kept: KeptPlan = {
      graph: packGraph(graph),
      offsets: plan.offsets,
      placer: plan.strategy,
      scratch: scratchOf(plan),
      arenaBytes: plan.height,
      strategy: chosen.strategy,
      storeAll: isChosen ? null : { arenaBytes: storeAll.arenaBytes, predictedMs: storeAll.predictedMs },
    };
    this.#store.write(this.#key(what, request), JSON.stringify(kept));
  }

  /** The smallest number of bytes that was known for a request, if it is one and no larger than `most`. */
  least(request: unknown, most: number): number | null {
    const text = this.#store.read(this.#key("least", request));
    const bytes = text === null ? Number.NaN : Number(text);
    return isBytes(bytes) && bytes <= most ? bytes : null;
  }

  keepLeast(request: unknown, bytes: number): void {
    this.#store.write(this.#key("least", request), String(bytes));
  }
}

const isBytes = (n: unknown): n is number => Number.isSafeInteger(n) && (n as number) >= 0;

const isFigures = ({ arenaBytes, predictedMs }: ChosenPlan["storeAll"]): boolean =>
  isBytes(arenaBytes) && Number.isFinite(predictedMs) && predictedMs >= 0;

function sameTypes(a: readonly Value[], b: readonly Value[]): boolean {
  return a.length === b.length && a.every(({ type }, i) => b[i] !== undefined && sameType(type, b[i].type));
}
