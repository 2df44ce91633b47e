/** @file What models from a `config.json` have in common: its settings, and the parts that most models are made of. */
import { grouped, TidemarkError } from "../../base/errors.ts";
import type { ProgramBuilder, ValueName } from "./program-builder.ts";

/** Deeper models are none. */
const MOST_LAYERS = 1000;

export type Json = Readonly<Record<string, unknown>>;

export class Config {
  readonly #json: Json;
  constructor(json: Json) {
    this.#json = json;
  }
  get kind(): string {
    return String(this.#json.model_type ?? "");
  }
  /** The first of several names that has a whole number. */
  n(names: readonly string[], usual?: number): number {
    for (const name of names) {
      const value = this.#json[name];
      if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
    }
    if (usual !== undefined) return usual;
    throw new TidemarkError("InvalidFile", `the config of a ${this.kind} model has no ${names.join(" or ")}`, {
      help: "it must be a whole number above 0; give the config.json of the model itself",
    });
  }
  /** Repeated blocks of the model. */
  layers(names: readonly string[]): number {
    const count = this.n(names);
    if (count <= MOST_LAYERS) return count;
    throw new TidemarkError("InvalidFile", `the model has ${grouped(count)} layers`, {
      help: `at most ${grouped(MOST_LAYERS)} are followed`,
    });
  }
  /** Heads and the extent of one, which divides the hidden extent. */
  heads(hidden: number, names: readonly string[]): Heads {
    const heads = this.n(names);
    const width = this.n(["head_dim"], hidden / heads);
    if (Number.isInteger(width)) return { heads, width };
    throw new TidemarkError("InvalidFile", `the model has ${heads} heads in ${grouped(hidden)} hidden elements`, {
      help: "the heads must divide the hidden extent",
    });
  }
  /** What the model is for: `LlamaForCausalLM` is for CausalLM; "" where the config does not say. */
  get task(): string {
    const [name] = Array.isArray(this.#json.architectures) ? (this.#json.architectures as readonly unknown[]) : [];
    return typeof name === "string" ? (/For(\w+)$/.exec(name)?.[1] ?? "") : "";
  }
  text(names: readonly string[], usual: string): string {
    for (const name of names) if (typeof this.#json[name] === "string") return this.#json[name];
    return usual;
  }
  rate(names: readonly string[], usual: number): number {
    for (const name of names) if (typeof this.#json[name] === "number") return this.#json[name];
    return usual;
  }
  flag(name: string, usual: boolean): boolean {
    const value = this.#json[name];
    return typeof value === "boolean" ? value : usual;
  }
}

export interface Setting {
  readonly config: Config;
  readonly batch: number;
  readonly tokens: number;
  readonly dropout: boolean;
}

export type Maker = (b: ProgramBuilder, setting: Setting) => ValueName;

export function dropped(b: ProgramBuilder, x: ValueName, rate: number, { dropout }: Setting): ValueName {
  return dropout && rate > 0 ? b.op("dropout", { input: x, p: rate, train: true }) : x;
}

export interface Heads {
  readonly heads: number;
  readonly width: number;
}

export const intoHeads = (
  b: ProgramBuilder,
  x: ValueName,
  { batch, tokens }: Setting,
  { heads, width }: Heads,
): ValueName => {
  const split = b.op("view", { self: x, size: [batch, tokens, heads, width] });
  return b.op("transpose.int", { self: split, dim0: 1, dim1: 2 });
};

export function attended(b: ProgramBuilder, [q, k, v]: readonly ValueName[], setting: Setting, more: Json): ValueName {
  const args = { query: q as ValueName, key: k as ValueName, value: v as ValueName, ...more } as Parameters<
    ProgramBuilder["op"]
  >[1];
  const y = b.op("scaled_dot_product_attention", args);
  const back = b.op("transpose.int", { self: y, dim0: 1, dim1: 2 });
  return b.op("reshape", { self: back, shape: [setting.batch, setting.tokens, -1] });
}

export const add = (b: ProgramBuilder, x: ValueName, y: ValueName): ValueName =>
  b.op("add.Tensor", { self: x, other: y });

/** 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), in steps. */
function newGelu(b: ProgramBuilder, x: ValueName): ValueName {
  const half = b.op("mul.Tensor", { self: x, other: 0.5 });
  const cube = b.op("mul.Tensor", { self: b.op("pow.Tensor_Scalar", { self: x, exponent: 3 }), other: 0.044715 });
  const inside = b.op("mul.Tensor", { self: add(b, x, cube), other: 0.7978845608 });
  const one = b.op("add.Tensor", { self: b.op("tanh", { self: inside }), other: 1.5 });
  return b.op("mul.Tensor", { self: half, other: one });
}

/** Activations by the names of transformers. */
const ACTIVATIONS: Readonly<Record<string, (b: ProgramBuilder, x: ValueName) => ValueName>> = {
  ...Object.fromEntries(
    ["silu", "gelu", "relu", "tanh", "sigmoid"].map((name) => [name, (b, x) => b.op(name, { self: x })] as const),
  ),
  swish: (b, x) => b.op("silu", { self: x }),
  gelu_pytorch_tanh: (b, x) => b.op("gelu", { self: x, approximate: "tanh" }),
  gelu_new: newGelu,
  quick_gelu: (b, x) => {
    const gate = b.op("sigmoid", { self: b.op("mul.Tensor", { self: x, other: 1.702 }) });
    return b.op("mul.Tensor", { self: x, other: gate });
  },
};

export function activated(b: ProgramBuilder, x: ValueName, name: string): ValueName {
  const make = Object.hasOwn(ACTIVATIONS, name) ? ACTIVATIONS[name] : undefined;
  if (make) return make(b, x);
  throw new TidemarkError("InvalidFile", `the config has the activation ${JSON.stringify(name)}`, {
    help: `known are ${Object.keys(ACTIVATIONS).join(", ")}; export the model as .pt2`,
  });
}
