/** @file Convolutions against a definition with a padded copy, and against each other through the trilinear form. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kernelOf, runLowering, runReference } from "../../tests/support/lowering.ts";
import { at } from "../base/invariant.ts";
import { hostRandom } from "../base/random.ts";
import { Build } from "../ir/build.ts";
import type { OpDef, Reference } from "../ir/op.ts";
import { elementsOf, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { type Expr, walkExpr } from "../kernel/expr.ts";
import { type ConvAttrs, conv, convInput, convWeight } from "./conv.ts";

function draw(shape: readonly number[], seed: number): Reference {
  const random = hostRandom(seed);
  return Float64Array.from({ length: elementsOf(shape) }, () => random.next() * 4 - 2);
}

const dot = (a: Reference, b: Reference): number => a.reduce((sum, v, i) => sum + v * at(b, i), 0);

/** Two spatial axes by copying x into a padded image first: shares nothing with the code under test. */
function paddedConv(
  x: Reference,
  w: Reference,
  xs: readonly number[],
  ws: readonly number[],
  attrs: ConvAttrs,
): number[] {
  const [N, C, H, W] = xs as [number, number, number, number];
  const [O, Cg, KH, KW] = ws as [number, number, number, number];
  const { stride, lo, hi, dilation, groups } = attrs;
  const PH = H + at(lo, 0) + at(hi, 0);
  const PW = W + at(lo, 1) + at(hi, 1);
  const out: number[] = [];
  for (let n = 0; n < N; n++) {
    const image = Array.from({ length: C }, (_, c) =>
      Array.from({ length: PH }, (_, a) =>
        Array.from({ length: PW }, (_, b) => {
          const h = a - at(lo, 0);
          const v = b - at(lo, 1);
          return h >= 0 && h < H && v >= 0 && v < W ? at(x, ((n * C + c) * H + h) * W + v) : 0;
        }),
      ),
    );
    for (let o = 0; o < O; o++) {
      const first = Math.floor(o / (O / groups)) * Cg;
      for (let a = 0; a + at(dilation, 0) * (KH - 1) < PH; a += at(stride, 0)) {
        for (let b = 0; b + at(dilation, 1) * (KW - 1) < PW; b += at(stride, 1)) {
          let sum = 0;
          for (let c = 0; c < Cg; c++) {
            for (let r = 0; r < KH; r++) {
              for (let q = 0; q < KW; q++) {
                const pixel = image[first + c]?.[a + r * at(dilation, 0)]?.[b + q * at(dilation, 1)] as number;
                sum += pixel * at(w, ((o * Cg + c) * KH + r) * KW + q);
              }
            }
          }
          out.push(sum);
        }
      }
    }
  }
  return out;
}

interface Case {
  readonly x: TensorType;
  readonly w: TensorType;
  readonly attrs: ConvAttrs;
}

const axisArb = fc.record({
  kernel: fc.integer({ min: 1, max: 3 }),
  stride: fc.integer({ min: 1, max: 3 }),
  dilation: fc.integer({ min: 1, max: 3 }),
  lo: fc.integer({ min: 0, max: 3 }),
  hi: fc.integer({ min: 0, max: 3 }),
  slack: fc.integer({ min: 0, max: 4 }),
});

/** Any geometry over `axes` axes in which the kernel fits somewhere. */
function caseArb(axes: number): fc.Arbitrary<Case> {
  const small = fc.integer({ min: 1, max: 3 });
  return fc
    .tuple(fc.integer({ min: 0, max: 2 }), small, small, small, fc.array(axisArb, { minLength: axes, maxLength: axes }))
    .map(([batch, groups, inner, outer, spatial]) => {
      const input = spatial.map((s) => Math.max(0, s.dilation * (s.kernel - 1) + 1 - s.lo - s.hi) + s.slack);
      return {
        x: tensorType("f64", [batch, groups * inner, ...input]),
        w: tensorType("f64", [groups * outer, inner, ...spatial.map((s) => s.kernel)]),
        attrs: {
          stride: spatial.map((s) => s.stride),
          lo: spatial.map((s) => s.lo),
          hi: spatial.map((s) => s.hi),
          dilation: spatial.map((s) => s.dilation),
          groups,
        },
      };
    });
}

