/**
 * @file Workers that fail, die or cannot be had. A run that waits for a piece that will never be finished is an error that says
 * why, never a hang; a program without help completes alone; the next program gets workers again.
 */

import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { patience } from "../../tests/support/patience.ts";
import { loadGraph } from "../api/load-graph.ts";
import { TEAM } from "../codegen/wasm/team.ts";
import { Build } from "../ir/build.ts";
import { tensorType } from "../ir/type.ts";
import { nodeWorkers } from "../node/workers.ts";
import { matmul } from "../ops/matmul.ts";
import { chooseTarget } from "./choose-target.ts";
import { Devices } from "./devices.ts";
import type { Executable } from "./executable.ts";
import { pageThreads } from "./page-threads.ts";
import { wasmTarget } from "./wasm-target.ts";
import { pageWorkers, WorkerPool, type WorkerStarter, type WorkerThread } from "./workers.ts";

const poolOf = (starter: WorkerStarter): WorkerPool => new WorkerPool(() => starter);

function product(threads: number, workers: WorkerPool): Executable {
  const b = new Build("product");
  const x = b.param(tensorType("f32", [256, 256]));
  const graph = b.finish([b.call(matmul, [x, x], { ta: false, tb: false })]);
  return loadGraph(graph, { target: wasmTarget(false, { threads, workers }) });
}

/** What a run says in the end, with turns of the event loop between runs for workers to come. */
async function lastWords(executable: Executable): Promise<string> {
  for (let tries = 0; tries < 20_000; tries++) {
    try {
      executable.run();
    } catch (error) {
      return (error as Error).message;
    }
    await pause(1);
  }
  return "no error";
}

/** Milliseconds: on a busy machine a worker may be long without a core while there are pieces. */
const PATIENCE = patience(60_000);

const HELP = "program.instance.exports.help(program.thread, message.help);";

/** Takes a piece as a worker does, once there is one, and never finishes it. */
const TAKE = `
  const claim = new BigInt64Array(program.memory.buffer, ${TEAM.claim}, 1);
  for (let taken = false; !taken; ) {
    const old = Atomics.load(claim, 0);
    const free = ~Number(BigInt.asUintN(32, old)) >>> 0;
    if (free === 0) continue;
    taken = Atomics.compareExchange(claim, 0, old, old | (1n << BigInt(31 - Math.clz32(free)))) === old;
  }
`;

/** Workers that do something else instead of helping. */
function instead(...lines: readonly string[]): (text: string) => WorkerThread {
  return (text) => {
    expect(text).toContain(HELP);
    return nodeWorkers(text.replace(HELP, lines.join("\n")));
  };
}

describe("workers of a program", () => {
  it("that die with a piece in their hands end the run with an error", { timeout: PATIENCE }, async () => {
    const lost = product(2, poolOf(instead(TAKE, "process.exit(7);")));
    const message = await lastWords(lost);
    expect(message).toContain("TargetUnsupported: a run on several threads failed: worker 1: its thread");
    expect(() => lost.run()).toThrow(message);
  });

  it("that fail with a piece in their hands end the run with what they said", { timeout: PATIENCE }, async () => {
    const workers = poolOf(instead(TAKE, 'throw new RangeError("out of stack");'));
    expect(await lastWords(product(2, workers))).toContain("failed: a worker failed (RangeError: out of stack)");
  });

  it("that are stopped from outside end the next run at the latest", async () => {
    let stop: (() => void) | undefined;
    const workers = poolOf((text) => {
      const worker = nodeWorkers(text);
      let ended: string | null = null;
      stop = () => {
        ended = "it was stopped";
      };
      return { ...worker, ended: () => ended };
    });
    const executable = product(2, workers);
    executable.run();
    stop?.();
    expect(() => executable.run()).toThrow("worker 1: it was stopped");
    const next = product(2, workers);
    next.run();
    expect(next.target.threads).toBe(2);
  });

  it("that never come are not waited for", () => {
    const workers = poolOf(() => ({ post: () => {}, ended: () => null }));
    const [alone, two] = [product(1, workers), product(3, workers)];
    for (const executable of [alone, two]) {
      const data = Float32Array.from({ length: 256 * 256 }, (_, i) => (i % 17) / 17);
      executable.write(tensorType("f32", [256 * 256]), executable.placed.params[0] as number, data);
      executable.run();
    }
    const results = [alone, two].map((e) => e.read(tensorType("f32", [256 * 256]), e.placed.results[0] as number));
    expect(results[1]).toEqual(results[0]);
  });

  it("that cannot be had leave one thread and a line that says why", () => {
    const host = { targets: {}, workers: poolOf("there are none"), devices: new Devices(pageThreads) };
    expect(host.workers.missing).toBe("there are none");
    const { target, note } = chooseTarget(host, "wasm", { threads: 4 });
    expect([target.threads, note]).toEqual([1, "one thread, not 4: there are none"]);
    expect(chooseTarget(host, "wasm", { threads: 1 }).note).toBeNull();
  });
});

describe("workers of a page", () => {
  it("are there where memory may be shared, and otherwise the reason is", () => {
    const scope = { Worker: class {}, Blob: class {}, URL: { createObjectURL: () => "" } } as never as object;
    expect(pageWorkers({})).toContain("no workers here");
    expect(pageWorkers({ ...scope, crossOriginIsolated: false })).toContain("not cross-origin isolated");
    expect(typeof pageWorkers({ ...scope, crossOriginIsolated: true })).toBe("function");
  });
});
