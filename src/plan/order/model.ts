/**
 * @file What every order of a program's steps has in common, as flat arrays: who waits for whom, which storages a step
 * reads and writes, what may be written over what. Every search for an order works on this and counts bytes with
 * memory.ts; nothing here depends on the order that the program has.
 *
 * Storages, not values: renamed values are one (liveness.ts). Three facts of alias.ts are kept per storage:
 *
 *     kept      its content must survive the run: results, persistent parameters that are not donated
 *     slot      a parameter's storage that exists for the whole run, whatever is in it
 *     claims    the slots that a result is to end in, because it replaces their parameters
 *
 * A value on its way through a slot (p ─→ t ─→ r, all in p's storage) must be dead when r is written. That depends on the
 * order in general; `passing` lists the pairs (t, slot) for which every order has it so.
 */
import { at } from "../../base/invariant.ts";
import type { Value } from "../../ir/graph.ts";
import { type Storage, type Storages, storagesOf } from "../liveness.ts";
import { alignUp } from "../problem.ts";
import { needsSlot, type Program, replacementOf } from "../program.ts";
import { fromOf, inverse, type Lists, lengthOf, listOf, makeLists } from "./lists.ts";
import { Reach } from "./reach.ts";

export interface Model {
  readonly steps: number;
  readonly storages: number;
  /** Step → steps, each once. */
  readonly predecessors: Lists;
  readonly successors: Lists;
  /** Step → storages. */
  readonly reads: Lists;
  readonly writes: Lists;
  /** Storage → steps. */
  readonly readers: Lists;
  /** Step → written, read, written, read, …: the first may be written over the second; in the order of preference. */
  readonly over: Lists;
  /** Storage → slots. */
  readonly claims: Lists;
  /** Bytes of each storage and of each step's workspace, rounded up to the alignment. */
  readonly bytes: Float64Array;
  readonly scratch: Float64Array;
  /** Step that writes a storage; -1 for parameters. */
  readonly writer: Int32Array;
  readonly kept: Uint8Array;
  readonly isSlot: Uint8Array;
  /** Slot → storage that is to end in it, or -1. */
  readonly replacement: Int32Array;
  /** `storage * storages + slot`, see above. */
  readonly passing: ReadonlySet<number>;
  /** Storages that are in a slot in some orders and not in others. */
  readonly movable: Uint8Array;
  /** The account of memory.ts is the bound of the assignment, whatever the order. */
  readonly exact: boolean;
}

export function modelOf(program: Program): Model {
  const storages = storagesOf(program);
  const { steps } = program;
  const n = steps.length;
  const s = storages.all.length;
  const idOf = (value: Value): number => storages.of(value).id;
  const reads = makeLists(n, (add) => {
    steps.forEach((step, i) => {
      for (const id of distinct(step.reads, idOf)) add(i, id);
    });
  });
  const writes = makeLists(n, (add) => {
    steps.forEach((step, i) => {
      if (!step.alias) for (const value of step.writes) add(i, idOf(value));
    });
  });
  const writer = new Int32Array(s).fill(-1);
  for (let i = 0; i < n; i++) for (const id of listOf(writes, i)) writer[id] = i;
  const predecessors = predecessorsOf(program);
  const rounded = (bytes: number): number => alignUp(bytes, program.alignment);
  const bare = {
    steps: n,
    storages: s,
    predecessors,
    successors: inverse(predecessors, n),
    reads,
    writes,
    readers: inverse(reads, s),
    over: sharingOf(program, storages),
    bytes: Float64Array.from(storages.all, (storage) => rounded(storage.bytes)),
    scratch: Float64Array.from(steps, (step) => step.scratch.reduce((sum, bytes) => sum + rounded(bytes), 0)),
    writer,
    ...slotsOf(program, storages),
  };
  const passages = passagesOf(bare);
  return { ...bare, ...passages, exact: passages.certain && isCertain(bare) };
}

/** What `modelOf` knows before it looks into passages through slots. */
type Bare = Omit<Model, "passing" | "movable" | "exact">;

/**
 * Whether no order puts a chain of values into a slot that it ends in (then the writer of the replacement reads the
 * parameter, so the slot is not free before), and none has to put a content aside at the end.
 */
