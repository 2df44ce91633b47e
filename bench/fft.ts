/**
 * @file Time of Fourier transforms, native and WebAssembly on one thread, against NumPy in the same run:
 *
 *   npx rolldown bench/fft.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/fft.mjs
 *   node node_modules/.cache/fft.mjs
 *
 * PYTHON is the interpreter that has NumPy, python3 by default. NumPy from 2.0 on computes f32 in f32 (before, everything in f64). Its
 * complex arrays have parts side by side; ours are two tensors. A figure is the best of several calls, which alternate. Arguments live in
 * the arena (they are donated and returned), so that neither side copies them; a ratio below 1 is in favour of Tidemark.
 */
import { execFileSync } from "node:child_process";
import { type Complex, compile, fft, fft2, ifft, irfft, reshape, rfft, type Tensor, tensor } from "../src/api/index.ts";
import "../src/node/index.ts";

const TYPES = ["f64", "f32"] as const;
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const CALLS = 4;

interface Task {
  readonly shape: readonly number[];
  readonly form: "fft" | "ifft" | "rfft" | "irfft" | "fft2" | "fft axis 0";
}

const shapes1: readonly (readonly number[])[] = [[2 ** 14], [1e5], [2 ** 17], [2 ** 20], [10007], [1000, 1024]];
const TASKS: readonly Task[] = [
  ...shapes1.map((shape): Task => ({ shape, form: "fft" })),
  { shape: [1024, 1024], form: "fft2" },
  { shape: [1024, 1024], form: "fft axis 0" },
  { shape: [2 ** 20], form: "ifft" },
  ...([[2 ** 14], [2 ** 20], [1000, 1024]] as const).flatMap((shape): Task[] => [
    { shape, form: "rfft" },
    { shape, form: "irfft" },
  ]),
];

const nameOf = ({ shape, form }: Task): string => `${form} ${shape.join("×")}`;

/** Serves requests to time tasks, so that both sides alternate. */
const NUMPY = `
import json, sys, time
import numpy as np
FORMS = {
    "fft": np.fft.fft, "ifft": np.fft.ifft, "rfft": np.fft.rfft, "fft2": np.fft.fft2,
    "irfft": np.fft.irfft, "fft axis 0": lambda x: np.fft.fft(x, axis=0),
}
tasks = json.loads(sys.argv[1])
best = {}
for form, shape, dtype in tasks:
    rng = np.random.default_rng(1)
    real = np.float32 if dtype == "f32" else np.float64
    x = rng.standard_normal(shape).astype(real)
    if form == "irfft":
        x = np.fft.rfft(x).astype(np.complex64 if dtype == "f32" else np.complex128)
    elif form != "rfft":
        x = (x + 1j * rng.standard_normal(shape)).astype(np.complex64 if dtype == "f32" else np.complex128)
    fn = FORMS[form]
    least = 1e9
    for _ in range(${CALLS * 2}):
        start = time.perf_counter()
        fn(x)
        least = min(least, time.perf_counter() - start)
    best[f"{form} {'×'.join(map(str, shape))} {dtype}"] = least
print(json.dumps(best))
`;

type Step = (x: Complex) => readonly [Complex | Tensor, Complex];

function stepOf({ form }: Task): Step {
  const run = (x: Complex): Complex | Tensor => {
    switch (form) {
      case "fft":
        return fft(x);
      case "ifft":
        return ifft(x);
      case "rfft":
        return rfft(x.re);
      case "irfft":
        return irfft(x);
      case "fft2":
        return fft2(x);
      case "fft axis 0":
        return fft(x, { axis: 0 });
    }
  };
  return (x) => [run(x), x];
}

const only = process.env.ONLY;
const targets = (process.env.TARGETS ?? "native wasm").split(" ") as ("native" | "wasm")[];
const chosen = TASKS.filter((task) => !only || nameOf(task).includes(only));

const best = new Map<string, number>();
const note = (key: string, seconds: number): void => {
  best.set(key, Math.min(best.get(key) ?? Number.POSITIVE_INFINITY, seconds));
};

interface Runner {
  readonly key: string;
  run(): void;
}

function runnersOf(task: Task, dtype: "f32" | "f64"): readonly Runner[] {
  const n = task.form === "irfft" ? Number(task.shape.at(-1)) / 2 + 1 : Number(task.shape.at(-1));
  const shape = [...task.shape.slice(0, -1), n];
  const elements = shape.reduce((a, b) => a * b, 1);
  const random = (): Float64Array => Float64Array.from({ length: elements }, () => Math.random() - 0.5);
  const part = (): Tensor => reshape(tensor(random(), { dtype }), shape);
  return targets.map((target) => {
    const program = compile(stepOf(task), { target, threads: 1, donate: [0] });
    let x: Complex = { re: part(), im: part() };
    return {
      key: `${nameOf(task)} ${dtype} ${target}`,
      run: () => {
        for (let call = 0; call < CALLS; call++) {
          const start = performance.now();
          const [, again] = program(x);
          note(`${nameOf(task)} ${dtype} ${target}`, (performance.now() - start) / 1000);
          x = again;
        }
      },
    };
  });
}

const requests = TYPES.flatMap((dtype) => chosen.map(({ form, shape }) => [form, shape, dtype]));
const ms = (seconds: number): string => (seconds * 1000).toPrecision(3).padStart(8);
console.log("                            NumPy ms  native ms    ratio   wasm ms    ratio");
const runners = TYPES.map((dtype) => chosen.map((task) => ({ task, dtype, runners: runnersOf(task, dtype) })));
for (let round = 0; round < ROUNDS; round++) {
  const given = [process.env.PYTHON ?? "python3", ["-c", NUMPY, JSON.stringify(requests)]] as const;
  const numpy = JSON.parse(execFileSync(...given, { encoding: "utf8" })) as Record<string, number>;
  for (const [name, seconds] of Object.entries(numpy)) note(`${name} numpy`, seconds);
  for (const { runners: own } of runners.flat()) for (const runner of own) runner.run();
}
for (const { task, dtype } of runners.flat()) {
  const time = (who: string): number => best.get(`${nameOf(task)} ${dtype} ${who}`) ?? Number.NaN;
  const against = (who: string): string => `${ms(time(who))} ${(time(who) / time("numpy")).toFixed(2).padStart(8)}`;
  console.log(`${`${nameOf(task)} ${dtype}`.padEnd(26)} ${ms(time("numpy"))} ${against("native")} ${against("wasm")}`);
}
