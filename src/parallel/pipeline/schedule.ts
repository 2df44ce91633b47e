/**
 * @file Schedules of pipelines: in which slot of time each stage of a model does what, for which microbatch. All have the same actions in
 * other orders (Y. Huang et al., GPipe, 2019; D. Narayanan et al., PipeDream-Flush, Memory-efficient pipeline-parallel training, 2021, and
 * interleaved, Megatron-LM, 2021; P. Qi et al., Zero bubble pipeline parallelism, 2023). Three stages, four microbatches, F forward and B backward:
 *
 *   gpipe   F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3        1f1b   F0 .  F1 .  F2 B0 F3 B1 .  B2 .  B3
 *           .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 .                .  F0 .  F1 B0 F2 B1 F3 B2 .  B3 .
 *           .  .  F0 F1 F2 F3 B0 B1 B2 B3 .  .                .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .
 *
 * 2(m + p - 1) slots, 2(p - 1) of them idle, in both; of m microbatches the first keeps m for the backward pass, the second p - i on
 * stage i. What arrives in a slot was sent in one before it.
 */
import { counted } from "../../base/errors.ts";
import { invariant } from "../../base/invariant.ts";
import { fail } from "../../trace/arguments.ts";

/** Names of schedules. */
export const SCHEDULES = ["gpipe", "1f1b", "interleaved", "zero-bubble"] as const;

/** In which order stages work on microbatches. */
export type PipelineScheduleName = (typeof SCHEDULES)[number];

/** What a stage does in a slot. */
export interface PipelineAction {
  /** `weights`: the part of the backward pass that no other stage waits for, where it is apart. */
  readonly what: "forward" | "backward" | "weights";
  readonly microbatch: number;
  /** Which of the device's pieces of the model. */
  readonly chunk: number;
}

/** A schedule, slot by slot. */
export interface PipelineSchedule {
  readonly name: PipelineScheduleName;
  readonly stages: number;
  readonly microbatches: number;
  /** Pieces of the model on each device: piece c of device i is stage c·p + i of the model. */
  readonly chunks: number;
  /** For each device what it does in each slot; null where it waits. */
  readonly slots: readonly (readonly (PipelineAction | null)[])[];
  /** For each device the most microbatches, times pieces, that are between their forward pass and the end of their backward pass. */
  readonly inFlight: readonly number[];
  /** The share of slots in which a device waits. */
  readonly bubble: number;
}

/** What a schedule is made for. */
export interface PipelineShape {
  readonly stages: number;
  readonly microbatches: number;
  /** Default: 1; at least 2 with `"interleaved"`. */
  readonly chunks?: number;
}

type Slots = readonly (readonly (PipelineAction | null)[])[];
type What = PipelineAction["what"];

const action = (what: What, microbatch: number, chunk = 0): PipelineAction => ({ what, microbatch, chunk });
const keyOf = ({ what, microbatch, chunk }: PipelineAction, device: number): string =>
  `${what} ${microbatch} ${chunk} ${device}`;
const range = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);

/** What must be done in a slot before; null: nothing. */
function needs(own: PipelineAction, device: number, { stages, chunks }: Size): string | null {
  const { what, chunk } = own;
  const last = stages - 1;
  if (what === "weights") return keyOf({ ...own, what: "backward" }, device);
  if (what === "forward") {
    if (device > 0) return keyOf(own, device - 1);
    return chunk > 0 ? keyOf({ ...own, chunk: chunk - 1 }, last) : null;
  }
  if (device < last) return keyOf(own, device + 1);
  return chunk < chunks - 1 ? keyOf({ ...own, chunk: chunk + 1 }, 0) : keyOf({ ...own, what: "forward" }, device);
}

interface Size {
  readonly stages: number;
  readonly microbatches: number;
  readonly chunks: number;
}

/** What a device does next, of what could be done now. */
type Choice = (device: number, canDo: (one: PipelineAction) => boolean) => PipelineAction | null;

/** Slot after slot each device does what it chooses, until all is done. */
function slotBySlot(size: Size, total: number, choose: Choice): Slots {
  const slots = range(size.stages).map((): (PipelineAction | null)[] => []);
  const done = new Set<string>();
  for (let t = 0; done.size < total; t++) {
    invariant(t <= 4 * total, () => "a pipeline whose stages wait for each other");
    const chosen = slots.map((_, device) =>
      choose(device, (one) => {
        const before = needs(one, device, size);
        return !done.has(keyOf(one, device)) && (before === null || done.has(before));
      }),
    );
    for (const [device, own] of chosen.entries()) {
      slots[device]?.push(own);
      if (own) done.add(keyOf(own, device));
    }
  }
  return slots;
}

/** Each device does what is in its list, in that order, as soon as it can. */
function inOrder(size: Size, orders: readonly (readonly PipelineAction[])[]): Slots {
  const next = orders.map(() => 0);
  const total = orders.reduce((sum, own) => sum + own.length, 0);
  return slotBySlot(size, total, (device, canDo) => {
    const own = orders[device]?.[next[device] ?? 0];
    if (!own || !canDo(own)) return null;
    next[device] = (next[device] ?? 0) + 1;
    return own;
  });
}

