/**
 * @file What each process of a run by `mpirun` does, for tests/mpi.test.ts and tests/cuda-nccl.test.ts: bundled to JavaScript, and started with the name of a
 * part. A failure is thrown, and ends all processes; rank 0 prints what was found.
 */
import { installPart } from "../../src/api/host.ts";
import { main } from "../../src/cli/main.ts";
import { nodeHost } from "../../src/node/host.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { nativeTarget } from "../../src/node/native/target.ts";
import type { Target, TargetAnswer } from "../../src/runtime/device.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import { collectives } from "./collectives.ts";
import { experts } from "./experts.ts";
import { failures } from "./failures.ts";
import { nccl, ncclFailures } from "./nccl.ts";
import { onePipeline, pipelines } from "./pipelines.ts";
import { trainRuns } from "./train-runs.ts";
import { hostCount, trained, training, zero } from "./training.ts";

installPart("host", nodeHost);

/** The command line, which prints for rank 0 alone. */
async function bench(): Promise<undefined> {
  const io = { out: (text: string) => process.stdout.write(text), err: (text: string) => process.stderr.write(text) };
  process.exitCode = await main(process.argv.slice(2), io);
  return undefined;
}

function madeTarget(target: TargetAnswer): Target {
  if (typeof target === "string") throw new Error(target);
  return target;
}

const PARTS: Readonly<Record<string, () => unknown>> = {
  collectives: () => collectives(mpi(), (threads) => madeTarget(nativeTarget({ threads }))),
  wasmCollectives: () => collectives(mpi(), (threads) => wasmTarget(undefined, { ...nodeHost, threads, shareFrom: 0 })),
  experts: () => experts(mpi(), madeTarget(nativeTarget()), [{}]),
  training,
  zero,
  pipelines,
  onePipeline: () => ({ ...onePipeline(), hosts: hostCount() }),
  trained: () => ({ ...trained(mpi().size, 3), hosts: hostCount() }),
  bench,
  nccl,
  ...failures,
  ...ncclFailures,
  ...trainRuns,
};

const [, , name = ""] = process.argv;
const part = PARTS[name];
if (!part) throw new Error(`there is no part ${name}: ${Object.keys(PARTS).join(", ")}`);
const found = await part();
if (found !== undefined && mpi().rank === 0) console.log(JSON.stringify(found));
