/**
 * @file Time of sort and topK, native and WebAssembly on one thread, against NumPy in the same run:
 *
 *   npx rolldown bench/sort.ts -p node --external koffi --external highs --file node_modules/.cache/sort.mjs --log-level silent &&
 *     node node_modules/.cache/sort.mjs
 *
 * NumPy sorts with np.sort and takes the largest k with np.argpartition, of which it then sorts those k. PYTHON is the interpreter
 * that has NumPy, python3 by default. A figure is the best of several calls, which alternate; a call copies the argument into the
 * arena. A ratio below 1 is in favour of Tidemark.
 *
 * Last result, one core of an AMD EPYC, Node 20.20, NumPy 1.24, ratio native / NumPy and wasm / NumPy:
 *
 *                 sort f32     sort f64     top 16 f32   top 1000 f32
 *   10,000       0.47  0.47   0.29  0.38   0.84  0.98   1.45  1.68
 *   100,000      0.22  0.32   0.08  0.11   0.13  0.16   0.20  0.26
 *   1,000,000    0.24  0.16   0.29  0.28   0.08  0.09   0.08  0.09
 */
import { execFileSync } from "node:child_process";
import { compile, sort, type Tensor, tensor, topK } from "../src/api/index.ts";
import "../src/node/index.ts";

const COUNTS = [1e4, 1e5, 1e6];
const TYPES = ["f32", "f64"] as const;
const KEPT = [16, 1000];
const CALLS = 12;

const NUMPY = `
import json, sys, time
import numpy as np
best = {}
def timed(name, fn):
    for _ in range(${CALLS}):
        start = time.perf_counter()
        fn()
        best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
def top(x, k):
    at = np.argpartition(x, len(x) - k)[len(x) - k:]
    return at[np.argsort(-x[at], kind="stable")]
for n in ${JSON.stringify(COUNTS)}:
    for t, name in ((np.float32, "f32"), (np.float64, "f64")):
        x = np.random.default_rng(1).standard_normal(int(n)).astype(t)
        timed(f"sort {name} {int(n)}", lambda: np.sort(x))
        timed(f"argsort {name} {int(n)}", lambda: np.argsort(x, kind="stable"))
        for k in ${JSON.stringify(KEPT)}:
            timed(f"top {k} {name} {int(n)}", lambda: top(x, k))
print(json.dumps(best))
`;

function normal(n: number): Float64Array {
  return Float64Array.from({ length: n }, () => {
    return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  });
}

function best(fn: (x: Tensor) => unknown, x: Tensor): number {
  let least = Number.POSITIVE_INFINITY;
  for (let call = 0; call < CALLS; call++) {
    const start = performance.now();
    fn(x);
    least = Math.min(least, (performance.now() - start) / 1000);
  }
  return least;
}

const numpy = JSON.parse(execFileSync(process.env.PYTHON ?? "python3", ["-c", NUMPY], { encoding: "utf8" })) as Record<
  string,
  number
>;
const ms = (seconds: number): string => (seconds * 1000).toPrecision(3).padStart(8);
console.log("                          NumPy ms  native ms    ratio   wasm ms    ratio");
for (const n of COUNTS) {
  for (const dtype of TYPES) {
    const x = tensor(normal(n), { dtype });
    const tasks: Record<string, (x: Tensor) => unknown> = {
      [`sort ${dtype} ${n}`]: (v) => sort(v),
      ...Object.fromEntries(KEPT.map((k) => [`top ${k} ${dtype} ${n}`, (v: Tensor) => topK(v, k).indices])),
    };
    for (const [name, fn] of Object.entries(tasks)) {
      const [native, wasm] = (["native", "wasm"] as const).map((target) =>
        best(compile(fn as (x: Tensor) => Tensor, { target, threads: 1 }), x),
      ) as [number, number];
      const peer = numpy[name] ?? Number.NaN;
      const ratio = (own: number): string => (own / peer).toFixed(2).padStart(8);
      console.log(`${name.padEnd(24)} ${ms(peer)} ${ms(native)} ${ratio(native)} ${ms(wasm)} ${ratio(wasm)}`);
    }
  }
}
