/**
 * @file How fast the target `cuda` is on the device at hand. Needs an NVIDIA GPU with its driver, a CUDA toolkit and koffi.
 *
 *   npx rolldown bench/cuda.ts -p node --no-treeshake --no-codeSplitting --external koffi --external highs --file node_modules/.cache/cuda.mjs &&
 *     node node_modules/.cache/cuda.mjs [kernels epilogues attention large large_tf32 budget profile profile_budget profile_bf16]
 *
 *   kernels    rates of single kernels
 *   epilogues  products with what is made of their sums
 *   attention  streamed attention, forward and backward: rates, errors against f32 on the processor, bits of two runs
 *   large      GPT-2 small, one step; large_tf32: with products on tensor cores
 *   budget     the same within 4 GB
 *   profile    without a budget, step by step, beside predictions; profile_budget: within 2,350 MiB; profile_bf16: with autocast, within
 *              2,024 MiB
 */

import { attention } from "../src/api/attention.ts";
import { autocast } from "../src/api/autocast.ts";
import { compile } from "../src/api/compile.ts";

import { cast, mul as mulOf } from "../src/api/elementwise.ts";
import { grad } from "../src/api/grad.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { plansOf } from "../src/api/plan.ts";
import { Executable } from "../src/runtime/executable.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { tensor } from "../src/trace/literal.ts";
import { storageOf, type Tensor } from "../src/trace/tensor.ts";
import "../src/api/methods.ts";
import { grouped } from "../src/base/errors.ts";
import { at } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import { LARGE } from "../src/cli/programs/built-in.ts";
import { Build } from "../src/ir/build.ts";
import type { Value } from "../src/ir/graph.ts";
import { elementsOf, tensorType } from "../src/ir/type.ts";
import { cudaTarget } from "../src/node/cuda/target.ts";
import { attend, attendBackward } from "../src/ops/attend.ts";
import { broadcast, sum } from "../src/ops/broadcast.ts";
import { add, mul } from "../src/ops/elementwise.ts";
import { gelu, tanh } from "../src/ops/math.ts";
import { matmul } from "../src/ops/matmul.ts";
import { transpose } from "../src/ops/movement.ts";
import { stepMs } from "../src/plan/cost/model.ts";
import type { Target, TargetAnswer } from "../src/runtime/device.ts";

function found(answer: TargetAnswer): Target {
  if (typeof answer !== "string") return answer;
  console.error(answer);
  process.exit(1);
}

/** Seconds of one run of a graph. */
function secondsOf(target: Target, build: (b: Build) => readonly Value[], repeat = 10): number {
  const b = new Build("kernel");
  const executable = loadGraph(b.finish(build(b)), { target });
  const random = hostRandom(1);
  executable.placed.graph.params.forEach(({ type }, i) => {
    const data = Float32Array.from({ length: Math.min(elementsOf(type.shape), 2 ** 20) }, () => random.next() - 0.5);
    executable.memory.write(at(executable.placed.params, i), 4 * elementsOf(type.shape), (into) => {
      const floats = new Float32Array(into.buffer, into.byteOffset, elementsOf(type.shape));
      for (let from = 0; from < floats.length; from += data.length) {
        floats.set(data.subarray(0, Math.min(data.length, floats.length - from)), from);
      }
    });
  });
  const word = new Uint8Array(4);
  const wait = (): void => executable.memory.readInto?.(0, word);
  executable.run();
  executable.run();
  wait();
  const started = performance.now();
  for (let i = 0; i < repeat; i++) executable.run();
  wait();
  const seconds = (performance.now() - started) / 1000 / repeat;
  executable.close();
  return seconds;
}

/** Products of GPT-2 small with 8 sequences: tokens, width out, width in. */
const LAYERS = [
  ["qkv", 8192, 2304, 768],
  ["proj", 8192, 768, 768],
  ["fc", 8192, 3072, 768],
  ["fo", 8192, 768, 3072],
  ["head, 1024 tokens", 1024, 50304, 768],
] as const;

