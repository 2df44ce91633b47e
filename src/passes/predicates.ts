/**
 * @file What one part of a program (the backward pass, the reverse of a loop's body) reads of what another part makes, and
 * how much of that it only compares. A truth value that is computed from what the first part makes can be computed there:
 *
 *   made here   y = relu(x)                      y = relu(x);  b = pack_bits(gt(y, 0))
 *   ────────────────────────────── kept: y       ────────────────────────────────────── kept: b, a 32nd of y
 *   read there  where(gt(y, 0), d_y, 0)          where(unpack_bits(b), d_y, 0)
 *
 * So rules of derivatives name no alternatives: a rule that needs no more than a comparison says so by comparing. What is
 * read in another way too (by a product, say) is kept anyway, and then the comparison costs nothing as it is.
 *
 * Values that are compared with each other, or by several, are decided about together: either all of them are kept or the
 * bits of all comparisons, whichever are fewer bytes.
 */

import type { Graph, Node, Value } from "../ir/graph.ts";
import { byteLength, elementsOf } from "../ir/type.ts";
import { blocksFor, LANES } from "../kernel/bits.ts";
import { isBool } from "../kernel/dtype.ts";

/** The two parts. */
export interface Parts {
  /** The value is made by the first part and would have to be kept. */
  isMade(value: Value): boolean;
  /** It is there for both parts at no cost. */
  isFree(value: Value): boolean;
  /** The node is of the second part. */
  isReader(node: Node): boolean;
  /** Whether the first part has these at the same time; what is compared otherwise is kept. Default: always. */
  areTogether?(made: ReadonlySet<Value>): boolean;
  /** What is kept in any case, for other reasons. */
  readonly kept: Iterable<Value>;
}

interface Reads {
  /** What is kept in any case: read other than by comparing. */
  readonly whole: ReadonlySet<Value>;
  /** Truth values of the second part, or made by the first, that are read; with the made values each depends on. */
  readonly predicates: ReadonlyMap<Value, ReadonlySet<Value>>;
}

const isMap = (node: Node | undefined): node is Node => node?.op.lower.kind === "map";
/** Repeated wherever it is read, so it is never what is kept. */
export const isView = ({ op: { lower } }: Node): boolean => lower.kind === "map" && lower.fusion === "always";

export class PartReads implements Reads {
  readonly whole = new Set<Value>();
  readonly predicates = new Map<Value, ReadonlySet<Value>>();
  readonly #producer: ReadonlyMap<Value, Node>;
  readonly #parts: Parts;
  /** Value → the made values that it follows from, null where it follows from something else too. */
  readonly #sources = new Map<Value, ReadonlySet<Value> | null>();
  readonly #seen = new Set<Value>();

  constructor(graph: Graph, producer: ReadonlyMap<Value, Node>, parts: Parts) {
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
    // What else is computed from made values alone is computed by the second part.
    else if (node && sources) for (const input of node.inputs) this.#read(input);
  }
}

/** Bytes of a truth value's bits. */
function bitBytes({ type }: Value): number {
  return 4 * LANES * blocksFor(elementsOf(type.shape));
}

/** Bytes that must be saved for something to be packed, or computed again: below, the time is worth more. */
export const LEAST_SAVED = 16384;

/** The predicates whose bits are to be kept in place of what they are computed from; `times` is how often all is kept. */
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

/** What is kept for a predicate alone. */
function keptFor({ whole, predicates }: Reads, predicate: Value): readonly Value[] {
  return [...(predicates.get(predicate) ?? [])].filter((source) => !whole.has(source));
}

/** Predicates in groups that share something that is kept for them alone; those that nothing is kept for are in none. */
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
