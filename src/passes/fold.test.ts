/** @file The claim behind folding: where an operation says `exactInDouble`, its reference has the bits of its kernel. */
import { expect, test } from "vitest";
import { runLowering, runReference } from "../../tests/support/lowering.ts";
import { Random } from "../../tests/support/random.ts";
import { tensorType } from "../ir/type.ts";
import { type DType, isBig, isFloat, storedNumber, typeOf } from "../kernel/dtype.ts";
import { allOps } from "../ops/all.ts";

const COUNT = 400;
const FLOATS = [
  0,
  -0,
  1,
  -1,
  0.5,
  1.5,
  2.5,
  -2.5,
  1 / 3,
  Infinity,
  -Infinity,
  Number.NaN,
  1e-45,
  1e-40,
  3e38,
  -3e38,
  2 ** 31,
];
const INTEGERS = [0, 1, -1, 2, 7, -7, 0x7fffffff, -0x80000000, 65536, 123456789];

function draw(r: Random, dtype: DType): number {
  if (dtype === "bool") return r.int(2);
  if (dtype === "i32") return r.chance(0.4) ? r.pick(INTEGERS) : Math.trunc((r.next() - 0.5) * 2 ** 32);
  if (isBig(typeOf(dtype).compute)) {
    return r.chance(0.4) ? r.pick(INTEGERS) : Math.trunc((r.next() - 0.5) * 2 ** (r.int(52) + 1)) + 0;
  }
  if (r.chance(0.3)) return typeOf(dtype).round(r.pick(FLOATS));
  const x = (r.next() - 0.5) * 2 ** (r.int(60) - 30);
  return typeOf(dtype).round(x);
}

const exact = allOps.filter((op) => op.exactInDouble);

test("a good part of the operations is exact, and no transcendental one", () => {
  expect(exact.length).toBeGreaterThan(20);
  const names = exact.map((op) => op.name);
  for (const name of ["exp", "tanh", "pow", "rsqrt", "sum", "matmul"]) expect(names).not.toContain(name);
});

test.each(exact.map((op) => [op.name, op] as const))("%s has the bits of its kernel on every element type", (_, op) => {
  const seen = new Set<string>();
  for (const { inputs, attrs } of op.samples()) {
    const dtypes = inputs.map((type) => type.dtype);
    const key = JSON.stringify([dtypes, attrs]);
    if (seen.has(key)) continue;
    seen.add(key);
    const r = new Random(seen.size);
    const types = dtypes.map((dtype) => tensorType(dtype, [COUNT]));
    const data = dtypes.map((dtype) => Array.from({ length: COUNT }, () => draw(r, dtype)));
    const out = op.infer(types, attrs, [])[0]!;
    const found = [...runLowering(op, types, attrs, data)];
    const reference = [...runReference(op, types, attrs, data)].map((x, i) => {
      if (isFloat(out.dtype)) return storedNumber(out.dtype, x);
      // of 64 bits, only what doubles hold is folded
      return isBig(typeOf(out.dtype).compute) && !typeOf(out.dtype).accepts(x) ? found[i] : x;
    });
    expect(reference, key).toEqual(found);
  }
});