function kernels(): void {
  const target = found(cudaTarget());
  const rate = (name: string, amount: number, unit: string, seconds: number): void =>
    console.log(`${name}: ${(seconds * 1000).toFixed(3)} ms, ${(amount / seconds / 1e12).toFixed(2)} ${unit}`);
  const f32 = (...shape: number[]) => tensorType("f32", shape);
  const n = 2 ** 28;
  rate(
    "x + y, 2^28 elements",
    12 * n,
    "TB/s",
    secondsOf(target, (b) => [b.call(add, [b.param(f32(n)), b.param(f32(n))], {})]),
  );
  const rows = 2 ** 14;
  const sums = (axes: readonly number[]) => (b: Build) => [b.call(sum, [b.param(f32(rows, rows))], { axes })];
  rate("sum along rows of 2^14 x 2^14", 4 * rows ** 2, "TB/s", secondsOf(target, sums([1])));
  rate("sum along columns of 2^14 x 2^14", 4 * rows ** 2, "TB/s", secondsOf(target, sums([0])));
  rate("sum of 2^28", 4 * rows ** 2, "TB/s", secondsOf(target, sums([0, 1])));
  const turned = (b: Build) => [b.call(transpose, [b.param(f32(rows, rows))], { perm: [1, 0] })];
  rate("transpose of 2^14 x 2^14", 8 * rows ** 2, "TB/s", secondsOf(target, turned));
  const product =
    ([m, n, k]: readonly number[], ta: boolean, tb: boolean) =>
    (b: Build) => {
      const x = b.param(ta ? f32(k ?? 0, m ?? 0) : f32(m ?? 0, k ?? 0));
      return [b.call(matmul, [x, b.param(tb ? f32(n ?? 0, k ?? 0) : f32(k ?? 0, n ?? 0))], { ta, tb })];
    };
  const tensor = found(cudaTarget({ products: "tf32" }));
  for (const shape of [
    [4096, 4096, 4096],
    [8192, 3072, 768],
  ]) {
    const flops = 2 * shape.reduce((p, x) => p * x, 1);
    rate(`product ${shape.join("x")}`, flops, "TFLOP/s", secondsOf(target, product(shape, false, false)));
  }
  for (const [name, m, n, k] of LAYERS) {
    for (const [way, shape, ta, tb] of [
      ["forward", [m, n, k], false, false],
      ["to input", [m, k, n], false, true],
      ["to weight", [k, n, m], true, false],
    ] as const) {
      const flops = 2 * m * n * k;
      rate(`tf32 ${name} ${way} ${shape.join("x")}`, flops, "TFLOP/s", secondsOf(tensor, product(shape, ta, tb)));
    }
  }
}

/** The products of a block's feed-forward part with what is made of their sums. */
function epilogues(): void {
  const [m, n, k] = [8192, 3072, 768];
  const f32 = (...shape: number[]) => tensorType("f32", shape);
  const forward = (b: Build): Value =>
    b.call(matmul, [b.param(f32(m, k)), b.param(f32(k, n))], { ta: false, tb: false });
  const biased = (b: Build): Value =>
    b.call(add, [forward(b), b.call(broadcast, [b.param(f32(n))], { axes: [1], shape: [m, n] })], {});
  const cases: Readonly<Record<string, (b: Build) => readonly Value[]>> = {
    sums: (b) => [forward(b)],
    gelu: (b) => [b.call(gelu, [biased(b)], {})],
    "gelu, both stored": (b) => {
      const x = biased(b);
      return [x, b.call(gelu, [x], {})];
    },
    "times two matrices": (b) => {
      const x = b.call(mul, [forward(b), b.param(f32(m, n))], {});
      return [b.call(mul, [x, b.param(f32(m, n))], {})];
    },
    "gelu backward": (b) => {
      const x = b.param(f32(m, n));
      const t = b.call(tanh, [x], {});
      return [b.call(mul, [forward(b), b.call(mul, [t, b.call(gelu, [x], {})], {})], {})];
    },
  };
  const target = found(cudaTarget({ products: "tf32" }));
  for (const [name, build] of Object.entries(cases)) {
    const ms = 1000 * secondsOf(target, build, 20);
    console.log(`8192 x 3072 x 768, ${name}: ${ms.toFixed(3)} ms`);
  }
}

