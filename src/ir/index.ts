/** @file `tidemark/ir`: graphs, their text, their checks and their reference meaning. */
export type { AttrKind } from "./attrs.ts";
export { attrText, numberText, sameAttr } from "./attrs.ts";
export type { NodeOptions } from "./build.ts";
export { Build } from "./build.ts";
export type { EvaluateOptions } from "./evaluate.ts";
export { evaluate } from "./evaluate.ts";
export type { Graph, Node, Phase, Value } from "./graph.ts";
export { newValue, resultOf } from "./graph.ts";
export { hashGraph, sameGraph, structuralKey } from "./hash.ts";
export type {
  AnyOp,
  Attr,
  Attrs,
  Cost,
  Derivative,
  EvaluateContext,
  LowerContext,
  Lowering,
  NoAttrs,
  OpDef,
  Partial,
  Reference,
  Sample,
} from "./op.ts";
export type { ParseOptions } from "./parse.ts";
export { parse } from "./parse.ts";
export type { PrintOptions } from "./print.ts";
export { nodeText, print, valueNames } from "./print.ts";
export type { Shape, TensorType } from "./type.ts";
export { byteLength, elementsOf, sameShape, sameType, shapeText, tensorType, typeText } from "./type.ts";
export type { Violation } from "./verify.ts";
export { verify, violations } from "./verify.ts";
export type { Use, Visit } from "./walk.ts";
export { allNodes, nodesFor, producersOf, Rewrite, rewriteGraph, topological, usersOf } from "./walk.ts";
