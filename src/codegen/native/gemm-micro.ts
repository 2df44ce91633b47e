/**
 * @file The innermost loops of products in C: a tile of sums held in registers.
 *
 * Elements of one side are broadcast to a vector one at a time (the broadcast side, one row of the tile each), the other side
 * is read as vectors (the vector side). For each step of the depth every row's element is multiplied by every vector:
 *
 *            v0 (16)   v1 (16)   v2 (8)         widths: [16, 16, 8]
 *   s0   →   c00       c01       c02            c += s · v, one rounding where the machine has the instruction
 *   s1   →   c10       c11       c12
 *
 * Neither side need be packed: offsets of the rows are constants of the code (`pattern`), the step along the depth is an
 * argument or comes from a table, so matrices, transposed matrices, panels and images can all be read in place. A step only moves
 * a pointer, in a register as quickly as a constant; offsets of rows would need a register each.
 *
 * Invariant: in every tile, an element is a plain sum in order of the depth, so the tiling never changes bits.
 */
import { bytesOf, type ProductType } from "../../kernel/dtype.ts";
import { fileName, localName } from "./names.ts";
import type { ShareFunction } from "./options.ts";

/** The C type of an element; integers wrap around (-fwrapv). */
export const cTypeOf = (dtype: ProductType): string => dtype;

/** Step along the depth: a number, or read from a table of offsets. */
export type DepthStep = number | "table";

/** How the steps of a side come to a tile's function. */
type StepKind = "number" | "table";

export interface MicroShape {
  readonly dtype: ProductType;
  /** Lanes of each vector of a row of the tile. */
  readonly widths: readonly number[];
  /** Element offset of each row of the tile on the broadcast side. */
  readonly pattern: readonly number[];
  readonly broadcastSteps: StepKind;
  readonly vectorSteps: StepKind;
}

export const stepKind = (step: DepthStep): StepKind => (step === "table" ? "table" : "number");

/** The C type of a vector of a product; with a `u` behind it, one that need not be aligned. */
export const vectorName = (dtype: ProductType, lanes: number): string => fileName(`${dtype}x${lanes}`);

/** Vector types of a width, aligned and not. */
function vectorTypes(dtype: ProductType, lanes: number): string {
  const [name, bytes] = [vectorName(dtype, lanes), lanes * bytesOf(dtype)];
  const c = cTypeOf(dtype);
  return (
    `typedef ${c} ${name} __attribute__((vector_size(${bytes})));\n` +
    `typedef ${c} ${name}u __attribute__((vector_size(${bytes}), aligned(${bytesOf(dtype)}), may_alias));\n`
  );
}

const constantStride = (pattern: readonly number[]): number | null => {
  const step = (pattern[1] ?? 0) - (pattern[0] ?? 0);
  return pattern.every((offset, i) => offset === i * step) ? step : null;
};

/** One name for each shape: equal tiles of different products are one function. */
export function microName({ dtype, widths, pattern, broadcastSteps, vectorSteps }: MicroShape): string {
  const stride = constantStride(pattern);
  const rows = stride === null ? `p${pattern.join("_")}` : `r${stride}`;
  const steps = (side: string, kind: StepKind): string => (kind === "table" ? `${side}t` : side);
  const word = `tile_${dtype}_${pattern.length}x${widths.join("_")}_${rows}_${steps("s", broadcastSteps)}_${steps("v", vectorSteps)}`;
  return fileName(word.replaceAll("-", "n"));
}

/**
 * NAME(s, v, sBy, vBy, depth, c, ldc, more): sums of `depth` products into the tile at c, whose rows are ldc elements
 * apart; added to what is there if `more`. sBy and vBy are the steps along the depth, or the tables of offsets.
 */
export function microKernel(shape: MicroShape, fma: boolean): string {
  const { dtype, widths, pattern, broadcastSteps, vectorSteps } = shape;
  const c = cTypeOf(dtype);
  const offsets = widths.map((_, j) => widths.slice(0, j).reduce((a, b) => a + b, 0));
  const rows = pattern.map((_, i) => i);
  const sum = (i: number, j: number): string => localName(`c${i}`, j);
  const type = (j: number): string => vectorName(dtype, widths[j] as number);
  const out: string[] = [];
  const by = (kind: StepKind, name: string): string =>
    kind === "table" ? `const int *restrict ${name}` : `idx ${name}`;
  const at = (kind: StepKind, name: string): string => (kind === "table" ? `${name}[k]` : `k * ${name}`);
  out.push(
    `FUNCTION void ${microName(shape)}(const ${c} *restrict s, const ${c} *restrict v, ` +
      `${by(broadcastSteps, "sBy")}, ${by(vectorSteps, "vBy")}, idx depth, ${c} *restrict c, idx ldc, int more) {`,
  );
  for (const i of rows) out.push(`  ${widths.map((_, j) => `${type(j)} ${sum(i, j)} = {0};`).join(" ")}`);
  out.push("  for (idx k = 0; k < depth; k++) {");
  out.push(`    const ${c} *sk = s + ${at(broadcastSteps, "sBy")}, *vk = v + ${at(vectorSteps, "vBy")};`);
  widths.forEach((_, j) => {
    out.push(`    ${type(j)} ${localName("v", j)} = *(const ${type(j)}u *)(vk + ${offsets[j]});`);
  });
  for (const i of rows) {
    out.push(
      `    { ${c} x = sk[${pattern[i]}]; ${widths.map((_, j) => `${sum(i, j)} += x * ${localName("v", j)};`).join(" ")} }`,
    );
  }
  out.push("  }", "  if (more) {");
  const place = (i: number, j: number): string => `*(${type(j)}u *)(c + ${i} * ldc + ${offsets[j]})`;
  for (const i of rows)
    out.push(`    ${widths.map((_, j) => `${sum(i, j)} = ${place(i, j)} + ${sum(i, j)};`).join(" ")}`);
  out.push("  }");
  for (const i of rows) out.push(`  ${widths.map((_, j) => `${place(i, j)} = ${sum(i, j)};`).join(" ")}`);
  out.push("}");
  const text = out.join("\n");
  return fma ? fused(text) : `${text}\n`;
}

/** Fused multiply-add: only here, all other code is compiled with -ffp-contract=off. */
function fused(text: string): string {
  return (
    "#if defined(__clang__)\n#pragma clang fp contract(fast)\n#else\n" +
    `#pragma GCC push_options\n#pragma GCC optimize("fp-contract=fast")\n#endif\n${text}\n` +
    "#if defined(__clang__)\n#pragma clang fp contract(off)\n#else\n#pragma GCC pop_options\n#endif\n"
  );
}

/** Adds the vector types of a width to the file. */
export function shareVectors(share: ShareFunction, dtype: ProductType, lanes: number): void {
  share(vectorName(dtype, lanes), "inline", () => vectorTypes(dtype, lanes));
}

/** The name of a tile's function, which is added to the file. */
export function sharedMicro(share: ShareFunction, shape: MicroShape, fma: boolean): string {
  const name = microName(shape);
  share(name, "function", () => microKernel(shape, fma));
  return name;
}
