/** @file What a pool says when an allocation would exceed its limit: the numbers, and the largest values that are live. */
import { grouped, TidemarkError } from "../base/errors.ts";
import type { Pool, PoolBlock } from "./pool.ts";

const SHOWN = 10;
/** Tags may be any text. */
const LOCATION = /:\d+/;

/**
 * The largest blocks in use, the largest first.
 *
 * @example
 * import { largestBlocks, Pool } from "tidemark/tape";
 *
 * const pool = new Pool();
 * pool.allocate(1000); pool.allocate(3000);
 * console.log(largestBlocks(pool, 1).length); // → 1
 */
export function largestBlocks(pool: Pool, count: number = SHOWN): readonly PoolBlock[] {
  const live = [...pool.walk()].filter((block) => block.live);
  return live.sort((a, b) => b.asked - a.asked || a.address - b.address).slice(0, count);
}

/**
 * An allocation that does not fit.
 * @param cause where it is not the pool's limit that refuses it, but what owns the memory: that has no more
 */
export function poolRefused(
  pool: Pool,
  { bytes, tag, cause }: { readonly bytes: number; readonly tag: string | undefined; readonly cause?: TidemarkError },
): TidemarkError {
  const { allocated, reserved, largestFree, blocks } = pool.stats();
  const largest = largestBlocks(pool);
  const lines = largest.map((block) => `    ${grouped(block.asked).padStart(15)} bytes  ${block.tag ?? "(no line)"}`);
  const list = lines.length > 0 ? `\n  the largest of ${grouped(blocks)} live values:\n${lines.join("\n")}` : "";
  const most = cause
    ? cause.summary
    : `${grouped(bytes)} bytes do not fit into the limit of ${grouped(pool.limitBytes)}`;
  const numbers = [
    ...(cause ? [`${grouped(bytes)} bytes do not fit`] : []),
    most,
    `${grouped(allocated)} are in live values`,
    `the range is ${grouped(reserved)} long`,
    `the largest gap in it has ${grouped(largestFree)}`,
  ];
  return new TidemarkError("PoolExhausted", `${pool.name}: ${numbers.join("; ")}${list}`, {
    where: tag && LOCATION.test(tag) ? tag : undefined,
    help: cause
      ? "compute with less at a time; with a limit of its own a tape lists lines"
      : "raise the limit, or compute with less at a time",
  });
}
