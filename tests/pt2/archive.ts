/** @file Writes `.pt2` archives for tests: a program of a few nodes with its weights. */
import { writeZip } from "../../src/formats/zip.ts";

const FLOAT = 7;
export const LONG = 5;

export interface Meta {
  readonly dtype?: number;
  /** A text is the name of an open size. */
  readonly sizes: readonly (number | string)[];
}

const sizeJson = (size: number | string): object =>
  typeof size === "number"
    ? { as_int: size }
    : { as_expr: { expr_str: `Symbol('${size}', positive=True, integer=True)`, hint: { as_int: 8 } } };

const metaJson = ({ dtype = FLOAT, sizes }: Meta): object => ({
  dtype,
  sizes: sizes.map(sizeJson),
  strides: sizes.map((_, a) => ({ as_int: sizes.slice(a + 1).reduce<number>((n, s) => n * Number(s), 1) })),
  storage_offset: { as_int: 0 },
  requires_grad: true,
  layout: 7,
});

export interface NodeJson {
  readonly target: string;
  readonly inputs: Readonly<Record<string, object>>;
  readonly outputs: readonly string[];
}

export interface ProgramJson {
  readonly params: Readonly<Record<string, { readonly meta: Meta; readonly data: readonly number[] | null }>>;
  readonly inputs: Readonly<Record<string, Meta>>;
  readonly nodes: readonly NodeJson[];
  readonly output: string;
  readonly ranges?: Readonly<Record<string, readonly [number, number]>>;
  readonly types?: Readonly<Record<string, Meta>>;
  readonly major?: number;
}

export const named = (name: string): object => ({ as_tensor: { name } });

const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** The parts of an archive, to be changed by tests. */
export function partsOf(of: ProgramJson): { name: string; bytes: Uint8Array }[] {
  const params = Object.entries(of.params);
  const values = [
    ...params.map(([name, { meta }]) => [`p_${name}`, meta] as const),
    ...Object.entries(of.inputs),
    ...Object.entries(of.types ?? {}),
  ];
  const program = {
    schema_version: { major: of.major ?? 8, minor: 17 },
    torch_version: "2.11.0",
    range_constraints: Object.fromEntries(
      Object.entries(of.ranges ?? {}).map(([name, [min_val, max_val]]) => [name, { min_val, max_val }]),
    ),
    graph_module: {
      graph: {
        nodes: of.nodes.map(({ target, inputs, outputs }) => ({
          target: target.startsWith("torch.") ? target : `torch.ops.aten.${target}`,
          inputs: Object.entries(inputs).map(([name, arg]) => ({ name, arg, kind: 1 })),
          outputs: outputs.map(named),
          metadata: {},
        })),
        tensor_values: Object.fromEntries(values.map(([name, meta]) => [name, metaJson(meta)])),
      },
      signature: {
        input_specs: [
          ...params.map(([name]) => ({ parameter: { arg: { name: `p_${name}` }, parameter_name: name } })),
          ...Object.keys(of.inputs).map((name) => ({ user_input: { arg: named(name) } })),
        ],
        output_specs: [{ user_output: { arg: named(of.output) } }],
      },
    },
  };
  const config = Object.fromEntries(
    params.map(([name, { meta }], i) => [
      name,
      { path_name: `weight_${i}`, is_param: true, use_pickle: false, tensor_meta: metaJson(meta) },
    ]),
  );
  const weights = params.flatMap(([, { data }], i) =>
    data ? [{ name: `m/data/weights/weight_${i}`, bytes: new Uint8Array(Float32Array.from(data).buffer) }] : [],
  );
  return [
    { name: "m/archive_format", bytes: new TextEncoder().encode("pt2") },
    { name: "m/byteorder", bytes: new TextEncoder().encode("little") },
    { name: "m/models/model.json", bytes: json(program) },
    { name: "m/data/weights/model_weights_config.json", bytes: json({ config }) },
    ...weights,
  ];
}

export const archive = (of: ProgramJson): Uint8Array => writeZip(partsOf(of));
