/**
 * @file Persistent values whose home is another memory. A parameter that stays between runs need not stay in the arena: it is
 * fetched before it is used, freed after a use where the room is needed, and what replaces it is stored in its place at home.
 *
 *     steps     │ F │ F │ F │ B │ B │ U │ … │
 *     w         ──visit──       ──visit──╮        in the arena only while steps use it
 *     w.new                            ──┴─ store  written over w; leaves as soon as it is there
 *     file      w w w w w w w w w w w w w w.new    the same bytes for both: the next run begins with what this one stored
 *
 * A use that only reads leaves the value at home as it is, so that freeing it costs nothing, and the next visit one copy. Which
 * values have their home elsewhere is the caller's choice, and when they come and go that of schedule-moves.ts.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { type Storage, type Storages, storagesOf } from "./liveness.ts";
import type { Lifespan, Plan, Step } from "./problem.ts";
import { type Program, replacementOf, returnStepOf } from "./program.ts";
import { usesOf } from "./uses.ts";

/** A persistent parameter that can have its home elsewhere. */
export interface Homeable {
  readonly param: Value;
  readonly bytes: number;
  /** Steps that use it, in order. */
  readonly uses: readonly Step[];
  /** What replaces it, the step that makes that and the last that uses it; null where the parameter stays as it is. */
  readonly replacement: { readonly value: Value; readonly written: Step; readonly last: Step } | null;
  /** When other values are in its storage. */
  readonly others: readonly Lifespan[];
}

/** Steps for which a value is in the arena. */
export interface Visit {
  /** Before which steps its copy starts and is waited for. */
  readonly start: Step;
  readonly wait: Step;
  /** The last step that uses it. */
  readonly last: Step;
}

/** A parameter whose home is elsewhere, with its visits. */
export interface Home {
  readonly param: Value;
  readonly visits: readonly Visit[];
  /** Before which steps the copy of what replaces it starts and is waited for; null where it stays as it is. */
  readonly store: { readonly start: Step; readonly wait: Step } | null;
}

/** Persistent parameters of at least so many bytes that can have their home elsewhere, those that need the fewest copies first. */
export function homeableValues(plan: Plan, leastBytes: number): readonly Homeable[] {
  const { program } = plan;
  const storages = storagesOf(program);
  const persistent = program.params.filter((param) => program.persistent.has(param) && !program.empty?.has(param));
  const uses = usesOf({ ...program, results: [] }, storages, new Set(storages.all));
  const copied = new Set(plan.copies.flatMap(({ param }) => (param ? [param] : [])));
  const homeable = persistent.flatMap((param): readonly Homeable[] => {
    const storage = storages.of(param);
    if (storage.bytes < leastBytes || copied.has(param)) return [];
    const replacement = replacementFor(program, param, { storages, uses });
    if (replacement === undefined) return [];
    const mine = new Set([storage, ...(replacement ? [storages.of(replacement.value)] : [])]);
    const buffer = at(plan.problem.buffers, plan.bufferOf.get(param) ?? -1);
    const others = new Set(buffer.values.map((value) => storages.of(value)).filter((other) => !mine.has(other)));
    const own = (uses.get(storage) ?? []).filter((step) => step >= 0);
    // there would be no copies, and so no file
    if (own.length === 0 && !replacement) return [];
    return [
      { param, bytes: storage.bytes, uses: own, replacement, others: [...others].map(({ lifespan }) => lifespan) },
    ];
  });
  const copies = ({ uses: steps, replacement }: Homeable): number => visitsOf(steps).length + (replacement ? 1 : 0);
  const end = returnStepOf(program);
  const ready = ({ replacement }: Homeable): Step => replacement?.written ?? end;
  return homeable.sort((a, b) => copies(a) - copies(b) || ready(a) - ready(b));
}

interface Uses {
  readonly storages: Storages;
  readonly uses: ReadonlyMap<Storage, readonly Step[]>;
}

/** Undefined where the parameter has to stay: it is a result itself, or what replaces it is no value of its own. */
function replacementFor(program: Program, param: Value, { storages, uses }: Uses): Homeable["replacement"] | undefined {
  const storage = storages.of(param);
  const index = program.donated.get(param) ?? -1;
  if (program.donated.has(param) && index < 0) return undefined;
  // one value for several parameters
  if (index >= 0 && [...program.donated].some(([other, own]) => own === index && other !== param)) return undefined;
  const isReturned = (own: Storage): boolean =>
    program.results.some((value, i) => i !== index && storages.of(value) === own);
  const value = replacementOf(program, param);
  if (isReturned(storage)) return undefined;
  if (!value || value === param) return null;
  const other = storages.of(value);
  if (other === storage || other.isParam) return undefined;
  const written = program.steps.findIndex(({ writes }) => writes.includes(value));
  const last = isReturned(other) ? returnStepOf(program) : (uses.get(other)?.at(-1) ?? written);
  return { value, written, last: Math.max(written, last) };
}

/** Groups of uses without a step in between. */
export function visitsOf(uses: readonly Step[]): readonly (readonly Step[])[] {
  const groups: Step[][] = [];
  for (const use of uses) {
    const group = groups.at(-1);
    if (group && use - at(group, group.length - 1) < 2) group.push(use);
    else groups.push([use]);
  }
  return groups;
}
