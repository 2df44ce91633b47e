/**
 * @file What is held for the backward pass when the forward pass is done, by four ways of differentiating the same program:
 *
 *   overload   inputs and outputs of every operation, as a tape of TensorFlow.js holds them
 *   named      what derivatives name, with the storage that views are of, as PyTorch's graph holds them
 *   tape       what derivatives name, less what costs nothing to recompute: what the tape of this library holds
 *   planned    what the planned program holds: forward values that steps of the backward pass still read, the most at one time
 *
 * Arguments are there in any case and not counted, nor are constants. A value counts once, with the operation that made it.
 */
import type { OpFacts } from "../ir/facts.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import type { Plan } from "../plan/problem.ts";
import { inputBit, isCheap, Signatures } from "./signatures.ts";

const COLUMNS = ["overloadBytes", "namedSavesBytes", "tapeBytes", "plannedBytes"] as const;
type Column = (typeof COLUMNS)[number];

/** Bytes of one kind of operation. */
export interface AccountRow extends Readonly<Record<Column, number>> {
  readonly operation: string;
  /** How many the forward pass has. */
  readonly count: number;
}

/** Bytes of all operations. */
export type AccountTotals = Readonly<Record<Column, number>>;

/** What the tape of a library would hold for the backward pass, by operation. */
export interface TapeAccount extends AccountTotals {
  /** Largest first. In the planned program, a fused kernel counts under the name of its main operation. */
  readonly rows: readonly AccountRow[];
}

/** Rows under construction. */
class Rows {
  readonly #rows = new Map<string, Record<Column, number> & { count: number }>();

  #row(operation: string): Record<Column, number> & { count: number } {
    const known = this.#rows.get(operation);
    if (known) return known;
    const made = { count: 0, overloadBytes: 0, namedSavesBytes: 0, tapeBytes: 0, plannedBytes: 0 };
    this.#rows.set(operation, made);
    return made;
  }

  countOne(operation: string): void {
    this.#row(operation).count += 1;
  }

  add(operation: string, column: Column, bytes: number): void {
    this.#row(operation)[column] += bytes;
  }

  finish(): TapeAccount {
    const rows = [...this.#rows].map(([operation, row]): AccountRow => ({ operation, ...row }));
    const total = (column: Column): number => rows.reduce((sum, row) => sum + row[column], 0);
    const most = (row: AccountRow): number => Math.max(...COLUMNS.map((column) => row[column]));
    return {
      overloadBytes: total("overloadBytes"),
      namedSavesBytes: total("namedSavesBytes"),
      tapeBytes: total("tapeBytes"),
      plannedBytes: total("plannedBytes"),
      rows: rows.sort((a, b) => most(b) - most(a) || b.count - a.count),
    };
  }
}

/** The account of a graph with its reverse, as it was traced, and of its plan. */
export function accountOf(graph: Graph, plan: Plan): TapeAccount {
  const rows = new Rows();
  const producer = new Map<Value, Node>();
  for (const node of graph.nodes) for (const output of node.outputs) producer.set(output, node);
  const isForward = (value: Value): boolean => producer.get(value)?.phase === "forward";
  const forward = graph.nodes.filter(({ phase }) => phase === "forward");
  const backward = graph.nodes.filter(({ phase }) => phase === "backward");
  const overload = new Set<Value>();
  for (const node of forward) {
    rows.countOne(node.op.name);
    for (const value of [...node.inputs, ...node.outputs]) overload.add(storedBase(value, producer, isRepeated));
  }
  const read = new Set(backward.flatMap(({ inputs }) => inputs.filter(isForward)));
  const { torch, own } = namedReads(forward, read, producer);
  const named = new Set([...torch].map((value) => storedBase(value, producer, isView)));
  const taped = new Set([...own].flatMap((value) => dearer(value, producer)));
  const columns = [
    ["overloadBytes", overload],
    ["namedSavesBytes", named],
    ["tapeBytes", taped],
  ] as const;
  for (const [column, values] of columns) {
    for (const value of values) {
      const node = producer.get(value);
      // arguments and constants are there in any case
      if (node && node.inputs.length > 0) rows.add(node.op.name, column, byteLength(value.type));
    }
  }
  for (const [operation, bytes] of plannedResiduals(plan)) rows.add(operation, "plannedBytes", bytes);
  return rows.finish();
}

