/**
 * @file Time of linear algebra, native and WebAssembly on one thread, against NumPy (OpenBLAS on one thread) in alternating runs:
 *
 *   npx rolldown bench/linalg.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs \
 *     --file node_modules/.cache/linalg.mjs --log-level silent && node node_modules/.cache/linalg.mjs [f32|f64]
 *
 * PYTHON is the interpreter that has NumPy, python3 by default. A figure is the best of several rounds, in which both sides take turns; a
 * call copies the argument into the arena. A ratio below 1 is in favour of Tidemark.
 *
 * Last result, one core of an AMD EPYC, nothing else running, Node 20.20, NumPy 1.24 with OpenBLAS 0.3.21, ratio native / NumPy in
 * f64 and f32 (in f32 NumPy computes some of these in f64):
 *
 *                 cholesky      solve        inv          qr           eigh         svd
 *   10,000 of 4   0.62  0.17   0.44  0.26   0.49  0.31   0.27  0.21   0.68  0.46   0.57  0.40
 *   1000 of 16    1.00  0.16   0.46  0.28   0.46  0.26   0.56  0.30   0.82  0.55   0.73  0.48
 *   1 of 100      1.18  1.01   0.81  0.58   0.80  0.60   0.78  0.57   1.07  0.74   1.06  0.68
 *   1 of 300      1.04  0.72   0.95  0.73   0.96  0.74   0.94  0.72   1.41  0.96   1.17  0.76
 *   1 of 1000     0.79  0.44   0.80  0.52   0.82  0.59   0.76  0.58   1.93  1.04   1.33  0.80
 */
import { execFileSync } from "node:child_process";
import { compile, linalg, type Tensor, tensor } from "../src/api/index.ts";
import "../src/node/index.ts";

const SIZES = [
  [10_000, 4],
  [1000, 16],
  [1, 100],
  [1, 300],
  [1, 1000],
] as const;
const ROUNDS = 3;
const dtype = process.argv[2] === "f32" ? "f32" : "f64";

const NUMPY = `
import json, sys, time
import numpy as np
best = {}
def timed(name, fn, calls):
    for _ in range(calls):
        start = time.perf_counter()
        fn()
        best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
L = np.linalg
for b, n in ${JSON.stringify(SIZES)}:
    a = np.random.default_rng(1).standard_normal((b, n, n)).astype(np.${dtype === "f32" ? "float32" : "float64"})
    s = a @ a.transpose(0, 2, 1) + np.eye(n, dtype=a.dtype)
    calls = 3 if n == 1000 else 12
    for name, fn in {
        "cholesky": lambda: L.cholesky(s), "solve": lambda: L.solve(a, a), "inv": lambda: L.inv(a), "qr": lambda: L.qr(a),
        "eigh": lambda: L.eigh(s), "svd": lambda: L.svd(a, full_matrices=False),
    }.items():
        timed(f"{name} {b} of {n}", fn, calls)
print(json.dumps(best))
`;

const TASKS: Readonly<Record<string, (a: Tensor, s: Tensor) => Tensor[]>> = {
  cholesky: (_, s) => [linalg.cholesky(s)],
  solve: (a) => [linalg.solve(a, a)],
  inv: (a) => [linalg.inv(a)],
  qr: (a) => Object.values(linalg.qr(a)) as Tensor[],
  eigh: (_, s) => Object.values(linalg.eigh(s)) as Tensor[],
  svd: (a) => Object.values(linalg.svd(a)) as Tensor[],
};

const normal = (): number => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

const best = new Map<string, number>();
function timed(name: string, calls: number, fn: () => unknown): void {
  for (let call = 0; call < calls; call++) {
    const start = performance.now();
    fn();
    best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, (performance.now() - start) / 1000));
  }
}

const programs = SIZES.flatMap(([b, n]) => {
  const a = tensor(Float64Array.from({ length: b * n * n }, normal), { shape: [b, n, n], dtype });
  const s = a.matmul(a, { tb: true }).add(
    tensor(
      [...Array(n * n).keys()].map((e) => Number(e % (n + 1) === 0)),
      { shape: [n, n], dtype },
    ),
  );
  return Object.entries(TASKS).flatMap(([name, task]) =>
    (["native", "wasm"] as const).map((target) => {
      const run = compile(task, { target, threads: 1 });
      run(a, s);
      return { name: `${name} ${b} of ${n}`, target, calls: n === 1000 ? 2 : 8, run: () => run(a, s) };
    }),
  );
});

const env = { ...process.env, OPENBLAS_NUM_THREADS: "1" };
const peer = new Map<string, number>();
for (let round = 0; round < ROUNDS; round++) {
  const text = execFileSync(process.env.PYTHON ?? "python3", ["-c", NUMPY], { encoding: "utf8", env });
  for (const [name, seconds] of Object.entries(JSON.parse(text) as Record<string, number>)) {
    peer.set(name, Math.min(peer.get(name) ?? Number.POSITIVE_INFINITY, seconds));
  }
  for (const { name, target, calls, run } of programs) timed(`${name} ${target}`, calls, run);
}

const ms = (seconds: number): string => (seconds * 1000).toPrecision(3).padStart(8);
console.log(`${dtype}                    NumPy ms native ms    ratio  wasm ms    ratio`);
for (const [name, seconds] of peer) {
  const own = (["native", "wasm"] as const).map((target) => best.get(`${name} ${target}`) ?? Number.NaN);
  const columns = own.map((value) => `${ms(value)} ${(value / seconds).toFixed(2).padStart(8)}`);
  console.log(`${name.padEnd(22)} ${ms(seconds)} ${columns.join(" ")}`);
}