function gpipe(size: Size): Slots {
  const order = (["forward", "backward"] as const).flatMap((what) =>
    range(size.microbatches).map((k) => action(what, k)),
  );
  return inOrder(
    size,
    range(size.stages).map(() => order),
  );
}

/** Neighbours alternate: where one goes forward the other goes backward. */
function oneForwardOneBackward({ stages, microbatches }: Size): Slots {
  const length = 2 * (microbatches + stages - 1);
  return range(stages).map((i) => {
    const own = new Array<PipelineAction | null>(length).fill(null);
    for (const k of range(microbatches)) {
      own[i + 2 * k] = action("forward", k);
      own[2 * stages - 1 - i + 2 * k] = action("backward", k);
    }
    return own;
  });
}

/** Microbatches go through the first piece of all devices p at a time, then through the next piece. */
function interleaved(size: Size): Slots {
  const { stages, microbatches, chunks } = size;
  const total = microbatches * chunks;
  const nth = (what: What, n: number): PipelineAction => {
    const within = n % (stages * chunks);
    const chunk = Math.floor(within / stages);
    const microbatch = Math.floor(n / (stages * chunks)) * stages + (within % stages);
    return action(what, microbatch, what === "forward" ? chunk : chunks - 1 - chunk);
  };
  const orderOf = (device: number): readonly PipelineAction[] => {
    const ahead = Math.min(total, 2 * (stages - device - 1) + (chunks - 1) * stages);
    const order = range(ahead).map((n) => nth("forward", n));
    for (let n = 0; n < total; n++) {
      if (ahead + n < total) order.push(nth("forward", ahead + n));
      order.push(nth("backward", n));
    }
    return order;
  };
  return inOrder(size, range(stages).map(orderOf));
}

/** As 1F1B, but weights of stage i are i microbatches late: they fill the slots in which others wait, and no more is kept than p. */
function zeroBubble(size: Size): Slots {
  const { stages, microbatches } = size;
  const orderOf = (device: number): readonly PipelineAction[] => {
    const ahead = Math.min(microbatches, stages - device);
    const order = range(ahead).map((k) => action("forward", k));
    for (const k of range(microbatches + device)) {
      if (k < microbatches) order.push(action("backward", k));
      if (k >= device) order.push(action("weights", k - device));
      if (ahead + k < microbatches) order.push(action("forward", ahead + k));
    }
    return order;
  };
  return inOrder(size, range(stages).map(orderOf));
}

const MAKERS: Readonly<Record<PipelineScheduleName, (size: Size) => Slots>> = {
  gpipe,
  "1f1b": oneForwardOneBackward,
  interleaved,
  "zero-bubble": zeroBubble,
};

/** From the forward pass to the last reader of what it keeps. */
function inFlightOf(own: readonly (PipelineAction | null)[]): number {
  const hasWeights = own.some((each) => each?.what === "weights");
  let [now, most] = [0, 0];
  for (const each of own) {
    if (each?.what === "forward") now++;
    most = Math.max(most, now);
    if (each?.what === (hasWeights ? "weights" : "backward")) now--;
  }
  return most;
}

function requireSize(name: PipelineScheduleName, { stages, microbatches, chunks }: Size): void {
  if (!SCHEDULES.includes(name))
    fail("InvalidArgument", `pipeline: the schedule is ${String(name)}`, `give one of ${SCHEDULES.join(", ")}`);
  for (const [what, n] of Object.entries({ stages, microbatches, chunks })) {
    if (Number.isInteger(n) && n >= 1) continue;
    fail("InvalidArgument", `pipeline: ${what} is ${n}`, "give a whole number of at least 1");
  }
  if ((name === "interleaved") !== chunks > 1) {
    const help = 'give at least 2 with schedule: "interleaved", and none with others';
    fail("InvalidArgument", `pipeline: ${counted(chunks, "chunk")} with ${name}`, help);
  }
  if (name === "interleaved" && microbatches % stages !== 0) {
    const summary = `pipeline: ${counted(microbatches, "microbatch")} on ${counted(stages, "interleaved stage")}`;
    fail("InvalidArgument", summary, `give a multiple of ${stages}`);
  }
}

/**
 * Which stage of a pipeline does what in which slot, how many microbatches are in flight on each, and how much of the time they wait.
 *
 * @example
 * import { pipelineSchedule } from "tidemark/parallel";
 *
 * const { inFlight, bubble } = pipelineSchedule("1f1b", { stages: 4, microbatches: 12 });
 * console.log(inFlight, bubble); // → [4, 3, 2, 1] 0.2
 */
export function pipelineSchedule(
  name: PipelineScheduleName,
  { stages, microbatches, chunks = 1 }: PipelineShape,
): PipelineSchedule {
  const size = { stages, microbatches, chunks };
  requireSize(name, size);
  const slots = MAKERS[name](size);
  const length = Math.max(...slots.map((own) => own.length));
  const idle = slots.reduce((sum, own) => sum + own.filter((each) => each === null).length, 0);
  return { ...{ name, ...size, slots }, inFlight: slots.map(inFlightOf), bubble: idle / (length * stages) };
}
