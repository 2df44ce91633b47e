/** @file The matrix product: small cases by hand, its table of transposes, and what its errors say. */
import { describe, expect, it } from "vitest";
import { runReference } from "../../tests/support/lowering.ts";
import { at } from "../base/invariant.ts";
import { hostRandom } from "../base/random.ts";
import { Build } from "../ir/build.ts";
import type { Node } from "../ir/graph.ts";
import type { Reference } from "../ir/op.ts";
import { elementsOf, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { type MatmulAttrs, matmul } from "./matmul.ts";
import { transpose } from "./movement.ts";

const FLAGS: readonly MatmulAttrs[] = [false, true].flatMap((ta) => [false, true].map((tb) => ({ ta, tb })));

const run = (types: readonly TensorType[], attrs: MatmulAttrs, inputs: readonly Reference[]): Reference =>
  runReference(matmul, types, attrs, inputs);

function draw(type: TensorType, seed: number): Reference {
  const random = hostRandom(seed);
  return Float64Array.from({ length: elementsOf(type.shape) }, () => random.next() * 4 - 2);
}

const dot = (a: Reference, b: Reference): number => a.reduce((sum, v, i) => sum + v * at(b, i), 0);

describe("matmul", () => {
  it("multiplies in all four readings of its sides", () => {
    // [1 2 3; 4 5 6] · [1 2; 3 4; 5 6] = [22 28; 49 64]
    const x = { false: [1, 2, 3, 4, 5, 6], true: [1, 4, 2, 5, 3, 6] };
    const w = { false: [1, 2, 3, 4, 5, 6], true: [1, 3, 5, 2, 4, 6] };
    for (const attrs of FLAGS) {
      const types = [tensorType("f64", attrs.ta ? [3, 2] : [2, 3]), tensorType("f64", attrs.tb ? [2, 3] : [3, 2])];
      const inputs = [Float64Array.from(x[`${attrs.ta}`]), Float64Array.from(w[`${attrs.tb}`])];
      expect([...run(types, attrs, inputs)]).toEqual([22, 28, 49, 64]);
    }
  });

  it("keeps batches apart, sums nothing to zero, and wraps integers around", () => {
    const plain = { ta: false, tb: false };
    const batched = [tensorType("f64", [2, 1, 2]), tensorType("f64", [2, 2, 1])];
    expect([...run(batched, plain, [Float64Array.of(1, 2, 3, 4), Float64Array.of(1, 10, 1, 10)])]).toEqual([21, 43]);
    const empty = [tensorType("f32", [2, 0]), tensorType("f32", [0, 3])];
    expect([...run(empty, plain, [new Float64Array(0), new Float64Array(0)])]).toEqual([0, 0, 0, 0, 0, 0]);
    const whole = [tensorType("i32", [1, 2]), tensorType("i32", [2, 1])];
    expect([...run(whole, plain, [Float64Array.of(0x7fffffff, 1), Float64Array.of(0x7fffffff, 2)])]).toEqual([3]);
  });

  it("has transposes that are single products and satisfy ⟨dy, X·W⟩ = ⟨dx, x⟩ = ⟨dw, w⟩", () => {
    for (const attrs of FLAGS) {
      const x = tensorType("f64", attrs.ta ? [2, 4, 3] : [2, 3, 4]);
      const w = tensorType("f64", attrs.tb ? [2, 5, 4] : [2, 4, 5]);
      const y = tensorType("f64", [2, 3, 5]);
      const data = [draw(x, 1), draw(w, 2), draw(y, 3)] as const;
      const expected = dot(data[2], run([x, w], attrs, [data[0], data[1]]));
      for (const i of [0, 1]) {
        const b = new Build("test");
        const params = [x, w, y].map((type) => b.param(type));
        if (matmul.derivative.kind !== "multilinear") return expect.fail("not multilinear");
        const result = matmul.derivative.transpose(b, { x: params.slice(0, 2), ct: at(params, 2), input: i, attrs });
        expect(typeText(result.type)).toBe(typeText(at([x, w], i)));
        expect(b.nodes).toHaveLength(1);
        const node = at(b.nodes, 0);
        const inputs = node.inputs.map((v) => at(data, params.indexOf(v)));
        const back = run(
          node.inputs.map((v) => v.type),
          node.attrs as MatmulAttrs,
          inputs,
        );
        expect(dot(back, at(data, i))).toBeCloseTo(expected, 9);
      }
    }
  });

  it("takes a transposed input as a flag", () => {
    const b = new Build("test");
    const x = b.param(tensorType("f32", [2, 4, 3]));
    const w = b.param(tensorType("f32", [2, 4, 5]));
    const swapped = b.call(transpose, [x], { perm: [0, 2, 1] });
    b.call(matmul, [swapped, w], { ta: false, tb: false });
    const node = at(b.nodes, 1);
    const simpler = matmul.simplify(b, node, node.attrs as MatmulAttrs);
    const made = b.producer(simpler ?? swapped) as Node;
    expect(made.inputs).toEqual([x, w]);
    expect(made.attrs).toMatchObject({ ta: true, tb: false });
    expect(matmul.simplify(b, made, made.attrs as MatmulAttrs)).toBeNull();
    // A permutation that moves a batch axis stays.
    const moved = b.call(transpose, [x], { perm: [1, 0, 2] });
    const other = b.param(tensorType("f32", [4, 3, 6]));
    b.call(matmul, [moved, other], { ta: false, tb: false });
    const last = at(b.nodes, b.nodes.length - 1);
    expect(matmul.simplify(b, last, last.attrs as MatmulAttrs)).toBeNull();
  });

  it("has a vector meet a matrix along memory", () => {
    const flagsFor = (shapes: readonly (readonly number[])[], attrs: MatmulAttrs): MatmulAttrs | null => {
      const b = new Build("test");
      const sides = shapes.map((shape) => b.param(tensorType("f32", shape)));
      const out = b.call(matmul, sides, attrs);
      const simpler = matmul.simplify(b, b.producer(out) as Node, attrs);
      if (!simpler) return null;
      expect(simpler.type).toEqual(out.type);
      const { inputs, attrs: made } = b.producer(at((b.producer(simpler) as Node).inputs, 0)) as Node;
      expect(inputs).toEqual([...sides].reverse());
      return made as MatmulAttrs;
    };
    const line = [-1, 1, 0];
    expect(
      flagsFor(
        [
          [1, 3],
          [5, 3],
        ],
        { ta: false, tb: true, wNonzero: line },
      ),
    ).toMatchObject({ ta: false, tb: true, xNonzero: line });
    expect(
      flagsFor(
        [
          [3, 1],
          [5, 3],
        ],
        { ta: true, tb: true },
      ),
    ).toMatchObject({ ta: false, tb: false });
    expect(
      flagsFor(
        [
          [3, 5],
          [3, 1],
        ],
        { ta: true, tb: false, xNonzero: line },
      ),
    ).toMatchObject({ ta: true, tb: false, wNonzero: line });
    expect(
      flagsFor(
        [
          [3, 5],
          [1, 3],
        ],
        { ta: true, tb: true },
      ),
    ).toMatchObject({ ta: false, tb: false });
    expect(
      flagsFor(
        [
          [1, 3],
          [3, 5],
        ],
        { ta: false, tb: false },
      ),
    ).toBeNull();
    expect(
      flagsFor(
        [
          [5, 3],
          [1, 3],
        ],
        { ta: false, tb: true },
      ),
    ).toBeNull();
    expect(
      flagsFor(
        [
          [3, 1],
          [1, 3],
        ],
        { ta: true, tb: true },
      ),
    ).toBeNull();
  });

  it("keeps what is known of its sides, in their own order of axes, through flags and derivatives", () => {
    const b = new Build("test");
    const x = b.param(tensorType("f32", [4, 3]));
    const w = b.param(tensorType("f32", [4, 5]));
    const swapped = b.call(transpose, [x], { perm: [1, 0] });
    b.call(matmul, [swapped, w], { ta: false, tb: false, xNonzero: [-1, 2, 3], wNonzero: [1, -1, 0] });
    const node = at(b.nodes, 1);
    const made = b.producer(matmul.simplify(b, node, node.attrs as MatmulAttrs) ?? swapped) as Node;
    expect(made.attrs).toEqual({ ta: true, tb: false, wide: false, xNonzero: [2, -1, 3], wNonzero: [1, -1, 0] });
    if (matmul.derivative.kind !== "multilinear") throw new Error("a product is linear in each side");
    const dy = b.param(tensorType("f32", [3, 5]));
    for (const [ta, tb] of [false, true].flatMap((a) => [false, true].map((c) => [a, c] as const))) {
      const sides = [ta ? [4, 3] : [3, 4], tb ? [5, 4] : [4, 5]].map((shape) => b.param(tensorType("f32", shape)));
      for (const i of [0, 1]) {
        const given: MatmulAttrs = { ta, tb, xNonzero: [-1, 1, 0], wNonzero: [1, 1, -4] };
        const out = matmul.derivative.transpose(b, { x: sides, ct: dy, input: i, attrs: given });
        const { inputs, attrs } = b.producer(out) as Node;
        const { xNonzero = [], wNonzero = [] } = attrs as MatmulAttrs;
        const known = inputs.map((side, s) => [side, [xNonzero, wNonzero][s]] as const).find(([side]) => side !== dy);
        expect(known).toEqual([sides[1 - i], i === 0 ? [1, 1, -4] : [-1, 1, 0]]);
      }
    }
  });

  it("says in its errors which numbers differ and what to do", () => {
    const fail = (x: TensorType, w: TensorType) => () => matmul.infer([x, w], { ta: false, tb: false }, []);
    const f32 = (...shape: number[]): TensorType => tensorType("f32", shape);
    expect(fail(f32(32, 128), f32(64, 16))).toThrow(
      "ShapeMismatch: matmul: inner dimensions differ: 128 in x f32[32,128], 64 in w f32[64,16]",
    );
    expect(fail(f32(32, 128), f32(16, 128))).toThrow(
      "help: w seems to be stored [out, in]: matmul(x, w, { tb: true })",
    );
    expect(fail(f32(128, 32), f32(128, 16))).toThrow("matmul(x, w, { ta: true })");
    expect(fail(f32(128), f32(128, 16))).toThrow("matmul: takes two tensors of one rank, 2 or more, got x f32[128]");
    expect(fail(f32(2, 3, 4), f32(5, 4, 3))).toThrow("matmul: batch axes differ: [2] and [5]");
    expect(fail(f32(3, 4), tensorType("f64", [4, 3]))).toThrow("DtypeMismatch: matmul: element types differ");
    expect(fail(tensorType("bool", [3, 4]), tensorType("bool", [4, 3]))).toThrow("DtypeMismatch");
    expect(() => matmul.infer([f32(3, 4), f32(4, 3)], { ta: false, tb: false, xNonzero: [1, 2] }, [])).toThrow(
      "InvalidArgument: matmul: xNonzero is [1,2], not three integers or none",
    );
  });
});
