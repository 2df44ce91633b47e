/**
 * @file Bytes of a WebAssembly module: a code buffer with the instructions we use, and a module builder around it.
 * Follows the binary format of the WebAssembly core specification, version 2 with SIMD, plus relaxed SIMD's
 * multiply-add. Nothing here knows about kernels.
 */
import type { PlainBytes } from "../../base/bytes.ts";
import { invariant } from "../../base/invariant.ts";
import { ByteBuffer, LARGEST_FUNCTION, LARGEST_MODULE } from "./byte-buffer.ts";
import { signedLeb, unsignedLeb } from "./leb.ts";

/** Of a memory with addresses of 32 bits. */
export const MOST_PAGES = 65536;

export type ValType = "i32" | "i64" | "f32" | "f64" | "v128";
const VALTYPE: Record<ValType, number> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b };

/** One-byte instructions. */
export const OP = {
  return: 0x0f,
  drop: 0x1a,
  i32Eqz: 0x45,
  i32Eq: 0x46,
  i32Ne: 0x47,
  i32LtS: 0x48,
  i32LtU: 0x49,
  i32GtS: 0x4a,
  i32LeS: 0x4c,
  i32GeS: 0x4e,
  i32Ctz: 0x68,
  i32Add: 0x6a,
  i32Sub: 0x6b,
  i32Mul: 0x6c,
  i32DivS: 0x6d,
  i32DivU: 0x6e,
  i32RemU: 0x70,
  i32And: 0x71,
  i32Or: 0x72,
  i32Xor: 0x73,
  i32Shl: 0x74,
  i32ShrU: 0x76,
  i64Ne: 0x52,
  i64GtU: 0x56,
  i64LeU: 0x58,
  i64Eqz: 0x50,
  i64Eq: 0x51,
  i64Sub: 0x7d,
  i64Mul: 0x7e,
  i64DivS: 0x7f,
  i64DivU: 0x80,
  i64Or: 0x84,
  i64Shl: 0x86,
  i64ShrU: 0x88,
  i64ExtendI32U: 0xad,
  i32WrapI64: 0xa7,
  f32ConvertI64S: 0xb4,
  f64ConvertI64S: 0xb9,
} as const;

/** Instructions behind the 0xfd prefix, by the specification's names. */
export const SIMD = {
  splat_i32: 17,
  splat_i64: 18,
  splat_f32: 19,
  splat_f64: 20,
  extract_i32: 27,
  replace_i32: 28,
  extract_i64: 29,
  replace_i64: 30,
  extract_f32: 31,
  replace_f32: 32,
  extract_f64: 33,
  replace_f64: 34,
  f32x4_eq: 65,
  f32x4_ne: 66,
  f32x4_lt: 67,
  f32x4_le: 69,
  f64x2_eq: 71,
  f64x2_ne: 72,
  f64x2_lt: 73,
  f64x2_le: 75,
  i32x4_eq: 55,
  i32x4_ne: 56,
  i32x4_lt_s: 57,
  i32x4_le_s: 61,
  not: 77,
  and: 78,
  andnot: 79,
  or: 80,
  xor: 81,
  bitselect: 82,
  any_true: 83,
  f32x4_demote_f64x2_zero: 94,
  f64x2_promote_low_f32x4: 95,
  i8x16_narrow_i16x8_s: 101,
  f32x4_ceil: 103,
  f32x4_floor: 104,
  f32x4_trunc: 105,
  f32x4_nearest: 106,
  f64x2_ceil: 116,
  f64x2_floor: 117,
  f64x2_trunc: 122,
  f64x2_nearest: 148,
  i16x8_narrow_i32x4_s: 133,
  i16x8_extend_low_i8x16_u: 137,
  i32x4_extend_low_i16x8_u: 169,
  i32x4_abs: 160,
  i32x4_neg: 161,
  i32x4_shl: 171,
  i32x4_shr_s: 172,
  i32x4_shr_u: 173,
  i32x4_add: 174,
  i32x4_sub: 177,
  i32x4_mul: 181,
  i32x4_min_s: 182,
  i32x4_max_s: 184,
  i64x2_abs: 192,
  i64x2_neg: 193,
  i64x2_extend_low_i32x4_s: 199,
  i64x2_shl: 203,
  i64x2_shr_s: 204,
  i64x2_shr_u: 205,
  i64x2_add: 206,
  i64x2_sub: 209,
  i64x2_mul: 213,
  i64x2_eq: 214,
  i64x2_ne: 215,
  i64x2_lt_s: 216,
  i64x2_gt_s: 217,
  i64x2_le_s: 218,
  f32x4_abs: 224,
  f32x4_neg: 225,
  f32x4_sqrt: 227,
  f32x4_add: 228,
  f32x4_sub: 229,
  f32x4_mul: 230,
  f32x4_div: 231,
  f32x4_min: 232,
  f32x4_max: 233,
  f64x2_abs: 236,
  f64x2_neg: 237,
  f64x2_sqrt: 239,
  f64x2_add: 240,
  f64x2_sub: 241,
  f64x2_mul: 242,
  f64x2_div: 243,
  f64x2_min: 244,
  f64x2_max: 245,
  i32x4_trunc_sat_f32x4_s: 248,
  f32x4_convert_i32x4_s: 250,
  i32x4_trunc_sat_f64x2_s_zero: 252,
  f64x2_convert_low_i32x4_s: 254,
  f32x4_relaxed_madd: 0x105,
  f64x2_relaxed_madd: 0x107,
} as const;

