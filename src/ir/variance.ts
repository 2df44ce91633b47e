/**
 * @file Over which axes of a mesh of devices values vary: a part of types while a program is recorded and differentiated. A value
 * that varies over no axis is equal on all devices. Operations take operands that vary alike; who varies less is marked first:
 *
 *   w f32[8,4]           ── vary {over=data} ──→ f32[8,4]{data} ─┐
 *   x f32[2,8]{data}     ────────────────────────────────────────┴ matmul ──→ f32[2,4]{data}
 *
 * The transpose of that mark adds the cotangents of all devices up: so gradients are synchronised. The rules themselves come with the types
 * (ops/collective/variance.ts), so that programs without meshes do not have them.
 */
import type { Build } from "./build.ts";
import type { Graph, Node, Value } from "./graph.ts";
import type { AnyOp, Attrs } from "./op.ts";
import type { TensorType } from "./type.ts";

/** The axes that a value varies over. */
export interface Variance {
  /** The mesh as text (ops/collective/mesh.ts). */
  readonly mesh: string;
  /** In the order of the mesh; at least one. */
  readonly over: readonly string[];
  readonly rules: VarianceRules;
}

/** An application before it is a node. */
export interface VaryingSite {
  readonly op: AnyOp;
  readonly inputs: readonly Value[];
  readonly attrs: Attrs;
  readonly regions: readonly Graph[];
  /** Of a loop or branch that fits: the axes of each result. */
  readonly outputs?: readonly (readonly string[])[];
}

export interface VarianceRules {
  /** The application with operands and regions that fit together. */
  fitted(b: Build, site: VaryingSite): VaryingSite;
  /** Types of its results, given without variance. */
  results(site: VaryingSite, types: readonly TensorType[]): readonly TensorType[];
  /** A graph for parameters that vary otherwise; what is inside follows. */
  rebound(graph: Graph, params: readonly TensorType[]): Graph;
  /** A value marked so that it varies at least as another. */
  alike(b: Build, x: Value, like: TensorType): Value;
  /** The type with these axes and no others. */
  typeOver(type: TensorType, mesh: string, over: readonly string[]): TensorType;
  /** The graph of one device, without variance and its marks. */
  erased(graph: Graph): Graph;
  /** Throws where devices exchange anything: the target has no communicator. */
  refuse(graph: Graph, target: string): void;
  /** What is wrong with a node, if anything. */
  problem(node: Node): string | null;
}

/** The variance of the first of some values that varies at all. */
export function variance(values: readonly Value[]): Variance | undefined {
  for (let i = 0; i < values.length; i++) {
    const { varies } = (values[i] as Value).type;
    if (varies) return varies;
  }
  return undefined;
}

/** A value that varies at least as a type says. */
export const alike = (b: Build, x: Value, type: TensorType): Value => type.varies?.rules.alike(b, x, type) ?? x;

/** The first type, over the axes of both. */
export function overBoth(type: TensorType, { varies }: TensorType): TensorType {
  return varies ? varies.rules.typeOver(type, varies.mesh, [...(type.varies?.over ?? []), ...varies.over]) : type;
}

/** The rules where an application concerns values that vary; programs without meshes have none. */
export function rulesFor(inputs: readonly Value[], regions: readonly Graph[]): VarianceRules | undefined {
  let found = variance(inputs);
  for (let i = 0; !found && i < regions.length; i++) found = variance((regions[i] as Graph).results);
  return found?.rules;
}

/** The rules of a graph in which anything varies. */
export function rulesOf({ params, nodes }: Graph): VarianceRules | undefined {
  let found = variance(params)?.rules;
  for (const { outputs, regions } of nodes) {
    found ??= variance(outputs)?.rules;
    for (const region of regions) found ??= rulesOf(region);
  }
  return found;
}

/** What is wrong with a node in a program in which values vary, if anything. */
export function varianceProblem(node: Node): string | null {
  const { inputs, outputs, regions } = node;
  return (rulesFor(inputs, regions) ?? rulesFor(outputs, []))?.problem(node) ?? null;
}
