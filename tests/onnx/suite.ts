/**
 * @file The operator tests of ONNX (Debian's `libonnx-testdata`): models of a node or a few, with inputs and expected outputs. A test is run
 * as a compiled program of its inputs; where a shape must be known, with whole-number inputs as constants; where the number of results
 * depends on data, with all inputs as constants.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compile, type Tensor } from "../../src/api/index.ts";
import { readOnnx } from "../../src/exchange/onnx/index.ts";
import { tensorFrom } from "../../src/exchange/onnx/value.ts";
import { type OnnxGraph, parseOnnx, parseOnnxTensor } from "../../src/formats/onnx-file.ts";
import { type DecodedTensor, decodeTensor, elementText } from "../../src/formats/onnx-tensor.ts";

/** Where the package puts its data; another folder by ONNX_TESTDATA. */
export const SUITE = process.env.ONNX_TESTDATA ?? "/usr/share/libonnx-testdata/data";
export const hasSuite = (): boolean => existsSync(SUITE);

/** Relative and absolute, as in the suite itself. */
const RELATIVE = 1e-3;
const ABSOLUTE = 1e-7;

export interface SuiteCase {
  readonly name: string;
  readonly path: string;
  readonly operators: readonly string[];
  /** Of inputs, outputs and weights. */
  readonly types: readonly string[];
}

export type Binding = "inputs" | "whole numbers known" | "all known";

export interface Outcome {
  readonly passed: boolean;
  readonly binding?: Binding;
  /** Largest difference over the largest magnitude of the expected tensor. */
  readonly error: number;
  readonly message?: string;
}

export function suiteCases(): readonly SuiteCase[] {
  return readdirSync(SUITE).flatMap((group) =>
    readdirSync(join(SUITE, group)).flatMap((name) => {
      const path = join(SUITE, group, name);
      return existsSync(join(path, "model.onnx")) ? [caseOf(`${group}/${name}`, path)] : [];
    }),
  );
}

function caseOf(name: string, path: string): SuiteCase {
  const { graph } = parseOnnx(readFileSync(join(path, "model.onnx")));
  const operators = new Set<string>();
  const types = new Set<string>([...graph.inputs, ...graph.outputs].map(({ type }) => elementText(type)));
  const visit = (inner: OnnxGraph): void => {
    for (const { type } of inner.initializers) types.add(elementText(type));
    for (const node of inner.nodes) {
      operators.add(node.domain === "" ? node.kind : `${node.domain}.${node.kind}`);
      for (const { graph: deeper, tensor } of node.attributes.values()) {
        if (deeper) visit(deeper);
        if (tensor) types.add(elementText(tensor.type));
      }
    }
  };
  visit(graph);
  return { name, path, operators: [...operators].sort(), types: [...types].sort() };
}

const numbered = (folder: string, kind: string): readonly string[] =>
  readdirSync(folder)
    .filter((file) => file.startsWith(`${kind}_`))
    .sort((a, b) => Number(/\d+/.exec(a)) - Number(/\d+/.exec(b)))
    .map((file) => join(folder, file));

const read = (path: string): DecodedTensor => decodeTensor(parseOnnxTensor(readFileSync(path)), undefined);

export interface SuiteData {
  readonly file: Uint8Array;
  readonly inputs: ReadonlyMap<string, DecodedTensor>;
  readonly outputs: readonly DecodedTensor[];
}

export function dataOf({ path }: SuiteCase): SuiteData {
  const file = readFileSync(join(path, "model.onnx"));
  const { graph } = parseOnnx(file);
  const folder = join(path, "test_data_set_0");
  const own = new Set(graph.initializers.map(({ name }) => name));
  const names = graph.inputs.map(({ name }) => name).filter((name) => !own.has(name));
  const inputs = new Map(numbered(folder, "input").map((one, i) => [names[i] as string, read(one)]));
  return { file, inputs, outputs: numbered(folder, "output").map(read) };
}

const isFloat = ({ type }: DecodedTensor): boolean => /float|double/.test(type);

/** Whether an input is a constant in a way of running. */
export const isBound = (binding: Binding, input: DecodedTensor): boolean =>
  binding === "all known" || (binding === "whole numbers known" && !isFloat(input));

