/**
 * @file Collectives of the target `cuda`, with devices and an NCCL that the C compiler stands in for (support/emulated-cuda.ts,
 * support/emulated-nccl.ts): on one device, on several processes that `mpirun` starts, and what is said where something is missing or fails.
 */
import { beforeAll, describe, expect, it, vi } from "vitest";
import { compile, type Tensor, tensor } from "../src/api/index.ts";
import type { CudaMemory } from "../src/node/cuda/memory.ts";
import { ncclState } from "../src/node/cuda/nccl.ts";
import { type CudaRequest, cudaTarget } from "../src/node/cuda/target.ts";
import { numberOnMachine } from "../src/node/mpi/launched.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import { allReduce, mesh, shard } from "../src/parallel/index.ts";
import type { Target } from "../src/runtime/device.ts";
import { collectives } from "./mpi/collectives.ts";
import type { Running } from "./mpi/nccl.ts";
import { type Emulated, emulatedPlaces } from "./support/emulated-cuda.ts";
import { type EmulatedNccl, emulatedNccl, exchangesOf } from "./support/emulated-nccl.ts";
import "./support/host.ts";
import { bundleRanks, type Ended, mpiProblem, runRanks } from "./support/mpi-run.ts";
import { trainedAlone } from "./support/nccl-checks.ts";

const missing = typeof nativeTarget() === "string" && !process.env.CI;
const problem = mpiProblem();
if (problem !== null && process.env.CI) throw new Error(`tests on several processes cannot run: ${problem}`);