function isCertain({ steps, over, claims, reads, replacement, kept, writer }: Bare): boolean {
  for (let i = 0; i < steps; i++) {
    for (let k = fromOf(over, i); k < fromOf(over, i + 1); k += 2) {
      const [written, read] = [at(over.items, k), at(over.items, k + 1)];
      if (listOf(claims, written).some((slot) => slot !== read && !listOf(reads, i).includes(slot))) return false;
    }
  }
  return replacement.every((storage, slot) => storage < 0 || (!kept[slot] && at(writer, storage) >= 0));
}

function distinct(values: readonly Value[], idOf: (value: Value) => number): readonly number[] {
  const ids = values.map(idOf);
  return ids.length < 2 ? ids : ids.filter((id, k) => ids.indexOf(id) === k);
}

/** Definitions before uses. A renaming is a step like any other: its readers wait for it. */
function predecessorsOf(program: Program): Lists {
  const writer = new Map<Value, number>();
  program.steps.forEach((step, i) => {
    for (const value of step.writes) writer.set(value, i);
  });
  const parameter = -1;
  return makeLists(program.steps.length, (add) => {
    program.steps.forEach((step, i) => {
      for (const from of distinct(step.reads, (v) => writer.get(v) ?? parameter)) if (from !== parameter) add(i, from);
    });
  });
}

/** Pairs that may share: every name under which the step reads the storage has to allow it. */
function sharingOf(program: Program, { of }: Storages): Lists {
  return makeLists(program.steps.length, (add) => {
    program.steps.forEach(({ writes, reads, inPlace }, i) => {
      if (inPlace.length === 0) return;
      for (const written of writes) {
        const tried = new Set<Storage>();
        for (const [read, w] of inPlace) {
          const storage = of(read);
          if (w !== written || tried.has(storage)) continue;
          tried.add(storage);
          const allowed = (v: Value) => inPlace.some(([r, x]) => r === v && x === written);
          if (!reads.every((v) => of(v) !== storage || allowed(v))) continue;
          add(i, of(written).id);
          add(i, storage.id);
        }
      }
    });
  });
}

function slotsOf(program: Program, storages: Storages): Pick<Model, "kept" | "isSlot" | "replacement" | "claims"> {
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

/** Follows what may be written over slots, and over what was written there. `certain`: all of it may, in every order. */
function passagesOf(model: Bare): Pick<Model, "passing" | "movable"> & { readonly certain: boolean } {
  const { storages, over, isSlot, kept, replacement, claims } = model;
  const passing = new Set<number>();
  let certain = true;
  const movable = Uint8Array.from({ length: storages }, (_, id) => (lengthOf(claims, id) > 0 ? 1 : 0));
  const slotsReached = new Map<number, Set<number>>();
  for (let id = 0; id < storages; id++) if (isSlot[id] && !kept[id]) slotsReached.set(id, new Set([id]));
  const reach = new Reach(model.successors);
  // Steps are in program order here, so a storage's own slots are known before anything is written over it.
  for (let i = 0; i < model.steps; i++) {
    for (let k = fromOf(over, i); k < fromOf(over, i + 1); k += 2) {
      const [written, read] = [at(over.items, k), at(over.items, k + 1)];
      for (const slot of slotsReached.get(read) ?? []) {
        const result = at(replacement, slot);
        if (result === written) continue;
        movable[written] = 1;
        slotsReached.set(written, (slotsReached.get(written) ?? new Set()).add(slot));
        if (result < 0) continue;
        if (isGoneBefore(model, reach, written, result)) passing.add(written * storages + slot);
        else certain = false;
      }
    }
  }
  return { passing, movable, certain };
}

/** Whether `storage` is dead in every order when `result` is written, or may be written over then. */
function isGoneBefore(model: Bare, reach: Reach, storage: number, result: number): boolean {
  const { kept, writer, readers, over } = model;
  const end = at(writer, result);
  if (kept[storage] || end < 0 || at(writer, storage) === end) return false;
  return listOf(readers, storage).every((reader) => {
    if (reader !== end) return reach.meets(reader, [end]) === "yes";
    for (let k = fromOf(over, end); k < fromOf(over, end + 1); k += 2) {
      if (over.items[k] === result && over.items[k + 1] === storage) return true;
    }
    return false;
  });
}
