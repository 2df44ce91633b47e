/**
 * @file `tidemark doctor`: what this machine offers and how Tidemark uses it. Everything is tested rather than
 * inferred: instructions by compiling a module that uses them, tools by running them.
 */

import { spawnSync } from "node:child_process";
import { availableParallelism, totalmem } from "node:os";
import { currentHost } from "../../api/host.ts";
import { formatBytes } from "../../base/bytes.ts";
import { counted, TidemarkError } from "../../base/errors.ts";
import { detectFeatures, type Features } from "../../codegen/wasm/features.ts";
import { cacheFolder, NO_CACHE_FOLDER } from "../../node/cache-folder.ts";
import { type NcclState, ncclState } from "../../node/cuda/nccl.ts";
import { solverProblem } from "../../node/highs.ts";
import { type MpiState, mpiState } from "../../node/mpi/state.ts";
import { type Caches, cachesIn } from "../../node/native/processor.ts";
import { plansFolder } from "../../node/plan-store.ts";
import { privateFolder } from "../../node/private-folder.ts";
import { table } from "../../plan/table.ts";
import { chooseTarget, type TargetName } from "../../runtime/choose-target.ts";
import { type Command, type Io, writeJson } from "../command.ts";
import { cpuName, type MachineModel, machineModel, ratesText } from "../machine.ts";
import { awaitTarget, MEASURED_TARGETS } from "../target-settings.ts";

interface Tool {
  readonly command: string;
  /** The first line of its version output. */
  readonly version: string;
}

interface TargetState {
  readonly name: string;
  readonly available: boolean;
  readonly note: string;
}

interface CacheState {
  readonly folder: string | null;
  readonly plans: string | null;
  readonly problem: string | null;
}

interface MachineReport {
  readonly node: string;
  readonly platform: string;
  readonly cpu: string;
  readonly threads: number;
  /** Of one core; null where the system does not list them. */
  readonly caches: Caches | null;
  readonly memoryBytes: number;
  readonly wasm: Features;
  readonly targets: readonly TargetState[];
  /** Of integer programs, for the strategy `optimal`. */
  readonly solver: { readonly available: boolean; readonly note: string };
  readonly compiler: Tool | null;
  readonly mpi: Tool | null;
  /** Several processes that run one program. */
  readonly devices: MpiState;
  /** The same on GPUs. */
  readonly nccl: NcclState;
  readonly gpus: readonly string[];
  /** The cost model for predictions. */
  readonly speed: MachineModel;
  /** The folders of rates, compiled programs and plans; null with a reason if they are not cached. */
  readonly cache: CacheState;
}

/** Standard output of a command, or null if it is missing, fails or takes too long. */
function outputOf(command: string, args: readonly string[]): string | null {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8", timeout: 5000 });
  return status === 0 && stdout.trim() !== "" ? stdout.trim() : null;
}

function firstOf(commands: readonly string[]): Tool | null {
  for (const command of commands) {
    const version = outputOf(command, ["--version"])?.split("\n")[0];
    if (version !== undefined) return { command, version };
  }
  return null;
}

async function stateOf(name: TargetName): Promise<TargetState> {
  try {
    await awaitTarget(name);
    const { target, note } = chooseTarget(currentHost(), name);
    return { name, available: true, note: note === null ? target.uses : `${target.uses}; ${note}` };
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
    return { name, available: false, note: error.summary };
  }
}

function cacheState(): CacheState {
  const folder = cacheFolder();
  const cache = folder === null ? { problem: NO_CACHE_FOLDER } : privateFolder(folder);
  return { folder, plans: plansFolder(), problem: "problem" in cache ? cache.problem : null };
}

function cacheText({ folder, plans, problem }: CacheState): string {
  if (problem !== null) return `not used: ${problem}`;
  return `${folder}, ${plans === null ? "no plans" : "plans too"}`;
}

function solverState(): MachineReport["solver"] {
  const problem = solverProblem();
  return { available: problem === null, note: problem ?? "highs, for the strategy optimal" };
}

async function findings(io: Io): Promise<MachineReport> {
  const wasm = detectFeatures();
  const gpus = outputOf("nvidia-smi", ["--query-gpu=name,memory.total", "--format=csv,noheader"]);
  return {
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    cpu: cpuName(),
    threads: availableParallelism(),
    caches: cachesIn(),
    memoryBytes: totalmem(),
    wasm,
    targets: await Promise.all(MEASURED_TARGETS.map(stateOf)),
    solver: solverState(),
    compiler: firstOf(["cc", "gcc", "clang"]),
    mpi: firstOf(["mpirun", "mpiexec"]),
    devices: mpiState(),
    nccl: ncclState(),
    gpus: gpus === null ? [] : gpus.split("\n"),
    speed: machineModel(io.err),
    cache: cacheState(),
  };
}

function speedText({ costs, costModel, date }: MachineModel): string {
  const from = costModel === "default" ? "not calibrated (tidemark calibrate)" : `calibrated ${date?.slice(0, 10)}`;
  return `${from}: ${ratesText(costs)}`;
}

const cachesText = (caches: Caches | null): string =>
  caches ? `, caches of a core ${formatBytes(caches.first)} and ${formatBytes(caches.second)}` : "";

function findingsText(f: MachineReport): string {
  const toolText = (tool: Tool | null): string => (tool ? `${tool.command}: ${tool.version}` : "none found");
  const rows = [
    ["node", `${f.node} on ${f.platform}`],
    ["cpu", `${f.cpu}, ${counted(f.threads, "thread")}, ${formatBytes(f.memoryBytes)}${cachesText(f.caches)}`],
    ...f.targets.map((t) => [t.name, `${t.available ? "available" : "not available"}: ${t.note}`]),
    ["solver", `${f.solver.available ? "available" : "not available"}: ${f.solver.note}`],
    ["speed", speedText(f.speed)],
    ["cache", cacheText(f.cache)],
    ["compiler", toolText(f.compiler)],
    ["MPI", `${f.devices.available ? "available" : "not available"}: ${f.devices.note}`],
    ["NCCL", `${f.nccl.available ? "available" : "not available"}: ${f.nccl.note}`],
    ["GPU", f.gpus.length > 0 ? f.gpus.join("; ") : "none found by nvidia-smi"],
  ];
  return `${table(rows, ["left", "left"]).join("\n")}\n`;
}

export const doctor: Command = {
  name: "doctor",
  positionals: [],
  summary: "show the features of this machine: targets, threads, compiler, MPI, GPU, NCCL",
  options: { json: { help: "print one line of JSON" } },
  async run(args, io) {
    const report = await findings(io);
    if (args.has("json")) writeJson(io, report);
    else io.out(findingsText(report));
  },
};
