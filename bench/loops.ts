/**
 * @file Loops differentiated under budgets. The 2-D wave equation, 10,000 steps in f64, at store-all, 1/10, 1/100 and
 * 1/1,000 of its arena; a million iterations of a scalar; a `while` of unknown length; an LSTM against the length of its
 * sequence. For each: the arena, the states that fit, iterations recomputed (the minimum:
 * tests/control-flow/budgets.test.ts counts them), and time next to the prediction of the cost model. Gradients are compared bit by
 * bit with those of storing everything; a difference ends the run.
 *
 *   rolldown bench/loops.ts -p node --no-treeshake --no-codeSplitting --external highs --file node_modules/.cache/loops.mjs && node node_modules/.cache/loops.mjs
 *
 * `--quick` leaves out 1/1,000, where one state fits and the loop is run 5,000 times.
 */
import {
  compile,
  forLoop,
  grad,
  type PlanningOptions,
  pad,
  slice,
  type Tensor,
  tensor,
  whileLoop,
} from "../src/api/index.ts";
import { grouped } from "../src/base/errors.ts";
import { hostRandom } from "../src/base/random.ts";
import { allNodes } from "../src/ir/walk.ts";
import { type LstmParams, lstmCell, scanCell } from "../src/nn/index.ts";
import { type RewindAttrs, rewind } from "../src/ops/rewind.ts";

type Params = Readonly<Record<string, Tensor>>;
/** A loss of the parameters, which are differentiated, and of other inputs. */
type Loss = (p: Params, rest: Params) => Tensor;

function draw(shape: readonly number[], seed: number, scale: number, dtype: "f32" | "f64" = "f64"): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  const data = Float64Array.from({ length: n }, () => (next.next() * 2 - 1) * scale);
  return tensor(dtype === "f64" ? data : Float32Array.from(data)).reshape(shape);
}

const SIDE = 12;

function waves(iterations: number): Loss {
  const cut = (u: Tensor, dy: number, dx: number): Tensor =>
    slice(pad(u, 1), [
      [1 + dy, 1 + dy + SIDE],
      [1 + dx, 1 + dx + SIDE],
    ]);
  const laplacian = (u: Tensor): Tensor =>
    cut(u, 1, 0)
      .add(cut(u, -1, 0))
      .add(cut(u, 0, 1))
      .add(cut(u, 0, -1))
      .sub(u.mul(4));
  return ({ c }, { u }) => {
    const speed = c as Tensor;
    const step = (_: Tensor, s: { readonly u: Tensor; readonly was: Tensor }) => ({
      u: s.u
        .mul(2)
        .sub(s.was)
        .add(speed.mul(speed).mul(laplacian(s.u))),
      was: s.u,
    });
    return forLoop(iterations, { u: u as Tensor, was: u as Tensor }, step)
      .u.square()
      .sum();
  };
}

interface Run {
  readonly arenaBytes: number;
  readonly bytes: string;
  readonly predictedMs: number;
}

const cpuMs = (): number => process.cpuUsage().user / 1000;

interface Case {
  readonly loss: Loss;
  readonly params: Params;
  readonly rest?: Params;
}

/** Compiles, runs, and prints one line. */
function measure(label: string, { loss, params, rest = {} }: Case, options: PlanningOptions): Run {
  const gradientOf = (p: Params, q: Params): Params => grad((r: Params) => loss(r, q))(p);
  const compiled = compile(gradientOf, options);
  const info = compiled.program(params, rest);
  // Long runs are their own warm-up.
  if (info.predictedMs < 5000) compiled(params, rest);
  const started = cpuMs();
  const gradient = compiled(params, rest);
  const ms = cpuMs() - started;
  const loop = [...allNodes(info.graph)].find((node) => node.op === rewind);
  const { checkpoints, advances, taped } = (loop?.attrs ?? { checkpoints: 0, advances: 0, taped: 0 }) as RewindAttrs;
  const cells = [
    label.padEnd(18),
    `${grouped(info.arenaBytes).padStart(12)} B`,
    `${grouped(checkpoints).padStart(6)} states, rows of ${grouped(taped).padStart(5)}`,
    `${grouped(advances).padStart(11)} iterations recomputed`,
    `predicted ${info.predictedMs.toFixed(1)} ms, CPU ${ms.toFixed(1)} ms, ${(ms / info.predictedMs).toFixed(2)}`,
    `module ${grouped(info.moduleBytes)} B, compiled in ${info.compileMs.toFixed(0)} ms`,
  ];
  console.log(cells.join("  "));
  const bytes = Object.values(gradient).map((leaf) => {
    const data = leaf.data();
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
  });
  return { arenaBytes: info.arenaBytes, bytes: bytes.join(), predictedMs: info.predictedMs };
}

