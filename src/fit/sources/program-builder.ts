/** @file A program of ATen nodes, written node by node, in the form that exported ones have. */

import { ExportedModel } from "../../exchange/pt2/read.ts";
import type { Pt2Weight } from "../../formats/pt2-archive.ts";
import type { Pt2Argument, Pt2Input, Pt2Node, Pt2Program, Pt2TensorType } from "../../formats/pt2-program.ts";

/** PyTorch's numbers of element types. */
export const FLOAT_CODE = 7;
export const INTEGER_CODE = 5;
/** Not one of PyTorch's: floats of 32 bits also where the model's floats are narrower. */
export const WIDE_CODE = -FLOAT_CODE;

type Plain = number | boolean | string | readonly number[] | null;

/** Values are known by their names. */
export interface ValueName {
  readonly value: string;
}
type Argument = Plain | ValueName | readonly ValueName[];

const isValue = (x: unknown): x is ValueName => typeof x === "object" && x !== null && "value" in x;

function argumentOf(x: Argument): Pt2Argument {
  if (x === null) return { as_none: true };
  if (isValue(x)) return { as_tensor: { name: x.value } };
  if (Array.isArray(x) && x.length > 0 && isValue(x[0])) {
    return { as_tensors: (x as readonly ValueName[]).map(({ value }) => ({ name: value })) };
  }
  if (Array.isArray(x)) return { as_ints: x };
  if (typeof x === "boolean") return { as_bool: x };
  if (typeof x === "string") return { as_string: x };
  return Number.isInteger(x) ? { as_int: x } : { as_float: x };
}

export class ProgramBuilder {
  readonly #nodes: Pt2Node[] = [];
  readonly #inputs: Pt2Input[] = [];
  readonly #types = new Map<string, Pt2TensorType>();
  readonly #weights = new Map<string, Pt2Weight>();
  #module = "";

  /** Nodes that are written in `body` belong to a part of the model. */
  within<T>(part: string, body: () => T): T {
    const outer = this.#module;
    this.#module = outer === "" ? part : `${outer}.${part}`;
    const made = body();
    this.#module = outer;
    return made;
  }

  input(name: string, shape: readonly number[], code: number): ValueName {
    this.#inputs.push({ kind: "user_input", value: name, name });
    this.#types.set(name, { dtype: code, sizes: shape, strides: null });
    return { value: name };
  }

  /** A parameter of the part that is being written. */
  parameter(name: string, shape: readonly number[]): ValueName {
    const path = this.#module === "" ? name : `${this.#module}.${name}`;
    const value = `p_${path.replaceAll(".", "_")}`;
    this.#inputs.push({ kind: "parameter", value, name: path });
    this.#types.set(value, { dtype: FLOAT_CODE, sizes: shape, strides: null });
    this.#weights.set(path, {
      ...{ name: path, path, shape, elements: null },
      isParam: true,
      type: "F32",
      dtype: "f32",
    });
    return { value };
  }

  /** One result of `aten.NAME`; floats unless said otherwise. */
  op(name: string, args: Readonly<Record<string, Argument>>, code = FLOAT_CODE): ValueName {
    return this.ops(name, args, 1, code)[0] as ValueName;
  }

  /** Several results, as of `split`. */
  ops(name: string, args: Readonly<Record<string, Argument>>, count: number, code = FLOAT_CODE): readonly ValueName[] {
    const names = Array.from({ length: count }, (_, i) => `v${this.#nodes.length}_${i}`);
    for (const one of names) this.#types.set(one, { dtype: code, sizes: [], strides: null });
    const [only] = names;
    const outputs: Pt2Argument[] =
      count === 1 ? [{ as_tensor: { name: only } }] : [{ as_tensors: names.map((one) => ({ name: one })) }];
    this.#nodes.push({
      target: `torch.ops.aten.${name.includes(".") ? name : `${name}.default`}`,
      inputs: Object.entries(args).map(([key, arg]) => ({ name: key, arg: argumentOf(arg) })),
      outputs,
      metadata: { nn_module_stack: this.#module },
    });
    return names.map((value) => ({ value }));
  }

  linear(name: string, x: ValueName, [rows, columns]: readonly [number, number], bias = true): ValueName {
    return this.within(name, () => {
      const weight = this.parameter("weight", [rows, columns]);
      const shift = bias ? { bias: this.parameter("bias", [rows]) } : {};
      return this.op("linear", { input: x, weight, ...shift });
    });
  }

  layerNorm(name: string, x: ValueName, width: number): ValueName {
    return this.within(name, () => {
      const [weight, bias] = [this.parameter("weight", [width]), this.parameter("bias", [width])];
      return this.op("layer_norm", { input: x, normalized_shape: [width], weight, bias, eps: 1e-5 });
    });
  }

  finish(result: ValueName): ExportedModel {
    const program: Pt2Program = {
      torch: "none",
      nodes: this.#nodes,
      inputs: this.#inputs,
      outputs: [{ kind: "user_output", argument: { as_tensor: { name: result.value } }, name: result.value }],
      types: this.#types,
      ranges: new Map(),
    };
    return new ExportedModel(program, this.#weights);
  }
}
