/**
 * @file Programs on several processes, with a real MPI: collectives on native code against their references, data-parallel
 * training with collectives in flight, and what happens when a process fails. Few starts of `mpirun`, each of which does much.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { compile, type Tensor, zeros } from "../src/api/index.ts";
import { onMesh } from "../src/cli/mesh.ts";
import { formProgram } from "../src/cli/mesh-form.ts";
import type { AnyProgram } from "../src/cli/programs/built-in.ts";
import { gpt } from "../src/cli/programs/gpt.ts";
import { mlp as mlpProgram } from "../src/cli/programs/mlp.ts";
import { mpi } from "../src/node/mpi/public.ts";
import { mpiState } from "../src/node/mpi/state.ts";
import { mpiToolchain } from "../src/node/mpi/toolchain.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import { allReduce, type MeshAxes, mesh, shard } from "../src/parallel/index.ts";
import { tidemark } from "./support/command.ts";
import { bundleRanks, type Ended, mpiProblem, runRanks } from "./support/mpi-run.ts";

const problem = mpiProblem();
if (problem !== null) {
  if (process.env.CI) throw new Error(`tests on several processes cannot run: ${problem}`);
  console.warn(`SKIPPED: tests on several processes: ${problem} (Debian: apt-get install openmpi-bin libopenmpi-dev)`);
}

/** The JSON that rank 0 printed. */
function foundBy({ status, out, err }: Ended): Record<string, unknown> {
  if (status !== 0) expect.fail(`status ${status}\n${err}\n${out}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
}

/** What training in a pipeline found, or on one process. */
interface Piped {
  /** Collectives of a slot, or of the slots of an iteration, that are in flight beside other steps. */
  readonly inFlight: number;
  readonly losses: readonly number[];
  readonly stages: readonly string[];
  readonly shared: string;
  readonly arenaBytes: number;
}

describe.skipIf(problem !== null)("on several processes", () => {
  beforeAll(bundleRanks);

  it("every collective is its reference, on one to four devices and all types", async () => {
    const found = foundBy(await runRanks(4, ["collectives"]));
    expect(found.cases).toBeGreaterThan(200);
  });

  it("and so is it on WebAssembly, with one thread and with two", async () => {
    const found = foundBy(await runRanks(4, ["wasmCollectives"]));
    expect(found.cases).toBeGreaterThan(200);
  });

  it("training has collectives in flight, the same bits on all ranks and over tcp, and the planned bytes", async () => {
    const found = foundBy(await runRanks(4, ["training"]));
    expect(found.inFlight).toBeGreaterThan(2);
    const { hashes, planned, measured, deadBytes } = found as Record<string, readonly number[]>;
    expect(new Set(hashes).size).toBe(1);
    expect(found.inPieces).toEqual([found.hash, found.hash]);
    expect(measured).toEqual(planned);
    expect(new Set(planned)).toEqual(new Set([found.arenaBytes]));
    expect(Math.min(...(deadBytes as readonly number[]))).toBeGreaterThan(0);
    const tcp = foundBy(await runRanks(4, ["trained"], ["--mca", "btl", "self,tcp"]));
    expect(tcp.hash).toBe(found.hash);
  });

  it("sharded optimizer state, and sharded parameters, have the bits of one process with as many microbatches", async () => {
    const found = foundBy(await runRanks(4, ["zero"]));
    const stages = found.stages as readonly { hash: string; arenaBytes: number; inFlight: number }[];
    const alone = found.alone as (typeof stages)[number];
    expect(stages.map(({ hash }) => hash)).toEqual(stages.map(() => alone.hash));
    expect(Math.min(...stages.map(({ inFlight }) => inFlight))).toBeGreaterThan(0);
    expect(new Set(found.hashes as readonly number[]).size).toBe(1);
    expect(stages[1]?.arenaBytes).toBeLessThan(stages[0]?.arenaBytes ?? 0);
    expect(stages[0]?.arenaBytes).toBeLessThan(alone.arenaBytes);
  });

  it("pipelines have the bits of one process, with every schedule", async () => {
    const { alone, found } = foundBy(await runRanks(4, ["pipelines"])) as unknown as Record<"alone", Piped> & {
      readonly found: readonly (Piped & { readonly schedule: string; readonly data: number })[];
    };
    const bits = ({ losses, stages, shared }: Piped) => ({ losses, stages, shared });
    const onFour = found.filter(({ data }) => data === 1);
    expect(onFour.map(({ schedule }) => schedule)).toEqual(["gpipe", "1f1b", "interleaved", "zero-bubble"]);
    for (const one of onFour) expect(bits(one)).toEqual(bits(alone));
    // results and cotangents of a slot, and those of the second slot of an iteration
    expect(onFour.map(({ inFlight }) => inFlight)).toEqual([2, 4, 2, 2]);
    // two rows of data add up half of the microbatches each
    const [whole, sharded] = found.filter(({ data }) => data === 2);
    expect(bits(whole as Piped)).toEqual(bits(sharded as Piped));
    expect(whole?.losses[0]).toBeCloseTo(alone.losses[0] as number, 4);
    const [gpipe, oneByOne] = onFour.map(({ arenaBytes }) => arenaBytes);
    expect(oneByOne).toBeLessThan(gpipe as number);
    expect(gpipe).toBeLessThan(alone.arenaBytes);
  });

  it("experts that are shared out have the values and gradients of one process", async () => {
    expect(foundBy(await runRanks(4, ["experts"])).compared).toBe((24 * 8) / 4 + 8 * 12 + (12 * 3 * 8 * 16) / 4);
  });

  it("bench prints one line, and a deterministic step has the bits of microbatches", async () => {
    const two = foundBy(
      await runRanks(2, ["bench", "mlp", "--mesh", "data=2", "--deterministic", "--steps", "2", "--json"]),
    );
    const { out, code } = await tidemark(
      ...["bench", "mlp", "--microbatches", "2", "--target", "native", "--steps", "2", "--json"],
    );
    expect(code).toBe(0);
    const one = JSON.parse(out) as Record<string, unknown>;
    expect(two.losses).toEqual(one.losses);
    expect(two.stateHash).toBe(one.stateHash);
    const mesh = two.mesh as Record<string, unknown>;
    expect(mesh).toMatchObject({ axes: "data=2", devices: 2, deterministic: true, microbatches: 1 });
    expect(mesh.exchangedBytes).toBeGreaterThan(0);
    expect((mesh.mpi as Record<string, unknown>).startBytes).toBeGreaterThan(0);
  });

  it("bench has the losses of one process, with halves of the batch and of the weights", async () => {
    const run = ["bench", "gpt", "--steps", "2", "--json"];
    const four = foundBy(await runRanks(4, [...run, "--mesh", "data=2,tensor=2"]));
    const { out } = await tidemark(...run, "--target", "native");
    const one = JSON.parse(out) as Record<string, unknown>;
    const [wanted, found] = [one.losses, four.losses] as readonly (readonly number[])[];
    expect(found?.map((loss, i) => Math.abs(loss - (wanted?.[i] as number)) < 1e-4)).toEqual([true, true]);
    expect(four.persistentBytes as number).toBeLessThan(0.53 * (one.persistentBytes as number));
    // of whole parameters, on every rank
    expect(four.stateHash).toMatch(/^[0-9a-f]{64}$/);
  });

  it("bench chooses a form and trains in it, or in one that is spelled out, with the losses of one process", async () => {
    const { out } = await tidemark("bench", "mlp", "--target", "native", "--steps", "3", "--json");
    const one = JSON.parse(out) as Record<string, unknown>;
    const run = ["bench", "mlp", "--steps", "3", "--json", "--mesh"];
    const chosen = foundBy(await runRanks(2, [...run, "auto", "--budget", "64MiB", "--cores", "1"]));
    const { form, costs, forms, why } = chosen.auto as {
      readonly form: string;
      readonly costs: Record<string, number>;
      readonly forms: readonly {
        readonly name: string;
        readonly fits: boolean;
        readonly arguments: readonly string[];
      }[];
      readonly why: readonly string[];
    };
    expect(forms[0]).toMatchObject({ name: form, fits: true });
    expect(why[0]).toContain(form);
    expect(costs).toMatchObject({ coresPerDevice: 0.5 });
    expect(costs.networkRate).toBeGreaterThan(0);
    expect(costs.messageSeconds).toBeGreaterThan(0);
    expect((chosen.mesh as Record<string, unknown>).axes).toBe(form);
    const last = forms.at(-1)?.arguments as readonly string[];
    const spelled = foundBy(await runRanks(2, [...run.slice(0, -1), ...last, "--network", "1e9", "--latency", "1e-6"]));
    const losses = one.losses as readonly number[];
    for (const found of [chosen, spelled]) {
      (found.losses as readonly number[]).forEach((loss, i) => {
        expect(loss).toBeCloseTo(losses[i] as number, 5);
      });
      expect(found.stateHash).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  it("processes with different programs are told which", async () => {
    const { status, err } = await runRanks(3, ["different"]);
    expect(status).not.toBe(0);
    expect(err).toMatch(/do not have the same program and plan: \w+ on rank 0, 2; \w+ on rank 1/);
  });

  it("a process that throws ends all, with its rank, its program and where it was", async () => {
    const { status, err } = await runRanks(2, ["throws"]);
    expect(status).not.toBe(0);
    expect(err).toMatch(/rank 1 of 2 .*: Error: the data is not there/);
    expect(err).toMatch(/rank 1 of 2 .*: in sums, last collective: all_reduce of 4096 f32 over data of data=2, step 1/);
  });

  it("a process that is killed, or exits, ends the others", async () => {
    const killed = await runRanks(2, ["killed"]);
    const since = Date.now() - Number(/killed at (\d+)/.exec(killed.err)?.[1]);
    console.log(`milliseconds from the end of a killed process to that of all: ${since}`);
    expect(since).toBeLessThan(5000 * Number(process.env.TEST_SLOWNESS ?? 1));
    const ended = await runRanks(2, ["ends"]);
    expect(killed.status).not.toBe(0);
    expect(killed.err).toMatch(/rank 1 .*signal 9/s);
    expect(ended.status).toBe(3);
    expect(ended.err).toMatch(/rank 1 of 2 .* ended with status 3/);
  });
});

describe("the doctor", () => {
  it("says what is missing", () => {
    const without = mpiToolchain({ PATH: "/nowhere" });
    expect(without).toBe("no MPI: looked for mpicc in PATH");
    expect(mpiState({ PATH: "/nowhere" }).available).toBe(false);
    if (problem === null) expect(mpiState()).toMatchObject({ available: true });
    else expect(mpiState().note).toContain("apt-get install openmpi-bin libopenmpi-dev");
  });
});

describe("a mesh of several devices in one process", () => {
  it.skipIf(typeof nativeTarget() === "string")("says how to start it", () => {
    const sum = compile(
      shard((x: Tensor) => allReduce(x, { over: "data" }), { mesh: mesh({ data: 3 }), in: ["data"], out: [] }),
      { target: "native", name: "total" },
    );
    expect(() => sum(zeros([4]))).toThrow(
      /total, on the mesh data=3, needs 3 processes, and this one was started alone\s[\s\S]*mpirun -n 3 node/,
    );
    expect(mpi()).toEqual({ rank: 0, size: 1 });
  });

  it("is refused by bench, with the command that starts it", async () => {
    const { code, err } = await tidemark("bench", "mlp", "--mesh", "data=2");
    expect(code).not.toBe(0);
    expect(err).toContain("the mesh data=2 has 2 devices, and one process was started");
    expect(err).toContain("mpirun -n 2 tidemark bench");
  });

  it("plans a device's rows of the batch", () => {
    const axes = [{ name: "data", extent: 4, index: 1 }];
    const settings = { mesh: "data=4", devices: 4, axes, rank: 1, microbatches: 1, isDeterministic: false };
    const own = onMesh(gpt as AnyProgram, settings);
    expect(own.batch().map(({ shape }) => shape[0])).toEqual(gpt.batch().map(({ shape }) => (shape[0] as number) / 4));
    // the arguments are planned as they are
    expect(own.specs).toBeUndefined();
  });

  it("cuts the weights of gpt, and each device has its part of them and its rows", () => {
    const axes = [
      { name: "data", extent: 2, index: 1 },
      { name: "tensor", extent: 4, index: 2 },
    ];
    const settings = { mesh: "data=2,tensor=4", devices: 8, axes, rank: 6, microbatches: 1, isDeterministic: false };
    const own = onMesh(gpt as AnyProgram, settings);
    const [all, mine] = [gpt.init().params, (own.init() as ReturnType<typeof gpt.init>).params];
    expect(mine.head?.shape).toEqual([128, 128]);
    expect(mine.head?.toArray()).toEqual(
      all.head
        ?.slice([
          [0, 128],
          [256, 384],
        ])
        .toArray(),
    );
    // the third of four heads of the queries, keys and values
    const of = (i: number) =>
      all.blocks[0]?.qkv
        .slice([
          [0, 128],
          [128 * i + 64, 128 * i + 96],
        ])
        .toArray() as number[][];
    const joined = of(0).map((row, r) => [...row, ...(of(1)[r] as number[]), ...(of(2)[r] as number[])]);
    expect(mine.blocks[0]?.qkv.toArray()).toEqual(joined);
    expect(mine.blocks[0]?.ln1g.shape).toEqual([128]);
    expect(own.batch()[0]?.shape).toEqual([4, 128]);
  });

  it("refuses forms that there are not", async () => {
    const refused = async (...given: readonly string[]): Promise<string> =>
      (await tidemark("bench", "gpt", ...given)).err;
    expect(await refused("--zero", "1")).toContain("--zero without --mesh");
    expect(await refused("--mesh", "auto", "--zero", "1")).toContain("--zero with --mesh auto, which chooses it");
    expect(await refused("--mesh", "data=1", "--schedule", "gpipe")).toContain("--schedule with one stage");
    expect(await refused("--mesh", "rows=2", "--zero", "1")).toContain("--mesh rows=2 with --zero");
    expect(await refused("--mesh", "pipeline=2")).toContain(
      "the mesh pipeline=2 has 2 devices, and one process was started",
    );
    expect(await refused("--mesh", "auto", "--network", "fast")).toContain("--network fast");
    const form = (axes: MeshAxes, microbatches: number) => () =>
      formProgram(
        gpt as AnyProgram,
        {
          mesh: mesh({ data: 1, pipeline: 1, tensor: 1, ...axes }),
          zero: 0,
          microbatches,
          schedule: "1f1b",
          chunks: 1,
        },
        { rank: 0, deterministic: false },
      );
    expect(form({ tensor: 3 }, 1)).toThrow("4 parts in 3");
    expect(form({ pipeline: 3 }, 3)).toThrow("4 blocks in 3 pieces");
    expect(form({ data: 2, pipeline: 2 }, 8)).toThrow("a batch of 8 rows in 16 parts");
  });

  it("refuses axes by name", async () => {
    const { code, err: rows } = await tidemark("bench", "gpt", "--mesh", "data=2,rows=2");
    expect(code).not.toBe(0);
    expect(rows).toContain("programs are not split over an axis rows");
    expect(rows).toContain("--mesh data=4");
    const mlp = () => onMesh(mlpProgram as AnyProgram, cut(2));
    expect(mlp).toThrow("the layers of mlp are not split over an axis tensor");
    expect(() => onMesh(gpt as AnyProgram, cut(3))).toThrow("4 heads in 3 parts");
  });
});

/** Settings of so many devices along an axis `tensor`. */
const cut = (extent: number) => ({
  ...{ mesh: `tensor=${extent}`, devices: extent, axes: [{ name: "tensor", extent, index: 0 }] },
  ...{ rank: 0, microbatches: 1, isDeterministic: false },
});