/** q, k and v of attention, and for its derivative logsum, delta and g. */
const attentionTypes = (batch: number, heads: number, positions: number, width: number, isBackward: boolean) => {
  const side = tensorType("f32", [batch, heads, positions, width]);
  const row = tensorType("f32", [batch, heads, positions]);
  return isBackward ? [side, side, side, row, row, side] : [side, side, side];
};

/** Errors of streamed attention relative to the largest element, against WebAssembly; and whether two runs have equal bits. */
function attentionErrors(target: Target, causal: boolean, half = false): void {
  const random = hostRandom(3);
  const shape = [2, 3, 333, 64];
  const drawn = () =>
    tensor(
      Float32Array.from({ length: elementsOf(shape) }, () => 2 * random.next() - 1),
      { shape, dtype: half ? "bf16" : "f32" },
    );
  const args = [drawn(), drawn(), drawn(), drawn()] as const;
  const step = (...given: readonly Tensor[]) => {
    const [q, k, v, w] = given.map((x) => (half ? cast(x, "f32") : x)) as [Tensor, Tensor, Tensor, Tensor];
    const loss = (a: Tensor, b: Tensor, c: Tensor) => mulOf(attention(a, b, c, { causal, form: "streamed" }), w).sum();
    return [attention(q, k, v, { causal, form: "streamed" }), ...grad(loss, { argnums: [0, 1, 2] })(q, k, v)];
  };
  const own = compile(step, { target });
  const [want, first, second] = [compile(step)(...args), own(...args).map((x) => [...x.data()]), own(...args)];
  const errors = want.map((x, i) => {
    const numbers = [...x.data()].map(Number);
    const scale = numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    return numbers.reduce((a, b, e) => Math.max(a, Math.abs(b - Number(at(at(first, i), e)))), 0) / scale;
  });
  const isSame = first.every((x, i) => [...at(second, i).data()].every((y, e) => Object.is(y, at(x, e))));
  const text = errors.map((error) => error.toExponential(1)).join(", ");
  console.log(
    `attention ${half ? "of bf16 " : ""}${causal ? "causal" : "full"}: errors of y, dq, dk, dv ${text}; equal bits ${isSame}`,
  );
}

function attentions(): void {
  for (const products of ["tf32", "f32"] as const) {
    const target = found(cudaTarget({ products }));
    for (const causal of [true, false]) attentionErrors(target, causal);
    if (products === "tf32") for (const causal of [true, false]) attentionErrors(target, causal, true);
    for (const [batch, heads, positions, width] of [
      [8, 12, 1024, 64],
      [4, 12, 4096, 64],
      [4, 8, 2048, 128],
    ] as const) {
      for (const [op, passes] of [
        [attend, 2],
        [attendBackward, 7],
      ] as const) {
        const types = attentionTypes(batch, heads, positions, width, op === attendBackward);
        const attrs = { scale: 0.125, causal: true, window: 0, rate: 0 };
        const seconds = secondsOf(target, (b) =>
          b.callAll(
            op,
            types.map((type) => b.param(type)),
            attrs,
          ),
        );
        const flops = passes * batch * heads * positions ** 2 * width;
        const name = `${products} ${op.name} [${batch},${heads},${positions},${width}] causal`;
        console.log(`${name}: ${(1000 * seconds).toFixed(3)} ms, ${(flops / seconds / 1e12).toFixed(1)} TFLOP/s`);
      }
    }
  }
}

