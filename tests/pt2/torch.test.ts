/** @file Single ATen operations beside PyTorch (tests/fixtures/torch/aten.py): every result of each, within 1e-4 of its largest element. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Tensor, tensor } from "../../src/api/index.ts";
import { readPt2 } from "../../src/exchange/pt2/index.ts";
import { archive, type Meta, named } from "./archive.ts";

interface Stored {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

interface Case {
  readonly target: string;
  readonly tensors: Readonly<Record<string, Stored>>;
  readonly rest: Readonly<Record<string, object>>;
  readonly lists: Readonly<Record<string, readonly Stored[]>>;
  readonly outs: readonly Stored[];
}

const CODES: Readonly<Record<string, number>> = { float32: 7, int64: 5, bool: 12 };
const cases: readonly Case[] = JSON.parse(
  readFileSync(join(import.meta.dirname, "../fixtures/torch/aten.json"), "utf8"),
);

function made({ dtype, shape, data }: Stored): Tensor {
  if (dtype === "bool") return tensor(Uint8Array.from(data), { dtype: "bool", shape });
  return dtype === "int64" ? tensor(Int32Array.from(data), { shape }) : tensor(Float32Array.from(data), { shape });
}

/** The worst difference over all results. */
function worstOf({ target, tensors, rest, lists, outs }: Case): number {
  const listed = Object.entries(lists).flatMap(([name, list]) => list.map((one, i) => [`${name}${i}`, one] as const));
  const stored = [...Object.entries(tensors), ...listed];
  const inputs = Object.fromEntries(
    stored.map(([name, { dtype, shape }]): [string, Meta] => [name, { dtype: CODES[dtype] ?? 7, sizes: shape }]),
  );
  const args = {
    ...rest,
    ...Object.fromEntries(Object.keys(tensors).map((name) => [name, named(name)])),
    ...Object.fromEntries(
      Object.entries(lists).map(([name, list]) => [
        name,
        { as_tensors: list.map((_, i) => ({ name: `${name}${i}` })) },
      ]),
    ),
  };
  const outputs = outs.map((_, i) => `out${i}`);
  const errors = outs.map((expected, i) => {
    const model = readPt2(
      archive({ params: {}, inputs, nodes: [{ target, inputs: args, outputs }], output: `out${i}` }),
    );
    const result = model.apply({}, Object.fromEntries(stored.map(([name, one]) => [name, made(one)])))[
      `out${i}`
    ] as Tensor;
    expect(result.shape, `${target}, result ${i}`).toEqual(expected.shape);
    const scale = expected.data.reduce((most, y) => Math.max(most, Math.abs(y)), 1e-6);
    const differences = Array.from(result.data(), (value, k) => Math.abs(value - (expected.data[k] as number)) / scale);
    return differences.reduce((most, one) => Math.max(most, one), 0);
  });
  return Math.max(...errors);
}

describe("operations of PyTorch", () => {
  it("give what PyTorch gives", () => {
    expect(cases.length).toBeGreaterThan(100);
    expect(cases.map((one) => [one.target, worstOf(one)] as const).filter(([, error]) => !(error < 1e-4))).toEqual([]);
  });
});
