/** @file Whether a target has the types of a program: what it lacks is said at once, before anything is planned. */
import { TidemarkError } from "../base/errors.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { allNodes } from "../ir/walk.ts";
import { DTYPES, type DType, SCALAR_TYPES, type ScalarType } from "../kernel/dtype.ts";
import { walkExpr } from "../kernel/expr.ts";
import { type Kernel, nestExprs } from "../kernel/loops.ts";
import type { Lowered } from "../lower/lower.ts";
import type { TargetDescription } from "../target/description.ts";

/** Throws `TargetUnsupported` with every type that a program needs and the target lacks, and an operation that needs it. */
export function requireTypes(graph: Graph, target: TargetDescription, lower: (node: Node) => Lowered): void {
  const stored = DTYPES.filter((dtype) => !target.storageTypes.includes(dtype));
  const computed = SCALAR_TYPES.filter((scalar) => !target.computeTypes.includes(scalar));
  if (stored.length === 0 && computed.length === 0) return;
  const [inMemory, inKernels] = [new Map<DType, string>(), new Map<ScalarType, string>()];
  for (const node of allNodes(graph)) {
    const types = new Set([...node.inputs, ...node.outputs].map((value) => value.type.dtype));
    note(stored, types, whereText(node), inMemory);
    if (!isKernel(node) || computed.length === 0) continue;
    note(computed, computeTypes(lower(node).kernel), whereText(node), inKernels);
  }
  for (const { type, name } of graph.params) note(stored, new Set([type.dtype]), `argument ${name ?? ""}`, inMemory);
  const lines = [
    ...[...inMemory].map(([dtype, who]) => `  ${dtype} in memory: ${who}`),
    ...[...inKernels].map(([scalar, who]) => `  ${scalar} in kernels: ${who}`),
  ];
  if (lines.length === 0) return;
  const { name, storageTypes } = target;
  const summary = [`${graph.name} needs types that ${name} lacks`, ...lines].join("\n");
  const help = `${name} stores ${storageTypes.join(", ")}: cast to one of them, or take another target`;
  throw new TidemarkError("TargetUnsupported", summary, { help });
}

/** Throws `TargetUnsupported` with every exchange of several devices, for a target that has no communicator. */
export function requireCollectives(graph: Graph, { name, collectives }: TargetDescription): void {
  if (collectives) return;
  const first = [...allNodes(graph)].find(({ op }) => op.facts?.collective);
  first?.op.facts?.collective?.rules.refuse(graph, name);
}

const isKernel = ({ op }: Node): boolean =>
  op.alias === null && op.lower.kind !== "region" && op.lower.kind !== "control";

function note<T>(missing: readonly T[], used: ReadonlySet<T>, who: string, first: Map<T, string>): void {
  for (const type of missing) if (used.has(type) && !first.has(type)) first.set(type, who);
}

/** Types that the expressions of a kernel have. */
function computeTypes({ nests }: Kernel): ReadonlySet<ScalarType> {
  const types = new Set<ScalarType>();
  for (const nest of nests) {
    if ("dtype" in nest) types.add(nest.dtype);
    const { atStore, elsewhere } = nestExprs(nest);
    for (const expr of [...atStore, ...elsewhere]) walkExpr(expr, ({ dtype }) => types.add(dtype));
  }
  return types;
}

const whereText = ({ op, where }: Node): string => (where === undefined ? op.name : `${op.name} at ${where}`);
