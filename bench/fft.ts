/**
 * @file Time of Fourier transforms, native and WebAssembly on one thread, against NumPy in the same run:
 *
 *   npx rolldown bench/fft.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/fft.mjs
 *   node node_modules/.cache/fft.mjs
 *
 * PYTHON is the interpreter that has NumPy, python3 by default. NumPy from 2.0 on computes f32 in f32 (before, everything in f64) and is
 * given memory for its results (`out`); its complex arrays have both parts side by side, ours are two tensors. Arguments are in the
 * arena: results are donated to the next call, transforms divide by √n. Real ones are there and back, rfft and irfft. A figure is the best
 * of several calls, which alternate between the two; a ratio below 1 is in favour of Tidemark. ONLY: tasks that contain a word.
 * docs/fft.md has the last result.
 */
import { execFileSync } from "node:child_process";
import { type Complex, compile, fft, fft2, ifft, irfft, reshape, rfft, type Tensor, tensor } from "../src/api/index.ts";
import "../src/node/index.ts";

const TYPES = ["f64", "f32"] as const;
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const CALLS = 8;

type State = Complex | Tensor;

interface Task {
  readonly name: string;
  readonly shape: readonly number[];
  readonly isReal?: boolean;
  /** Of x into `out`, in NumPy. */
  readonly python: string;
  step(x: never): State;
}

const [norm, options] = ["ortho" as const, { norm: "ortho" as const }];

const forward = (...shape: readonly number[]): Task => ({
  name: `fft ${shape.join("×")}`,
  shape,
  python: 'np.fft.fft(x, norm="ortho", **out)',
  step: (x) => fft(x, options),
});

const real = (...shape: readonly number[]): Task => ({
  name: `rfft, irfft ${shape.join("×")}`,
  shape,
  isReal: true,
  python: 'np.fft.irfft(np.fft.rfft(x, norm="ortho"), norm="ortho", **out)',
  step: (x) => irfft(rfft(x, options), options),
});

const TASKS: readonly Task[] = [
  ...[forward(2 ** 14), forward(1e5), forward(2 ** 17), forward(2 ** 20), forward(10007), forward(1000, 1024)],
  {
    ...forward(2 ** 20),
    name: "ifft 1048576",
    python: 'np.fft.ifft(x, norm="ortho", **out)',
    step: (x) => ifft(x, options),
  },
  {
    ...forward(1024, 1024),
    name: "fft2 1024×1024",
    python: 'np.fft.fft2(x, norm="ortho", **out)',
    step: (x) => fft2(x, options),
  },
  {
    ...forward(1024, 1024),
    name: "fft 1024×1024 axis 0",
    python: 'np.fft.fft(x, axis=0, norm="ortho", **out)',
    step: (x) => fft(x, { axis: 0, norm }),
  },
  ...[real(2 ** 14), real(2 ** 20), real(1000, 1024)],
];

const NUMPY = `
import json, sys, time
import numpy as np
new = int(np.__version__.split(".")[0]) >= 2
best = {}
for name, shape, real, code in json.loads(sys.argv[1]):
    for dtype in ("f64", "f32"):
        rng = np.random.default_rng(1)
        x = rng.standard_normal(shape)
        if real:
            x = x.astype(np.float32 if dtype == "f32" else np.float64)
        else:
            x = (x + 1j * rng.standard_normal(shape)).astype(np.complex64 if dtype == "f32" else np.complex128)
        out = {"out": np.empty_like(x)} if new else {}
        fn = eval("lambda: " + code)
        least = 1e9
        for _ in range(${CALLS}):
            start = time.perf_counter()
            fn()
            least = min(least, time.perf_counter() - start)
        best[f"{name} {dtype}"] = least
print(json.dumps(best))
`;

const targets = (process.env.TARGETS ?? "native wasm").split(" ") as ("native" | "wasm")[];
const chosen = TASKS.filter(({ name }) => name.includes(process.env.ONLY ?? ""));

const best = new Map<string, number>();
const note = (key: string, seconds: number): void => {
  best.set(key, Math.min(best.get(key) ?? Number.POSITIVE_INFINITY, seconds));
};

function runnerOf({ name, shape, isReal, step }: Task, dtype: "f32" | "f64", target: "native" | "wasm"): () => void {
  const elements = shape.reduce((a, b) => a * b, 1);
  const random = (): Float64Array => Float64Array.from({ length: elements }, () => Math.random() - 0.5);
  const part = (): Tensor => reshape(tensor(random(), { dtype }), shape);
  const program = compile(step as (x: State) => State, { target, threads: 1, donate: [0] });
  let x: State = isReal ? part() : { re: part(), im: part() };
  return () => {
    for (let call = 0; call < CALLS; call++) {
      const start = performance.now();
      x = program(x);
      note(`${name} ${dtype} ${target}`, (performance.now() - start) / 1000);
    }
  };
}

const requests = chosen.map(({ name, shape, isReal = false, python }) => [name, shape, isReal, python]);
const names = chosen.flatMap((task) => TYPES.map((dtype) => ({ task, dtype })));
const runners = names.flatMap(({ task, dtype }) => targets.map((target) => runnerOf(task, dtype, target)));
for (let round = 0; round < ROUNDS; round++) {
  const given = [process.env.PYTHON ?? "python3", ["-c", NUMPY, JSON.stringify(requests)]] as const;
  const numpy = JSON.parse(execFileSync(...given, { encoding: "utf8" })) as Record<string, number>;
  for (const [name, seconds] of Object.entries(numpy)) note(`${name} numpy`, seconds);
  for (const run of runners) run();
}
const ms = (seconds: number): string => (seconds * 1000).toPrecision(3).padStart(8);
console.log(`                              NumPy ms ${targets.map((t) => `${t} ms`.padStart(9).padEnd(18)).join("")}`);
for (const { task, dtype } of names) {
  const time = (who: string): number => best.get(`${task.name} ${dtype} ${who}`) ?? Number.NaN;
  const against = (who: string): string => `${ms(time(who))} ${(time(who) / time("numpy")).toFixed(2).padStart(8)}`;
  console.log(`${`${task.name} ${dtype}`.padEnd(28)} ${ms(time("numpy"))} ${targets.map(against).join(" ")}`);
}