function requireSame(label: string, a: Run, b: Run): void {
  if (a.bytes !== b.bytes) throw new Error(`${label}: the gradient differs from that of storing everything`);
}

function waveEquation(parts: readonly number[]): void {
  const iterations = 10_000;
  console.log(`waves: ${grouped(iterations)} steps on ${SIDE} × ${SIDE}, f64`);
  const waved: Case = {
    loss: waves(iterations),
    params: { c: draw([SIDE, SIDE], 1, 0.05).add(0.3) },
    rest: { u: draw([SIDE, SIDE], 2, 1) },
  };
  const stored = measure("store-all", waved, {});
  for (const part of parts) {
    const memory = Math.floor(stored.arenaBytes / part);
    requireSame(`1/${part}`, measure(`1/${grouped(part)}`, waved, { memory }), stored);
  }
}

function scalar(): void {
  const iterations = 1_000_000;
  console.log(`\na scalar: ${grouped(iterations)} iterations, f64`);
  const loss: Loss = ({ x, a }) =>
    forLoop(iterations, x as Tensor, (_, s) => s.mul(a as Tensor).add(s.sin().mul(1e-7)));
  const params = { x: tensor(0.5, { dtype: "f64" }), a: tensor(0.999999, { dtype: "f64" }) };
  const stored = measure("store-all", { loss, params }, {});
  for (const memory of ["900kB", "100kB", "10kB"]) {
    requireSame(memory, measure(memory, { loss, params }, { memory }), stored);
  }
}

/** A loop without a bound: the number of iterations is data. */
function unbounded(): void {
  const [side, iterations] = [32, 5000];
  console.log(
    `\na while: ${grouped(iterations)} iterations of ${grouped(side * side)} numbers, f64; recomputed iterations are of 1,000`,
  );
  const loss: Loss = ({ a }, { x, n }) =>
    whileLoop<{ readonly s: Tensor; readonly left: Tensor }>(
      ({ left }) => left.greater(0),
      ({ s, left }) => ({ s: s.mul(a as Tensor).add(s.sin().mul(1e-4)), left: left.sub(1) }),
      { s: x as Tensor, left: n as Tensor },
    )
      .s.square()
      .sum();
  const open: Case = {
    loss,
    params: { a: tensor(0.9999, { dtype: "f64" }) },
    rest: { x: draw([side, side], 6, 1), n: tensor(iterations, { dtype: "f64" }) },
  };
  const first = measure("no budget", open, {});
  for (const memory of ["min", "100kB", "1MB", "8MB"]) {
    requireSame(memory, measure(memory, open, { memory }), first);
  }
}

function recurrent(): void {
  const [batch, inputs, hidden] = [16, 32, 64];
  console.log(`\nlstm: batch ${batch}, ${inputs} inputs, ${hidden} hidden, f32; gradient of the parameters`);
  const cell = lstmCell(inputs, hidden);
  const { wx, wh, b } = cell.init(0);
  for (const iterations of [64, 128, 256, 512]) {
    const rest = { xs: draw([batch, iterations, inputs], 5, 1, "f32") };
    const loss: Loss = (q, { xs }) =>
      scanCell(cell, q as unknown as LstmParams, xs as Tensor)
        .state.h.square()
        .sum();
    const lstm: Case = { loss, params: { wx, wh, b }, rest };
    const stored = measure(`${iterations} store-all`, lstm, {});
    for (const maxSlowdown of [2, 4]) {
      requireSame(`${iterations}`, measure(`${iterations} slowdown ${maxSlowdown}`, lstm, { maxSlowdown }), stored);
    }
  }
}

waveEquation(process.argv.includes("--quick") ? [10, 100] : [10, 100, 1000]);
scalar();
unbounded();
recurrent();
