/** @file Sorting rows as C (codegen/cpu/sort.ts has the method). */
import type { MapNest, SortNest } from "../../kernel/loops.ts";
import { FEW_PAIRS, isEmptySort, sortLayout, sortTiles } from "../cpu/sort.ts";
import { live, UNDIVIDED, type Units } from "../units.ts";
import { emitOuter } from "./emit-loops.ts";
import { VectorEmitter } from "./emitter.ts";
import { fileName } from "./names.ts";
import { emitMap } from "./nests.ts";
import type { CFile, ShareFunction } from "./options.ts";

const PAIRS = fileName("sort_pairs");
const TIES = fileName("sort_ties");
const ROW = fileName("sort_row");
const SELECT = fileName("sort_select");

/** Pairs into order, those with equal high halves as they are or by their low halves, which increase. Bytes in which all high halves agree are skipped. */
const SORT_PAIRS = `FUNCTION void ${PAIRS}(u64 *pairs, u64 *room, u32 (*count)[256], idx n) {
  if (n <= ${FEW_PAIRS}) {
    for (idx i = 1; i < n; i++) {
      const u64 moved = pairs[i];
      idx j = i;
      for (; j > 0 && pairs[j - 1] > moved; j--) pairs[j] = pairs[j - 1];
      pairs[j] = moved;
    }
    return;
  }
  memset(count, 0, 4 * sizeof *count);
  for (idx i = 0; i < n; i++) {
    const u32 word = (u32)(pairs[i] >> 32);
    count[0][word & 255]++;
    count[1][word >> 8 & 255]++;
    count[2][word >> 16 & 255]++;
    count[3][word >> 24]++;
  }
  u64 *from = pairs, *to = room;
  for (int byte = 0; byte < 4; byte++) {
    const int shift = 32 + 8 * byte;
    u32 *const place = count[byte];
    if (place[from[0] >> shift & 255] == (u32)n) continue;
    u32 before = 0;
    for (int digit = 0; digit < 256; digit++) {
      const u32 own = place[digit];
      place[digit] = before;
      before += own;
    }
    for (idx i = 0; i < n; i++) to[place[from[i] >> shift & 255]++] = from[i];
    u64 *const other = from;
    from = to;
    to = other;
  }
  if (from != pairs) memcpy(pairs, from, (size_t)n * sizeof *pairs);
}
`;

/** Runs of pairs with equal high halves, by the second words of keys. */
const SORT_TIES = `FUNCTION void ${TIES}(u64 *pairs, u64 *room, u32 (*count)[256], const i32 *low, idx n) {
  for (idx i = 0, end; i < n; i = end) {
    const u64 high = pairs[i] >> 32;
    for (end = i + 1; end < n && pairs[end] >> 32 == high; end++) {}
    if (end == i + 1) continue;
    for (idx j = i; j < end; j++) {
      const u32 number = (u32)pairs[j];
      pairs[j] = (u64)((u32)low[number] ^ 0x80000000u) << 32 | number;
    }
    ${PAIRS}(pairs + i, room, count, end - i);
  }
}
`;

/** All elements of a row. */
const SORT_ROW = `FUNCTION void ${ROW}(u64 *pairs, u64 *room, u32 (*count)[256], const i32 *high, const i32 *low, idx n) {
  for (idx i = 0; i < n; i++) pairs[i] = (u64)((u32)high[i] ^ 0x80000000u) << 32 | (u32)i;
  ${PAIRS}(pairs, room, count, n);
  if (low) ${TIES}(pairs, room, count, low, n);
}
`;

/** The first elements of a row: candidates are those not after the last of the best so far. */
const SORT_SELECT = `FUNCTION void ${SELECT}(u64 *pairs, u64 *room, u32 (*count)[256], const i32 *high, const i32 *low, idx n, idx wanted, idx capacity) {
  u64 last = ~(u64)0;
  idx kept = 0;
  for (idx i = 0; i <= n; i++) {
    if (i == n || kept == capacity) {
      ${PAIRS}(pairs, room, count, kept);
      if (low) ${TIES}(pairs, room, count, low, kept);
      if (i == n) return;
      kept = wanted;
      if (low) for (idx j = 0; j < kept; j++) {
        const u32 number = (u32)pairs[j];
        pairs[j] = (u64)((u32)high[number] ^ 0x80000000u) << 32 | number;
      }
      last = low ? pairs[kept - 1] | 0xffffffffu : pairs[kept - 1];
    }
    const u64 pair = (u64)((u32)high[i] ^ 0x80000000u) << 32 | (u32)i;
    if (pair <= last) pairs[kept++] = pair;
  }
}
`;

function shareSort(share: ShareFunction): void {
  for (const [name, text] of [
    [PAIRS, SORT_PAIRS],
    [TIES, SORT_TIES],
    [ROW, SORT_ROW],
    [SELECT, SORT_SELECT],
  ] as const) {
    share(name, "function", () => text);
  }
}

export function emitSort(outer: VectorEmitter, nest: SortNest, file: CFile): Units {
  if (isEmptySort(nest) || nest.scratch === undefined) return { count: 0, grain: 1 };
  shareSort(file.share);
  const { code, operands } = outer;
  const { pairs, room, counts, high, low, capacity, elements } = sortLayout(nest);
  const tiles = sortTiles(nest, operands);
  const w = code.name("w");
  code.line(`i32 *const ${w} = ${outer.pointer(nest.scratch, 0)} + thread * ${elements};`);
  const pointer = (operand: number, offset: number): string => {
    const tile = tiles.offsets[operand - operands.length];
    return tile === undefined ? outer.pointer(operand, offset) : `(${w} + ${tile + offset})`;
  };
  const em = new VectorEmitter(code, outer.lanes, pointer, tiles.operands);
  /** All of a map on this thread. */
  const whole = (map: MapNest): void =>
    em.block("", () => {
      const line = code.lines.length;
      const { count } = emitMap(em, map, file);
      code.lines.splice(line, 0, `const idx lo = 0, hi = ${count}; (void)lo; (void)hi;`);
    });
  const words = `${w} + ${high}, ${nest.keys.length > 1 ? `${w} + ${low}` : "0"}, ${nest.along.extent}`;
  const both = `(u64 *)(${w} + ${pairs}), (u64 *)(${w} + ${room}), (u32 (*)[256])(${w} + ${counts}), ${words}`;
  const row = (): void => {
    whole(tiles.keys);
    code.line(capacity === null ? `${ROW}(${both});` : `${SELECT}(${both}, ${nest.rank.extent}, ${capacity});`);
    whole(tiles.stores);
  };
  const loops = live(nest.loops);
  if (loops.length > 0) return emitOuter(em, loops, row);
  row();
  return UNDIVIDED;
}
