/**
 * @file Derivatives of the operator tests against finite differences in f64: of a random sum of the float results along one random direction of
 * all float inputs and weights at once. Points are moved a little off those of the suite, which has ties and kinks; where a point has one
 * nearby all the same, another is tried.
 */
import { compile, grad, mul, sum, type Tensor, tensor } from "../../src/api/index.ts";
import { readOnnx } from "../../src/exchange/onnx/index.ts";
import { type Binding, dataOf, isBound, type SuiteCase, type SuiteData } from "./suite.ts";

export type Verdict = "right" | "wrong" | "nothing to differentiate" | "not finite" | "too large";

export interface Derivative {
  readonly verdict: Verdict;
  readonly error: number;
  readonly message?: string;
}

const STEP = 1e-6;
const TOLERANCE = 1e-5;
const ATTEMPTS = 3;
/** Some tests have uninitialised memory as inputs; beyond this, differences vanish in the rounding. */
const LARGEST = 1e6;
/** Differences of larger sums say little in double precision, and take long. */
const MOST_ELEMENTS = 100_000;

/** A generator of numbers in [0, 1) that every run repeats. */
function numbersFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) / 2 ** 24;
  };
}

type Tree = Record<string, Tensor>;

const f64 = (values: readonly number[], shape: readonly number[]): Tensor =>
  tensor(Float64Array.from(values), { shape });

function inputsOf(data: SuiteData, binding: Binding) {
  const floats: Tree = {};
  const others: Tree = {};
  const constants: Tree = {};
  for (const [name, input] of data.inputs) {
    const numbers = Array.from(input.values as ArrayLike<number>, Number);
    const isFloat = /float|double/.test(input.type);
    const dtype = input.type === "bool" ? "bool" : "i32";
    const made = isFloat
      ? f64(numbers, input.shape)
      : tensor(dtype === "bool" ? Uint8Array.from(numbers) : Int32Array.from(numbers), { dtype, shape: input.shape });
    if (isBound(binding, input)) constants[name] = made;
    else if (isFloat) floats[name] = made;
    else others[name] = made;
  }
  return { floats, others, constants };
}

const mapped = (tree: Tree, of: (x: number, name: string, i: number) => number): Tree =>
  Object.fromEntries(
    Object.entries(tree).map(([name, one]) => [
      name,
      f64(
        Array.from(one.data(), (x, i) => of(x, name, i)),
        one.shape,
      ),
    ]),
  );

/** Whether the derivatives of a test that passes are right. */
export function differentiate(one: SuiteCase, binding: Binding): Derivative {
  const data = dataOf(one);
  const { floats, others, constants } = inputsOf(data, binding);
  const model = readOnnx(data.file, { constants, floats: "f64" });
  const point: Tree = { ...model.params, ...floats };
  const names = Object.keys(model.params);
  if (Object.keys(point).length === 0) return { verdict: "nothing to differentiate", error: 0 };
  const elements = Object.values(point).reduce((total, one) => total + one.elements, 0);
  if (elements > MOST_ELEMENTS) return { verdict: "too large", error: 0 };
  const random = numbersFrom(one.name.length * 7919 + 1);
  const weights: Tensor[] = [];
  const loss = (given: Tree, rest: Tree): Tensor => {
    const params = Object.fromEntries(names.map((name) => [name, given[name] as Tensor]));
    const own = Object.fromEntries(Object.keys(floats).map((name) => [name, given[name] as Tensor]));
    const results = Object.values(model.apply(params, { ...own, ...rest })).filter(({ dtype }) => dtype === "f64");
    const terms = results.map((y, k) => {
      weights[k] ??= f64(
        Array.from({ length: y.elements }, () => random() + 0.5),
        y.shape,
      );
      return sum(mul(y, weights[k] as Tensor));
    });
    return terms.reduce((a, b) => a.add(b), tensor(0, { dtype: "f64" }));
  };
  try {
    return compared({ loss, point, others, random });
  } catch (error) {
    return { verdict: "wrong", error: Number.NaN, message: (error as Error).message.split("\n")[0] ?? "" };
  }
}

interface Comparison {
  readonly loss: (given: Tree, rest: Tree) => Tensor;
  readonly point: Tree;
  readonly others: Tree;
  readonly random: () => number;
}

function compared({ loss, point, others, random }: Comparison): Derivative {
  const value = compile(loss, { cache: false });
  const gradient = compile((given: Tree, rest: Tree) => grad(loss)(given, rest), { cache: false });
  let best: Derivative = { verdict: "not finite", error: Number.NaN };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const near = mapped(point, (x) => (Math.abs(x) > LARGEST ? random() : x + (random() - 0.5) * 2e-3));
    const direction = mapped(point, () => random() - 0.5);
    const along = new Map(Object.entries(direction).map(([name, one]) => [name, one.data()]));
    const moved = (by: number): number =>
      value(
        mapped(near, (x, name, i) => x + by * (along.get(name)?.[i] ?? 0)),
        others,
      ).item();
    const difference = (moved(STEP) - moved(-STEP)) / (2 * STEP);
    const found = gradient(near, others);
    let slope = 0;
    for (const [name, one] of Object.entries(found)) {
      one.data().forEach((g, i) => {
        slope += g * (along.get(name)?.[i] ?? 0);
      });
    }
    if (!Number.isFinite(difference) || !Number.isFinite(slope)) continue;
    const error = Math.abs(slope - difference) / Math.max(1e-2, Math.abs(difference), Math.abs(slope));
    if (error <= TOLERANCE) return { verdict: "right", error };
    best = { verdict: "wrong", error, message: `slope ${slope}, differences ${difference}` };
  }
  return best;
}