/** The right-hand panel of the product. */
function rightPanel<A>(op: OpDef<A>, types: readonly TensorType[], attrs: A): Expr {
  const nest = at(kernelOf(op, types, attrs).nests, 0);
  return nest.kind === "contract" ? nest.b : expect.fail("not a product");
}

/** How many bounds are tested for an element. */
function guards<A>(op: OpDef<A>, types: readonly TensorType[], attrs: A): number {
  let count = 0;
  walkExpr(rightPanel(op, types, attrs), (e) => {
    if (e.kind === "guard") count += e.bounds.length;
  });
  return count;
}

/** Where the right-hand panel is read from. */
function panel<A>(op: OpDef<A>, types: readonly TensorType[], attrs: A): string {
  const expr = rightPanel(op, types, attrs);
  return expr.kind === "load" ? expr.index.key : expr.kind;
}

const plain: ConvAttrs = { stride: [1], lo: [0], hi: [0], dilation: [1], groups: 1 };

describe("conv", () => {
  it("slides a kernel without flipping it", () => {
    const types = [tensorType("f64", [1, 1, 4]), tensorType("f64", [1, 1, 2])];
    const inputs = [Float64Array.of(1, 2, 3, 4), Float64Array.of(10, 1)];
    expect([...runReference(conv, types, plain, inputs)]).toEqual([12, 23, 34]);
    expect([...runReference(conv, types, { ...plain, lo: [1], hi: [2] }, inputs)]).toEqual([1, 12, 23, 34, 40, 0]);
    expect([...runReference(conv, types, { ...plain, stride: [2] }, inputs)]).toEqual([12, 34]);
    expect([...runReference(conv, types, { ...plain, dilation: [3] }, inputs)]).toEqual([14]);
  });

  it("equals the definition over a padded copy for any geometry of two axes", () => {
    fc.assert(
      fc.property(caseArb(2), ({ x, w, attrs }) => {
        const [dx, dw] = [draw(x.shape, 1), draw(w.shape, 2)];
        const expected = paddedConv(dx, dw, x.shape, w.shape, attrs);
        const found = runReference(conv, [x, w], attrs, [dx, dw]);
        expect(found).toHaveLength(expected.length);
        for (const [i, value] of expected.entries()) expect(found[i]).toBeCloseTo(value, 10);
      }),
      { seed: 11, numRuns: 150 },
    );
  });
});

describe("the three views", () => {
  it("conv_input puts stamps of the kernel side by side: the transposed convolution", () => {
    const types = [tensorType("f64", [1, 1, 3]), tensorType("f64", [1, 1, 2])];
    const inputs = [Float64Array.of(1, 2, 3), Float64Array.of(10, 1)];
    expect([...runReference(convInput, types, { ...plain, stride: [2], size: [6] }, inputs)]).toEqual([
      10, 1, 20, 2, 30, 3,
    ]);
    expect([...runReference(convInput, types, { ...plain, size: [4] }, inputs)]).toEqual([10, 21, 32, 3]);
  });

  for (const axes of [1, 2, 3]) {
    it(`agree on the trilinear form over ${axes} axes: ⟨conv, y⟩ = ⟨x, conv_input⟩ = ⟨w, conv_weight⟩`, () => {
      fc.assert(
        fc.property(caseArb(axes), ({ x, w, attrs }) => {
          const y = at(conv.infer([x, w], attrs, []), 0);
          const [dx, dw, dy] = [draw(x.shape, 3), draw(w.shape, 4), draw(y.shape, 5)];
          const byY = dot(runReference(conv, [x, w], attrs, [dx, dw]), dy);
          const byX = dot(dx, runReference(convInput, [y, w], { ...attrs, size: x.shape.slice(2) }, [dy, dw]));
          const byW = dot(dw, runReference(convWeight, [x, y], { ...attrs, kernel: w.shape.slice(2) }, [dx, dy]));
          expect(byX).toBeCloseTo(byY, 8);
          expect(byW).toBeCloseTo(byY, 8);
        }),
        { seed: 13 + axes, numRuns: 80 },
      );
    });
  }

  it("transpose into one another: ⟨dz, op(a, b)⟩ = ⟨da, a⟩ = ⟨db, b⟩, each by one node", () => {
    fc.assert(
      fc.property(caseArb(2), ({ x, w, attrs }) => {
        const y = at(conv.infer([x, w], attrs, []), 0);
        const types = { x, w, y };
        checkTransposes(conv, attrs, types, ["x", "w", "y"]);
        checkTransposes(convInput, { ...attrs, size: x.shape.slice(2) }, types, ["y", "w", "x"]);
        checkTransposes(convWeight, { ...attrs, kernel: w.shape.slice(2) }, types, ["x", "y", "w"]);
      }),
      { seed: 17, numRuns: 60 },
    );
  });
});

