/** @file The option `spill`: a folder, or the host's memory, for values that wait for their next use (docs/spill.md). */
import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import type { MemoryRequest } from "../compiler/request.ts";
import { HOST } from "../runtime/device.ts";
import { describe, fail, requireOptions } from "../trace/arguments.ts";
import type { CompileRequest, SpillOptions } from "./request.ts";

const RATE = /^(.*)\/s$/;

/** `"1GB/s"` as bytes a second. @internal */
export function parseRate(what: string, text: unknown): number {
  const help = 'give bytes a second with a unit: "1GB/s", "500MB/s"';
  const [, size] = (typeof text === "string" ? RATE.exec(text.trim()) : null) ?? [];
  if (size === undefined) return fail("InvalidArgument", `${what} is ${describe(text)}`, help);
  try {
    const rate = parseBytes(size);
    if (rate > 0) return rate;
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
  }
  return fail("InvalidArgument", `${what} is ${describe(text)}`, help);
}

interface Asked {
  readonly spill: SpillOptions;
  readonly memory: MemoryRequest;
}

/** What the option asks of planning and of loading. */
type Settled = Pick<CompileRequest, "memory" | "spillTo">;

/** Checks the option; a memory without a bandwidth is measured. @internal */
export function settleSpill({ spill, memory }: Asked, measure: (to: string) => number): Settled {
  requireOptions("spill", spill, { to: "a text", bandwidth: "a text", limit: "a text" });
  const { to, bandwidth = "auto", limit } = spill;
  if (to === undefined || to === "") {
    return fail("InvalidArgument", "spill names no folder", 'give one: { spill: { to: "/tmp" } }');
  }
  if (typeof to !== "string") {
    return fail(
      "InvalidArgument",
      `the folder of spill is ${describe(to)}`,
      'give its path: { spill: { to: "/tmp" } }',
    );
  }
  const isHost = to === HOST;
  if (isHost && limit !== undefined) {
    return fail("InvalidArgument", "spill: copies to the host's memory have no limit", "leave limit out");
  }
  const budget = budgetFor(memory);
  const most = limit === undefined ? undefined : parseRate("the limit of spill", limit);
  const rate = bandwidth === "auto" ? measure(to) : parseRate("the bandwidth of spill", bandwidth);
  const bytesPerSecond = Math.min(rate, most ?? rate);
  return { memory: { ...budget, spill: { bytesPerSecond, isHost } }, spillTo: { to, limit: most } };
}

/** A request of memory that a file can help to meet. @internal */
export function budgetFor(memory: MemoryRequest): MemoryRequest {
  if (memory.budgetBytes !== undefined && memory.maxSlowdown === undefined) return memory;
  const help = 'give memory as a number of bytes: { memory: "64MiB", spill: { to: "/tmp" } }';
  return fail("InvalidArgument", "spill without a budget in bytes", help);
}