export type SimdOp = keyof typeof SIMD;

/** Loads and stores with a memory argument: [opcode, log2 of the natural alignment]. */
const VECTOR_MEMORY = {
  load: [0, 4],
  load32_splat: [9, 2],
  load64_splat: [10, 3],
  store: [11, 4],
  load8_lane: [84, 0],
  load16_lane: [85, 1],
  load32_lane: [86, 2],
  load64_lane: [87, 3],
  store8_lane: [88, 0],
  store16_lane: [89, 1],
  store32_lane: [90, 2],
  store64_lane: [91, 3],
  load32_zero: [92, 2],
  load64_zero: [93, 3],
} as const;

export type VectorMemoryOp = keyof typeof VECTOR_MEMORY;

/** Instructions behind the 0xfe prefix: [opcode, log2 of the alignment, which is a rule here]. */
const ATOMIC = {
  notify: [0x00, 2],
  wait32: [0x01, 2],
  i32_load: [0x10, 2],
  i64_load: [0x11, 3],
  i32_store: [0x17, 2],
  i64_store: [0x18, 3],
  i32_add: [0x1e, 2],
  i32_sub: [0x25, 2],
  i64_cmpxchg: [0x49, 3],
} as const;

export type AtomicOp = keyof typeof ATOMIC;

/** A function body under construction. Locals are numbered after the parameters. */
export class Code {
  readonly bytes: ByteBuffer = new ByteBuffer("the code of one kernel", LARGEST_FUNCTION);
  readonly params: readonly ValType[];
  readonly results: readonly ValType[];
  readonly locals: ValType[] = [];

  constructor(params: readonly ValType[], results: readonly ValType[] = []) {
    this.params = params;
    this.results = results;
  }

  local(type: ValType): number {
    this.locals.push(type);
    return this.params.length + this.locals.length - 1;
  }

  op(opcode: number): this {
    this.bytes.push(opcode);
    return this;
  }

  /** Lane number or nothing follows the opcode. */
  simd(name: SimdOp, lane?: number): this {
    this.bytes.push(0xfd, ...unsignedLeb(SIMD[name]));
    if (lane !== undefined) this.bytes.push(lane);
    return this;
  }

  memory(name: VectorMemoryOp, offset: number, lane?: number): this {
    const [opcode, align] = VECTOR_MEMORY[name];
    // Alignment is a hint; planned buffers are aligned but elements within them need not be.
    this.bytes.push(0xfd, ...unsignedLeb(opcode), Math.min(align, 2), ...unsignedLeb(offset));
    if (lane !== undefined) this.bytes.push(lane);
    return this;
  }

  /** Sequentially consistent; the address is on the stack, below the other operands. */
  atomic(name: AtomicOp, offset = 0): this {
    const [opcode, align] = ATOMIC[name];
    this.bytes.push(0xfe, opcode, align, ...unsignedLeb(offset));
    return this;
  }

  /** The first 16, 8 or 4 bytes of a register, the rest zero. */
  loadBytes(bytes: number, offset: number): this {
    if (bytes === 16) return this.memory("load", offset);
    return this.memory(bytes === 8 ? "load64_zero" : "load32_zero", offset);
  }

