/**
 * @file Where a schedule keeps what waits: for every slot and device the rows of its stores that are written and read. What waits from
 * slot a to slot b has a row of its own in between, and each store has as many rows as any device needs at a time:
 *
 *   x        from when a stage's operand arrives to its forward pass
 *   dy       from when the cotangent of its result arrives to its backward pass
 *   kept     from the forward to the backward pass
 *   late     from the forward pass to that of the weights
 *   between  from the backward pass to that of the weights
 *
 * Row `count` of `x` and `dy` takes what is not used.
 */
import { at, invariant } from "../../base/invariant.ts";
import type { PipelineAction, PipelineSchedule } from "./schedule.ts";

/** What a device is told of a slot, in this order. */
export const COLUMNS = ["what", "chunk", "microbatch", "xIn", "dyIn", "x", "dy", "kept", "late", "between"] as const;
export type Column = (typeof COLUMNS)[number];

/** Where the table has a column of a row: the row of device i in slot t is t·p + i. */
export const columnOf = (row: number, column: Column): number => row * COLUMNS.length + COLUMNS.indexOf(column);

/** `what` of a slot: 0 is nothing. */
export const CODES: Readonly<Record<PipelineAction["what"], number>> = { forward: 1, backward: 2, weights: 3 };

const STORES = ["x", "dy", "kept", "late", "between"] as const;
export type Store = (typeof STORES)[number];

type Pairs = readonly (readonly [from: number, to: number])[];

export interface PipelineRows {
  /** [slots, devices, columns], slots a multiple of the period. */
  readonly table: Int32Array;
  readonly slots: number;
  /** Slots after which the same devices send. */
  readonly period: number;
  /** Rows of each store. */
  readonly counts: Readonly<Record<Store, number>>;
  /** By slot of a period: who sends results on, and who sends cotangents back. */
  readonly forward: readonly Pairs[];
  readonly backward: readonly Pairs[];
}

/** An interval of slots, both ends included. */
interface Waiting {
  readonly key: string;
  readonly from: number;
  readonly to: number;
}

/** Rows for what waits: as many as wait at a time. */
function rowsOf(all: readonly Waiting[]): ReadonlyMap<string, number> {
  const free: number[] = [];
  const rows = new Map<string, number>();
  for (const one of [...all].sort((a, b) => a.from - b.from || a.to - b.to)) {
    const found = free.findIndex((end) => end < one.from);
    const row = found < 0 ? free.length : found;
    free[row] = one.to;
    rows.set(one.key, row);
  }
  return rows;
}

const keyOf = ({ microbatch, chunk }: PipelineAction): string => `${microbatch} ${chunk}`;

class Layout {
  readonly #schedule: PipelineSchedule;
  readonly #when = new Map<string, number>();

  constructor(schedule: PipelineSchedule) {
    this.#schedule = schedule;
    for (const [device, own] of schedule.slots.entries()) {
      for (const [t, one] of own.entries()) if (one) this.#when.set(`${one.what} ${keyOf(one)} ${device}`, t);
    }
  }

