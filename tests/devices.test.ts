/**
 * @file Programs on the devices of one process, on WebAssembly in Node's worker threads: collectives against their references, data-parallel
 * training against one process, and what happens when a device fails.
 */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compile, type Tensor, tensor } from "../src/api/index.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import { allReduce, mesh, onDevice, type RunDevicesOptions, runDevices, shard } from "../src/parallel/index.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { caseNames, caseOf, rowOf } from "./devices/programs.ts";
import { type Course, type Trained, trained } from "./devices/training.ts";
import { onDevices } from "./support/devices.ts";
import { ROOT } from "./support/project.ts";
import "./support/host.ts";

/** Beside node_modules, where the bundle finds what it does not hold. */
const BUNDLE = join(ROOT, "node_modules", ".cache", `devices-${process.pid}.mjs`);

beforeAll(async () => {
  await build({
    input: join(ROOT, "tests", "devices", "module.ts"),
    platform: "node",
    treeshake: false,
    external: ["koffi", "highs"],
    output: { file: BUNDLE, codeSplitting: false },
    logLevel: "silent",
  });
});

afterAll(() => rmSync(BUNDLE, { force: true }));

const run = <R>(devices: number, part: string, given?: unknown, options: Partial<RunDevicesOptions> = {}) =>
  runDevices<R>(pathToFileURL(BUNDLE), { devices, input: { part, given }, ...options });

/** What is said of a run that fails, and how long it took. */
async function failing(
  devices: number,
  part: string,
  given?: unknown,
): Promise<{ text: string; error: Error; ms: number }> {
  const started = performance.now();
  const error = await run(devices, part, given).then(
    (results) => new Error(`it returned ${JSON.stringify(results)}`),
    (error: Error) => error,
  );
  return { text: error.message, error, ms: performance.now() - started };
}

describe("devices of one process", () => {
  it("have the reference's results of every collective, on one to four devices and all types", async () => {
    const found = await run<{ cases: number }>(4, "collectives");
    for (const { cases } of found.slice(0, 1)) expect(cases).toBeGreaterThan(200);
    expect(found).toHaveLength(4);
  });

  it("meet in loops, branches and derivatives, with threads of their own, and with programs that are made in other threads", async () => {
    for (const size of [1, 2, 3]) {
      const found = await run<Record<string, number[]>>(size, "cases");
      for (const name of caseNames) {
        const { fn, out } = caseOf(name);
        const options = { mesh: mesh({ data: size }), in: ["data"], out };
        const { results } = onDevices(fn as never, options, (rank) => [tensor(rowOf(rank))]);
        results.forEach(([expected], rank) => {
          const got = found[rank]?.[name] ?? [];
          expect(got.length, name).toBe(expected?.length);
          got.forEach((x, i) => {
            expect(Math.abs(x - (expected?.[i] as number)), `${name}, rank ${rank}`).toBeLessThan(
              1e-4 * (1 + Math.abs(x)),
            );
          });
        });
      }
    }
  });

  it.each([2, 3])("share out experts, with the values and gradients of one, on %i devices", async (size) => {
    // of both layers: tokens of a device, the router, and its experts
    const compared = 2 * ((24 * 8) / size + 8 * 12 + (12 * 3 * 8 * 16) / size);
    expect(await run(size, "experts")).toEqual(new Array(size).fill({ compared }));
  });

  it("get what they are given, tell, and return by rank", async () => {
    const heard: unknown[] = [];
    const onMessage = (message: unknown, rank: number): void => void heard.push([message, rank]);
    const found = await run(3, "told", { lr: 0.1, data: new Float32Array([1, 2]) }, { onMessage });
    expect(found).toEqual(
      [0, 1, 2].map((rank) => {
        const outsidePlanBytes = expect.any(Number);
        return { rank, size: 3, given: { lr: 0.1, data: new Float32Array([1, 2]) }, outsidePlanBytes };
      }),
    );
    expect((found[0] as { outsidePlanBytes: number }).outsidePlanBytes).toBeLessThan(300_000);
    expect(heard).toHaveLength(3);
    expect(heard).toContainEqual([{ rank: 2 }, 2]);
  });
});

describe("training on devices of one process", () => {
  const stages = [0, 1, 2, 3] as const;

  it.each([2, 3, 4])(
    "has the bits of one process with as many microbatches, with every stage of ZeRO, on %i devices",
    async (size) => {
      const courses: readonly Course[] = [...stages.map((zero) => ({ zero })), { zero: 0, deterministic: false }];
      const byRank = await run<readonly Trained[]>(size, "trained", courses);
      const alone = trained(0, 1, { zero: 0, microbatches: size });
      for (const found of byRank) {
        expect(found.map(({ hash }) => hash)).toEqual(courses.map(() => alone.hash));
        for (const { losses } of found) expect(losses).toEqual(alone.losses);
      }
      const arenas = byRank[0]?.map(({ arenaBytes }) => arenaBytes) ?? [];
      expect(arenas[1]).toBeLessThan(arenas[0] as number);
    },
  );

  it("has the bits of native code, where that rounds alike", async () => {
    const native = nativeTarget({ fma: false });
    if (typeof native === "string") return console.warn(`SKIPPED: ${native}`);
    const { hash } = trained(0, 1, { zero: 0, microbatches: 2, target: native });
    expect(trained(0, 1, { zero: 0, microbatches: 2, target: wasmTarget(false) }).hash).toBe(hash);
  });

  it("writes the planned bytes and no others, and reads none that are dead", async () => {
    const found = await run<{ planned: number; measured: number; deadBytes: number }>(3, "measured");
    for (const { planned, measured, deadBytes } of found) {
      expect(measured).toBe(planned);
      expect(deadBytes).toBeGreaterThan(0);
    }
  });
});

