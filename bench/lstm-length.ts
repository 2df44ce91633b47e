/**
 * @file The memory of an LSTM against the length of its sequence, beside PyTorch on the same shapes and numbers: 64
 * inputs, 256 hidden, batch 32, one training step with SGD. Every figure is from a separate process: the arena, the
 * most resident bytes over those after importing (VmHWM, as for every peer), and CPU time of a step. Losses must agree.
 *
 *   rolldown bench/lstm-length.ts -p node --no-treeshake --no-codeSplitting --external highs --file node_modules/.cache/lstm-length.mjs
 *   node node_modules/.cache/lstm-length.mjs [LENGTH …]
 *
 * Needs Linux and, for PyTorch, /usr/bin/python3 with torch (Debian: python3-torch); without it those columns are
 * empty.
 */
import { spawnSync } from "node:child_process";
import {
  compile,
  crossEntropy,
  matmul,
  type PlanningOptions,
  scan,
  split,
  type Tensor,
  tensor,
  valueAndGrad,
  zeros,
} from "../src/api/index.ts";
import { formatBytes } from "../src/base/bytes.ts";
import { at } from "../src/base/invariant.ts";
import { baselineRss, peakRss } from "../src/cli/memory.ts";
import { sgd } from "../src/optim/index.ts";
import { table } from "../src/plan/table.ts";

const [BATCH, INPUT, HIDDEN, CLASSES] = [32, 64, 256, 10];
const SCALE = 1 / Math.sqrt(HIDDEN);
const OURS: Readonly<Record<string, PlanningOptions>> = {
  stored: {},
  "at 1.3 ×": { maxSlowdown: 1.3 },
  "in 24 MB": { memory: "24MB" },
  "at 2 ×": { maxSlowdown: 2 },
};
const THEIRS = ["nn", "cells", "checkpoint"];

/** Number `i` of a stream: the numbers of bench/lstm-length.py. */
function drawnAt(i: number, seed: number, scale: number): number {
  let h = Math.imul((i + seed * 7919) >>> 0, 2654435761);
  h ^= h >>> 15;
  h = Math.imul(h, 2246822519);
  h ^= h >>> 13;
  return (((h >>> 0) / 2 ** 32) * 2 - 1) * scale;
}

function drawn(shape: readonly number[], seed: number, scale: number): Tensor {
  const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
  for (let i = 0; i < data.length; i++) data[i] = drawnAt(i, seed, scale);
  return tensor(data).reshape(shape);
}

/** The batch of sequences by time, which is how the loop reads it. */
function sequences(length: number): Tensor {
  const data = new Float32Array(length * BATCH * INPUT);
  for (let i = 0; i < data.length; i++) {
    const [t, b, n] = [Math.floor(i / (BATCH * INPUT)), Math.floor(i / INPUT) % BATCH, i % INPUT];
    data[i] = drawnAt((b * length + t) * INPUT + n, 4, 1);
  }
  return tensor(data).reshape([length, BATCH, INPUT]);
}

type Params = Readonly<Record<"wx" | "wh" | "b" | "wo" | "bo", Tensor>>;
type State = readonly [h: Tensor, c: Tensor];

function lossOf(p: Params, x: Tensor, y: Tensor): Tensor {
  const cell = ([h, c]: State, now: Tensor): State => {
    const gates = matmul(h, p.wh).add(matmul(now, p.wx).add(p.b));
    const [i, f, g, o] = split(gates, 4, 1) as [Tensor, Tensor, Tensor, Tensor];
    const memory = f.sigmoid().mul(c).add(i.sigmoid().mul(g.tanh()));
    return [o.sigmoid().mul(memory.tanh()), memory];
  };
  const zero = zeros([BATCH, HIDDEN]);
  const [[h]] = scan<State, Tensor, readonly Tensor[]>((state, now) => [cell(state, now), []], [zero, zero], x);
  return crossEntropy(matmul(h, p.wo).add(p.bo), y);
}

interface Figures {
  readonly losses: readonly number[];
  readonly cpuMs: number;
  readonly rssBytes: number;
  readonly arenaBytes?: number;
}

const cpuMs = (): number => process.cpuUsage().user / 1000;

/** One of Tidemark's configurations, in this process. */
function measure(length: number, options: PlanningOptions): Figures {
  const base = baselineRss() ?? Number.NaN;
  const optimizer = sgd({ lr: 0.1 });
  const first: Params = {
    wx: drawn([INPUT, 4 * HIDDEN], 1, SCALE),
    wh: drawn([HIDDEN, 4 * HIDDEN], 2, SCALE),
    b: zeros([4 * HIDDEN]),
    wo: drawn([HIDDEN, CLASSES], 3, SCALE),
    bo: zeros([CLASSES]),
  };
  let state = optimizer.init(first);
  const step = compile(
    (s: typeof state, x: Tensor, y: Tensor) => {
      const [loss, d] = valueAndGrad((p: Params) => lossOf(p, x, y))(s.params);
      return [optimizer.update(s, d), loss] as const;
    },
    { donate: [0], ...options },
  );
  const x = sequences(length);
  const y = tensor(Int32Array.from({ length: BATCH }, (_, i) => i % CLASSES));
  const { arenaBytes } = step.program(state, x, y);
  const losses: number[] = [];
  const ms: number[] = [];
  for (let n = 0; n < 4; n++) {
    const started = cpuMs();
    const [next, loss] = step(state, x, y);
    state = next;
    losses.push(loss.item());
    ms.push(cpuMs() - started);
  }
  return {
    losses,
    cpuMs: at(
      ms.slice(1).sort((a, b) => a - b),
      1,
    ),
    rssBytes: (peakRss() ?? Number.NaN) - base,
    arenaBytes,
  };
}

function child(command: string, args: readonly string[]): Figures | null {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? (JSON.parse(stdout.trim().split("\n").at(-1) as string) as Figures) : null;
}

const mb = (bytes: number | undefined): string => (bytes === undefined ? "" : formatBytes(bytes));

function compare(lengths: readonly number[]): void {
  const rows = lengths.flatMap((length) => {
    const runs: (readonly [string, Figures | null])[] = [
      ...Object.keys(OURS).map((name) => {
        return [name, child(process.execPath, [process.argv[1] as string, "--one", String(length), name])] as const;
      }),
      ...THEIRS.map((mode) => {
        return [`PyTorch, ${mode}`, child("/usr/bin/python3", ["bench/lstm-length.py", String(length), mode])] as const;
      }),
    ];
    const first = runs[0]?.[1]?.losses;
    return runs.map(([name, run]) => {
      const off = run?.losses.reduce((most, loss, n) => Math.max(most, Math.abs(loss - (first?.[n] ?? loss))), 0) ?? 0;
      if (off > 1e-4) throw new Error(`${name}: losses differ by ${off} at ${length} iterations`);
      return [
        String(length),
        name,
        mb(run?.arenaBytes),
        mb(run?.rssBytes),
        run ? run.cpuMs.toFixed(0) : "",
        off.toExponential(0),
      ];
    });
  });
  const heads = ["iterations", "", "arena", "resident", "CPU ms", "loss off by"];
  console.log(table([heads, ...rows], ["right", "left", "right", "right", "right", "right"]).join("\n"));
}

const [flag, ...rest] = process.argv.slice(2);
if (flag === "--one") {
  console.log(JSON.stringify(measure(Number(rest[0]), OURS[rest[1] as string] ?? {})));
} else {
  const lengths = [flag, ...rest].filter((word) => word !== undefined).map(Number);
  compare(lengths.length > 0 ? lengths : [64, 128, 256, 512, 1024]);
}
