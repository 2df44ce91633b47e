/**
 * @file Files of every kind that is read, and damage to them: cut off, bits flipped, bytes put in, taken out and repeated, lengths that lie, parts of one
 * kind of file in another. A damaged file is a function of its kind and a seed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import {
  load,
  loadBytes,
  loadNpy,
  loadNpz,
  random,
  save,
  saveNpy,
  saveNpz,
  spec,
  specsOf,
  type Tensor,
  tensor,
} from "../../src/api/index.ts";
import { hostRandom } from "../../src/base/random.ts";
import { exportOnnx, readOnnx } from "../../src/exchange/onnx/index.ts";
import { readPt2 } from "../../src/exchange/pt2/index.ts";
import { parseIndex } from "../../src/formats/shard-index.ts";
import { parse } from "../../src/ir/parse.ts";
import { loraOptions } from "../../src/nn/index.ts";
import { allOps } from "../../src/ops/all.ts";
import { entriesOfFile } from "../../src/view/read-file.ts";
import { ROOT } from "./project.ts";
import { hasModels, MODELS } from "./recorded-models.ts";

/** A kind of file, whole ones, and what reads them. */
export interface FileKind {
  readonly name: string;
  readonly files: readonly Uint8Array[];
  read(bytes: Uint8Array): unknown;
}

const text = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const fixture = (path: string): Uint8Array => readFileSync(join(ROOT, "tests/fixtures", path));
const model = (path: string): readonly Uint8Array[] => (hasModels ? [readFileSync(join(MODELS, path))] : []);

const tree = { w: random.normal(random.key(0), [5, 7]), b: [tensor([1, 2], { dtype: "i32" }), tensor([true])] };

/** An imported model is also followed: that is when nodes are looked at. */
const followed = (imported: ReturnType<typeof readOnnx>): unknown =>
  specsOf((params: Record<string, Tensor>, x: Record<string, Tensor>) => imported.apply(params, x))(
    imported.params,
    imported.specs(),
  );

const smallOnnx = (): Uint8Array =>
  exportOnnx((p: { w: Tensor }, x: Tensor) => x.matmul(p.w).tanh().sum(0), { w: tree.w }, spec([3, 5]));

const ALL: readonly FileKind[] = [
  {
    name: "safetensors",
    files: [save(tree), save(tree, { types: { w: "BF16" } })],
    read: (bytes) => [load(bytes), loadBytes(bytes)],
  },
  { name: "npy", files: [saveNpy(tree.w)], read: loadNpy },
  { name: "npz", files: [saveNpz(tree)], read: loadNpz },
  {
    name: "onnx",
    files: [smallOnnx(), ...model("mlp/model.onnx"), ...model("lstm/model.onnx")],
    read: (bytes) => followed(readOnnx(bytes)),
  },
  {
    name: "pt2",
    files: [...model("mlp/model.pt2"), ...model("extra/dyn.pt2")],
    read: (bytes) => readPt2(bytes).specs({ s17: 4 }),
  },
  {
    name: "snapshot",
    files: ["small", "traced", "segments"].map((name) => fixture(`snapshots/${name}.pickle`)),
    read: (bytes) => entriesOfFile("x.pickle", bytes),
  },
  {
    name: "compressed snapshot",
    files: [gzipSync(fixture("snapshots/small.pickle")), gzipSync(fixture("snapshots/traced.pickle"))],
    read: (bytes) => entriesOfFile("x.pickle.gz", bytes),
  },
  {
    name: "index",
    files: [text({ metadata: { total_size: 8 }, weight_map: { a: "m-1.safetensors", b: "m-2.safetensors" } })],
    read: parseIndex,
  },
  {
    name: "adapter configuration",
    files: [text({ peft_type: "LORA", r: 8, lora_alpha: 16, target_modules: ["c_attn", "c_proj"] })],
    read: (bytes) => loraOptions(JSON.parse(new TextDecoder().decode(bytes))),
  },
  {
    name: "graph",
    files: [
      new TextEncoder().encode(
        "func f(a: f32[4]) {\n  p: f32[4] = tanh(a)\n  q: f32[] = sum(p) {axes=[0]}\n  return q\n}\n",
      ),
    ],
    read: (bytes) => parse(new TextDecoder().decode(bytes), allOps, { file: "x.ir" }),
  },
];