function found<T extends object>(answer: T | string): T {
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

type Places = CudaRequest & { readonly nccl: string };

/** A driver, a compiler and an NCCL; each once. */
const made = new Map<string, Places>();
function placesOf(how: Emulated & EmulatedNccl = {}): Places {
  const key = JSON.stringify(how);
  const known = made.get(key);
  if (known) return known;
  const places = found(emulatedPlaces(how));
  const all = { ...places, nccl: emulatedNccl(places.driver, how) };
  made.set(key, all);
  return all;
}

const device = (request: CudaRequest): Target => found(cudaTarget(request));

const total = (target: Target) =>
  compile(
    shard((x: Tensor) => allReduce(x, { over: "data" }), { mesh: mesh({ data: 1 }), in: ["data"], out: [] }),
    { target, name: "total" },
  );

describe.skipIf(missing)("on one device", () => {
  it.each(["early", "late"] as const)("every collective is its reference, and goes through NCCL: %s", (copies) => {
    const places = placesOf({ copies });
    const { cases } = collectives({ rank: 0, size: 1 }, () => device({ ...places, alone: true }));
    // but for the number of the device, and the neighbours that it has not
    expect(exchangesOf(places.nccl)).toBeGreaterThan(cases - 14);
    expect(cases).toBeGreaterThan(50);
  });

  it("training has the bits of a step without collectives, with parameters on all and in parts", () => {
    const places = placesOf({ copies: "late" });
    const plain = device({ ...places, alone: false });
    for (const zero of [0, 3] as const) {
      const before = exchangesOf(places.nccl);
      const want = trainedAlone(plain, zero);
      expect(exchangesOf(places.nccl)).toBe(before);
      expect(trainedAlone(device({ ...places, alone: true }), zero)).toEqual(want);
      expect(exchangesOf(places.nccl)).toBeGreaterThan(before);
    }
  });

  it("a mesh of it needs no NCCL, unless it is tried", () => {
    const nccl = "/nowhere/libnccl.so.2";
    const places = { ...found(emulatedPlaces()), nccl };
    expect(total(device(places))(tensor([1, 2])).toArray()).toEqual([1, 2]);
    expect(() => total(device({ ...places, alone: true }))(tensor([1, 2]))).toThrow(
      /total, on the mesh data=1, needs NCCL on the target cuda: no NCCL: \/nowhere\/libnccl.so.2 cannot be loaded[\s\S]*libnccl2[\s\S]*TIDEMARK_NCCL/,
    );
    vi.stubEnv("TIDEMARK_NCCL_ALONE", "1");
    expect(device(places).description.collectivesAlone).toBe(true);
    vi.unstubAllEnvs();
    const old = { ...places, nccl: emulatedNccl(places.driver, { version: 21_003 }) };
    expect(() => total(device({ ...old, alone: true }))(tensor([1, 2]))).toThrow(
      /is NCCL 2.10.3, and 2.14.0 is needed/,
    );
  });

  it("a memory says that it moves before it does, since other devices may know where it is", () => {
    const target = device({ ...placesOf({ copies: "late" }), alone: true });
    const memory = target.allocate() as CudaMemory;
    const places: bigint[] = [];
    memory.moves.add(() => places.push(memory.address));
    for (const bytes of [256, 128, 1024]) memory.reserve(bytes);
    expect(places).toEqual([0n, places[1]]);
    expect([0n, memory.address]).not.toContain(places[1]);
    // programs of one function share an arena, which grows under those that are there
    const sum = total(target);
    for (const n of [2, 5000, 2, 9000, 5000]) {
      const x = Array.from({ length: n }, (_, i) => i);
      expect(sum(tensor(x)).toArray()).toEqual(x);
    }
  });

  it("what NCCL refuses is said, and not that a graph has no end", () => {
    const sum = total(device({ ...placesOf({ refuses: true }), alone: true }));
    expect(() => sum(tensor([1, 2]))).toThrow(/NCCL refused ncclAllReduce: invalid argument[\s\S]*NCCL_DEBUG=WARN/);
  });

  it("a group that has failed ends what waits for it", () => {
    const changes = { cuEventQuery: "(void *e) { return 600; }" };
    const sum = total(device({ ...placesOf({ changes, failure: 6 }), alone: true }));
    const lost = /NCCL lost a device of the group over data of data=1: remote process exited/;
    expect(() => sum(tensor([1, 2]))).toThrow(lost);
    expect(() => sum(tensor([3, 4]))).toThrow(lost);
  });
});

/** The JSON that rank 0 printed. */
function foundBy({ status, out, err }: Ended): Record<string, unknown> {
  if (status !== 0) expect.fail(`status ${status}\n${err}\n${out}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
}

interface Trained {
  readonly losses: readonly number[];
  readonly hash: string;
  readonly inFlight: number;
}

describe.skipIf(missing || problem !== null)("on several processes", () => {
  const places: Record<Running, CudaRequest> = { early: {}, late: {} };
  const env = (others: Readonly<Record<string, string>> = {}) => ({ EMULATED_CUDA: JSON.stringify(places), ...others });

  beforeAll(async () => {
    for (const copies of ["early", "late"] as const) places[copies] = placesOf({ copies });
    await bundleRanks();
  });

  it("every collective is its reference, and training has the bits of native code", async () => {
    const ended = await runRanks(4, ["nccl"], [], env());
    const all = foundBy(ended);
    expect(all.cases).toBeGreaterThan(200);
    const { stages, native } = all as unknown as { readonly stages: readonly Trained[]; readonly native: Trained };
    for (const { losses, hash, inFlight } of stages) {
      expect({ losses, hash }).toEqual({ losses: native.losses, hash: native.hash });
      expect(inFlight).toBeGreaterThan(2);
    }
    expect(new Set(all.hashes as readonly number[]).size).toBe(1);
    expect(all.doubled).toBe(1536);
    // each waits for its device before it leaves: others may need what that still does
    const leaving = [...ended.err.matchAll(/process (\d+) leaves/g)].map(([, pid]) => pid);
    expect(leaving).toHaveLength(4);
    for (const pid of leaving)
      expect(ended.err).toMatch(new RegExp(`process ${pid} leaves[^]*asked of process ${pid}`));
    // what the library took of the device for its groups
    expect((all.figures as { startBytes: number }).startBytes).toBeGreaterThanOrEqual(5 * 2 ** 20);
  });

  it("processes that share a GPU are told, and so are different programs", async () => {
    const shared = await runRanks(2, ["ncclSums"], [], env({ EMULATED_ONE_GPU: "1" }));
    expect(shared.status).not.toBe(0);
    expect(shared.err).toMatch(/ranks 0 and 1 of the group over data of data=2 have one GPU together/);
    const different = await runRanks(2, ["ncclSums"], [], env({ EMULATED_OTHER: "1" }));
    expect(different.status).not.toBe(0);
    expect(different.err).toMatch(/do not have the same program and plan: \w+ on rank 0; \w+ on rank 1/);
  });

  it("a process that throws ends all, with its rank and its program", async () => {
    const { status, err } = await runRanks(2, ["ncclThrows"], [], env());
    expect(status).not.toBe(0);
    expect(err).toMatch(/rank 1 of 2 .*: Error: the data is not there/);
    expect(err).toMatch(
      /in sums, whose 1 collectives run on the device, the first of them all_reduce of 4 f32 over data of data=2, step 1/,
    );
  });
});

describe("what is there", () => {
  it("is said of NCCL", () => {
    const { available, note } = ncclState({ TIDEMARK_NCCL: "/nowhere/libnccl.so.2" });
    expect(available).toBe(false);
    expect(note).toMatch(/no NCCL: \/nowhere\/libnccl.so.2 cannot be loaded.*apt-get install libnccl2/);
  });

  it.skipIf(missing)("is a library with its version", () => {
    const { nccl } = placesOf({ copies: "late" });
    expect(ncclState({ TIDEMARK_NCCL: nccl })).toEqual({ available: true, note: `NCCL 2.21.5: ${nccl}` });
  });

  it("is a number of each process on its machine", () => {
    const started = { OMPI_COMM_WORLD_RANK: "5", OMPI_COMM_WORLD_SIZE: "8" };
    expect(numberOnMachine({})).toBe(0);
    expect(numberOnMachine({ ...started, OMPI_COMM_WORLD_LOCAL_RANK: "1" })).toBe(1);
    expect(numberOnMachine({ PMI_RANK: "6", PMI_SIZE: "8", MPI_LOCALRANKID: "2" })).toBe(2);
    expect(numberOnMachine(started)).toBe(5);
  });
});
