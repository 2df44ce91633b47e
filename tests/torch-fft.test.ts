/** @file Fourier transforms against PyTorch, with their gradients, in f64 (tests/fixtures/torch/fft.py made the figures). */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { type Complex, type Tensor, tensor } from "../src/api/index.ts";

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

interface Case {
  readonly name: string;
  readonly options: {
    readonly n?: number;
    readonly s?: number[];
    readonly dim?: number | number[];
    readonly norm?: string;
  };
  readonly inputs: readonly Stored[];
  readonly results: readonly Stored[];
  readonly gradients: readonly Stored[];
}

const { cases } = JSON.parse(readFileSync(new URL("fixtures/torch/fft.json", import.meta.url), "utf8")) as {
  readonly cases: readonly Case[];
};

type Call = (x: Tensor | Complex, options: object) => Tensor | Complex;

/** A case with the names of our options. */
function callOf({ name, options }: Case): (...xs: readonly Tensor[]) => readonly Tensor[] {
  const { dim, ...same } = options;
  const axes = typeof dim === "number" ? { axis: dim } : { axes: dim };
  const call = (tm as unknown as Record<string, Call>)[name]!;
  return (re, im) => {
    const y = call(im ? { re: re!, im } : re!, dim === undefined ? same : { ...same, ...axes });
    return y instanceof tm.Tensor ? [y] : [y.re, y.im];
  };
}

function expectClose(got: Tensor, { shape, data }: Stored, name: string): void {
  expect(got.shape, name).toEqual(shape);
  const scale = Math.max(1, ...data.map(Math.abs));
  Array.from(got.data(), Number).forEach((is, i) => {
    if (!(Math.abs(is - data[i]!) <= 1e-11 * scale)) expect(is, `${name}, element ${i}`).toBe(data[i]);
  });
}

const weighted = (y: Tensor): Tensor => y.mul(tm.arange(y.elements, "f64").cos().reshape(y.shape)).sum();

/** Cases with the same function are one program, whatever their sizes. */
const names = [...new Set(cases.map(({ name }) => name))];

describe("Fourier transforms agree with PyTorch", () => {
  test.each(names)("%s", (name) => {
    const own = cases.filter((c) => c.name === name);
    const given = own.map(({ inputs }) => inputs.map(({ shape, data }) => tensor(data, { shape, dtype: "f64" })));
    const program = tm.compile((all: Tensor[][]) =>
      all.map((xs, i) => {
        const call = callOf(own[i]!);
        const loss = (...ys: Tensor[]): Tensor =>
          call(...ys)
            .map(weighted)
            .reduce((a, b) => a.add(b));
        const gradients = tm.grad(loss, { argnums: xs.map((_, a) => a) })(...xs) as unknown as Tensor[];
        return { results: [...call(...xs)], gradients: [...gradients] };
      }),
    );
    program(given).forEach(({ results, gradients }, i) => {
      const label = `${name} ${JSON.stringify(own[i]!.options)} of ${JSON.stringify(own[i]!.inputs[0]!.shape)}`;
      for (const [r, y] of results.entries()) expectClose(y, own[i]!.results[r]!, `${label}, result ${r}`);
      for (const [x, g] of gradients.entries()) expectClose(g, own[i]!.gradients[x]!, `${label}, gradient ${x}`);
    });
  });
});
