/**
 * @file Maps that read along another counter than they store along. Neighbouring threads should read neighbours and store
 * neighbours, so elements that are read the other way pass through a tile of 32 × 32 in shared memory:
 *
 *   y[j, i] = x[i, j]      phase 1: threads along j read x      ──→ tile
 *                          phase 2: threads along i store y     ←── the same tile, along its other side
 *
 * Rows of a tile are 33 elements apart, so that both ways go through all banks.
 */
import { bytesOf } from "../../kernel/dtype.ts";
import { type Index, type LoopVar, load } from "../../kernel/expr.ts";
import { addIndex, divIndex, modIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import type { MapNest, Operand } from "../../kernel/loops.ts";
import { Interner, linearCoefficient } from "../intern.ts";
import { live, product } from "../units.ts";
import { below, counter, Memories, Replacement } from "./counters.ts";
import { certainLoads, type Load, loadKey, replaceLoads } from "./loads.ts";
import { type DeviceClass, type Launch, loop, phase, type Statement, storing, where } from "./program.ts";

const TILE = 32;
const PITCH = TILE + 1;

interface Transposed {
  /** The counter along which neighbours are read, and that along which they are stored. */
  readonly reads: LoopVar;
  readonly stores: LoopVar;
  readonly loads: readonly Load[];
}

/** The loads of a map that go along another counter than its stores, where there are enough elements of both. */
function transposedOf(nest: MapNest, { threads, multiprocessors, sharedBytes }: DeviceClass): Transposed | null {
  const loops = live(nest.loops);
  const stores = loops.at(-1);
  if (!stores || stores.extent < TILE || product(loops) < threads * multiprocessors) return null;
  const interner = new Interner();
  if (!nest.stores.every(({ index }) => linearCoefficient(interner, index, stores) === 1)) return null;
  for (const reads of loops.slice(0, -1)) {
    const loads = certainLoads(nest.stores).filter(({ index }) => {
      const apart = linearCoefficient(interner, index, stores);
      return linearCoefficient(interner, index, reads) === 1 && apart !== null && Math.abs(apart) > 1;
    });
    const bytes = loads.reduce((n, { dtype }) => n + TILE * PITCH * bytesOf(dtype), 0);
    if (loads.length > 0 && reads.extent >= TILE && bytes <= sharedBytes) return { reads, stores, loads };
  }
  return null;
}

/** Each thread at some places of a tile, neighbours along the first side. */
function places(
  next: LoopVar,
  thread: LoopVar,
  body: (fast: Index, slow: Index) => readonly Statement[],
): readonly Statement[] {
  const n = addIndex(scaleIndex(varIndex(next), thread.extent), varIndex(thread));
  return loop(next, body(modIndex(n, TILE), divIndex(n, TILE)), true);
}

/** The map through tiles in shared memory, or null where it gains nothing. */
export function scheduleTransposed(
  nest: MapNest,
  operands: readonly Operand[],
  device: DeviceClass,
): readonly Launch[] | null {
  const found = transposedOf(nest, device);
  if (!found) return null;
  const memories = new Memories(operands);
  const thread = counter("thread", Math.min(device.threads, TILE * TILE));
  const reads = (TILE * TILE) / thread.extent;
  const readTile = counter("read_tile", Math.ceil(found.reads.extent / TILE));
  const storeTile = counter("store_tile", Math.ceil(found.stores.extent / TILE));
  /** The nest's counters at a place of a tile, where it is inside. */
  const inside = (read: Index, store: Index, body: (at: Replacement) => readonly Statement[]): readonly Statement[] => {
    const [i, j] = [
      addIndex(scaleIndex(varIndex(readTile), TILE), read),
      addIndex(scaleIndex(varIndex(storeTile), TILE), store),
    ];
    const bounds = [...below(i, found.reads.extent), ...below(j, found.stores.extent)];
    const counters = new Map([[found.reads, i] as const, [found.stores, j] as const]);
    return where(bounds, body(new Replacement(counters)));
  };
  const shared = found.loads.map(({ dtype }) =>
    memories.add({ scope: "shared", dtype: dtype, elements: TILE * PITCH }),
  );
  const at = (read: Index, store: Index): Index => addIndex(scaleIndex(store, PITCH), read);
  const fill = places(counter("filled", reads), thread, (read, store) =>
    inside(read, store, (here) => [
      storing(
        ...found.loads.map((e, i) => ({ operand: shared[i] as number, index: at(read, store), value: here.expr(e) })),
      ),
    ]),
  );
  const put = places(counter("stored", reads), thread, (store, read) =>
    inside(read, store, (here) => {
      const tile = found.loads.map(
        (e, i) => [loadKey(e), load(e.dtype, shared[i] as number, at(read, store))] as const,
      );
      const values = nest.stores.map((s) => ({ ...s, value: replaceLoads(s.value, new Map(tile)) }));
      return [storing(...here.stores(values))];
    }),
  );
  const others = live(nest.loops).filter((v) => v !== found.reads && v !== found.stores);
  const grid = live([...others, readTile, storeTile]);
  const skip = nest.skipIfAliased ? { skipIfAliased: nest.skipIfAliased } : {};
  return [{ grid, thread, memories: memories.list, body: [phase(...fill), phase(...put)], ...skip }];
}
