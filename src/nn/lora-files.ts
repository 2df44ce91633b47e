/**
 * @file Adapters in the files of PEFT, which most programs read: `adapter_model.safetensors` and `adapter_config.json`.
 *
 *   base_model.model.LAYER.lora_A.weight         [rank, in]         base_model.model.LAYER.lora_B.weight         [out, rank]
 *   base_model.model.LAYER.lora_embedding_A      [rank, rows]       base_model.model.LAYER.lora_embedding_B      [features, rank]
 */
import { load, save } from "../api/save.ts";
import type { Shape } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { describe, fail } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { LoraOptions, LoraParams } from "./lora.ts";
import { layerNameOf } from "./lora-targets.ts";
import type { Use } from "./low-rank.ts";

/** A weight that is adapted. */
export interface Target {
  readonly path: string;
  /** What its axes are: [out, in], [in, out], [rows, features] or [out, in, …window]. */
  readonly use: Use;
  readonly dtype: DType;
  readonly shape: Shape;
}

/** `adapter_config.json`, as far as it says something. */
export interface LoraConfig {
  readonly peft_type: "LORA";
  readonly r: number;
  readonly lora_alpha: number;
  readonly target_modules: readonly string[];
  readonly fan_in_fan_out: boolean;
  readonly use_rslora: boolean;
  readonly lora_dropout: number;
  readonly bias: "none";
  readonly inference_mode: boolean;
  readonly base_model_name_or_path: string | null;
  readonly task_type: string | null;
}

const PREFIX = "base_model.model.";

/** Names of A and B in files. */
function namesOf({ path, use }: Target): readonly [string, string] {
  const layer = `${PREFIX}${layerNameOf(path)}`;
  if (use === "table") return [`${layer}.lora_embedding_A`, `${layer}.lora_embedding_B`];
  return [`${layer}.lora_A.weight`, `${layer}.lora_B.weight`];
}

export function adapterFile(targets: readonly Target[], adapter: LoraParams): Uint8Array {
  const named = targets.flatMap((target) => {
    const [a, b] = namesOf(target);
    const pair = adapter[target.path];
    return [[a, pair?.a] as const, [b, pair?.b] as const];
  });
  return save(Object.fromEntries(named) as Record<string, Tensor>, { metadata: { format: "pt" } });
}

interface Strength {
  readonly rank: number;
  readonly alpha: number;
  readonly rankStabilized: boolean;
}

export function adapterConfig(targets: readonly Target[], { rank, alpha, rankStabilized }: Strength): LoraConfig {
  return {
    peft_type: "LORA",
    r: rank,
    lora_alpha: alpha,
    target_modules: targets.map(({ path }) => layerNameOf(path)),
    // GPT-2's layers keep weights as [in, out]; PEFT wants to be told
    fan_in_fan_out: targets.some(({ use }) => use === "in-out"),
    use_rslora: rankStabilized,
    lora_dropout: 0,
    bias: "none",
    inference_mode: true,
    base_model_name_or_path: null,
    task_type: null,
  };
}

/** `base_model.model.m.c_attn.lora_A.default.weight` → `m.c_attn.lora_A.weight`. */
const plainName = (name: string): string =>
  name.replace(/^base_model\.model\./, "").replace(/\.(lora_[A-Za-z_]+)\.default(\.|$)/, ".$1$2");

/** Factors of all targets; names that differ in what comes before the model's own are found by their ends. */
export function readAdapter(targets: readonly Target[], file: Uint8Array | ArrayBuffer): LoraParams {
  const given = new Map(Object.entries(load(file)).map(([name, tensor]) => [plainName(name), tensor]));
  const used = new Set<string>();
  const find = (wanted: string): Tensor | undefined => {
    const own = plainName(wanted);
    const ends = [...given.keys()].filter(
      (name) => name === own || own.endsWith(`.${name}`) || name.endsWith(`.${own}`),
    );
    const only = ends.length === 1 ? ends[0] : undefined;
    const name = given.has(own) ? own : only;
    if (name !== undefined) used.add(name);
    return name === undefined ? undefined : given.get(name);
  };
  const pairs = targets.map(
    (target) => [target.path, namesOf(target).map((name) => ({ name, tensor: find(name) }))] as const,
  );
  const missing = pairs.flatMap(([, sides]) => sides.filter(({ tensor }) => !tensor).map(({ name }) => name));
  const extra = [...given.keys()].filter((name) => !used.has(name));
  if (missing.length + extra.length > 0) {
    const problems = [
      ...(missing.length > 0 ? [`the file lacks ${listed(missing)}`] : []),
      ...(extra.length > 0 ? [`no target is meant by ${listed(extra)}`] : []),
    ];
    fail("InvalidFile", `lora: ${problems.join("; ")}`, "make targets those of the adapter's configuration");
  }
  return Object.fromEntries(pairs.map(([path, [a, b]]) => [path, { a: a?.tensor as Tensor, b: b?.tensor as Tensor }]));
}

const SHOWN = 6;
const listed = (names: readonly string[]): string =>
  `${names.slice(0, SHOWN).join(", ")}${names.length > SHOWN ? ` and ${names.length - SHOWN} more` : ""}`;

/** Settings that change what an adapter computes in ways that are not supported. */
const REFUSED: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ["use_dora", (value) => value === true],
  ["bias", (value) => value !== undefined && value !== "none"],
  ["modules_to_save", (value) => Array.isArray(value) && value.length > 0],
  ["rank_pattern", (value) => isFilled(value)],
  ["alpha_pattern", (value) => isFilled(value)],
  ["trainable_token_indices", (value) => value !== undefined && value !== null],
];

const isFilled = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length > 0;

/**
 * Options of `lora` from an `adapter_config.json` of PEFT, parsed.
 *
 * @example
 * import { loraOptions } from "tidemark/nn";
 *
 * const config = { peft_type: "LORA", r: 8, lora_alpha: 16, target_modules: ["c_attn"] };
 * console.log(loraOptions(config)); // { rank: 8, alpha: 16, rankStabilized: false, targets: ["c_attn"] }
 */
export function loraOptions(config: unknown): LoraOptions {
  const given = (typeof config === "object" && config !== null ? config : {}) as Record<string, unknown>;
  const { peft_type: kind, r, lora_alpha: alpha, target_modules: modules } = given;
  if (kind !== "LORA" || typeof r !== "number" || typeof alpha !== "number") {
    const summary = `loraOptions: ${describe(config)} is no configuration of LoRA`;
    fail("InvalidFile", summary, 'it has "peft_type": "LORA", "r" and "lora_alpha"');
  }
  const refused = REFUSED.filter(([name, isRefused]) => isRefused(given[name])).map(([name]) => name);
  if (refused.length > 0) {
    fail(
      "InvalidFile",
      `loraOptions: ${refused.join(", ")} is not supported`,
      "merge the adapter in PEFT and load the weights",
    );
  }
  const rankStabilized = given.use_rslora === true;
  if (Array.isArray(modules) && modules.every((name) => typeof name === "string")) {
    return { rank: r, alpha, rankStabilized, targets: modules as string[] };
  }
  return fail(
    "InvalidFile",
    `loraOptions: target_modules is ${describe(modules)}`,
    "give targets yourself, as a list of names",
  );
}