/** Those that there are files of here. */
export const KINDS: readonly FileKind[] = ALL.filter(({ files }) => files.length > 0);

/** Numbers that are wrong as lengths. */
const LIES = [
  0n,
  1n,
  0x7fn,
  0x80n,
  0xffn,
  0xffffn,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x7fffffffffffffffn,
  0xffffffffffffffffn,
];

interface Draw {
  below(n: number): number;
}

type Damage = (bytes: Uint8Array, draw: Draw, other: Uint8Array) => Uint8Array;

const joined = (...parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));

const DAMAGES: readonly Damage[] = [
  // cut off
  (bytes, draw) => bytes.slice(0, draw.below(bytes.length)),
  // one to eight bits
  (bytes, draw) => {
    const copy = bytes.slice();
    for (let n = 1 + draw.below(8); n > 0; n--) {
      const at = draw.below(copy.length);
      copy[at] = (copy[at] ?? 0) ^ (1 << draw.below(8));
    }
    return copy;
  },
  // a number that lies, in two, four or eight bytes
  (bytes, draw) => {
    const copy = bytes.slice();
    const width = [2, 4, 8][draw.below(3)] as number;
    const at = draw.below(Math.max(1, copy.length - width));
    const lie = LIES[draw.below(LIES.length)] as bigint;
    for (let k = 0; k < width && at + k < copy.length; k++) copy[at + k] = Number((lie >> BigInt(8 * k)) & 0xffn);
    return copy;
  },
  // near the beginning, where headers are
  (bytes, draw) => {
    const copy = bytes.slice();
    copy[draw.below(Math.min(copy.length, 64))] = draw.below(256);
    return copy;
  },
  // a part twice, a part missing
  (bytes, draw) => {
    const [a, b] = [draw.below(bytes.length), draw.below(bytes.length)].sort((x, y) => x - y) as [number, number];
    return draw.below(2) === 0 ? joined(bytes.slice(0, b), bytes.slice(a)) : joined(bytes.slice(0, a), bytes.slice(b));
  },
  // a part of another kind of file
  (bytes, draw, other) => {
    const at = draw.below(bytes.length);
    const from = draw.below(other.length);
    return joined(bytes.slice(0, at), other.slice(from, from + 64), bytes.slice(at + draw.below(64)));
  },
  // noise
  (bytes, draw) => {
    const copy = bytes.slice();
    const at = draw.below(copy.length);
    for (let k = at; k < Math.min(copy.length, at + 16); k++) copy[k] = draw.below(256);
    return copy;
  },
];

/** A damaged file. */
export function damaged(kind: FileKind, seed: number): Uint8Array {
  const source = hostRandom(seed);
  const draw: Draw = { below: (n) => Math.floor(source.next() * Math.max(1, n)) };
  const whole = kind.files[draw.below(kind.files.length)] as Uint8Array;
  const others = KINDS[draw.below(KINDS.length)]?.files as readonly Uint8Array[];
  const other = others[draw.below(others.length)] as Uint8Array;
  let bytes = whole;
  // large files are mostly weights: damage is where their descriptions are
  for (let n = 1 + draw.below(2); n > 0; n--) {
    if (bytes.length === 0) break;
    bytes = (DAMAGES[draw.below(DAMAGES.length)] as Damage)(bytes, draw, other);
  }
  return bytes;
}

/** Bytes that reading may take beyond the file, at least. */
const ROOM = 64 * 2 ** 20;

/** Null if a damaged file is read, or refused with a clear error and within bounds of memory; else what went wrong. */
export function problemWith(kind: FileKind, bytes: Uint8Array): string | null {
  const before = process.memoryUsage().arrayBuffers;
  try {
    kind.read(bytes);
  } catch (error) {
    const clear = (error as { code?: unknown }).code !== undefined && (error as Error).name === "TidemarkError";
    const isJson = kind.name === "adapter configuration" && error instanceof SyntaxError;
    if (!clear && !isJson) return `${(error as Error).stack ?? String(error)}`;
    if ((error as { code?: unknown }).code === "Internal") return String(error);
    if (String((error as Error).message).length > 4000)
      return `a message of ${(error as Error).message.length} characters`;
  }
  const taken = process.memoryUsage().arrayBuffers - before;
  return taken > ROOM + 40 * bytes.length ? `${taken} bytes for a file of ${bytes.length}` : null;
}
