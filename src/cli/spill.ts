/**
 * @file The option `--spill FOLDER[,BANDWIDTH]` of commands: a folder, or `host` for the host's memory, for values that wait for their
 * next use (docs/spill.md).
 */
import type { SpillOptions } from "../api/request.ts";
import { parseRate } from "../api/spill.ts";
import type { SpillRequest } from "../compiler/request.ts";
import { measureSecond } from "../node/spilled.ts";
import { HOST } from "../runtime/device.ts";
import type { CostModel } from "../target/work.ts";
import type { Arguments, OptionSpec } from "./command.ts";

export const SPILL_OPTION = {
  spill: {
    value: "FOLDER[,BANDWIDTH]",
    help: "also move values to a file in the folder where that is faster: /tmp, /tmp,1GB/s; of cuda: host; measured by default",
  },
} as const satisfies Record<string, OptionSpec>;

/** Where values may go, and how fast that is. */
export interface SpillSettings extends SpillRequest {
  readonly options: SpillOptions;
}

export function spillOf(args: Arguments): SpillSettings | undefined {
  const given = args.value("spill");
  if (given === undefined) return undefined;
  const comma = given.lastIndexOf(",");
  const hasRate = comma >= 0 && given.endsWith("/s");
  const to = hasRate ? given.slice(0, comma) : given;
  const bytesPerSecond = hasRate ? parseRate("the bandwidth of --spill", given.slice(comma + 1)) : measureSecond(to);
  return { bytesPerSecond, isHost: to === HOST, options: { to, bandwidth: `${bytesPerSecond}B/s` } };
}

/** Rates with that of copies to the file. */
export const withLink = (costs: CostModel, spill: SpillRequest | undefined): CostModel =>
  spill ? { ...costs, linkRate: spill.bytesPerSecond } : costs;
