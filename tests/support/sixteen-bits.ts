/**
 * @file A copy of the sources with one element type more: `x16`, the upper half of an f32, computed and added up in f32.
 * `ROW` is the row alone; `PLACES` is what else has to be said about a type, file by file (docs/adding-a-type.md).
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./project.ts";

/** `before` occurs once in the file and is replaced. */
export interface Edit {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

export const ROW: readonly Edit[] = [
  {
    path: "src/kernel/dtype.ts",
    before: "const TYPES = {",
    after: `const halves = new DataView(new ArrayBuffer(4));

function readHalf(element: number): number {
  halves.setUint32(0, element * 0x10000);
  return halves.getFloat32(0);
}

function writeHalf(number: number): number {
  if (Number.isNaN(number)) return 0x7fc0;
  halves.setFloat32(0, number);
  const bits = halves.getUint32(0);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

const TYPES = {`,
  },
  {
    path: "src/kernel/dtype.ts",
    before: "\n  bf16: {\n    ...HALF,",
    after: `
  x16: {
    ...FLOAT,
    bytes: 2,
    compute: "f32",
    accumulate: "f32",
    plain: false,
    round: (x) => readHalf(writeHalf(x)),
    array: Uint16Array,
    encoding: { read: readHalf, write: writeHalf },
  },
  bf16: {
    ...HALF,`,
  },
];

export const PLACES: readonly Edit[] = [
  {
    path: "src/kernel/stored.ts",
    before: "  bool: exactly,\n",
    after: `  bool: exactly,
  x16: (x) => {
  const bits = bitcast(x, "i32");
  const rounded = and(add(add(bits, 0x7fff), and(shrU(bits, 16), 1)), -0x10000);
  return pick(ne(x, x), x, bitcast(rounded, "f32"));
},
`,
  },
  {
    path: "src/codegen/wgsl/elements.ts",
    before: "\n  f64: null,\n  bf16:",
    after: "\n  f64: null,\n  x16: null,\n  bf16:",
  },
  { path: "src/formats/elements.ts", before: '  bool: "BOOL",\n', after: '  bool: "BOOL",\n  x16: "BF16",\n' },
  { path: "src/ops/select.ts", before: "\n  bool: [],", after: '\n  bool: [],\n  x16: ["bool"],' },
  {
    path: "src/codegen/wasm/elements.ts",
    before: "const FORMS:",
    after: `const X16_HALVES = [0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13];

const X16: ElementForm = {
  loadLane: (code, offset, lane) => code.memory("load16_lane", offset, 2 * lane + 1),
  widen: () => undefined,
  loadSplat(code, offset) {
    code.v128Const(ZEROS).memory("load16_lane", offset, 1);
    code.v128Const(ZEROS).shuffle([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
  },
  loadDense(code, offset, count) {
    if (count === 1) code.v128Const(ZEROS).memory("load16_lane", offset, 0);
    else code.loadBytes(2 * count, offset);
    code.simd("i32x4_extend_low_i16x8_u").i32Const(16).simd("i32x4_shl");
  },
  narrow(code, local) {
    const all = (value: number): Uint8Array => splatConstant("i32", value);
    code.v128Const(all(0x7fc0));
    code.get(local).v128Const(all(0x7fff)).simd("i32x4_add");
    code.get(local).i32Const(16).simd("i32x4_shr_u").v128Const(all(1)).simd("and").simd("i32x4_add");
    code.i32Const(16).simd("i32x4_shr_u");
    code.get(local).get(local).simd("f32x4_ne").simd("bitselect");
    code.v128Const(ZEROS).shuffle(X16_HALVES);
  },
};

const FORMS:`,
  },
  { path: "src/codegen/wasm/elements.ts", before: "  bool: BOOL,\n", after: "  bool: BOOL,\n  x16: X16,\n" },
  {
    path: "src/codegen/native/elements.ts",
    before: "  // a byte, 0 or 1, becomes a mask",
    after: `  x16: { c: "u16", functions: "x16", lane: (element) => \`x16_lane(\${element})\`, element: (lane) => \`x16_of(\${lane})\` },
  // a byte, 0 or 1, becomes a mask`,
  },
  {
    path: "src/codegen/native/prelude.ts",
    before: "\nconst HEAD = `",
    after: `
const HALVES = \`INLINE f32 x16_lane(u16 x) { u32 w = (u32)x << 16; f32 r; memcpy(&r, &w, 4); return r; }
INLINE u16 x16_of(f32 x) {
  u32 w; memcpy(&w, &x, 4); return x != x ? 0x7fc0 : (u16)((w + 0x7fff + ((w >> 16) & 1)) >> 16);
}
\`;

function halfText(n: number): string {
  const t = \`f32x\${n}\`;
  return \`INLINE \${t} x16x\${n}_load_first(const u16 *p, int count) {
  \${t} r = {0}; for (int l = 0; l < count; l++) r[l] = x16_lane(p[l]); return r;
}
INLINE \${t} x16x\${n}_load(const u16 *p) { return x16x\${n}_load_first(p, \${n}); }
INLINE \${t} x16x\${n}_load_where(const u16 *p, boolx\${n} m) {
  \${t} r = {0}; for (int l = 0; l < \${n}; l++) if (m[l]) r[l] = x16_lane(p[l]); return r;
}
INLINE void x16x\${n}_store_first(u16 *p, \${t} v, int count) { for (int l = 0; l < count; l++) p[l] = x16_of(v[l]); }
INLINE void x16x\${n}_store(u16 *p, \${t} v) { x16x\${n}_store_first(p, v, \${n}); }
\`;
}

const HEAD = \``,
  },
  { path: "src/codegen/native/prelude.ts", before: "  bool: boolText,", after: "  x16: halfText,\n  bool: boolText," },
  { path: "src/codegen/native/prelude.ts", before: "{HEAD}", after: "{HEAD + HALVES}" },
  { path: "src/formats/npy.ts", before: '  bool: "|b1",\n', after: '  bool: "|b1",\n  x16: "<x2",\n' },
  {
    path: "src/exchange/onnx/value.ts",
    before: '    bool: "bool",\n  };',
    after: '    bool: "bool",\n    x16: "bfloat16",\n  };',
  },
  { path: "src/api/normalize.ts", before: "bf16: -126, f16: null }", after: "bf16: -126, f16: null, x16: -126 }" },
  {
    path: "src/api/draws.ts",
    before: "  f64(x) {\n    if (x === 0)",
    after: "  x16: (x) => x - Math.max(Math.abs(x) * 2 ** -7, 2 ** -126),\n  f64(x) {\n    if (x === 0)",
  },
  { path: "src/api/rebuilt.ts", before: "f16: 0.1 }", after: "f16: 0.1, x16: 0.5 }" },
  {
    path: "src/api/reduce.ts",
    before: "  f64: { at: 480, by: 960 },",
    after: "  f64: { at: 480, by: 960 },\n  x16: { at: 48, by: 96 },",
  },
];

/** What the tests themselves have to say about a type. */
export const TEST_PLACES: readonly Edit[] = [
  { path: "tests/support/kernel-check.ts", before: "f32: 1e-4,", after: "f32: 1e-4, x16: 2 ** -7," },
];

/** Copies the sources, and what tests of kernels import, into a folder of their own; returns its path. */
export function copyWith(edits: readonly Edit[]): string {
  const parent = join(ROOT, "tests", ".examples");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "type-"));
  for (const part of ["src", "tests/support"]) {
    cpSync(join(ROOT, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.endsWith(".test.ts"),
    });
  }
  const config = {
    extends: "../../../tsconfig.core.json",
    include: ["src"],
    exclude: ["src/cli", "src/node", "src/view/page", "src/playground/page"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  for (const { path, before, after } of edits) {
    const file = join(folder, path);
    const parts = readFileSync(file, "utf8").split(before);
    if (parts.length !== 2) throw new Error(`${path} has ${parts.length - 1} times ${before}`);
    writeFileSync(file, parts.join(after));
  }
  return folder;
}