  /** When it is done; the backward pass has that of weights in it where they are not apart. */
  #at(what: PipelineAction["what"], of: PipelineAction, device: number): number {
    const t = this.#when.get(`${what} ${keyOf(of)} ${device}`);
    invariant(t !== undefined, () => `${what} of ${keyOf(of)} on ${device} is in no slot`);
    return t;
  }

  /** Who has the next stage of the model, or the one before; null at its ends. */
  neighbour(
    { chunk }: PipelineAction,
    device: number,
    by: 1 | -1,
  ): { readonly device: number; readonly chunk: number } | null {
    const { stages, chunks } = this.#schedule;
    const stage = chunk * stages + device + by;
    if (stage < 0 || stage >= stages * chunks) return null;
    return { device: stage % stages, chunk: Math.floor(stage / stages) };
  }

  /** When something is there that a neighbour sends, or that the stage at the end of the model makes itself. */
  #arrival(own: PipelineAction, device: number, what: "forward" | "backward"): number {
    const from = this.neighbour(own, device, what === "forward" ? -1 : 1);
    return from ? this.#at(what, { ...own, chunk: from.chunk }, from.device) + 1 : this.#at("forward", own, device);
  }

  waiting(store: Store, device: number): readonly Waiting[] {
    const own = (this.#schedule.slots[device] ?? []).filter((one) => one !== null);
    const isApart = own.some(({ what }) => what === "weights");
    return own.flatMap((one): Waiting[] => {
      if (one.what !== "forward") return [];
      const key = keyOf(one);
      const forward = this.#at("forward", one, device);
      const backward = this.#at("backward", one, device);
      if (store === "x") return [{ key, from: this.#arrival(one, device, "forward"), to: forward }];
      if (store === "dy") return [{ key, from: this.#arrival(one, device, "backward"), to: backward }];
      if (store === "kept") return [{ key, from: forward, to: backward }];
      if (!isApart) return [];
      return [{ key, from: store === "late" ? forward : backward, to: this.#at("weights", one, device) }];
    });
  }
}

/** Who sends what in the slots of a period: those that ever do. */
function pairsOf(
  schedule: PipelineSchedule,
  layout: Layout,
  period: number,
  what: "forward" | "backward",
): readonly Pairs[] {
  return Array.from({ length: period }, (_, j) => {
    const found = new Map<number, readonly [number, number]>();
    for (const [device, own] of schedule.slots.entries()) {
      for (const [t, one] of own.entries()) {
        if (t % period !== j || one?.what !== what) continue;
        const to = layout.neighbour(one, device, what === "forward" ? 1 : -1);
        if (to) found.set(device, [device, to.device]);
      }
    }
    return [...found.values()];
  });
}

/** The rows of every slot and device. */
export function pipelineRows(schedule: PipelineSchedule): PipelineRows {
  const { slots, stages, name } = schedule;
  const layout = new Layout(schedule);
  const rows = STORES.map((store) => slots.map((_, device) => rowsOf(layout.waiting(store, device))));
  const counts = Object.fromEntries(
    STORES.map((store, s) => [store, Math.max(0, ...(rows[s] ?? []).map((own) => Math.max(-1, ...own.values()) + 1))]),
  ) as Record<Store, number>;
  const period = name === "1f1b" ? 2 : 1;
  const length = Math.ceil(Math.max(...slots.map((own) => own.length)) / period) * period;
  const table = new Int32Array(length * stages * COLUMNS.length);
  const put = (t: number, device: number, column: Column, value: number): void => {
    table[columnOf(t * stages + device, column)] = value;
  };
  for (let t = 0; t < length; t++) {
    for (const device of slots.keys()) {
      put(t, device, "xIn", counts.x);
      put(t, device, "dyIn", counts.dy);
    }
  }
  for (const [device, own] of slots.entries()) {
    for (const [t, one] of own.entries()) {
      if (!one) continue;
      put(t, device, "what", CODES[one.what]);
      put(t, device, "chunk", one.chunk);
      put(t, device, "microbatch", one.microbatch);
      for (const [s, store] of STORES.entries()) put(t, device, store, rows[s]?.[device]?.get(keyOf(one)) ?? 0);
      if (one.what === "weights") continue;
      const to = layout.neighbour(one, device, one.what === "forward" ? 1 : -1);
      if (!to) continue;
      const column = one.what === "forward" ? "xIn" : "dyIn";
      const store = STORES.indexOf(one.what === "forward" ? "x" : "dy");
      put(t + 1, to.device, column, at(at(rows, store), to.device).get(keyOf({ ...one, chunk: to.chunk })) ?? 0);
    }
  }
  const [forward, backward] = (["forward", "backward"] as const).map((what) => pairsOf(schedule, layout, period, what));
  return { table, slots: length, period, counts, forward: forward ?? [], backward: backward ?? [] };
}
