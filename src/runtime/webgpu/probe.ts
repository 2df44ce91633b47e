/**
 * @file What the arithmetic of an adapter is. WGSL promises neither that quotients and roots are the nearest numbers, nor that small
 * numbers stay, nor that `fma` rounds once; so a few hundred numbers are computed once and compared with what IEEE 754 says.
 */
import { hostRandom } from "../../base/random.ts";
import type { WebgpuOptions } from "../../codegen/wgsl/description.ts";
import { wgslPrelude } from "../../codegen/wgsl/dialect.ts";
import { COMPUTE, type GpuDevice, MAP_READ, USAGE } from "./gpu.ts";

type Answer = Pick<WebgpuOptions, "fma" | "exactly" | "rounding">;

/** Numbers of one case, each in a row of four: a, b, c and what is not used. */
type Case = readonly [a: number, b: number, c: number];

/** What is computed of every case: its text, its value, and what it shows. */
const TRIED = [
  { text: "a / b", value: ([a, b]: Case) => a / b, shows: "division" },
  { text: "sqrt(a)", value: ([a]: Case) => Math.sqrt(a), shows: "division" },
  // the product is exact in doubles, and so is what is left of it
  { text: "fma(a, b, c)", value: ([a, b, c]: Case) => a * b + c, shows: "fma" },
  { text: "f32_kept(a * b) + c", value: ([a, b, c]: Case) => Math.fround(a * b) + c, shows: "rounding" },
  { text: "f32_kept(a + b) - b", value: ([a, b]: Case) => Math.fround(a + b) - b, shows: "rounding" },
  { text: "a * b", value: ([a, b]: Case) => a * b, shows: "rounding" },
  { text: "a + b", value: ([a, b]: Case) => a + b, shows: "rounding" },
  { text: "floor(a)", value: ([a]: Case) => Math.floor(a), shows: "rounding" },
] as const;

const THREADS = 64;
const CASES = 512;
const ROW = 4;
const WORD = 4;
/** Exponents of numbers: of the usual ones, large and small. */
const SIZES = [0, 0, 20, -130];

/** Numbers of all sizes, small ones too; c is what the product rounds to, but for its sign. */
function cases(): readonly Case[] {
  const random = hostRandom(11);
  const { fround } = Math;
  return Array.from({ length: CASES }, (_, i) => {
    const a = fround((1 + random.next()) * 2 ** (SIZES[i % SIZES.length] ?? 0));
    const b = fround(1 + random.next());
    return [a, b, -fround(a * b)];
  });
}

const textOf = (): string => `@group(0) @binding(0) var<storage, read_write> numbers: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> results: array<f32>;
${wgslPrelude(false)}
@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  zero = group.z;
  let i = group.x * ${THREADS}u + local;
  let a = numbers[i].x;
  let b = numbers[i].y;
  let c = numbers[i].z;
${TRIED.map(({ text }, t) => `  results[i * ${TRIED.length}u + ${t}u] = ${text};`).join("\n")}
}
`;

async function compute(device: GpuDevice, numbers: Float32Array<ArrayBuffer>): Promise<Float32Array> {
  const bytes = CASES * TRIED.length * WORD;
  const { storage, copyFrom, copyTo, mapRead } = USAGE;
  const from = device.createBuffer({ size: numbers.byteLength, usage: storage | copyTo });
  const to = device.createBuffer({ size: bytes, usage: storage | copyFrom });
  const read = device.createBuffer({ size: bytes, usage: mapRead | copyTo });
  const entry = (binding: number) => ({ binding, visibility: COMPUTE, buffer: { type: "storage" } });
  const layout = device.createBindGroupLayout({ entries: [entry(0), entry(1)] });
  const pipeline = await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module: device.createShaderModule({ code: textOf() }), entryPoint: "main" },
  });
  const resources = [
    { buffer: from, offset: 0, size: numbers.byteLength },
    { buffer: to, offset: 0, size: bytes },
  ];
  const entries = resources.map((resource, binding) => ({ binding, resource }));
  device.queue.writeBuffer(from, 0, new Uint8Array(numbers.buffer));
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
  pass.dispatchWorkgroups(CASES / THREADS, 1);
  pass.end();
  encoder.copyBufferToBuffer(to, 0, read, 0, bytes);
  device.queue.submit([encoder.finish()]);
  await read.mapAsync(MAP_READ);
  const results = new Float32Array(read.getMappedRange().slice(0));
  for (const buffer of [from, to, read]) buffer.destroy();
  return results;
}

/** Whether a subnormal number is in it: adapters that flush those may still round everything else once. */
const isTiny = ([a]: Case): boolean => a < 2 ** -100;

/** `name` is the adapter's, for arithmetic that is its own. */
export async function probe(device: GpuDevice, name: string): Promise<Answer> {
  const all = cases();
  const numbers = new Float32Array(CASES * ROW);
  all.forEach((row, i) => {
    numbers.set(row, i * ROW);
  });
  const results = await compute(device, numbers);
  const wrong = new Set<string>();
  all.forEach((row, i) => {
    TRIED.forEach(({ value, shows }, t) => {
      if (shows === "fma" && isTiny(row)) return;
      if (!Object.is(results[i * TRIED.length + t], Math.fround(value(row)))) wrong.add(shows);
    });
  });
  return {
    fma: !wrong.has("fma"),
    exactly: wrong.has("division"),
    rounding: wrong.has("rounding") ? name : null,
  };
}