type Role = "x" | "w" | "y";

/** `roles` names the two inputs and the cotangent. */
function checkTransposes<A>(
  op: OpDef<A>,
  attrs: A,
  types: Record<Role, TensorType>,
  roles: readonly [Role, Role, Role],
): void {
  const all = roles.map((role) => types[role]);
  const data = all.map((type, i) => draw(type.shape, 40 + i));
  const expected = dot(runReference(op, all.slice(0, 2), attrs, data.slice(0, 2)), at(data, 2));
  for (const i of [0, 1]) {
    const b = new Build("test");
    const values = all.map((type) => b.param(type));
    if (op.derivative.kind !== "multilinear") expect.fail("not multilinear");
    const back = op.derivative.transpose(b, { x: values.slice(0, 2), ct: at(values, 2), input: i, attrs });
    expect(typeText(back.type)).toBe(typeText(at(all, i)));
    expect(b.nodes).toHaveLength(1);
    const node = at(b.nodes, 0);
    const inputs = node.inputs.map((v) => at(data, values.indexOf(v)));
    const found = runReference(
      node.op,
      node.inputs.map((v) => v.type),
      node.attrs,
      inputs,
    );
    expect(dot(found, at(data, i))).toBeCloseTo(expected, 8);
  }
}

describe("the lowerings of convolutions", () => {
  /** Every element of the matrix product, gathered through guards, is what the reference says. */
  function check<A>(op: OpDef<A>, types: readonly TensorType[], attrs: A): void {
    const data = types.map((type, i) => draw(type.shape, 20 + i));
    const found = runLowering(op, types, attrs, data);
    for (const [i, value] of runReference(op, types, attrs, data).entries()) expect(found[i]).toBeCloseTo(value, 10);
  }

  for (const axes of [1, 2]) {
    it(`compute the reference for any geometry of ${axes} axes`, () => {
      fc.assert(
        fc.property(caseArb(axes), ({ x, w, attrs }) => {
          const y = at(conv.infer([x, w], attrs, []), 0);
          check(conv, [x, w], attrs);
          check(convInput, [y, w], { ...attrs, size: x.shape.slice(2) });
          check(convWeight, [x, y], { ...attrs, kernel: w.shape.slice(2) });
        }),
        { seed: 19 + axes, numRuns: 60 },
      );
    });
  }

  it("guard where there is padding, and nowhere else", () => {
    const x = tensorType("f32", [2, 3, 8, 8]);
    const w = tensorType("f32", [4, 3, 3, 3]);
    const two = { stride: [1, 1], lo: [0, 0], hi: [0, 0], dilation: [1, 1], groups: 1 };
    expect(guards(conv, [x, w], two)).toBe(0);
    expect(guards(conv, [x, w], { ...two, stride: [2, 2] })).toBe(0);
    expect(guards(conv, [x, w], { ...two, lo: [1, 0] })).toBe(1);
    expect(guards(conv, [x, w], { ...two, lo: [1, 1], hi: [1, 1] })).toBe(2);
    const y = at(conv.infer([x, w], { ...two, stride: [2, 1] }, []), 0);
    expect(guards(convWeight, [x, y], { ...two, stride: [2, 1], kernel: [3, 3] })).toBe(0);
    expect(guards(convInput, [y, w], { ...two, stride: [2, 1], size: [8, 8] })).toBe(2);
    // One tap, no padding: a plain matrix product over the pixels, in one stride.
    const one = tensorType("f32", [4, 3, 1, 1]);
    const image = tensorType("f32", [2, 4, 8, 8]);
    expect(guards(conv, [x, one], two)).toBe(0);
    expect(guards(convInput, [image, one], { ...two, size: [8, 8] })).toBe(0);
    expect(panel(convWeight, [x, image], { ...two, kernel: [1, 1] })).toBe("1*(1*k)%64+192*(1*k)/64+64*j");
    expect(panel(conv, [x, one], two)).toBe("192*b0+1*j+64*k");
  });
});

