/** @file Starts bench/overlap.ts on several processes: processes, rounds and rows as arguments. */
import { spawnSync } from "node:child_process";
import { build } from "rolldown";

const file = "node_modules/.cache/bench-overlap.mjs";
await build({
  input: "bench/overlap.ts",
  platform: "node",
  treeshake: false,
  external: ["koffi", "highs"],
  output: { file, codeSplitting: false },
  logLevel: "silent",
});
const [processes = "2", ...rest] = process.argv.slice(2);
const asRoot = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
const options = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", ...asRoot];
const { status } = spawnSync("mpirun", [...options, "-n", processes, process.execPath, file, ...rest], {
  stdio: "inherit",
});
process.exit(status ?? 1);
