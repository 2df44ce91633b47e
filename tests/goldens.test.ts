/**
 * @file Golden files of plans and of generated code for a handful of small programs, so that a change of either can be read:
 * `tests/goldens/NAME.plan.txt`, `.wat` (WebAssembly as text) and `.c`. `UPDATE=1` writes them again.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import makeWabt from "wabt";
import { forLoop, grad, spec, type Tensor, valueAndGrad } from "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import { nativeDescription } from "../src/codegen/native/description.ts";
import { emitNativeProgram } from "../src/codegen/native/program.ts";
import type { PlacedProgram } from "../src/codegen/placed.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { emitProgram } from "../src/codegen/wasm/program.ts";
import { assemble } from "../src/compiler/assemble.ts";
import { printPlan } from "../src/plan/print.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import type { Tree } from "../src/trace/tree.ts";

const FOLDER = join(import.meta.dirname, "goldens");

const PROGRAMS: Readonly<Record<string, readonly [(...args: never[]) => unknown, readonly unknown[]]>> = {
  map: [(x: Tensor, y: Tensor) => x.mul(y).add(1).relu(), [spec([5, 4]), spec([4])]],
  sums: [(x: Tensor) => [x.sum(1), x.sum(0), x.cumsum(1)], [spec([6, 20])]],
  product: [
    (w: Tensor, x: Tensor, y: Tensor) => valueAndGrad((v: Tensor) => x.matmul(v).relu().sub(y).square().sum())(w),
    [spec([8, 4]), spec([6, 8]), spec([6, 4])],
  ],
  loop: [grad((x: Tensor) => forLoop(5, x, (_, s) => s.mul(0.5).sin()).sum()), [spec([8])]],
  lookup: [(table: Tensor, rows: Tensor) => table.take(rows).tanh(), [spec([10, 4]), spec([3], "i32")]],
};

const NATIVE = { lanes: 8, fma: false, threads: 1 } as const;

function placedFor(name: string, target: "wasm" | "native"): PlacedProgram {
  const [fn, args] = PROGRAMS[name] as (typeof PROGRAMS)[string];
  const { source } = plansOf(fn as AnyFunction, args as readonly Tree[], { cache: false });
  const description = target === "wasm" ? wasmDescription(false) : nativeDescription(NATIVE);
  return assemble({ graph: source.graph }, description, { cache: false });
}

const wabt = await makeWabt();

function watOf({ kernels, copies, plan }: PlacedProgram): string {
  const { bytes } = emitProgram(kernels, copies, plan.height, { fma: false });
  const module = wabt.readWasm(bytes, { simd: true, bulk_memory: true });
  module.applyNames();
  return module.toText({ foldExprs: false, inlineExport: false });
}

function cOf({ kernels, copies }: PlacedProgram): string {
  const prelude = emitNativeProgram([], copies, NATIVE).text;
  const { text } = emitNativeProgram(kernels, copies, NATIVE);
  // What every program has is left out: lines that a program without kernels has, too.
  const common = new Set(prelude.split("\n"));
  return text
    .split("\n")
    .filter((line) => line === "" || !common.has(line))
    .join("\n")
    .replace(/\n{3,}/g, "\n\n");
}

const MAKERS: Readonly<Record<string, (name: string) => string>> = {
  "plan.txt": (name) => `${printPlan(placedFor(name, "wasm").plan)}\n`,
  wat: (name) => watOf(placedFor(name, "wasm")),
  c: (name) => cOf(placedFor(name, "native")),
};

describe.each(Object.keys(PROGRAMS))("%s", (name) => {
  it.each(Object.keys(MAKERS))("has the %s of its golden file", (ending) => {
    const path = join(FOLDER, `${name}.${ending}`);
    const text = (MAKERS[ending] as (of: string) => string)(name);
    if (process.env.UPDATE === "1") writeFileSync(path, text);
    expect(existsSync(path), `${path}: UPDATE=1 writes it`).toBe(true);
    expect(text).toBe(readFileSync(path, "utf8"));
  });
});