  shuffle(lanes: readonly number[]): this {
    this.bytes.push(0xfd, 13, ...lanes);
    return this;
  }

  v128Const(bytes: Uint8Array): this {
    this.bytes.push(0xfd, 12, ...bytes);
    return this;
  }

  i32Load(offset = 0): this {
    this.bytes.push(0x28, 2, ...unsignedLeb(offset));
    return this;
  }

  /** One byte, the rest zero. */
  i32Load8(offset = 0): this {
    this.bytes.push(0x2d, 0, ...unsignedLeb(offset));
    return this;
  }

  i32Store(offset = 0): this {
    this.bytes.push(0x36, 2, ...unsignedLeb(offset));
    return this;
  }

  i64Load(offset = 0): this {
    this.bytes.push(0x29, 3, ...unsignedLeb(offset));
    return this;
  }

  i64Store(offset = 0): this {
    this.bytes.push(0x37, 3, ...unsignedLeb(offset));
    return this;
  }

  i32Const(n: number): this {
    this.bytes.push(0x41, ...signedLeb(n));
    return this;
  }

  i64Const(n: number): this {
    this.bytes.push(0x42, ...signedLeb(n));
    return this;
  }

  get(local: number): this {
    this.bytes.push(0x20, ...unsignedLeb(local));
    return this;
  }

  set(local: number): this {
    this.bytes.push(0x21, ...unsignedLeb(local));
    return this;
  }

  tee(local: number): this {
    this.bytes.push(0x22, ...unsignedLeb(local));
    return this;
  }

  call(fn: number): this {
    this.bytes.push(0x10, ...unsignedLeb(fn));
    return this;
  }

  /** Calls a function of the module's table, whose number is on the stack above its arguments. */
  callIndirect(type: number): this {
    this.bytes.push(0x11, ...unsignedLeb(type), 0);
    return this;
  }

  /** The i64 nearest below or above an f64, towards zero; the ends of i64 beyond them, 0 for NaN. */
  i64OfF64(): this {
    this.bytes.push(0xfc, 6);
    return this;
  }

  /** memory.fill: [address, byte, length] on the stack. */
  memoryFill(): this {
    this.bytes.push(0xfc, 11, 0);
    return this;
  }

  /** memory.copy: [to, from, length] on the stack. */
  memoryCopy(): this {
    this.bytes.push(0xfc, 10, 0, 0);
    return this;
  }

  /** Runs `body` while `condition` (which leaves an i32) holds; tested before each iteration. */
  while(condition: () => void, body: () => void): this {
    this.bytes.push(0x02, 0x40, 0x03, 0x40); // block, loop
    condition();
    this.bytes.push(OP.i32Eqz, 0x0d, 1); // br_if out
    body();
    this.bytes.push(0x0c, 0, 0x0b, 0x0b); // br loop, end, end
    return this;
  }

  /** Runs `body`, then again while `condition` (which leaves an i32) holds: one branch an iteration. */
  repeat(body: () => void, condition: () => void): this {
    this.bytes.push(0x03, 0x40); // loop
    body();
    condition();
    this.bytes.push(0x0d, 0, 0x0b); // br_if loop, end
    return this;
  }

  /** if with the condition already on the stack. */
  if(result: ValType | null, then: () => void, otherwise?: () => void): this {
    this.bytes.push(0x04, result ? VALTYPE[result] : 0x40);
    then();
    if (otherwise) {
      this.bytes.push(0x05);
      otherwise();
    }
    this.bytes.push(0x0b);
    return this;
  }

  /** local += n */
  increment(local: number, n: number): this {
    if (n === 0) return this;
    return this.get(local).i32Const(n).op(OP.i32Add).set(local);
  }
}

function section(id: number, content: ArrayLike<number>, out: ByteBuffer): void {
  out.push(id, ...unsignedLeb(content.length));
  out.append(content);
}

function name(text: string): number[] {
  const bytes = Array.from(text, (c) => c.charCodeAt(0));
  return [...unsignedLeb(bytes.length), ...bytes];
}

/** Collects functions over one imported memory and writes the module. */
export class ModuleBuilder {
  readonly #types: string[] = [];
  readonly #imports: { readonly name: string; readonly type: number }[] = [];
  #table: number[] | null = null;
  readonly #functions: { readonly type: number; readonly code: Code }[] = [];
  readonly #exports: { readonly name: string; readonly fn: number }[] = [];

