/**
 * @file A pool as a memory snapshot of PyTorch (`torch.cuda.memory._dump_snapshot`), which its page memory_viz and `tidemark view` open:
 * one segment with its blocks, and the allocations and frees that the pool remembers.
 */
import { writePickle } from "./pickle.ts";
import type { Pool } from "./pool.ts";

/**
 * Two events for each free: without the request the page shows the block as one that waits for others to end, for as long as it was in
 * use.
 */
const FREE_ACTIONS = ["free_requested", "free_completed"] as const;

/** Addresses that look like those of a device: 0 is no address to some readers. */
const FIRST_ADDRESS = 0x7f00_0000_0000;

type Frame = { readonly filename: string; readonly line: number; readonly name: string };

/** `model.ts:21:14 in decoder, from outside`, with or without the last two, or any text, as the one frame of a stack. */
function framesOf(tag: string | undefined): readonly Frame[] {
  if (tag === undefined) return [];
  const [, filename, line, name, note] = /^(.*?):(\d+)(?::\d+)?(?: in (.*?))?(?:, (.*))?$/.exec(tag) ?? [];
  if (filename === undefined) return [{ filename: "", line: 0, name: tag }];
  return [{ filename, line: Number(line), name: [name, note].filter((part) => part !== undefined).join(", ") }];
}

/**
 * The bytes of a pickle file.
 *
 * @example
 * import { Pool, poolSnapshot } from "tidemark/tape";
 *
 * const pool = new Pool({ history: 10 });
 * pool.allocate(1000);
 * console.log(poolSnapshot(pool).length > 0); // → true
 */
export function poolSnapshot(pool: Pool): Uint8Array {
  const { reserved, allocated, active } = pool.stats();
  const events = pool.events?.all() ?? [];
  const blocks = [...pool.walk()].map(({ address, bytes, asked, tag, live }) => ({
    address: FIRST_ADDRESS + address,
    size: bytes,
    requested_size: live ? asked : 0,
    state: live ? "active_allocated" : "inactive",
    frames: live ? framesOf(tag) : [],
  }));
  // readers look for the segment of every event: one that was longer before it was trimmed is shown as long as it was
  const longest = events.reduce((most, { address, bytes }) => Math.max(most, address + bytes), reserved);
  const trimmed = { size: longest - reserved, requested_size: 0, state: "inactive", frames: [] };
  if (longest > reserved) blocks.push({ address: FIRST_ADDRESS + reserved, ...trimmed });
  const segment = {
    device: 0,
    address: FIRST_ADDRESS,
    total_size: longest,
    allocated_size: active,
    active_size: active,
    requested_size: allocated,
    stream: 0,
    segment_type: "large",
    segment_pool_id: [0, 0],
    is_expandable: true,
    frames: [],
    blocks,
  };
  const trace = events.flatMap(({ isAllocation, address, bytes, tag }, i) => {
    const where = { addr: FIRST_ADDRESS + address, size: bytes, stream: 0, device: 0, time_us: i };
    const frames = framesOf(pool.tagText(tag));
    return (isAllocation ? ["alloc"] : FREE_ACTIONS).map((action) => ({ action, ...where, frames }));
  });
  return writePickle({
    segments: longest > 0 ? [segment] : [],
    device_traces: [trace],
    allocator_settings: { expandable_segments: true },
    external_annotations: [],
  });
}
