/**
 * @file What the browser test of devices runs, in a page and, as a worker's module, on each device: a training with ZeRO, and devices that fail.
 */
import { compile, random, type Tensor } from "../../src/api/index.ts";
import { adam } from "../../src/optim/index.ts";
import { allReduce, dataParallel, mesh, onDevice, runDevices, shard } from "../../src/parallel/index.ts";

interface Input {
  readonly part: "train" | "throw" | "wait";
  /** On one device: batches of as many. */
  readonly microbatches: number;
}

const [ROWS, WIDTH] = [24, 32];

function train(rank: number, size: number, microbatches: number): readonly number[] {
  const lossOf = (w: Tensor, x: Tensor): Tensor => x.matmul(w).tanh().square().mean();
  const options = { mesh: mesh({ data: size }), over: "data", deterministic: true, microbatches } as const;
  const { init, step, params } = dataParallel(lossOf, adam({ lr: 0.01 }), { ...options, zero: size > 1 ? 3 : 0 });
  const rows = random.normal(random.key(2), [ROWS, WIDTH]).slice([[(rank * ROWS) / size, ((rank + 1) * ROWS) / size]]);
  let state = compile(init)(random.normal(random.key(1), [WIDTH, WIDTH]).mul(0.1));
  const run = compile(step, { donate: [0] });
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const done = run(state, rows);
    losses.push(done.loss.item());
    state = done.state;
  }
  return [...losses, ...(compile(params)(state).data() as Float32Array)];
}

/** Sums that go on until a device fails. */
function sum(rank: number, size: number, fails: boolean): never {
  const options = { mesh: mesh({ data: size }), in: ["data"], out: [] };
  const step = compile(
    shard((x: Tensor) => allReduce(x.mul(2), { over: "data" }), options),
    { name: "sums" },
  );
  for (let i = 0; ; i++) {
    if (fails && rank === 1 && i === 3) throw new Error("no more data");
    step(random.normal(random.key(i), [16]));
  }
}

interface PageWorker {
  postMessage(message: unknown): void;
  addEventListener(kind: string, listener: (event: object) => void): void;
  terminate(): void;
}

const scope = globalThis as unknown as {
  readonly WorkerGlobalScope?: unknown;
  readonly Worker: new (url: string, options: { readonly type: "module" }) => PageWorker;
  readonly location: { readonly href: string };
  devices?: unknown;
};

if (scope.WorkerGlobalScope !== undefined) {
  onDevice<Input>(({ rank, size, input, tell }) => {
    tell("here");
    return input.part === "train" ? train(rank, size, input.microbatches) : sum(rank, size, input.part === "throw");
  });
} else {
  const start = (): PageWorker => new scope.Worker("devices.js", { type: "module" });
  const run = (devices: number, input: Input) => runDevices<readonly number[]>(start, { devices, input });
  const said = (running: Promise<unknown>): Promise<string> => running.then(String, (error: Error) => error.message);
  scope.devices = {
    train: async (devices: number) => ({
      alone: await run(1, { part: "train", microbatches: devices }),
      // by its address
      found: await runDevices(new URL("devices.js", scope.location.href), {
        devices,
        input: { part: "train", microbatches: 1 },
      }),
    }),
    throws: () => said(run(3, { part: "throw", microbatches: 1 })),
    refused: () => said(run(2, { part: "throw", microbatches: 1 })),
    /** A worker that the page itself ends, which no event tells. */
    ended: async () => {
      const workers: PageWorker[] = [];
      let [heard, endedAt] = [0, 0];
      const text = await said(
        runDevices(
          () => {
            const worker = start();
            workers.push(worker);
            return worker;
          },
          {
            devices: 3,
            input: { part: "wait", microbatches: 1 },
            onMessage() {
              heard += 1;
              if (heard < 3) return;
              setTimeout(() => {
                endedAt = performance.now();
                workers[2]?.terminate();
              }, 200);
            },
          },
        ),
      );
      return { text, ms: performance.now() - endedAt };
    },
  };
}