export function tensorsOf(data: SuiteData, keep: (input: DecodedTensor) => boolean): Record<string, Tensor> {
  const kept = [...data.inputs].filter(([, input]) => keep(input));
  return Object.fromEntries(kept.map(([name, input]) => [name, tensorFrom(input, null, name)]));
}

export const BINDINGS: readonly Binding[] = ["inputs", "whole numbers known", "all known"];

function runBound(data: SuiteData, binding: Binding): readonly Tensor[] {
  const constants = tensorsOf(data, (input) => isBound(binding, input));
  const model = readOnnx(data.file, { constants });
  const inputs = tensorsOf(data, (input) => !isBound(binding, input));
  const run = compile((params: Record<string, Tensor>, given: Record<string, Tensor>) => model.apply(params, given), {
    cache: false,
  });
  const results = run(model.params, inputs);
  return model.outputs.map((name) => results[name] as Tensor);
}

/** Operators that draw: the expected numbers are those of NumPy's generator, so what holds of every draw is checked. */
const DRAWS: readonly string[] = ["Bernoulli", "RandomUniformLike"];
const isDrawn = ({ operators, name }: SuiteCase): boolean =>
  operators.some((operator) => DRAWS.includes(operator)) || /test_training_dropout(?!.*zero_ratio)/.test(name);

/** Of draws: types and shapes; bernoulli draws are 0 or 1; a dropped element is 0, and another is x / (1 - rate) with one rate. */
function checkDraws(data: SuiteData, results: readonly Tensor[]): Outcome {
  const shapes = data.outputs.every(({ shape }, i) => shape.join() === results[i]?.shape.join());
  const given = Array.from([...data.inputs.values()][0]?.values as ArrayLike<number>, Number);
  const [made, expected] = [results[0]?.data() ?? [], data.outputs[0]?.values as ArrayLike<number>];
  const scales = new Set(
    Array.from(expected, (y, i) => (y === 0 ? 0 : Math.fround(y / (given[i] as number)).toFixed(4))),
  );
  const isKnown = (x: number, i: number): boolean =>
    x === 0 || x === 1 || scales.has(Math.fround(x / (given[i] as number)).toFixed(4));
  const passed = shapes && Array.from(made).every(isKnown);
  return passed ? { passed, error: 0 } : { passed, error: Number.NaN, message: "a draw that cannot be" };
}

export function runCase(one: SuiteCase): Outcome {
  let message = "";
  const data = tryData(one);
  if (typeof data === "string") return { passed: false, error: Number.NaN, message: data };
  for (const binding of BINDINGS) {
    try {
      const results = runBound(data, binding);
      const found = isDrawn(one) ? checkDraws(data, results) : compare(results, data.outputs);
      return { ...found, binding };
    } catch (error) {
      message = (error as Error).message.split("\n")[0] ?? "";
      if (!message.includes("must be known") && !message.includes("depends on data")) break;
    }
  }
  return { passed: false, error: Number.NaN, message };
}

function tryData(one: SuiteCase): SuiteData | string {
  try {
    return dataOf(one);
  } catch (error) {
    return (error as Error).message.split("\n")[0] ?? "";
  }
}

function compare(results: readonly Tensor[], wanted: readonly DecodedTensor[]): Outcome {
  let worst = 0;
  for (const [i, expected] of wanted.entries()) {
    const result = results[i] as Tensor;
    if (result.shape.join() !== expected.shape.join()) {
      return { passed: false, error: Number.NaN, message: `shape [${result.shape}] for [${expected.shape}]` };
    }
    const [a, b] = [result.data(), Array.from(expected.values as ArrayLike<number>, Number)];
    const scale = b.reduce((most, y) => (Number.isFinite(y) ? Math.max(most, Math.abs(y)) : most), 0);
    for (const [k, y] of b.entries()) {
      const x = a[k] as number;
      if (x === y || (Number.isNaN(x) && Number.isNaN(y))) continue;
      const difference = Math.abs(x - y);
      if (!(difference <= ABSOLUTE + RELATIVE * Math.abs(y))) {
        return { passed: false, error: difference / scale, message: `element ${k} of result ${i} is ${x}, not ${y}` };
      }
      worst = Math.max(worst, difference / scale);
    }
  }
  return { passed: true, error: worst };
}
