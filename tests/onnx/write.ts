/** @file Writes ONNX models for tests: messages of the wire format from plain objects. */

type Part = Uint8Array;

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export function joined(parts: readonly Part[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function whole(value: number | bigint): Uint8Array {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 0x80);
  } while (rest !== 0n);
  return Uint8Array.from(bytes);
}

export const int = (field: number, value: number | bigint): Part => joined([whole(field * 8), whole(value)]);
export const bytes = (field: number, value: Uint8Array): Part =>
  joined([whole(field * 8 + 2), whole(value.length), value]);
export const text = (field: number, value: string): Part => bytes(field, encode(value));
const float = (field: number, value: number): Part =>
  joined([whole(field * 8 + 5), new Uint8Array(Float32Array.of(value).buffer)]);

export const FLOAT = 1;
export const INT64 = 7;
export const BOOL = 9;

export interface TensorParts {
  readonly name?: string;
  readonly type: number;
  readonly shape: readonly number[];
  readonly data: readonly number[];
  /** Elements in another file instead. */
  readonly external?: Readonly<Record<string, string>>;
}

const RAW: Readonly<Record<number, (data: readonly number[]) => Uint8Array>> = {
  1: (data) => new Uint8Array(Float32Array.from(data).buffer),
  6: (data) => new Uint8Array(Int32Array.from(data).buffer),
  7: (data) => new Uint8Array(BigInt64Array.from(data, BigInt).buffer),
  9: (data) => Uint8Array.from(data),
  10: (data) => new Uint8Array(Uint16Array.from(data).buffer),
  11: (data) => new Uint8Array(Float64Array.from(data).buffer),
};

export function tensor({ name = "", type, shape, data, external }: TensorParts): Uint8Array {
  const head = [...shape.map((extent) => int(1, extent)), int(2, type), text(8, name)];
  if (external) {
    const entries = Object.entries(external).map(([key, value]) => bytes(13, joined([text(1, key), text(2, value)])));
    return joined([...head, ...entries, int(14, 1)]);
  }
  return joined([...head, bytes(9, RAW[type]?.(data) ?? new Uint8Array(0))]);
}

export type AttributeValue =
  | number
  | string
  | readonly number[]
  | Uint8Array
  | { readonly graph: Uint8Array }
  | { readonly float: number }
  | { readonly ref: string };

function attribute(name: string, value: AttributeValue): Uint8Array {
  const head = text(1, name);
  if (typeof value === "number") return joined([head, int(3, value), int(20, 2)]);
  if (typeof value === "string") return joined([head, text(4, value), int(20, 3)]);
  if (value instanceof Uint8Array) return joined([head, bytes(5, value), int(20, 4)]);
  if (Array.isArray(value)) return joined([head, ...value.map((one: number) => int(8, one)), int(20, 7)]);
  if ("graph" in value) return joined([head, bytes(6, value.graph), int(20, 5)]);
  if ("ref" in value) return joined([head, text(21, value.ref)]);
  return joined([head, float(2, (value as { float: number }).float), int(20, 1)]);
}

export interface NodeParts {
  readonly kind: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, AttributeValue>>;
  readonly domain?: string;
  readonly overload?: string;
}

export const node = ({ kind, inputs, outputs, attributes = {}, domain = "", overload = "" }: NodeParts): Uint8Array =>
  joined([
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, kind),
    ...Object.entries(attributes).map(([name, value]) => bytes(5, attribute(name, value))),
    text(7, domain),
    text(8, overload),
  ]);

export interface ValueParts {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly (number | string)[];
}

const value = ({ name, type, shape }: ValueParts): Uint8Array => {
  const extents = shape.map((extent) => bytes(1, typeof extent === "number" ? int(1, extent) : text(2, extent)));
  return joined([text(1, name), bytes(2, bytes(1, joined([int(1, type), bytes(2, joined(extents))])))]);
};

export interface GraphParts {
  readonly nodes: readonly NodeParts[];
  readonly inputs?: readonly ValueParts[];
  readonly outputs: readonly ValueParts[];
  readonly weights?: readonly TensorParts[];
}

export const graph = ({ nodes, inputs = [], outputs, weights = [] }: GraphParts): Uint8Array =>
  joined([
    ...nodes.map((one) => bytes(1, node(one))),
    text(2, "graph"),
    ...weights.map((one) => bytes(5, tensor(one))),
    ...inputs.map((one) => bytes(11, value(one))),
    ...outputs.map((one) => bytes(12, value(one))),
  ]);

export interface FunctionParts {
  readonly name: string;
  readonly domain: string;
  readonly overload?: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly nodes: readonly NodeParts[];
}

export interface ModelParts extends GraphParts {
  readonly opset?: number;
  readonly functions?: readonly FunctionParts[];
}

const opset = (version: number): Uint8Array => joined([text(1, ""), int(2, version)]);

export function model({ opset: version = 18, functions = [], ...parts }: ModelParts): Uint8Array {
  const made = functions.map(({ name, domain, overload = "", inputs, outputs, nodes }) =>
    joined([
      text(1, name),
      ...inputs.map((one) => text(4, one)),
      ...outputs.map((one) => text(5, one)),
      ...nodes.map((one) => bytes(7, node(one))),
      bytes(9, opset(version)),
      text(10, domain),
      text(13, overload),
    ]),
  );
  return joined([int(1, 8), bytes(7, graph(parts)), bytes(8, opset(version)), ...made.map((one) => bytes(25, one))]);
}
