/**
 * @file Values of one part of a program (the forward pass, a loop's body) that another part (the backward pass, the reverse)
 * reads, and those of them that it only compares. A truth value that depends only on the first part can be computed there:
 *
 *   made here   y = relu(x)                      y = relu(x);  b = pack_bits(gt(y, 0))
 *   ────────────────────────────── kept: y       ────────────────────────────────────── kept: b, a 32nd of y
 *   read there  where(gt(y, 0), d_y, 0)          where(unpack_bits(b), d_y, 0)
 *
 * So derivative rules name no alternatives: a rule that needs only a comparison compares. A value that is also read in
 * another way (by a product, say) is kept anyway, and then its comparison needs no bits.
 *
 * Values that are compared with each other, or by several, are decided about together: either all of them are kept or the
 * bits of all comparisons, whichever are fewer bytes.
 */

import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import { isBool } from "../kernel/dtype.ts";
import { wordsType } from "../ops/codes.ts";

/** The two parts. */
export interface MakerAndReader {
  /** The value is made by the first part and would have to be kept. */
  isMade(value: Value): boolean;
  /** It is available to both parts at no cost. */
  isFree(value: Value): boolean;
  /** The node is of the second part. */
  isReader(node: Node): boolean;
  /** Whether the first part has these at the same time; otherwise compared values are kept. Default: always. */
  areTogether?(made: ReadonlySet<Value>): boolean;
  /** Values that are kept in any case, for other reasons. */
  readonly kept: Iterable<Value>;
}

interface Reads {
  /** Values that are kept in any case: read other than by comparing. */
  readonly whole: ReadonlySet<Value>;
  /** Truth values of the second part, or made by the first, that are read; with the made values each depends on. */
  readonly predicates: ReadonlyMap<Value, ReadonlySet<Value>>;
}

const isMap = (node: Node | undefined): node is Node => node?.op.lower.kind === "map";
/** Recomputed wherever it is read, so it is never kept. */
export const isView = ({ op: { lower } }: Node): boolean => lower.kind === "map" && lower.fusion === "always";

export class PartReads implements Reads {
  readonly whole = new Set<Value>();
  readonly predicates = new Map<Value, ReadonlySet<Value>>();
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #parts: MakerAndReader;
  /** Value → the made values that it depends on, null if it depends on others too. */
  readonly #sources = new Map<Value, ReadonlySet<Value> | null>();
  readonly #seen = new Set<Value>();

  constructor(graph: Graph, producer: ReadonlyMap<Value, Node>, parts: MakerAndReader) {
    this.#producer = producer;
    this.#parts = parts;
    for (const value of parts.kept) this.whole.add(value);
    for (const node of graph.nodes) {
      if (!parts.isReader(node) || node.outputs.every((value) => this.#sourcesOf(value) !== null)) continue;
      // A loop or branch reads memory: bits would be unpacked into it.
      const direct = node.regions.length > 0;
      for (const input of node.inputs) {
        if (direct && parts.isMade(input)) this.whole.add(input);
        else this.#read(input);
      }
    }
    for (const result of graph.results) {
      if (parts.isMade(result)) this.whole.add(result);
      else this.#read(result);
    }
  }

  /** The nodes that compute a predicate from made and free values, in order. */
  nodesOf(predicate: Value): readonly Node[] {
    const found = new Set<Node>();
    const visit = (value: Value): void => {
      const node = this.#producer.get(value);
      if (!node || found.has(node) || this.#parts.isMade(value) || this.#parts.isFree(value)) return;
      node.inputs.forEach(visit);
      found.add(node);
    };
    visit(predicate);
    return [...found];
  }

  #sourcesOf(value: Value): ReadonlySet<Value> | null {
    const known = this.#sources.get(value);
    if (known !== undefined) return known;
    const found = this.#findSources(value);
    this.#sources.set(value, found);
    return found;
  }

  #findSources(value: Value): ReadonlySet<Value> | null {
    if (this.#parts.isMade(value)) return new Set([value]);
    if (this.#parts.isFree(value)) return new Set();
    const node = this.#producer.get(value);
    if (!isMap(node)) return null;
    const all = new Set<Value>();
    for (const input of node.inputs) {
      const some = this.#sourcesOf(input);
      if (some === null) return null;
      for (const source of some) all.add(source);
    }
    return all;
  }

  #read(value: Value): void {
    if (this.#seen.has(value)) return;
    this.#seen.add(value);
    const node = this.#producer.get(value);
    const sources = this.#sourcesOf(value);
    const isNew = isBool(value.type.dtype) && !(node && isView(node));
    if (isNew && sources && sources.size > 0 && (this.#parts.areTogether?.(sources) ?? true)) {
      this.predicates.set(value, sources);
    } else if (this.#parts.isMade(value)) this.whole.add(value);
    // Other values that depend only on made ones are computed by the second part.
    else if (node && sources) for (const input of node.inputs) this.#read(input);
  }
}

/** Bytes of a truth value's bits. */
function bitBytes({ type }: Value): number {
  return byteLength(wordsType(elementsOf(type.shape), 1));
}

/** Bytes that must be saved for something to be packed, or recomputed: below that, time matters more. */
export const LEAST_SAVED = 16384;

/** The predicates whose bits are kept in place of their operands; `times`: how many copies are kept. */
export function chooseBits(reads: Reads, times = 1): readonly Value[] {
  const chosen: Value[] = [];
  for (const group of together(reads)) {
    const sources = new Set(group.flatMap((predicate) => keptFor(reads, predicate)));
    const whole = [...sources].reduce((sum, { type }) => sum + byteLength(type), 0);
    const bits = group.reduce((sum, predicate) => sum + bitBytes(predicate), 0);
    if (times * (whole - bits) >= LEAST_SAVED) chosen.push(...group);
  }
  return chosen;
}

/** Values that are kept only for a predicate. */
function keptFor({ whole, predicates }: Reads, predicate: Value): readonly Value[] {
  return [...(predicates.get(predicate) ?? [])].filter((source) => !whole.has(source));
}

/** Predicates grouped by shared values that are kept only for them; predicates without such values are in no group. */
function together(reads: Reads): Iterable<readonly Value[]> {
  const groupOf = new Map<Value, Value[]>();
  const groups = new Set<Value[]>();
  for (const predicate of reads.predicates.keys()) {
    const sources = keptFor(reads, predicate);
    if (sources.length === 0) continue;
    const joined = new Set(sources.flatMap((source) => [groupOf.get(source) ?? []]));
    const group = [...[...joined].flat(), predicate];
    for (const old of joined) groups.delete(old);
    groups.add(group);
    for (const member of group) for (const source of keptFor(reads, member)) groupOf.set(source, group);
  }
  return groups;
}
