/**
 * @file The order-independent facts of a program, as flat arrays: dependencies, storages that a step reads and writes,
 * permitted overwriting. Every order search works on this model and counts bytes with memory.ts; nothing here depends
 * on program order.
 *
 * Storages, not values: renamed values are one (liveness.ts). Three facts of alias.ts are kept per storage:
 *
 *     kept      its content must survive the run: results, persistent parameters that are not donated
 *     slot      a parameter's storage that exists for the whole run, whatever its content
 *     claims    the slots that a result is to end in, because it replaces their parameters
 *
 * slots.ts handles the facts that depend on the order.
 */
import type { Value } from "../../ir/graph.ts";
import { type Storage, type Storages, storagesOf } from "../liveness.ts";
import { alignUp } from "../problem.ts";
import type { Program } from "../program.ts";
import { inverse, type Lists, listOf, makeLists } from "./lists.ts";
import { claimsOf, passagesOf, settledReplacements } from "./slots.ts";

export interface Model {
  readonly steps: number;
  readonly storages: number;
  /** Step → steps that must run before it: producers of its inputs, and steps it waits for because of slots.ts. */
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
  /** Storages that are in a slot in every order, and those that are in a slot in some orders only. */
  readonly settled: Uint8Array;
  readonly movable: Uint8Array;
  /**
   * `storage * storages + slot`: uses the slot temporarily and is dead in every order before the replacement is
   * written.
   */
  readonly passing: ReadonlySet<number>;
  /** The memory model equals the bound of the assignment in every order. */
  readonly exact: boolean;
}

/** `copies`: whether orders that need additional final copies are considered (slots.ts). */
export function modelOf(program: Program, copies: "avoid" | "allow" = "avoid"): Model {
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
  const rounded = (bytes: number): number => alignUp(bytes, program.spaces[0].alignment);
  const fixed = {
    steps: n,
    storages: s,
    reads,
    writes,
    readers: inverse(reads, s),
    over: sharingOf(program, storages),
    bytes: Float64Array.from(storages.all, (storage) => rounded(storage.bytes)),
    scratch: Float64Array.from(steps, (step) => step.scratch.reduce((sum, bytes) => sum + rounded(bytes), 0)),
    writer,
    ...claimsOf(program, storages),
  };
  const { settled, waits } =
    copies === "avoid" ? settledReplacements(fixed) : { settled: new Uint8Array(s), waits: [] };
  const predecessors = predecessorsOf(program, waits);
  const ordered = { ...fixed, settled, predecessors, successors: inverse(predecessors, n) };
  return { ...ordered, ...passagesOf(ordered) };
}

function distinct(values: readonly Value[], idOf: (value: Value) => number): readonly number[] {
  const ids: number[] = [];
  for (const value of values) {
    const id = idOf(value);
    if (!ids.includes(id)) ids.push(id);
  }
  return ids;
}

/** Definitions before uses, and additional waits. A renaming is a step: its readers wait for it. */
function predecessorsOf(program: Program, waits: readonly (readonly [number, number])[]): Lists {
  const writer = new Map<Value, number>();
  program.steps.forEach((step, i) => {
    for (const value of step.writes) writer.set(value, i);
  });
  const more = new Map<number, number[]>();
  for (const [step, before] of waits) {
    const list = more.get(step);
    if (list) list.push(before);
    else more.set(step, [before]);
  }
  const parameter = -1;
  const writerOf = (value: Value): number => writer.get(value) ?? parameter;
  return makeLists(program.steps.length, (add) => {
    program.steps.forEach((step, i) => {
      const before = distinct(step.reads, writerOf);
      const others = more.get(i);
      for (const from of others ? new Set([...before, ...others]) : before) if (from !== parameter) add(i, from);
    });
  });
}

/** Pairs that may share: every name under which the step reads the storage has to allow it. */
function sharingOf(program: Program, { of }: Storages): Lists {
  return makeLists(program.steps.length, (add) => {
    program.steps.forEach(({ writes, reads, inPlace }, i) => {
      if (inPlace.length === 0) return;
      const stored = reads.map(of);
      for (const written of writes) {
        const allowed = (v: Value): boolean => inPlace.some(([r, x]) => r === v && x === written);
        const tried: Storage[] = [];
        for (const [read, w] of inPlace) {
          const storage = of(read);
          if (w !== written || tried.includes(storage)) continue;
          tried.push(storage);
          if (!reads.every((v, k) => stored[k] !== storage || allowed(v))) continue;
          add(i, of(written).id);
          add(i, storage.id);
        }
      }
    });
  });
}
