/**
 * @file Replays traces of allocations through a pool: `npm run bench:pool -- FILE…`. For each, the highest top of the range over the
 * most bytes that were live at once, and nanoseconds of processor time for one allocation with its free. Kinds of files:
 *
 *   .csv            id,lower,upper,size: live on [lower, upper) (MiniMalloc's form)
 *   .json           a graph of operations with inputs and outputs by number of storage (`size`, `const`, `outputs`, `ops`)
 *   .pickle[.gz]    a memory snapshot of PyTorch with its history
 *
 * `--churn N` allocates and frees N times at random sizes and shows that nothing grows.
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { gunzipSync } from "node:zlib";
import { Pool } from "../src/pool/pool.ts";
import { type PickleValue, readPickle } from "../src/view/pickle.ts";

/** Numbers of values; a size of -1 is a free. */
interface Stream {
  readonly value: readonly number[];
  readonly bytes: readonly number[];
}

class StreamBuilder implements Stream {
  readonly value: number[] = [];
  readonly bytes: number[] = [];
  add(value: number, bytes: number): void {
    this.value.push(value);
    this.bytes.push(bytes);
  }
}

function fromCsv(text: string): Stream {
  const [head = "", ...lines] = text.trim().split(/\r?\n/);
  const columns = head.split(",");
  const column = (name: string): number => columns.indexOf(name);
  const [lower, upper, size] = [column("lower"), column("upper"), column("size")];
  const events = lines.flatMap((line, value) => {
    const cells = line.split(",").map(Number);
    const [from = 0, to = 0, bytes = 0] = [cells[lower], cells[upper], cells[size]];
    return [
      { time: from, isFree: 0, value, bytes },
      { time: to, isFree: 1, value, bytes: -1 },
    ];
  });
  // what ends at a time is freed before what begins there
  events.sort((a, b) => a.time - b.time || b.isFree - a.isFree || a.value - b.value);
  const stream = new StreamBuilder();
  for (const { value, bytes } of events) stream.add(value, bytes);
  return stream;
}

interface GraphTrace {
  readonly size: readonly number[];
  readonly const: readonly (readonly [storage: number, before: number])[];
  readonly outputs: readonly number[];
  readonly ops: readonly {
    readonly i: readonly number[];
    readonly o: readonly number[];
    readonly a: readonly number[];
  }[];
}

/** Outputs of an operation are allocated before it runs, and freed after their last use. */
function fromGraph({ size, const: constants, outputs, ops }: GraphTrace): Stream {
  const last = new Map<number, number>();
  ops.forEach(({ i, o, a }, k) => {
    for (const storage of [...i, ...o, ...a]) last.set(storage, k);
  });
  const kept = new Set([...outputs, ...constants.map(([storage]) => storage)]);
  const there = new Set<number>();
  const stream = new StreamBuilder();
  const take = (storage: number): void => {
    if (there.has(storage)) return;
    there.add(storage);
    stream.add(storage, size[storage] ?? 0);
  };
  ops.forEach(({ i, o, a }, k) => {
    for (const [storage, before] of constants) if (before === k) take(storage);
    for (const storage of o) take(storage);
    const ended = [...new Set([...i, ...o, ...a])].filter((s) => last.get(s) === k && !kept.has(s) && there.has(s));
    for (const storage of ended) stream.add(storage, -1);
  });
  return stream;
}

const get = (data: PickleValue | undefined, key: string): PickleValue | undefined =>
  data instanceof Map ? data.get(key) : undefined;
const listOf = (data: PickleValue | undefined): readonly PickleValue[] => (Array.isArray(data) ? data : []);

/** The history of the first device; what is freed without an allocation, or live at the end without one, was there before. */
function fromSnapshot(data: PickleValue): Stream {
  const early = new StreamBuilder();
  const stream = new StreamBuilder();
  const open = new Map<number, number>();
  let values = 0;
  for (const event of listOf(listOf(get(data, "device_traces"))[0])) {
    const [action, address, bytes] = [get(event, "action"), Number(get(event, "addr")), Number(get(event, "size"))];
    if (action === "alloc") {
      open.set(address, values);
      stream.add(values++, bytes);
    } else if (action === "free_completed") {
      const value = open.get(address) ?? values++;
      if (!open.delete(address)) early.add(value, bytes);
      stream.add(value, -1);
    }
  }
  for (const segment of listOf(get(data, "segments"))) {
    let address = Number(get(segment, "address"));
    for (const block of listOf(get(segment, "blocks"))) {
      const [state, bytes] = [String(get(block, "state")), Number(get(block, "size"))];
      if (state.startsWith("active") && !open.has(address)) early.add(values++, bytes);
      address += bytes;
    }
  }
  return { value: [...early.value, ...stream.value], bytes: [...early.bytes, ...stream.bytes] };
}

