/** @file Three ways to tell attributes apart (equality, hash, key) agree, defaults and signed zeros included. */
import { expect, test } from "vitest";
import { full } from "../ops/create.ts";
import { matmul } from "../ops/matmul.ts";
import { attrsHash, attrsKey, sameAttrs } from "./attrs.ts";
import type { AnyOp, Attrs } from "./op.ts";

const value = { dtype: "f32", shape: [2, 3], value: 0 } as const;
const CASES: readonly (readonly [AnyOp, readonly Attrs[]])[] = [
  [
    full as AnyOp,
    [
      value,
      { shape: [2, 3], value: 0, dtype: "f32" },
      { ...value, value: -0 },
      { ...value, value: Number.NaN },
      { ...value, value: Number.NaN, shape: [3, 2] },
      { ...value, value: 0.1 },
      { ...value, value: 0.2 },
      { ...value, shape: [] },
      { ...value, dtype: "i32" },
    ],
  ],
  [matmul as AnyOp, [{}, { ta: false, tb: false }, { tb: false }, { ta: true }, { tb: true }, { ta: true, tb: false }]],
];

test("equality, hash and key agree on all pairs", () => {
  let equal = 0;
  for (const [op, all] of CASES) {
    for (const a of all) {
      for (const b of all) {
        const same = attrsKey(op, a) === attrsKey(op, b);
        expect(sameAttrs(op, a, b), `${JSON.stringify(a)} and ${JSON.stringify(b)}`).toBe(same);
        if (same) expect(attrsHash(op, a)).toBe(attrsHash(op, b));
        if (same && a !== b) equal += 1;
      }
    }
  }
  // full: 1 pair of equals; matmul: 3 of no transposition and 1 of the first, each counted both ways.
  expect(equal).toBe(10);
});
