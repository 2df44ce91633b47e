/**
 * @file What products on tensor cores have in common: two groups of warps that multiply, stages of
 * shared memory in which a row of a tile takes 128 bytes, each with a barrier that says full and one that says empty, and
 * the order in which tiles are computed.
 */
import type { LoopVar } from "../../kernel/expr.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import type { CCode } from "../native/c-code.ts";
import { TILE_ROWS } from "./tensor-plan.ts";
import { ROW_BYTES } from "./tensor-types.ts";

/** Threads that multiply. */
export const CONSUMERS = 256;
/** Before stages, so that they start at a multiple. */
const SLACK = 1024;

/** What descriptors of matrices in shared memory have in common: rows of 128 bytes, swizzled, eight of them together. */
export const DESCRIPTOR_FORM = "const u64 form = (u64)1 << 62 | (u64)64 << 32 | (u64)1 << 16;";

/** The same where rows have 64 bytes. */
export const SHORT_FORM = "const u64 form = (u64)2 << 62 | (u64)32 << 32 | (u64)1 << 16;";

/** Rows or columns of a box of a matrix across the depth, and its bytes: a row of it is 64 of them at one depth. */
export const ACROSS_BOX = 64;
export const ACROSS_BYTES = ACROSS_BOX * ROW_BYTES;
/** The same of a matrix across the depth: eight depths together, the next 64 rows or columns a box further. */
export const ACROSS_FORM = `const u64 across = (u64)1 << 62 | (u64)64 << 32 | (u64)${ACROSS_BYTES / 16} << 16;`;

export const stageBytes = (cols: number): number => (TILE_ROWS + cols) * ROW_BYTES;

/** Of shared memory, with the barriers. */
export const sharedBytesOf = (stages: number, cols: number): number => SLACK + stages * (stageBytes(cols) + 16);

/** Declares where stages and barriers are. */
export function declareStages(code: CCode, stages: number, cols: number): void {
  code.line("extern __shared__ char raw[];");
  code.line(`const u32 stages = (shared_address(raw) + ${SLACK - 1}) & ~${SLACK - 1}u;`);
  code.line(`const u32 full = stages + ${stages * stageBytes(cols)}, empty = full + ${8 * stages};`);
}

/** Sets the barriers: so many arrive where a stage is full; every warp of consumers where it is empty. */
export function setBarriers(code: CCode, stages: number, fillers: number): void {
  code.block("if (threadIdx.x == 0)", () => {
    const init = `barrier_init(full + 8 * i, ${fillers}); barrier_init(empty + 8 * i, ${CONSUMERS / 32});`;
    code.line(`for (int i = 0; i < ${stages}; i++) { ${init} }`);
    code.line('asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");');
  });
  code.line("__syncthreads();");
}

/** The smaller side is read again and again from the cache, so its tiles come first. */
export const tileOrder = ({ rows, cols }: ContractNest, rowTile: LoopVar, colTile: LoopVar): readonly LoopVar[] =>
  rows.extent <= cols.extent ? [colTile, rowTile] : [rowTile, colTile];
