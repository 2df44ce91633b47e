/** @file Programs for several processes: bundled to JavaScript, and started by `mpirun` with more processes than cores. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
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

/** Runs a part of tests/mpi/ranks.ts on so many processes. */
export function runRanks(
  processes: number,
  part: readonly string[],
  options: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const asRoot = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
  const shared = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", ...asRoot];
  const args = [...shared, ...options, "-n", String(processes), process.execPath, BUNDLE, ...part];
  return new Promise((resolve, reject) => {
    const child = spawn("mpirun", args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on("data", (part: Buffer) => out.push(part));
    child.stderr.on("data", (part: Buffer) => err.push(part));
    child.on("error", reject);
    child.on("close", (status) =>
      resolve({ status, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }),
    );
  });
}
