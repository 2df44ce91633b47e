/**
 * @file Memory snapshots of PyTorch (`torch.cuda.memory._dump_snapshot`, a pickle file) as pictures, one per device. A
 * snapshot is a list of events and the state of the allocator at its end:
 *
 *   device_traces[d]   alloc, free_requested, free_completed, segment_alloc, … each with address, size and Python stack
 *   segments           address, total_size, blocks with size and state
 *
 * PyTorch 1 has only segments, as a list, and the stacks of blocks in their `history`.
 *
 * Time is counted in allocation and free events. Memory that the trace frees without an allocation was allocated
 * before; blocks still allocated at the end were never freed. Addresses are those of the device without the gaps
 * between segments, in order:
 *
 *   device    ░░░████░░░░░░░██░░      picture    ██████
 */
import { formatBytes } from "../base/bytes.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import { type PickleValue, readPickle } from "./pickle.ts";
import {
  KIND_LABELS,
  type Picture,
  type PictureStep,
  type PictureValue,
  VIEW_KINDS,
  type ViewKind,
} from "./picture.ts";
import { kindsOfBlocks, type Recorded } from "./snapshot-kinds.ts";
import { type Stack, Stacks } from "./snapshot-stack.ts";

interface Event {
  readonly action: string;
  readonly addr: number;
  readonly size: number;
  readonly stack: Stack;
}

