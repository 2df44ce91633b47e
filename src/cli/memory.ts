/**
 * @file Memory of this process as the operating system counts it: resident pages now and at their most. Linux lets a
 * process forget its peak, so what imports took does not count; elsewhere there is no such thing and the answer is null.
 */
import { readFileSync, writeFileSync } from "node:fs";

function statusBytes(field: "VmRSS" | "VmHWM"): number | null {
  try {
    const line = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync("/proc/self/status", "utf8"));
    return line ? Number(line[1]) * 1024 : null;
  } catch {
    return null;
  }
}

/** Forgets the peak so far and gives the resident bytes; null where the peak cannot be forgotten. */
export function baselineRss(): number | null {
  try {
    // 5: reset the peak resident set size (proc(5), since Linux 4.0)
    writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    return null;
  }
  return statusBytes("VmRSS");
}

/** The most resident bytes since the baseline. */
export function peakRss(): number | null {
  return statusBytes("VmHWM");
}
