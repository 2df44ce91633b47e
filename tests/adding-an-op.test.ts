/**
 * @file The operation declared in docs/adding-an-op.md, taken from the page as it stands there: it type-checks in src/ops,
 * its lowering computes its reference, both modes of its derivative agree with differences, and it runs compiled.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyOp } from "../src/api/apply.ts";
import { compile, grad, jvp, tensor } from "../src/api/index.ts";
import type { AnyOp } from "../src/ir/op.ts";
import { elementsOf } from "../src/ir/type.ts";
import { isComputed } from "../src/kernel/dtype.ts";
import { runLowering, runReference } from "./support/lowering.ts";
import { ROOT } from "./support/project.ts";

let folder = "";
let op: AnyOp;

beforeAll(async () => {
  const page = readFileSync(join(ROOT, "docs", "adding-an-op.md"), "utf8");
  const [, code = ""] = /```ts\n\/\/ op\n([\s\S]*?)```/.exec(page) ?? [];
  const parent = join(ROOT, "tests", ".examples");
  mkdirSync(parent, { recursive: true });
  folder = mkdtempSync(join(parent, "op-"));
  const source = relative(folder, join(ROOT, "src"));
  const placed = code.replaceAll('from "../', `from "${source}/`).replaceAll('from "./', `from "${source}/ops/`);
  writeFileSync(join(folder, "squash.ts"), placed);
  const include = ["*.ts", `${source}/runtime/webassembly.d.ts`];
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../../../tsconfig.json", include, exclude: [] }),
  );
  const made: { squash: AnyOp } = await import(/* @vite-ignore */ pathToFileURL(join(folder, "squash.ts")).href);
  op = made.squash;
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the operation of docs/adding-an-op.md", () => {
  it("type-checks", () => {
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    expect(() => execFileSync(process.execPath, [tsc, "-p", folder], { cwd: ROOT, stdio: "pipe" })).not.toThrow();
  });

  it("lowers to its reference on every sample", () => {
    for (const { inputs, attrs } of op.samples()) {
      // halves are rounded where they are stored
      const digits = inputs.every(({ dtype }) => isComputed(dtype)) ? 6 : 2;
      const data = inputs.map(({ shape }) =>
        Float64Array.from({ length: elementsOf(shape) }, (_, i) => Math.fround(2 * Math.sin(i + 1))),
      );
      const found = runLowering(op, inputs, attrs, data);
      const expected = runReference(op, inputs, attrs, data);
      for (const [i, value] of expected.entries()) expect(found[i]).toBeCloseTo(value, digits);
    }
  });

  it("has a derivative that equals differences in both modes, compiled", () => {
    const f = (x: Parameters<typeof applyOp>[1][0]) => applyOp(op, [x], {});
    const points = [-3, -0.5, 0.25, 2];
    const x = tensor(points, { dtype: "f64" });
    const slope = compile(grad((v) => f(v).sum()))(x).data();
    const [, tangent] = jvp(f, [x], [tensor([1, 1, 1, 1], { dtype: "f64" })]);
    const meaning = (v: number) => v / Math.sqrt(1 + v * v);
    points.forEach((v, i) => {
      const difference = (meaning(v + 1e-6) - meaning(v - 1e-6)) / 2e-6;
      expect(slope[i]).toBeCloseTo(difference, 8);
      expect(tangent.data()[i]).toBeCloseTo(difference, 8);
    });
  });
});
