/** @file Every collective, in all types of a target, on meshes of one to four devices: its result is that of its reference. */
import { at } from "../../src/base/invariant.ts";
import { Build } from "../../src/ir/build.ts";
import type { AnyOp, Attrs } from "../../src/ir/op.ts";
import { elementsOf, type TensorType, tensorType } from "../../src/ir/type.ts";
import { groupRanks, groupSize } from "../../src/kernel/device-group.ts";
import {
  DTYPES,
  type DType,
  elementReader,
  elementWriter,
  INDEX_TYPE,
  isComputed,
  isFloat,
  NUMBER_TYPES,
  newElements,
} from "../../src/kernel/dtype.ts";
import {
  allGather,
  allReduce,
  allReduceMax,
  allToAll,
  broadcastFrom,
  deviceIndex,
  permute,
  reduceScatter,
  shardIn,
} from "../../src/ops/collective.ts";
import type { Target } from "../../src/runtime/device.ts";
import { runGraph } from "../support/run-graph.ts";

const MESHES: readonly (readonly [devices: number, mesh: string, overs: readonly string[]])[] = [
  [1, "data=1", ["data"]],
  [2, "data=2", ["data"]],
  [3, "data=3", ["data"]],
  [4, "data=4", ["data"]],
  [4, "data=2,tensor=2", ["data", "tensor", "data,tensor"]],
];

interface Case {
  readonly op: AnyOp;
  readonly x: TensorType | null;
  readonly attrs: Attrs;
}

const COMBINED = NUMBER_TYPES.filter(isComputed);

function casesOf(mesh: string, over: string): readonly Case[] {
  const own = { mesh, over };
  const p = groupSize(allReduceGroup(own));
  const ring = Array.from({ length: p }, (_, i) => [i, (i + 1) % p]).flat();
  const line = ring.slice(0, -2);
  const of = (op: AnyOp, dtypes: readonly DType[], shape: readonly number[], attrs: Attrs = own): readonly Case[] =>
    dtypes.map((dtype) => ({ op, x: tensorType(dtype, shape), attrs }));
  return [
    ...of(allReduce, COMBINED, [3, 5]),
    // another algorithm of the library, and in several pieces
    ...of(allReduce, ["f32"], [70_001]),
    ...of(allGather, ["f64"], [40_001], { ...own, invariant: false }),
    ...of(reduceScatter, ["i64"], [p, 20_001]),
    ...of(allToAll, ["f64"], [p, 20_001]),
    ...of(permute, ["f32"], [70_001], { ...own, pairs: ring }),
    ...of(permute, ["f32"], [70_001], { ...own, pairs: line }),
    ...of(broadcastFrom, ["f64"], [40_001], { ...own, root: 0 }),
    ...of(allReduceMax, COMBINED, [3, 5]),
    ...of(allGather, DTYPES, [3, 5], { ...own, invariant: false }),
    ...of(allGather, ["f32"], [2], { ...own, invariant: true }),
    ...of(reduceScatter, COMBINED, [p, 3, 5]),
    ...of(allToAll, DTYPES, [p, 3, 5]),
    ...of(permute, DTYPES, [7], { ...own, pairs: ring }),
    ...of(permute, ["f32"], [7], { ...own, pairs: line }),
    ...of(permute, ["i32"], [7], { ...own, pairs: [p - 1, 0] }),
    ...of(broadcastFrom, DTYPES, [3, 5], { ...own, root: p - 1 }),
    { op: deviceIndex, x: null, attrs: own },
  ];
}

const allReduceGroup = (attrs: Attrs) => allReduce.facts!.collective!.group(attrs as never);

/** What a device has: small whole numbers, exact in every type, with NaN and both zeros among floats for maxima. */
function elementsFor(rank: number, { op, x }: Case): Float64Array {
  if (!x) return new Float64Array(0);
  return Float64Array.from({ length: elementsOf(x.shape) }, (_, i) => {
    if (x.dtype === "bool") return (rank + i) % 2;
    if (op === (allReduceMax as AnyOp) && isFloat(x.dtype) && i < 2) return i === 0 && rank === 0 ? Number.NaN : -0;
    return (rank * 7 + i * 3) % 11;
  });
}

/** Numbers as elements of a type. */
function inMemory(dtype: DType, numbers: ArrayLike<number>): ArrayLike<number> {
  const [elements, write] = [newElements(dtype, numbers.length), elementWriter(dtype)];
  for (let i = 0; i < numbers.length; i++) elements[i] = write(numbers[i] as number);
  return elements;
}

/** A graph with every case as a result; operands are parameters, and values that are computed before. */
function graphOf(cases: readonly Case[], mesh: string) {
  const b = new Build("exchanges");
  const all = mesh
    .split(",")
    .map((axis) => axis.split("=")[0])
    .join();
  const results = cases.map(({ op, x, attrs }) => {
    if (!x) return b.call(op, [], attrs);
    const param = b.param(x, "x");
    return b.call(op, [b.call(shardIn, [param], { mesh, over: all })], attrs);
  });
  return b.finish(results);
}

function check(mesh: string, over: string, rank: number, target: Target): number {
  const { storageTypes } = target.description;
  const cases = casesOf(mesh, over).filter(({ x }) => x === null || storageTypes.includes(x.dtype));
  const graph = graphOf(cases, mesh);
  const operands = cases.filter(({ x }) => x !== null);
  const results = runGraph(target, graph, ({ type }, i) => inMemory(type.dtype, elementsFor(rank, at(operands, i))));
  cases.forEach((one, i) => {
    const { op, attrs } = one;
    const fact = op.facts!.collective!;
    const ranks = groupRanks(fact.group(attrs), rank);
    const inputs = one.x ? [ranks.map((other) => elementsFor(other, one))] : [];
    const expected = at(fact.exchanged(inputs, attrs), ranks.indexOf(rank));
    const read = elementReader(one.x?.dtype ?? INDEX_TYPE);
    const found = Array.from(at(results, i) as ArrayLike<number>, (element) => read(element));
    const wrong = found.findIndex((x, e) => !Object.is(x + 0, at(expected, e) + 0));
    if (found.length === expected.length && wrong < 0) return;
    throw new Error(
      `${op.name} of ${one.x?.dtype} over ${over} of ${mesh}: element ${wrong} is ${found[wrong]}, not ${expected[wrong]}`,
    );
  });
  return cases.length;
}

/** The number of cases that were compared, by one of several devices. */
export function collectives(
  { rank, size }: { readonly rank: number; readonly size: number },
  targetOf: (threads: number) => Target,
): { readonly cases: number } {
  let cases = 0;
  for (const [devices, mesh, overs] of MESHES) {
    if (devices > size || rank >= devices) continue;
    for (const over of overs) cases += check(mesh, over, rank, targetOf(over.includes(",") ? 2 : 1));
  }
  return { cases };
}
