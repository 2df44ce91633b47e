/**
 * @file Memory of this process as the operating system counts it: resident pages now and at their most, and what they are
 * for. Linux lets a process forget its peak, so what imports took does not count; elsewhere there is no such thing and the
 * answer is null.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import { workerHeapBytes } from "../node/workers.ts";

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

/** Bytes by what they are for, as far as that can be told. */
export interface ResidentParts {
  /** Objects of the engine in this thread, and what it allocates for them. */
  readonly heap: number;
  /** Machine code: of the engine for JavaScript and WebAssembly, and libraries of native programs. */
  readonly code: number;
  /** Arrays of tensors and of the program itself, the arena of a native program among them. */
  readonly staging: number;
  /** Heaps of the threads that help to run WebAssembly. */
  readonly workers: number;
}

/** What can be executed and is in no file, made by the engine; and libraries as native programs have them. */
function codeBytes(): number {
  let [bytes, counts] = [0, false];
  for (const line of readFileSync("/proc/self/smaps", "utf8").split("\n")) {
    const mapping = /^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+\s*(.*)$/.exec(line);
    if (mapping) {
      const [, access = "", file = ""] = mapping;
      counts = file === "" ? access.includes("x") : file.endsWith(".so");
    } else if (counts && line.startsWith("Rss:")) bytes += Number(/\d+/.exec(line)?.[0] ?? 0) * 1024;
  }
  return bytes;
}

export function residentParts(): ResidentParts | null {
  try {
    const { total_physical_size: physical, malloced_memory: besides } = getHeapStatistics();
    const jitted = getHeapSpaceStatistics().filter(({ space_name }) => space_name.startsWith("code"));
    const inCode = jitted.reduce((sum, { physical_space_size }) => sum + physical_space_size, 0);
    const staging = process.memoryUsage().arrayBuffers;
    return { heap: physical - inCode + besides, code: codeBytes(), staging, workers: workerHeapBytes() };
  } catch {
    return null;
  }
}

/** What the peak is made of beside the arena. */
export interface OutsideArena extends ResidentParts {
  /**
   * The rest: pages of Node that were not touched before, slack of allocators, a heap that was larger at the peak than at the
   * end; less what the program never touched of its arena.
   */
  readonly other: number;
}

export interface RunMemory {
  readonly peakRssBytes: number | null;
  readonly baselineRssBytes: number | null;
  readonly before: ResidentParts | null;
  readonly after: ResidentParts | null;
  readonly arenaBytes: number;
  /** Of the arena that are among the arrays. */
  readonly arenaArrayBytes: number;
}

/** Adds up, with the arena, to the peak over the baseline; null where the system does not say. */
export function outsideArena(run: RunMemory): OutsideArena | null {
  const { peakRssBytes, baselineRssBytes, before, after, arenaBytes, arenaArrayBytes } = run;
  if (peakRssBytes === null || baselineRssBytes === null || !before || !after) return null;
  const grown = (part: keyof ResidentParts, less = 0): number => Math.max(0, after[part] - before[part] - less);
  const parts = {
    ...{ heap: grown("heap"), code: grown("code"), workers: grown("workers") },
    staging: grown("staging", arenaArrayBytes),
  };
  const known = parts.heap + parts.code + parts.staging + parts.workers;
  return { ...parts, other: peakRssBytes - baselineRssBytes - arenaBytes - known };
}
