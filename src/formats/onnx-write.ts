/**
 * @file ONNX models as bytes: graphs, nodes, attributes, types and tensors, in the wire format that protobuf.ts reads. Field numbers are those
 * of the published schema (onnx.proto).
 */

/** Of an element type in files. */
export type ElementCode = number;

export interface OutTensor {
  readonly name: string;
  readonly type: ElementCode;
  readonly shape: readonly number[];
  /** Little-endian, in row-major order. */
  readonly bytes: Uint8Array;
}

export interface OutValue {
  readonly name: string;
  readonly type: ElementCode;
  readonly shape: readonly number[];
}

export type OutAttribute =
  | { readonly int: number }
  | { readonly ints: readonly number[] }
  | { readonly float: number }
  | { readonly text: string }
  | { readonly graph: OutGraph };

export interface OutNode {
  readonly kind: string;
  /** "" is an input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OutAttribute>>;
}

export interface OutGraph {
  readonly name: string;
  readonly nodes: readonly OutNode[];
  readonly initializers: readonly OutTensor[];
  readonly inputs: readonly OutValue[];
  readonly outputs: readonly OutValue[];
}

export interface OutModel {
  readonly irVersion: number;
  readonly opset: number;
  readonly producer: string;
  readonly version: string;
  readonly graph: OutGraph;
}

/** A field: its parts, and how many bytes they have together. */
interface Part {
  readonly bytes: number;
  readonly parts: readonly Uint8Array[];
}

/** A whole number, 7 bits a byte. */
function whole(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

const joined = (parts: readonly Part[]): Part => ({
  bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
  parts: parts.flatMap((part) => part.parts),
});

const one = (bytes: Uint8Array): Part => ({ bytes: bytes.length, parts: [bytes] });

const int = (field: number, value: number): Part => joined([one(whole(field * 8)), one(whole(value))]);

const withLength = (field: number, body: Part): Part =>
  joined([one(whole(field * 8 + 2)), one(whole(body.bytes)), body]);

const message = (field: number, ...parts: readonly Part[]): Part => withLength(field, joined(parts));

const text = (field: number, value: string): Part => withLength(field, one(new TextEncoder().encode(value)));

const ints = (field: number, values: readonly number[]): Part =>
  withLength(field, joined(values.map((value) => one(whole(value)))));

function float(field: number, value: number): Part {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setFloat32(0, value, true);
  return joined([one(whole(field * 8 + 5)), one(bytes)]);
}

const tensor = (field: number, { name, type, shape, bytes }: OutTensor): Part =>
  message(field, ints(1, shape), int(2, type), text(8, name), withLength(9, one(bytes)));

/** Numbers of the kinds of attributes in the schema: FLOAT, INT, STRING, GRAPH, INTS. */
const KINDS = { float: 1, int: 2, text: 3, graph: 5, ints: 7 } as const;

function attribute(field: number, name: string, value: OutAttribute): Part {
  const body = ((): readonly [keyof typeof KINDS, Part] => {
    if ("int" in value) return ["int", int(3, value.int)];
    if ("ints" in value) return ["ints", ints(8, value.ints)];
    if ("float" in value) return ["float", float(2, value.float)];
    if ("text" in value) return ["text", text(4, value.text)];
    return ["graph", graph(6, value.graph)];
  })();
  return message(field, text(1, name), body[1], int(20, KINDS[body[0]]));
}

const node = (field: number, { kind, inputs, outputs, attributes }: OutNode): Part =>
  message(
    field,
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(3, outputs[0] ?? ""),
    text(4, kind),
    ...Object.entries(attributes).map(([name, value]) => attribute(5, name, value)),
  );

const value = (field: number, { name, type, shape }: OutValue): Part => {
  const extents = message(2, ...shape.map((extent) => message(1, int(1, extent))));
  return message(field, text(1, name), message(2, message(1, int(1, type), extents)));
};

function graph(field: number, { name, nodes, initializers, inputs, outputs }: OutGraph): Part {
  return message(
    field,
    ...nodes.map((one) => node(1, one)),
    text(2, name),
    ...initializers.map((one) => tensor(5, one)),
    ...inputs.map((one) => value(11, one)),
    ...outputs.map((one) => value(12, one)),
  );
}

/** The bytes of a model's file. */
export function writeOnnx({ irVersion, opset, producer, version, graph: main }: OutModel): Uint8Array {
  const { bytes, parts } = joined([
    int(1, irVersion),
    text(2, producer),
    text(3, version),
    graph(7, main),
    message(8, text(1, ""), int(2, opset)),
  ]);
  const file = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}
