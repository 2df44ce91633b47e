/**
 * @file Which names of a graph are sizes: numbers that an operator needs before the program runs, and what they are computed from. Exporters and
 * optimizers write factors of sizes as float initializers; they are constants, where other floats are weights.
 *
 *   Shape(x) ── Cast ── Mul(factor: float[1]) ── Floor ── Cast ── Resize(sizes)       factor is a size
 */
import type { OnnxGraph, OnnxNode } from "../../formats/onnx-file.ts";
import { FOLDS } from "./fold.ts";

/** Inputs whose numbers must be known, by position. */
const SIZES: Readonly<Record<string, readonly number[]>> = {
  AffineGrid: [1],
  CenterCropPad: [1],
  Col2Im: [1, 2],
  Compress: [1],
  ConstantOfShape: [0],
  CumSum: [1],
  Expand: [1],
  Loop: [0],
  MaxUnpool: [2],
  NonZero: [0],
  OneHot: [1],
  Pad: [1, 3],
  Range: [0, 1, 2],
  Reshape: [1],
  Resize: [1, 2, 3],
  RoiAlign: [1, 2],
  Slice: [1, 2, 3, 4],
  Split: [1],
  Squeeze: [1],
  Tile: [1],
  TopK: [1],
  Trilu: [1],
  Unsqueeze: [1],
  Upsample: [1],
};

/** Their results are known whatever their operands are. */
const SHAPES: readonly string[] = ["Shape", "Size"];

/** Names of sizes, and of everything that they are computed from. */
export function namesOfSizes(graph: OnnxGraph): ReadonlySet<string> {
  const makers = new Map<string, OnnxNode>();
  const open: string[] = [];
  const visit = (nodes: readonly OnnxNode[]): void => {
    for (const node of nodes) {
      for (const name of node.outputs) makers.set(name, node);
      const places = node.domain === "" && Object.hasOwn(SIZES, node.kind) ? (SIZES[node.kind] ?? []) : [];
      for (const i of places) if (node.inputs[i]) open.push(node.inputs[i]);
      for (const { graph: inner } of node.attributes.values()) if (inner) visit(inner.nodes);
    }
  };
  visit(graph.nodes);
  const sizes = new Set<string>();
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (name === "" || sizes.has(name)) continue;
    sizes.add(name);
    const maker = makers.get(name);
    const isFolded = maker?.domain === "" && Object.hasOwn(FOLDS, maker.kind) && !SHAPES.includes(maker.kind);
    if (maker && isFolded) open.push(...maker.inputs);
  }
  return sizes;
}