describe("a gradient to the input of a strided convolution", () => {
  it("is a product for each phase, and multiplies none of the zeros between strides", () => {
    const y = tensorType("f32", [2, 4, 4, 4]);
    const w = tensorType("f32", [4, 3, 3, 3]);
    const attrs = { stride: [2, 2], lo: [1, 1], hi: [1, 1], dilation: [1, 1], groups: 1, size: [8, 8] };
    const products = kernelOf(convInput, [y, w], attrs).nests.map((nest) =>
      nest.kind === "contract" ? [nest.cols.extent, nest.depth.extent / 4] : expect.fail("not a product"),
    );
    // A quarter of the positions is seen through each of 1, 2, 2 and 4 of the nine taps.
    expect(products).toEqual([
      [16, 4],
      [16, 2],
      [16, 2],
      [16, 1],
    ]);
    const cost = convInput.cost([y, w], convInput.infer([y, w], attrs, []), attrs, []);
    expect(cost.flops).toBe(2 * 2 * 3 * 4 * 16 * 9);
  });
});

describe("shape errors of convolutions", () => {
  const t = (...shape: number[]): TensorType => tensorType("f32", shape);
  const fail = (inputs: readonly TensorType[], attrs: Partial<ConvAttrs>) => () =>
    conv.infer(inputs, { ...plain, ...attrs }, []);

  it("say which numbers disagree", () => {
    expect(fail([t(2, 3, 8), t(4, 2, 3)], {})).toThrow(
      "ShapeMismatch: conv: input channels of a group differ: 3 in x f32[2,3,8], 2 in w f32[4,2,3]",
    );
    expect(fail([t(2, 3, 8), t(4, 1, 3)], { groups: 2 })).toThrow(
      "ShapeMismatch: conv: 2 groups do not divide the 3 input channels of f32[2,3,8]",
    );
    expect(fail([t(2, 3, 4), t(4, 3, 3)], { dilation: [3] })).toThrow(
      "ShapeMismatch: conv: kernel of 3 with dilation 3 spans 7 positions on spatial axis 0, the input of 4 with padding 0 + 0 has 4",
    );
    expect(fail([t(2, 3, 4, 4), t(4, 3, 3, 3)], {})).toThrow(
      "InvalidArgument: conv: stride is [1], but a convolution over 2 axes needs 2 numbers",
    );
    expect(fail([t(2, 3, 4), t(4, 3, 0)], {})).toThrow("a kernel has at least one tap");
    expect(fail([t(2, 3, 4), t(4, 3, 3)], { stride: [0] })).toThrow("InvalidArgument: conv: stride [0]");
    expect(fail([t(2, 3, 4), t(4, 3, 3)], { groups: 0 })).toThrow("InvalidArgument: conv: groups is 0");
    expect(() => convInput.infer([t(2, 4, 5), t(4, 3, 3)], { ...plain, size: [8] }, [])).toThrow(
      "ShapeMismatch: conv_input: y is f32[2,4,5], spatial extents [5], but size [8] with w f32[4,3,3] gives [6]",
    );
    expect(() => convWeight.infer([t(2, 3, 8), t(1, 4, 6)], { ...plain, kernel: [3] }, [])).toThrow(
      "ShapeMismatch: conv_weight: batches differ: 2 in x f32[2,3,8], 1 in y f32[1,4,6]",
    );
  });
});