/**
 * What derivatives read, those of PyTorch and those of the tape: operations whose derivative is written in other terms in PyTorch say
 * so. `read` is what the backward pass of the traced program reads, which says what was differentiated.
 */
function namedReads(
  forward: readonly Node[],
  read: ReadonlySet<Value>,
  producer: ReadonlyMap<Value, Node>,
): { readonly torch: ReadonlySet<Value>; readonly own: ReadonlySet<Value> } {
  const signatures = new Signatures();
  const [torch, own] = [new Set<Value>(), new Set<Value>()];
  for (const node of forward) {
    const active = node.inputs.reduce((mask, { type }, i) => (isFloat(type.dtype) ? mask | inputBit(i) : mask), 0);
    const { inputs, outputs } = signatures.at(signatures.of(node)).saved(active);
    const mine = [...inputs.map((i) => node.inputs[i]), ...outputs.map((i) => node.outputs[i])] as readonly Value[];
    const hasRegions = node.op.derivative.kind === "region";
    const touched = [...node.inputs, ...node.outputs].filter((value) => read.has(value));
    const isDifferentiated = hasRegions
      ? touched.length > 0
      : mine.every((value) => read.has(value) || !producer.has(value));
    if (!isDifferentiated) continue;
    const { torchReads: theirs } = (node.op.facts ?? {}) as OpFacts<unknown>;
    const ofTorch = theirs ? theirs.flat().map((i) => node.inputs[i] as Value) : mine;
    for (const value of mine) own.add(value);
    // what is inside of a region keeps what the traced program keeps of it
    for (const value of hasRegions ? touched : ofTorch) torch.add(value);
  }
  return { torch, own };
}

type IsShared = (node: Node) => boolean;

/** Another shape of the same elements, or elements that are shown several times: no library copies for either. */
const isRepeated: IsShared = ({ op }) => op.alias !== null || op.view?.write === null;
/** Slices and transposes too share storage with what they are of. */
const isView: IsShared = (node) => isRepeated(node) || node.op.view !== undefined;

/** What a value shares its storage with. */
function storedBase(value: Value, producer: ReadonlyMap<Value, Node>, isShared: IsShared): Value {
  let base = value;
  for (let node = producer.get(base); node && isShared(node); node = producer.get(base)) base = node.inputs[0] ?? base;
  return base;
}

/** The value, or what it is recomputed from where that costs nothing. */
function dearer(value: Value, producer: ReadonlyMap<Value, Node>): readonly Value[] {
  const base = storedBase(value, producer, ({ op }) => op.alias !== null);
  const node = producer.get(base);
  if (!node || !isCheap(node)) return [base];
  return node.inputs.flatMap((input) => dearer(input, producer));
}

/** Of buffers that hold what forward steps wrote and backward steps read, those live where that is most, by operation. */
function plannedResiduals({ program, problem, bufferOf }: Plan): ReadonlyMap<string, number> {
  const { steps } = program;
  const madeAt = new Map<Value, number>();
  const spans = new Map<number, { from: number; to: number; operation: string }>();
  steps.forEach(({ node, writes, reads, alias }, step) => {
    for (const value of writes) {
      const from = alias ? madeAt.get(alias[0]) : step;
      if (node.phase === "forward" && from !== undefined) madeAt.set(value, from);
    }
    if (node.phase !== "backward") return;
    for (const value of reads) {
      const from = madeAt.get(value);
      const buffer = bufferOf.get(value);
      if (from === undefined || buffer === undefined) continue;
      const span = spans.get(buffer);
      const made = steps[from]?.node;
      const operation = made?.regions[0]?.name ?? made?.op.name ?? "";
      spans.set(buffer, { from: Math.min(from, span?.from ?? from), to: step + 1, operation });
    }
  });
  const bytesAt = (step: number): number =>
    [...spans].reduce((sum, [id, { from, to }]) => sum + (from <= step && step < to ? bytesOf(id) : 0), 0);
  const bytesOf = (id: number): number => problem.buffers[id]?.bytes ?? 0;
  let [peak, most] = [0, 0];
  for (const { from } of spans.values()) {
    const bytes = bytesAt(from);
    if (bytes > most) [peak, most] = [from, bytes];
  }
  const found = new Map<string, number>();
  for (const [id, { from, to, operation }] of spans) {
    if (from <= peak && peak < to) found.set(operation, (found.get(operation) ?? 0) + bytesOf(id));
  }
  return found;
}
