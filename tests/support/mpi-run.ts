/** @file Programs for several processes: bundled to JavaScript, and started by `mpirun` with more processes than cores. */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { build } from "rolldown";
import { mpiLibrary } from "../../src/node/mpi/library.ts";

/** Beside node_modules, where the bundle finds koffi. */
const BUNDLE = join("node_modules", ".cache", `mpi-ranks-${process.pid}.mjs`);

/** Why programs of several processes cannot run here, or null. */
export function mpiProblem(): string | null {
  const library = mpiLibrary();
  if (typeof library === "string") return library;
  return spawnSync("mpirun", ["--version"]).status === 0 ? null : "mpirun is not in PATH";
}

export async function bundleRanks(): Promise<void> {
  await build({
    input: "tests/mpi/ranks.ts",
    platform: "node",
    treeshake: false,
    external: ["koffi", "highs"],
    output: { file: BUNDLE, codeSplitting: false },
    logLevel: "silent",
  });
}

export interface Ended {
  /** Null: ended by a signal. */
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** What starts a part of tests/mpi/ranks.ts on so many processes. */
export function ranksCommand(
  processes: number,
  part: readonly string[],
  options: readonly string[] = [],
): readonly [command: string, args: readonly string[]] {
  const asRoot = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
  const shared = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", ...asRoot];
  return ["mpirun", [...shared, ...options, "-n", String(processes), process.execPath, BUNDLE, ...part]];
}

/** Runs it. */
export function runRanks(
  processes: number,
  part: readonly string[],
  options: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const [command, args] = ranksCommand(processes, part, options);
  return ended(spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } }));
}

/** Runs a part on one process that is started alone. */
export const runAlone = (part: readonly string[]): Promise<Ended> =>
  ended(spawn(process.execPath, [BUNDLE, ...part], { stdio: ["ignore", "pipe", "pipe"] }));

function ended(child: ChildProcessByStdio<null, Readable, Readable>): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (part: Buffer) => out.push(part));
    child.stderr.on("data", (part: Buffer) => err.push(part));
    child.on("error", reject);
    child.on("close", (status) =>
      resolve({ status, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }),
    );
  });
}