function large(products: "f32" | "tf32", memory?: string): void {
  const program = LARGE.find(({ name }) => name === "gpt2-small");
  if (!program) return;
  const step = compile(program.step, {
    donate: [0],
    target: found(cudaTarget({ products })),
    name: program.name,
    ...(memory ? { memory } : {}),
  });
  const batch = program.batch();
  let state = program.init();
  const times: number[] = [];
  let last = 0;
  for (let i = 0; i < 8; i++) {
    const started = performance.now();
    const [next, loss] = step(state, ...batch);
    state = next;
    last = loss.item();
    times.push(performance.now() - started);
  }
  const { arenaBytes } = step.program(state, ...batch);
  const ms = times.slice(2).sort((a, b) => a - b);
  console.log(
    `gpt2-small, ${products}, ${memory ?? "no budget"}: ${at(ms, 2).toFixed(1)} ms a step, arena ${grouped(arenaBytes)} bytes, loss ${last}`,
  );
}

/** Milliseconds of every step of GPT-2 small, each waited for, and predicted: the longest, by what they do. */
function profile(memory?: string, half?: "bf16"): void {
  const program = LARGE.find(({ name }) => name === "gpt2-small");
  if (!program) return;
  const target = found(cudaTarget({ products: "tf32" }));
  const fn = program.step as AnyFunction;
  const { plans, source } = plansOf(
    half ? autocast(fn, { products: half }) : fn,
    [program.init(), ...program.batch()],
    { donate: [0], ...(memory ? { memory } : {}) },
    target,
  );
  const placed = plans.placed(plans.choose(), 0);
  const executable = new Executable(placed, target, { stepwise: true });
  source.flat.tensors.forEach((tensor, i) => {
    const { type } = at(placed.graph.params, i);
    executable.write(type, at(placed.params, i), storageOf(tensor).read());
  });
  const word = new Uint8Array(4);
  const wait = (): void => executable.memory.readInto?.(0, word);
  const times = placed.kernels.map(() => Number.POSITIVE_INFINITY);
  for (let run = 0; run < 4; run++) {
    wait();
    let started = performance.now();
    executable.runStepwise((i) => {
      wait();
      times[i] = Math.min(at(times, i), performance.now() - started);
      started = performance.now();
    });
  }
  const planned = new Map(placed.plan.program.steps.map((step) => [step.node, stepMs(placed.plan, step, plans.costs)]));
  const groups = new Map<string, { ms: number; planned: number; count: number }>();
  placed.kernelNodes.forEach((node, i) => {
    const inner = node.regions[0]?.nodes.map(({ op }) => op.name) ?? [node.op.name];
    const [inputs, outputs] = [node.inputs, node.outputs].map((all) =>
      all.map(({ type: { dtype, shape } }) => `${dtype}[${shape}]`).join(" "),
    );
    const key = `${node.phase} ${inner.slice(0, 24).join("+")} (${inputs}) -> ${outputs}`;
    const group = groups.get(key) ?? { ms: 0, planned: 0, count: 0 };
    groups.set(key, {
      ms: group.ms + at(times, i),
      planned: group.planned + (planned.get(node) ?? 0),
      count: group.count + 1,
    });
  });
  const total = times.reduce((a, b) => a + b, 0);
  console.log(`${times.length} steps, ${total.toFixed(1)} ms when each is waited for`);
  for (const [key, { ms, planned: own, count }] of [...groups].sort((a, b) => b[1].ms - a[1].ms).slice(0, 80)) {
    console.log(`${ms.toFixed(2)} ms, ${own.toFixed(2)} predicted, ${count} times: ${key.slice(0, 400)}`);
  }
}

const SECTIONS = {
  kernels,
  epilogues,
  attention: attentions,
  profile: () => profile(),
  profile_budget: () => profile("2350MiB"),
  profile_bf16: () => profile("2024MiB", "bf16"),
  large: () => large("f32"),
  large_tf32: () => large("tf32"),
  budget: () => large("tf32", "4GB"),
};

for (const name of process.argv.slice(2)) {
  const started = performance.now();
  SECTIONS[name as keyof typeof SECTIONS]();
  console.log(`-- ${name} ${((performance.now() - started) / 1000).toFixed(1)} s`);
}
