/** @file What is there, and what is missing, for programs on several processes. */
import { readFileSync } from "node:fs";
import { commandPath, run } from "../native/compiler.ts";
import { mpiLibrary } from "./library.ts";
import { INSTALL_MPI } from "./toolchain.ts";

export interface MpiState {
  readonly available: boolean;
  readonly note: string;
}

/** Whether Linux keeps processes from reading each other's memory: large messages are then copied twice. */
function copiesTwice(): boolean {
  try {
    return readFileSync("/proc/sys/kernel/yama/ptrace_scope", "utf8").trim() !== "0";
  } catch {
    return false;
  }
}

/** Found out by compiling what calls MPI, and loading it. */
export function mpiState({ PATH = "" }: NodeJS.ProcessEnv = process.env): MpiState {
  const library = mpiLibrary();
  if (typeof library === "string") return { available: false, note: `${library}; one process runs. ${INSTALL_MPI}` };
  const start = commandPath("mpirun", PATH) ?? commandPath("mpiexec", PATH);
  if (start === null) return { available: false, note: `mpirun is not in PATH; one process runs. ${INSTALL_MPI}` };
  const version = run(start, ["--version"])?.split("\n")[0] ?? "";
  const slow = copiesTwice() ? "; large messages are copied twice (/proc/sys/kernel/yama/ptrace_scope is not 0)" : "";
  return { available: true, note: `${version}: ${start} -n 4 node …${slow}` };
}