interface Block extends Recorded {
  readonly addr: number;
  end: number;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * The most events and blocks of all devices. One list can be referenced many times in a file, so drawn entries are
 * counted.
 */
const MOST_ENTRIES = 5_000_000;

function requireEntries(count: number): void {
  if (count <= MOST_ENTRIES) return;
  throw new TidemarkError("ParseError", `snapshot: ${grouped(count)} events and blocks`, {
    help: `at most ${grouped(MOST_ENTRIES)} are drawn: record a shorter time`,
  });
}

const lengthOf = (value: PickleValue | undefined): number => (Array.isArray(value) ? value.length : 0);

/** Reads a snapshot file: a picture for each device that has memory. */
export function readSnapshot(bytes: Uint8Array, name: string): readonly Picture[] {
  const data = readPickle(bytes);
  const traces = get(data, "device_traces");
  const segments = isSegments(data) ? data : get(data, "segments");
  if (!Array.isArray(segments) && !Array.isArray(traces)) {
    throw new TidemarkError("ParseError", "snapshot: there are neither segments nor device_traces in it", {
      help: "give a file that torch.cuda.memory._dump_snapshot wrote",
    });
  }
  const segmentList = Array.isArray(segments) ? segments : [];
  const traceList = Array.isArray(traces) ? traces : [];
  const blocks = segmentList.reduce((sum: number, segment) => sum + 1 + lengthOf(get(segment, "blocks")), 0);
  requireEntries(traceList.reduce((sum: number, trace) => sum + lengthOf(trace), blocks));
  const byDevice = new Map<number, PickleValue[]>();
  for (const segment of segmentList) {
    const device = whole(get(segment, "device"));
    const events = byDevice.get(device);
    if (events) events.push(segment);
    else byDevice.set(device, [segment]);
  }
  const devices = [...byDevice.keys()].reduce((most, device) => Math.max(most, device + 1), traceList.length);
  const pictures: Picture[] = [];
  for (let d = 0; d < Math.min(devices, 1024); d++) {
    const own = byDevice.get(d) ?? [];
    const trace = traceList[d];
    const picture = deviceEvents(Array.isArray(trace) ? trace : [], own, `${name}, device ${d}`);
    if (picture) pictures.push(picture);
  }
  if (pictures.length > 0) return pictures;
  throw new TidemarkError("ParseError", "snapshot: no device has memory or a history in it", {
    help: "call torch.cuda.memory._record_memory_history() before what is to be recorded",
  });
}

function get(data: PickleValue | undefined, key: string): PickleValue | undefined {
  return data instanceof Map ? data.get(key) : undefined;
}

/** The form of PyTorch 1. */
const isSegments = (data: PickleValue): data is PickleValue[] =>
  Array.isArray(data) && data.length > 0 && data.every((segment) => Array.isArray(get(segment, "blocks")));

/** The stack of a block: its own, or that of the last allocation in its history. */
function framesOf(block: PickleValue): PickleValue | undefined {
  const history = get(block, "history");
  return get(block, "frames") ?? (Array.isArray(history) ? get(history[0], "frames") : undefined);
}

/** A size or an address; invalid values count as 0. */
function whole(value: PickleValue | undefined): number {
  const n = typeof value === "bigint" ? Number(value) : value;
  return typeof n === "number" && n >= 0 && n < 2 ** 64 ? Math.floor(n) : 0;
}

/** Allocation and free actions; `free_completed` follows `free_requested` once streams are done. */
const COUNTED: ReadonlySet<string> = new Set(["alloc", "free_completed"]);

function deviceEvents(trace: readonly PickleValue[], segments: readonly PickleValue[], name: string): Picture | null {
  const stacks = new Stacks();
  const events = trace
    .map((entry): Event => {
      const [action, frames] = [get(entry, "action"), get(entry, "frames")];
      const [addr, size] = [whole(get(entry, "addr")), whole(get(entry, "size"))];
      return { action: typeof action === "string" ? action : "", addr, size, stack: stacks.of(frames) };
    })
    .filter(({ action }) => COUNTED.has(action));
  const blocks = blocksOf(events, liveBlocks(segments, stacks));
  if (blocks.length === 0) return null;
  const ranges = segments.map((s): Range => {
    const from = whole(get(s, "address"));
    return { from, to: from + whole(get(s, "total_size")) };
  });
  return pictureOf(name, events, blocks, compactor([...ranges, ...blocks.map(rangeOf)]));
}

const rangeOf = ({ addr, size }: Block): Range => ({ from: addr, to: addr + size });

/** Blocks still allocated at the end. */
function liveBlocks(segments: readonly PickleValue[], stacks: Stacks): readonly Event[] {
  const live: Event[] = [];
  for (const segment of segments) {
    let next = whole(get(segment, "address"));
    const blocks = get(segment, "blocks");
    for (const block of Array.isArray(blocks) ? blocks : []) {
      const addr = get(block, "address") === undefined ? next : whole(get(block, "address"));
      const size = whole(get(block, "size"));
      next = addr + size;
      const stack = stacks.of(framesOf(block));
      const state = get(block, "state");
      if (typeof state === "string" && state.startsWith("active")) live.push({ action: "live", addr, size, stack });
    }
  }
  return live;
}

/** Pairs allocations with frees, ordered by allocation. */
function blocksOf(events: readonly Event[], live: readonly Event[]): readonly Block[] {
  const columns = events.length + 1;
  const open = new Map<number, Block>();
  const blocks: Block[] = [];
  const add = (event: Event, start: number, end: number, early: boolean): Block => {
    const block: Block = { addr: event.addr, size: event.size, stack: event.stack, start, end, early };
    if (block.size > 0) blocks.push(block);
    return block;
  };
  events.forEach((event, i) => {
    if (event.action === "alloc") {
      // A free event was lost: the earlier block ended here at the latest.
      const lost = open.get(event.addr);
      if (lost) lost.end = Math.max(lost.start + 1, i);
      open.set(event.addr, add(event, i, columns, false));
      return;
    }
    const block = open.get(event.addr);
    open.delete(event.addr);
    if (block) block.end = i;
    else if (i > 0) add({ ...event, stack: { ...event.stack, where: null, name: null } }, 0, i, true);
  });
  for (const event of live) if (!open.has(event.addr)) add(event, 0, columns, true);
  return blocks.sort((a, b) => a.start - b.start || a.addr - b.addr);
}

/** From addresses of the device to offsets without gaps: by bisection in the union of all ranges. */
function compactor(ranges: readonly Range[]): { readonly offset: (addr: number) => number; readonly height: number } {
  const sorted = ranges.filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from || a.to - b.to);
  const merged: { from: number; to: number; at: number }[] = [];
  for (const { from, to } of sorted) {
    const last = merged.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to, at: 0 });
  }
  let height = 0;
  for (const range of merged) {
    range.at = height;
    height += range.to - range.from;
  }
  const offset = (addr: number): number => {
    let [low, high] = [0, merged.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((merged[middle]?.from ?? 0) <= addr) low = middle;
      else high = middle - 1;
    }
    const range = merged[low];
    return range ? range.at + addr - range.from : 0;
  };
  return { offset, height };
}