  /** Returns the function's number. The body may still grow until `finish`. */
  add(code: Code): number {
    const type = this.type(code.params, code.results);
    return this.#imports.length + this.#functions.push({ type, code }) - 1;
  }

  /** The number of a function type. */
  type(params: readonly ValType[], results: readonly ValType[] = []): number {
    const key = `${params.join()}>${results.join()}`;
    const known = this.#types.indexOf(key);
    return known < 0 ? this.#types.push(key) - 1 : known;
  }

  /** A function `env.name` without results. Before any function of the module's own. */
  importFunction(imported: string, params: readonly ValType[] = []): number {
    invariant(this.#functions.length === 0, () => "imported functions are numbered first");
    return this.#imports.push({ name: imported, type: this.type(params) }) - 1;
  }

  /** There is a table of functions, maybe an empty one. */
  addTable(): void {
    this.#table ??= [];
  }

  /** Puts a function into the table; its number there. */
  tabulate(fn: number): number {
    invariant(this.#table, () => "a module without a table");
    return this.#table.push(fn) - 1;
  }

  export(exported: string, fn: number): void {
    this.#exports.push({ name: exported, fn });
  }

  /** Imports `env.memory` of at least the given number of 64 KiB pages. */
  finish(pages: number, shared = false): PlainBytes {
    const out = new ByteBuffer("the code of the program", LARGEST_MODULE);
    out.push(0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00);
    const types: number[] = [...unsignedLeb(this.#types.length)];
    for (const key of this.#types) {
      const [params = "", results = ""] = key.split(">");
      const p = params ? params.split(",") : [];
      const r = results ? results.split(",") : [];
      types.push(0x60, ...unsignedLeb(p.length), ...p.map((t) => VALTYPE[t as ValType]));
      types.push(...unsignedLeb(r.length), ...r.map((t) => VALTYPE[t as ValType]));
    }
    section(1, types, out);
    section(2, this.#importBytes(pages, shared), out);
    section(3, [...unsignedLeb(this.#functions.length), ...this.#functions.flatMap((f) => unsignedLeb(f.type))], out);
    const entries = unsignedLeb(this.#table?.length ?? 0);
    if (this.#table) section(4, [1, 0x70, 0x00, ...entries], out); // one table of functions
    section(
      7,
      [
        ...unsignedLeb(this.#exports.length),
        ...this.#exports.flatMap((e) => [...name(e.name), 0x00, ...unsignedLeb(e.fn)]),
      ],
      out,
    );
    if (this.#table) {
      section(9, [1, 0x00, 0x41, 0x00, 0x0b, ...entries, ...this.#table.flatMap((fn) => unsignedLeb(fn))], out);
    }
    section(10, this.#bodies(), out);
    return Uint8Array.from(out.view());
  }

  #bodies(): Uint8Array {
    const bodies = new ByteBuffer("the code of the program", LARGEST_MODULE);
    bodies.append(unsignedLeb(this.#functions.length));
    for (const { code } of this.#functions) {
      const locals: number[] = [];
      let groups = 0;
      for (let i = 0; i < code.locals.length; ) {
        let j = i;
        while (j < code.locals.length && code.locals[j] === code.locals[i]) j++;
        locals.push(...unsignedLeb(j - i), VALTYPE[code.locals[i] as ValType]);
        groups++;
        i = j;
      }
      const head = [...unsignedLeb(groups), ...locals];
      bodies.append(unsignedLeb(head.length + code.bytes.length + 1));
      bodies.append(head);
      bodies.append(code.bytes.view());
      bodies.push(0x0b);
    }
    return bodies.view();
  }

  #importBytes(pages: number, shared: boolean): readonly number[] {
    const limits = shared ? [0x03, ...unsignedLeb(pages), ...unsignedLeb(MOST_PAGES)] : [0x00, ...unsignedLeb(pages)];
    const functions = this.#imports.flatMap((f) => [...name("env"), ...name(f.name), 0x00, ...unsignedLeb(f.type)]);
    const count = unsignedLeb(this.#imports.length + 1);
    return [...count, ...functions, ...name("env"), ...name("memory"), 0x02, ...limits];
  }
}
