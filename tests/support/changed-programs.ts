/**
 * @file Programs of `.pt2` archives and configs with descriptions that are well-formed and wrong: fields that are missing, of another kind, out of
 * range, or another's. A changed description is a function of a seed.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { specsOf, type Tensor, TidemarkError } from "../../src/api/index.ts";
import { hostRandom } from "../../src/base/random.ts";
import { readExported } from "../../src/exchange/pt2/read.ts";
import { modelOfConfig } from "../../src/fit/sources/configs.ts";
import { eagerProgram } from "../../src/fit/sources/exported.ts";
import { eagerStep } from "../../src/fit/torch/step.ts";
import { readZip, writeZip } from "../../src/formats/zip.ts";
import { hasModels, MODELS } from "./recorded-models.ts";

type Json = Record<string | number, unknown>;

const LIES: readonly unknown[] = [
  ...[0, -1, 1, 2, 3, 7, 1e9, 2 ** 31, 2 ** 53, 1e308, -5, 0.5, 1e18],
  ...[null, "", "x", "../../etc", "Infinity", true, [], {}, [1, 2]],
];

const NOTHING: readonly [Json, string] = [{}, ""];

/** Every field, as the object or list that it is in and its key. */
function fieldsOf(json: unknown, found: [Json, string | number][] = []): [Json, string | number][] {
  if (typeof json !== "object" || json === null) return found;
  for (const key of Array.isArray(json) ? json.keys() : Object.keys(json)) {
    found.push([json as Json, key]);
    fieldsOf((json as Json)[key], found);
  }
  return found;
}

function changed(json: unknown, below: (n: number) => number): unknown {
  const copy = structuredClone(json);
  for (let n = 1 + below(3); n > 0; n--) {
    const fields = fieldsOf(copy);
    const [object, key] = fields[below(fields.length)] ?? NOTHING;
    const [other, otherKey] = fields[below(fields.length)] ?? NOTHING;
    const value = object[key];
    const changes = [
      () => (Array.isArray(object) ? object.splice(key as number, 1) : delete object[key]),
      () => Object.assign(object, { [key]: LIES[below(LIES.length)] }),
      () => Object.assign(object, { [key]: structuredClone(other[otherKey]) }),
      () => typeof value === "number" && Object.assign(object, { [key]: [value + 1, -value, value * 1000][below(3)] }),
    ];
    changes[below(changes.length)]?.();
  }
  return copy;
}

const FILES = ["mlp/model.pt2", "lstm/model.pt2", "cnn/model.core.pt2", "extra/dyn.pt2", "extra/joint.pt2"];
const CONFIGS: readonly object[] = [
  { model_type: "gpt2", n_embd: 64, n_head: 4, n_layer: 2, vocab_size: 100, n_positions: 64 },
  {
    ...{ model_type: "llama", hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4 },
    ...{ num_key_value_heads: 2, vocab_size: 100, max_position_embeddings: 64, architectures: ["LlamaForCausalLM"] },
  },
  { model_type: "vit", hidden_size: 64, num_attention_heads: 4, num_hidden_layers: 2, intermediate_size: 128 },
];

/** What was thrown that is no clear error, by the seeds it comes from. */
export function problemsOf(seeds: readonly number[]): readonly string[] {
  const archives = (hasModels ? FILES : []).map((file) => [...readZip(readFileSync(join(MODELS, file))).values()]);
  return seeds.flatMap((seed) => {
    const source = hostRandom(seed);
    const below = (n: number): number => Math.floor(source.next() * n);
    const config = changed(CONFIGS[below(CONFIGS.length)], below);
    const tried: (() => unknown)[] = [
      () => eagerStep(eagerProgram(modelOfConfig(config, { batch: 2, tokens: 16 })), "sgd"),
    ];
    const archive = archives[below(archives.length)];
    if (archive) {
      const parts = archive.map((entry) => ({ name: entry.name, bytes: entry.read() }));
      const descriptions = parts.filter(({ name }) => name.endsWith(".json"));
      const one = descriptions[below(descriptions.length)] as { bytes: Uint8Array };
      const json = changed(JSON.parse(new TextDecoder().decode(one.bytes)), below);
      one.bytes = new TextEncoder().encode(JSON.stringify(json));
      const file = writeZip(parts);
      tried.push(
        () => followed(file),
        () => eagerStep(eagerProgram(readExported(file, { unknown: "plan" }), { sizes: { s17: 4 } }), "adamw"),
      );
    }
    return tried.flatMap((body) => problemOf(body, seed));
  });
}

function followed(file: Uint8Array): unknown {
  const model = readExported(file, {});
  const apply = (params: Record<string, Tensor>, x: Record<string, Tensor>) => model.apply(params, x);
  return specsOf(apply)(model.params, model.specs({ s17: 4 }));
}

function problemOf(body: () => unknown, seed: number): readonly string[] {
  try {
    body();
    return [];
  } catch (error) {
    if (error instanceof TidemarkError) return [];
    return [`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`];
  }
}