function streamOf(path: string): Stream {
  const raw = readFileSync(path);
  const bytes = path.endsWith(".gz") ? gunzipSync(raw) : raw;
  if (/\.pickle(\.gz)?$/.test(path)) return fromSnapshot(readPickle(new Uint8Array(bytes)));
  const text = bytes.toString("utf8");
  return path.endsWith(".json") ? fromGraph(JSON.parse(text) as GraphTrace) : fromCsv(text);
}

function replay({ value, bytes }: Stream, pool: Pool, handles: Int32Array): void {
  for (let i = 0; i < value.length; i++) {
    const size = bytes[i] as number;
    if (size >= 0) handles[value[i] as number] = pool.allocate(size);
    else pool.free(handles[value[i] as number] as number);
  }
}

function maxLive({ value, bytes }: Stream): number {
  const sizes = new Map<number, number>();
  let [live, most] = [0, 0];
  value.forEach((v, i) => {
    const size = bytes[i] as number;
    live += size >= 0 ? size : -(sizes.get(v) ?? 0);
    if (size >= 0) sizes.set(v, size);
    most = Math.max(most, live);
  });
  return most;
}

/** Of processor time, best of several, per pair of calls: the whole stream, again and again on a pool that is emptied in between. */
function nanoseconds(stream: Stream, values: number): number {
  const pool = new Pool();
  const handles = new Int32Array(values);
  const pairs = stream.value.length / 2;
  const repeats = Math.ceil(500_000 / stream.value.length);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage();
    for (let i = 0; i < repeats; i++) {
      const generation = pool.begin();
      replay(stream, pool, handles);
      pool.end(generation);
      pool.trim();
    }
    best = Math.min(best, (process.cpuUsage(before).user * 1000) / (repeats * pairs));
  }
  return best;
}

function showTrace(path: string): void {
  const stream = streamOf(path);
  const values = stream.value.reduce((most, v) => Math.max(most, v + 1), 0);
  const pool = new Pool();
  replay(stream, pool, new Int32Array(values));
  const [live, { reserved }] = [maxLive(stream), pool.stats().peak];
  const name = basename(path).padEnd(32);
  const [ratio, ns] = [(reserved / live).toFixed(4), nanoseconds(stream, values).toFixed(0)];
  console.log(
    `${name} ${String(stream.value.length).padStart(7)} calls  live ${live}  peak ${reserved}  ${ratio}  ${ns} ns`,
  );
}

/** Sizes from 4 bytes to 4 MiB, at most 2,000 values at a time, from a fixed seed. */
function churn(calls: number): void {
  const pool = new Pool();
  const handles = new Int32Array(2000).fill(-1);
  let seed = 1;
  const next = (): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  const peaks: string[] = [];
  const before = process.cpuUsage();
  for (let i = 0; i < calls; i++) {
    const slot = Math.floor(next() * handles.length);
    const handle = handles[slot] as number;
    if (handle >= 0) pool.free(handle);
    handles[slot] = handle >= 0 ? -1 : pool.allocate(Math.floor(4 * 2 ** (20 * next())));
    if ((i + 1) % Math.ceil(calls / 4) === 0) peaks.push(`${pool.stats().peak.reserved} bytes, ${pool.rows} rows`);
  }
  const ns = (process.cpuUsage(before).user * 1000) / (calls / 2);
  console.log(
    `${calls} calls, ${ns.toFixed(0)} ns a pair with the random numbers; after each quarter: ${peaks.join("; ")}`,
  );
}

const args = process.argv.slice(2);
const at = args.indexOf("--churn");
const calls = at >= 0 ? Number(args[at + 1]) : 0;
for (const path of args.filter((_, i) => at < 0 || (i !== at && i !== at + 1))) showTrace(path);
if (calls > 0) churn(calls);