function pictureOf(
  name: string,
  events: readonly Event[],
  blocks: readonly Block[],
  { offset, height }: ReturnType<typeof compactor>,
): Picture {
  const columns = events.length + 1;
  const written = new Map(blocks.flatMap((block, v) => (block.early ? [] : [[block.start, v] as const])));
  const ended = new Map(blocks.flatMap((block, v) => (block.end < columns ? [[block.end, v] as const] : [])));
  const kinds = kindsOfBlocks(blocks, columns);
  const names = namesOf(blocks, kinds);
  const peak = peakOf(blocks, columns);
  return {
    ...{
      name,
      source: "snapshot",
      columns,
      heightBytes: height,
      budgetBytes: null,
      alignment: 1,
      strategy: "recorded",
    },
    boundBytes: peak.bytes,
    boundStep: peak.step,
    rects: {
      start: blocks.map((b) => b.start),
      end: blocks.map((b) => b.end),
      from: blocks.map((b) => offset(b.addr)),
      bytes: blocks.map((b) => b.size),
      kind: kinds.map((kind) => VIEW_KINDS.indexOf(kind)),
    },
    values: blocks.map((block, v): PictureValue => {
      const { where } = block.stack;
      const story = where ? [`given out at ${where}`] : [];
      const type = `${block.size} bytes at 0x${block.addr.toString(16)}`;
      return { name: names[v] ?? `a${v}`, type, rect: v, over: null, written: block.early ? null : block.start, story };
    }),
    steps: events.map(({ action, size, stack: { where } }, i): PictureStep => {
      const [mine, freed] = [written.get(i), ended.get(i)];
      const text = `${action === "alloc" ? "alloc" : "free"} ${formatBytes(size)}`;
      const writes = action === "alloc" && mine !== undefined ? [mine] : [];
      const reads = action !== "alloc" && freed !== undefined ? [freed] : [];
      return { text, phase: "", where, reads, writes, scratch: [], alias: false, again: false, bodies: [] };
    }),
  };
}

/** By the user's line where there is one, else by kind; equal names are counted. */
function namesOf(blocks: readonly Block[], kinds: readonly ViewKind[]): readonly string[] {
  const seen = new Map<string, number>();
  return blocks.map(({ stack }, v) => {
    const name = stack.name ?? KIND_LABELS[kinds[v] ?? "allocation"];
    const n = (seen.get(name) ?? 0) + 1;
    seen.set(name, n);
    return n === 1 ? name : `${name} #${n}`;
  });
}

function peakOf(blocks: readonly Block[], columns: number): { readonly bytes: number; readonly step: number } {
  const change = new Float64Array(columns + 1);
  for (const { start, end, size } of blocks) {
    change[start] = (change[start] ?? 0) + size;
    change[end] = (change[end] ?? 0) - size;
  }
  let [live, best] = [0, { bytes: 0, step: 0 }];
  for (let step = 0; step < columns; step++) {
    live += change[step] ?? 0;
    if (live > best.bytes) best = { bytes: live, step };
  }
  return best;
}
