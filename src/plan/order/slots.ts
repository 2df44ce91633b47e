/**
 * @file Slots: storage of parameters that exists for the whole run. What is written into one costs nothing, so it
 * matters which results are written into theirs, and that depends on the order:
 *
 *     w  ████████████████          the slot's content until its last reader
 *     r                  █████     its replacement. Written while w is needed, r is elsewhere and is copied at the end
 *
 * If program order has r in the slot, the writer of r waits for the readers of w in every order (`settle`), so no order
 * needs a copy that program order does not need. Otherwise another order may still get r there (`movable`).
 *
 * Other values may use a slot temporarily: t, written over w by its last reader, must be dead when r is written.
 * `passing` lists where that holds in every order; elsewhere t is assumed to need separate storage.
 */
import { at } from "../../base/invariant.ts";
import type { Storages } from "../liveness.ts";
import { needsSlot, type Program, replacementOf } from "../program.ts";
import { fromOf, lengthOf, listOf, makeLists } from "./lists.ts";
import type { Model } from "./model.ts";
import { Reach } from "./reach.ts";

/** The part of the model that is independent of dependencies. */
type FixedModel = Omit<Model, "predecessors" | "successors" | "settled" | "movable" | "passing" | "exact">;
type OrderedModel = Omit<Model, "movable" | "passing" | "exact">;

export function claimsOf(
  program: Program,
  storages: Storages,
): Pick<Model, "kept" | "isSlot" | "replacement" | "claims"> {
  const s = storages.all.length;
  const [kept, isSlot] = [new Uint8Array(s), new Uint8Array(s)];
  const replacement = new Int32Array(s).fill(-1);
  for (const value of program.results) kept[storages.of(value).id] = 1;
  program.params.forEach((param, id) => {
    if (program.persistent.has(param) && !program.donated.has(param)) kept[id] = 1;
    if (needsSlot(program, param)) isSlot[id] = 1;
    const result = replacementOf(program, param);
    if (result && storages.of(result).id !== id) replacement[id] = storages.of(result).id;
  });
  const claims = makeLists(s, (add) => {
    replacement.forEach((storage, slot) => {
      if (storage >= 0 && !at(storages.all, storage).isParam) add(storage, slot);
    });
  });
  return { kept, isSlot, replacement, claims };
}

/** Replacements that are in their slots in program order, and pairs [writer, reader of the slot] that keep them there. */
export function settledReplacements(model: FixedModel): {
  readonly settled: Uint8Array;
  readonly waits: readonly (readonly [number, number])[];
} {
  const { storages, claims, writer, readers, kept } = model;
  const settled = new Uint8Array(storages);
  const waits: (readonly [number, number])[] = [];
  for (let id = 0; id < storages; id++) {
    for (const slot of listOf(claims, id)) {
      const step = at(writer, id);
      const all = [...listOf(readers, slot)];
      const fits =
        all.length > 0 && all.every((reader) => reader < step || (reader === step && mayTake(model, id, slot)));
      if (kept[slot] || !fits) continue;
      settled[id] = 1;
      for (const reader of all) if (reader !== step) waits.push([step, reader]);
      break;
    }
  }
  return { settled, waits };
}

/** Whether the writer of `written` may write it over `read`. */
function mayTake({ over, writer }: Pick<Model, "over" | "writer">, written: number, read: number): boolean {
  const step = at(writer, written);
  for (let k = fromOf(over, step); k < fromOf(over, step + 1); k += 2) {
    if (over.items[k] === written && over.items[k + 1] === read) return true;
  }
  return false;
}

/** Finds the values that may be written over slots, and over other values in slots. */
export function passagesOf(model: OrderedModel): Pick<Model, "passing" | "movable" | "exact"> {
  const { storages, over, isSlot, kept, replacement, claims, settled } = model;
  const passing = new Set<number>();
  const movable = new Uint8Array(storages);
  for (let id = 0; id < storages; id++) if (lengthOf(claims, id) > 0 && !settled[id]) movable[id] = 1;
  const slotsReached = new Map<number, Set<number>>();
  for (let id = 0; id < storages; id++) if (isSlot[id] && !kept[id]) slotsReached.set(id, new Set([id]));
  const reach = new Reach(model.successors);
  let certain = isCertain(model);
  // Steps are in program order here, so a storage's own slots are known before anything is written over it.
  for (let i = 0; i < model.steps; i++) {
    for (let k = fromOf(over, i); k < fromOf(over, i + 1); k += 2) {
      const [written, read] = [at(over.items, k), at(over.items, k + 1)];
      for (const slot of slotsReached.get(read) ?? []) {
        const result = at(replacement, slot);
        if (result === written || settled[written]) continue;
        movable[written] = 1;
        slotsReached.set(written, (slotsReached.get(written) ?? new Set()).add(slot));
        if (result < 0) continue;
        if (isGoneBefore(model, reach, written, result)) passing.add(written * storages + slot);
        else certain = false;
      }
    }
  }
  return { passing, movable, exact: certain };
}

/** Whether `storage` is dead in every order when `result` is written, or may be written over then. */
function isGoneBefore(model: OrderedModel, reach: Reach, storage: number, result: number): boolean {
  const { kept, writer, readers } = model;
  const end = at(writer, result);
  if (kept[storage] || end < 0 || at(writer, storage) === end) return false;
  return listOf(readers, storage).every((reader) =>
    reader === end ? mayTake(model, result, storage) : reach.meets(reader, [end]) === "yes",
  );
}

/**
 * Whether no order places a whole chain of values in the slot it ends in (then the writer of the replacement reads the
 * parameter, so the slot is not free before), and no order needs a temporary for final copies.
 */
function isCertain({ steps, over, claims, reads, replacement, kept, writer }: OrderedModel): boolean {
  for (let i = 0; i < steps; i++) {
    for (let k = fromOf(over, i); k < fromOf(over, i + 1); k += 2) {
      const [written, read] = [at(over.items, k), at(over.items, k + 1)];
      if (listOf(claims, written).some((slot) => slot !== read && !listOf(reads, i).includes(slot))) return false;
    }
  }
  return replacement.every((storage, slot) => storage < 0 || (!kept[slot] && at(writer, storage) >= 0));
}
