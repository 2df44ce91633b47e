/** @file Training with what `dataParallel` gives, on a mesh of one device; tests/mpi-train.test.ts has several processes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Crash, crashAfter } from "../../../tests/node/files.ts";
import { random, type Tensor, tensor } from "../../api/index.ts";
import { adam, sgd } from "../../optim/index.ts";
import { dataParallel } from "../../parallel/data-parallel.ts";
import { mesh } from "../../parallel/mesh.ts";
import { type Files, NODE_FILES } from "../files.ts";
import { train } from "../train.ts";
import type { ParallelTrainOptions } from "../train-options.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-train-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(root, "run-"));

const lossOf = (w: Tensor, x: Tensor): Tensor => x.matmul(w).tanh().square().mean();
type Given = Partial<ParallelTrainOptions<Tensor, [Tensor]>> & { readonly zero?: 0 | 1 | 2 | 3 };

const run = ({ zero = 0, ...given }: Given = {}, files: Files = NODE_FILES) =>
  train(
    {
      parallel: dataParallel(lossOf, adam({ lr: 0.1 }), { mesh: mesh({ data: 1 }), over: "data", zero }),
      params: tensor([0.5, -1, 2]),
      steps: 10,
      every: 3,
      batch: (i) => [random.normal(random.key(i), [4, 3])],
      directory: folder(),
      ...given,
    },
    files,
  );

const bits = ({ state, loss }: Awaited<ReturnType<typeof run>>): unknown =>
  [state.params, ...Object.values(state.slots), state.step, loss as Tensor].map((x) => x.reshape([-1]).toArray());

const whole = await run();

describe("training on a mesh of one device", () => {
  it("goes on from the last snapshot that is complete, also with another stage of ZeRO", async () => {
    let [stops, resumed] = [0, 0];
    for (let operations = 0; operations < 64; operations += 8) {
      const directory = folder();
      const crash = crashAfter(operations);
      const outcome = await run({ directory, zero: 2 }, crash.files).catch((error: unknown) => error);
      if (!crash.crashed()) break;
      stops++;
      expect(outcome).toBeInstanceOf(Crash);
      const again = await run({ directory, zero: at(stops) });
      expect(bits(again)).toEqual(bits(whole));
      if (again.resumed) resumed++;
      expect(again).toMatchObject({ resumedFrom: again.resumed ? "data=1" : null, damaged: [] });
    }
    expect(stops).toBeGreaterThan(3);
    expect(resumed).toBeGreaterThan(0);
  });

  it("can be asked for more steps, says its device and what is damaged, and calls back after each step", async () => {
    const directory = folder();
    const devices: unknown[] = [];
    await run({ directory, steps: 6 });
    const file = join(directory, "state-6.0-of-1.tide");
    writeFileSync(file, readFileSync(file).subarray(1));
    const seen: number[] = [];
    const again = await run({
      directory,
      onStep: (i) => seen.push(i),
      batch(i, device) {
        devices.push(device);
        return [random.normal(random.key(i), [4, 3])];
      },
    });
    expect(again.damaged).toEqual([expect.stringMatching(/state-6\.0-of-1\.tide is damaged: it has/)]);
    expect([bits(again), again.ran, seen]).toEqual([bits(whole), 7, [3, 4, 5, 6, 7, 8, 9]]);
    const device = { rank: 0, size: 1, part: 0, parts: 1 };
    expect([again.device, devices]).toEqual([device, devices.map(() => device)]);
    expect(readdirSync(directory).sort()).toEqual(
      ["run.json", "state-10.0-of-1.tide", "state-10.tide", "state-9.0-of-1.tide", "state-9.tide"].sort(),
    );
    expect(await run({ directory })).toMatchObject({ ran: 0, resumed: true });
  });

  it("refuses the folder of another run by what is different, and is refused in that of one process", async () => {
    const directory = folder();
    await run({ directory, steps: 3 });
    const parallel = dataParallel(lossOf, sgd({ lr: 0.1 }), { mesh: mesh({ data: 1 }), over: "data" });
    const same = "contains another run: different";
    await expect(run({ directory, parallel })).rejects.toThrow(`${same} optimizer, step`);
    await expect(run({ directory, params: tensor([1, 2, 3]) })).rejects.toThrow(`${same} parameters`);
    const twice = dataParallel((w: Tensor, x: Tensor) => lossOf(w, x).mul(2), adam({ lr: 0.1 }), {
      mesh: mesh({ data: 1 }),
      over: "data",
    });
    await expect(run({ directory, parallel: twice })).rejects.toThrow(`${same} step`);
    const plain = train({
      step: (w: Tensor, x: Tensor) => [w.add(x.sum()), w.sum()] as const,
      ...{ state: tensor([1]), steps: 1, batch: () => [tensor([1])] as const, directory },
    });
    await expect(plain).rejects.toThrow(`${same} what`);
  });

  it("says what is wrong with its options, and how more devices are started", async () => {
    await expect(run({ parallel: (() => 1) as never })).rejects.toThrow("train: parallel is the function");
    await expect(run({ every: 0 })).rejects.toThrow("train: every is 0");
    await expect(run({ batch: 3 as never })).rejects.toThrow("InvalidArgument");
    await expect(run({ params: undefined as never })).rejects.toThrow("train: params is missing");
    const parallel = dataParallel(lossOf, adam(), { mesh: mesh({ data: 4 }), over: "data" });
    await expect(run({ parallel })).rejects.toThrow(
      /train, on the mesh data=4, needs 4 processes, and this one was started alone[\s\S]*mpirun -n 4/,
    );
    await expect(
      run({
        batch() {
          throw new RangeError("no such file");
        },
      }),
    ).rejects.toThrow(RangeError);
  });
});

/** A stage of ZeRO by a number. */
function at(n: number): 0 | 1 | 2 | 3 {
  return (n % 4) as 0 | 1 | 2 | 3;
}