describe("a device that fails", () => {
  const SOON = 5000;

  it("and throws ends all, with its rank, what it threw and where it was", async () => {
    const { text, error, ms } = await failing(3, "throws");
    expect(error).toMatchObject({
      ...{ code: "DeviceFailed", cause: { message: "the data is not there" } },
      help: "error.cause is what it threw, with its stack",
    });
    expect(text).toMatch(
      /^DeviceFailed: rank 1 of 3: Error: the data is not there\n {2}in sums, last collective: 0: all_reduce of 4096 f32 over data of data=3, step \d+/,
    );
    expect(ms).toBeLessThan(SOON * 3);
    expect((await failing(2, "throwsText")).text).toContain('rank 1 of 2: the string "no error" was thrown');
  });

  it("and is gone ends the others", async () => {
    const { text, ms } = await failing(3, "ends");
    expect(text).toContain(
      "DeviceFailed: rank 1 of 3 did not return: its thread ended with code 0; the other devices are ended too",
    );
    expect(ms).toBeLessThan(SOON * 3);
  });

  it("ends devices that compute", async () => {
    expect((await failing(2, "busy")).text).toContain("rank 0 of 2: Error: enough");
  });

  it("and is followed by others, is the one that is named", async () => {
    expect((await failing(3, "caught")).text).toContain("rank 1 of 3: Error: the first to fail");
  });

  it("to come to a meeting is waited for no longer than it runs", async () => {
    expect((await failing(2, "returns")).text).toContain("rank 0 waits for rank 1, which has returned");
    expect((await failing(2, "elsewhere")).text).toMatch(/rank [01] is at another collective than rank [01]/);
  });

  it("to have the same program is told which", async () => {
    const { text } = await failing(3, "different");
    expect(text).toMatch(/do not have the same program and plan: [0-9a-f]{12} on rank 0, 2; [0-9a-f]{12} on rank 1/);
  });

  it("to be enough for a mesh says so", async () => {
    expect((await failing(2, "mesh", 3)).text).toMatch(
      /the mesh data=3 has 3 devices, and 2 devices run\n {2}help: start as many/,
    );
    expect((await failing(1, "mesh", 3)).text).toContain("the mesh data=3 has 3 devices, and one device runs");
    const some = await failing(3, "mesh", 2);
    expect(some.text).toContain("the mesh data=2 has 2 devices, the first of 3: rank 2 is none of them");
  });

  it("to be one device is told that it is one", async () => {
    expect((await failing(1, "again")).text).toContain("onDevice: it was called before in this thread");
  });

  it("to return plain data says so", async () => {
    expect((await failing(1, "tensor")).text).toContain(
      "onDevice: the result.loss.0 is a tensor, which stays on its thread",
    );
  });
});

describe("runDevices", () => {
  it("refuses what is no request", async () => {
    const url = pathToFileURL(BUNDLE);
    await expect(runDevices(url, { devices: 0 })).rejects.toThrow("runDevices: devices is 0");
    await expect(runDevices(url, { devices: 1.5 })).rejects.toThrow("runDevices: devices is 1.5");
    await expect(runDevices(7 as never, { devices: 1 })).rejects.toThrow("runDevices: the module is");
    await expect(runDevices(url, { devices: 1, input: tensor([1]) })).rejects.toThrow("input is a tensor");
    await expect(runDevices(url, { devices: 2, input: () => 1 })).rejects.toThrow("input cannot be copied");
    await expect(runDevices(() => ({}) as never, { devices: 1 })).rejects.toThrow("give a web worker");
    await expect(runDevices(pathToFileURL(`${BUNDLE}.not`), { devices: 2 })).rejects.toThrow("DeviceFailed: rank");
    expect(() => onDevice(7 as never)).toThrow("onDevice");
  });

  it("ends where a callback throws", async () => {
    const onMessage = (): never => {
      throw new RangeError("not heard");
    };
    await expect(run(2, "told", 1, { onMessage })).rejects.toThrow("not heard");
  });

  it("is aborted by a signal", async () => {
    const stop = new AbortController();
    const running = run(2, "throwsForever", undefined, { signal: stop.signal });
    stop.abort();
    await expect(running).rejects.toThrow("Aborted: runDevices: it was aborted");
    await expect(run(2, "told", undefined, { signal: stop.signal })).rejects.toThrow("Aborted");
  });

  it("is what a program with collectives is told of where it is started alone", () => {
    const sum = shard((x: Tensor) => allReduce(x, { over: "data" }), {
      mesh: mesh({ data: 2 }),
      in: ["data"],
      out: [],
    });
    expect(() => compile(sum)(tensor([1]))).toThrow(
      /needs 2 devices, and this thread is none of them\n {2}all_reduce step .*\n.*runDevices/s,
    );
  });
});
