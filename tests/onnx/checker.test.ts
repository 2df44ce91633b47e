/** @file Exported models before ONNX's own checker (Debian: python3-onnx): the schema of every operator, and the inference of all shapes. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { applyGraph } from "../../src/api/apply.ts";
import { cond, scan, spec, type Tensor, whileLoop } from "../../src/api/index.ts";
import { exportOnnx } from "../../src/exchange/onnx/index.ts";
import { Build } from "../../src/ir/build.ts";
import type { Sample } from "../../src/ir/op.ts";
import * as nn from "../../src/nn/index.ts";
import { allOps } from "../../src/ops/all.ts";

const PYTHON = "/usr/bin/python3";
const CHECK = `
import sys, onnx
from onnx import shape_inference
for path in sys.argv[1:]:
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model, full_check=True)
        shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception as problem:
        print(path, problem)
`;

const hasChecker = ((): boolean => {
  try {
    execFileSync(PYTHON, ["-c", "import onnx"], { stdio: "ignore" });
    return true;
  } catch {
    console.warn("SKIPPED: python3-onnx is not installed, so exported models are not checked by ONNX itself");
    return false;
  }
})();

/** One model for every sample that has a form, and a few programs. */
function models(): readonly (readonly [string, Uint8Array])[] {
  const files: (readonly [string, Uint8Array])[] = [];
  for (const op of allOps) {
    (op.samples() as readonly Sample<unknown>[]).forEach((sample, i) => {
      const b = new Build(op.name);
      const params = sample.inputs.map((type) => b.param(type));
      const graph = b.finish(b.callAll(op, params, sample.attrs as never));
      const specs = params.map(({ type }) => spec(type.shape, type.dtype));
      try {
        files.push([`${op.name}-${i}`, exportOnnx((...args: Tensor[]) => applyGraph(graph, args), ...specs)]);
      } catch (error) {
        expect(String(error)).toContain("operations without a form");
      }
    });
  }
  const block = nn.transformerBlock(8, { heads: 2, causal: true });
  const params = block.init(0);
  files.push(["block", exportOnnx((p: typeof params, x: Tensor) => block.apply(p, x), params, spec([2, 4, 8]))]);
  const loops = (x: Tensor): readonly Tensor[] => {
    const [last, rows] = scan(
      (carry: Tensor, row: Tensor) => [carry.add(row).tanh(), carry.mul(2)] as const,
      x.slice([0]),
      x,
    );
    const less = whileLoop(
      (v: Tensor) => v.sum().greater(1),
      (v: Tensor) => v.mul(0.5),
      last.abs(),
    );
    return [
      last,
      rows,
      less,
      cond(
        x.sum().greater(0),
        (v: Tensor) => v.mul(2),
        (v: Tensor) => v.sub(1),
        x,
      ),
    ];
  };
  files.push(["loops", exportOnnx(loops, spec([5, 2]))]);
  return files;
}

describe.runIf(hasChecker)("ONNX's own checker", () => {
  it("finds nothing wrong with exported models", () => {
    const folder = mkdtempSync(join(tmpdir(), "onnx-"));
    try {
      const paths = models().map(([name, bytes]) => {
        const path = join(folder, `${name}.onnx`);
        writeFileSync(path, bytes);
        return path;
      });
      const said = execFileSync(PYTHON, ["-c", CHECK, ...paths], { encoding: "utf8", maxBuffer: 1 << 26 });
      expect(said).toBe("");
      expect(paths.length).toBeGreaterThan(300);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
