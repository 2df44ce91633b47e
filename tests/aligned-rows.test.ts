/**
 * @file Rows that start at multiples of some bytes (src/passes/align-rows.ts): WebAssembly told to want them has gaps between rows
 * inside of loops, and the same results, bit for bit.
 */
import { expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { typeText } from "../src/ir/type.ts";
import { allNodes } from "../src/ir/walk.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";

const plain = wasmTarget();
const aligned = {
  ...plain,
  description: { ...plain.description, key: `${plain.description.key}, rows of 16 bytes`, rowBytes: 16 },
};

const [tokens, width, classes] = [2048, 16, 1027];
const waves = (shape: readonly number[], seed: number): tm.Tensor =>
  tm.tensor(
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(12.9898 * i + seed)),
    { shape },
  );
const targets = tm.tensor(Int32Array.from({ length: tokens }, (_, i) => (7 * i) % classes));

/** A strip of logits has 1,024 rows of 1,027 elements, and is read by two products. */
const training = tm.valueAndGrad(
  (h: tm.Tensor, w: tm.Tensor) => tm.linearCrossEntropy(h, w, targets, { transposed: true, strip: 1024 }),
  { argnums: [0, 1] },
);

test("rows of strips have gaps where a target wants them, and results have the same bits", () => {
  const [h, w] = [waves([tokens, width], 1), waves([classes, width], 2)];
  const [expected, found] = [plain, aligned].map((target) => {
    const step = tm.compile(training, { target });
    const [loss, gradients] = step(h, w);
    const { graph } = step.program(h, w);
    const types = [...allNodes(graph)].flatMap(({ outputs }) => outputs.map(({ type }) => typeText(type)));
    return { bits: [loss, ...gradients].map((t) => new Uint32Array((t.data() as Float32Array).slice().buffer)), types };
  });
  expect(expected?.types.some((text) => text.includes(":"))).toBe(false);
  expect(found?.types).toContain("f32[1024,1027:1028]");
  expect(found?.bits).toEqual(expected?.bits);
});
