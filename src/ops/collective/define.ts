/**
 * @file What all collectives share: a declaration from a few facts. A collective has one operand (or none), is a nest of its own that
 * only targets with a communicator render, and is nothing on the only device of a group. Its reference meaning is that of all devices
 * of a group together (`exchanged`); one device alone has none, unless it is the only one.
 */
import { TidemarkError } from "../../base/errors.ts";
import { at, InternalError } from "../../base/invariant.ts";
import type { BatchRule } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { CollectiveFact } from "../../ir/facts.ts";
import type { Value } from "../../ir/graph.ts";
import type { KernelBuild, LowerContext, OpDef, Reference, Sample } from "../../ir/op.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../../ir/type.ts";
import type { VarianceRules } from "../../ir/variance.ts";
import type { CollectiveKind, CollectiveNest } from "../../kernel/collective.ts";
import { groupSize, groupText } from "../../kernel/device-group.ts";
import { type DType, isBool, isComputed, typeOf } from "../../kernel/dtype.ts";
import { constant, type LoopVar } from "../../kernel/expr.ts";
import { varIndex } from "../../kernel/index-math.ts";
import type { MapNest } from "../../kernel/loops.ts";
import { Position } from "../../kernel/position.ts";
import { requireOne } from "../checks.ts";
import { defineOp } from "../define.ts";
import { reshape } from "../movement.ts";
import { type GroupAttrs, groupOf } from "./mesh.ts";

/** A derivative rule for one operand. */
type Rule<A> = (
  b: Build,
  site: { readonly x: Value; readonly y: Value; readonly given: Value; readonly attrs: A },
) => Value;

export interface CollectiveSpec<A extends GroupAttrs> {
  readonly what: CollectiveKind;
  readonly combine?: "add" | "max";
  /** Elements are added or compared; otherwise they are only moved. */
  readonly computes: boolean;
  readonly defaults?: OpDef<A>["defaults"];
  /** The shape of the result on each of `p` devices; throws for operands that have none. */
  shape(x: TensorType, p: number, attrs: A): Shape;
  /** Throws for attributes that mean nothing. */
  check?(p: number, attrs: A): void;
  /** Elements of one part of an operand. */
  part(x: Shape, p: number): number;
  readonly varies: CollectiveFact<A>["varies"];
  exchanged(x: readonly Reference[], attrs: A): readonly Reference[];
  readonly tangent: Rule<A> | null;
  readonly cotangent: Rule<A> | null;
  /** A sum in the order of ranks. */
  readonly ordered?: CollectiveFact<A>["ordered"];
  readonly rules: VarianceRules;
  readonly batch: BatchRule<A>;
  /** Nests' details. */
  readonly pairs?: (attrs: A) => readonly (readonly [number, number])[];
  readonly root?: (attrs: A) => number;
  /** On the only device; default: the operand in the shape of the result. */
  alone?(b: Build, x: Value, y: TensorType, attrs: A): Value;
  samples(): readonly Sample<A>[];
}

/** Throws unless the element type can be added up and compared by any communicator. */
function requireComputed(name: string, { dtype, shape }: TensorType): void {
  if (isComputed(dtype) && !isBool(dtype)) return;
  throw new TidemarkError(
    "DtypeMismatch",
    `${name}: cannot combine elements of ${typeText(tensorType(dtype, shape))}`,
    {
      help: 'convert it first: cast(x, "f32")',
    },
  );
}

export function refuseAlone(name: string, attrs: GroupAttrs): never {
  const group = groupOf(attrs);
  const summary = `${name} over ${groupText(group)}: one device alone was run, its group has ${groupSize(group)}`;
  throw new TidemarkError("TargetUnsupported", summary, {
    help: "compile it, and run it on devices: in workers that runDevices starts, or by mpirun; or take a mesh of one device",
  });
}

export function collective<A extends GroupAttrs>(name: string, spec: CollectiveSpec<A>): OpDef<A> {
  const { tangent, cotangent } = spec;
  const op: OpDef<A> = defineOp<A>({
    name,
    defaults: spec.defaults ?? {},
    infer(inputs, attrs) {
      const x = requireOne(name, inputs);
      if (spec.computes) requireComputed(name, x);
      const p = groupSize(groupOf(attrs));
      spec.check?.(p, attrs);
      return [tensorType(x.dtype, spec.shape(x, p, attrs))];
    },
    derivative: {
      kind: "general",
      jvp: (b, { x, y, tangents, attrs }) => {
        const given = tangents[0];
        return tangent && given ? tangent(b, { x: at(x, 0), y, given, attrs }) : null;
      },
      vjp: (b, { x, y, ct, attrs }) => (cotangent ? cotangent(b, { x: at(x, 0), y, given: ct, attrs }) : null),
    },
    batch: spec.batch,
    cost: ([x], _, attrs) => ({ flops: x && spec.computes && groupSize(groupOf(attrs)) > 1 ? elementsOf(x.shape) : 0 }),
    lower: {
      kind: "nests",
      alone: true,
      nests: (build, c, target) => [
        groupSize(groupOf(c.attrs)) === 1 && !target?.collectivesAlone
          ? copyNest(spec, build, c)
          : collectiveNest(spec, build, c),
      ],
    },
    facts: {
      autocast: "follow",
      ...(spec.computes && spec.combine !== "max" ? { linearIn: [0] } : {}),
      collective: {
        what: spec.what,
        group: groupOf,
        varies: spec.varies,
        exchanged: ([x], attrs) => spec.exchanged(x ?? [], attrs),
        ...(spec.ordered ? { ordered: spec.ordered } : {}),
        rules: spec.rules,
      },
    },
    simplify(b, { inputs, outputs }, attrs) {
      const [x, y] = [at(inputs, 0), at(outputs, 0).type];
      if (groupSize(groupOf(attrs)) > 1 || x.type.varies || y.varies) return null;
      if (spec.alone) return spec.alone(b, x, y, attrs);
      return sameShape(x.type.shape, y.shape) ? x : b.call(reshape, [x], { shape: y.shape });
    },
    evaluate({ inputs, attrs }) {
      if (groupSize(groupOf(attrs)) > 1) refuseAlone(name, attrs);
      return spec.exchanged([at(inputs, 0)], attrs);
    },
    samples: () => spec.samples(),
  });
  return op;
}

function collectiveNest<A extends GroupAttrs>(
  spec: CollectiveSpec<A>,
  build: KernelBuild,
  { inputs, inTypes, outType, attrs }: LowerContext<A>,
): CollectiveNest {
  const [x, group] = [at(inTypes, 0), groupOf(attrs)];
  const along: LoopVar = { kind: "var", name: "i", extent: elementsOf(x.shape) };
  const read = at(inputs, 0)(Position.linear(x.shape, varIndex(along)));
  if (read.kind !== "load") throw new InternalError(`${spec.what} reads a value that is not stored`);
  return nestOf(build, {
    what: spec.what,
    group,
    elements: spec.part(x.shape, groupSize(group)),
    storage: outType.dtype,
    combine: spec.combine ?? "add",
    pairs: spec.pairs?.(attrs) ?? [],
    root: spec.root?.(attrs) ?? 0,
    along,
    read,
  });
}

/** On the only device of a group: what it has, or zeros. */
function copyNest<A extends GroupAttrs>(
  { pairs }: CollectiveSpec<A>,
  build: KernelBuild,
  { inputs, inTypes, outType, attrs }: LowerContext<A>,
): MapNest {
  const loops: readonly LoopVar[] = [{ kind: "var", name: "i", extent: elementsOf(outType.shape) }];
  const index = varIndex(at(loops, 0));
  const isMissing = pairs?.(attrs).length === 0;
  const value = isMissing
    ? constant(typeOf(outType.dtype).compute, 0)
    : at(inputs, 0)(Position.linear(at(inTypes, 0).shape, index));
  return { kind: "map", loops, stores: [{ operand: build.outputOperand(0), index, value }] };
}

type NestParts = Pick<CollectiveNest, "what" | "group" | "elements" | "storage"> & Partial<CollectiveNest>;

/** A nest; what is not given is for those without an operand. */
export function nestOf(build: KernelBuild, given: NestParts): CollectiveNest {
  const along: LoopVar = { kind: "var", name: "i", extent: 1 };
  const rest = { combine: "add" as const, pairs: [], root: 0, along, read: null, to: build.outputOperand(0) };
  const nest = { kind: "collective" as const, ...rest, ...given };
  const { what, combine, root, pairs, group, elements, storage } = nest;
  const details = `${combine} ${root} ${pairs.map((pair) => pair.join("→")).join()}`;
  return { ...nest, text: `${what} over ${groupText(group)} | ${details} | parts of ${elements}: ${storage}` };
}

/** Sample attributes: a mesh of one device, on which every test of operations can run. */
export const ONE_DEVICE: GroupAttrs = { mesh: "data=1", over: "data" };

/** Samples of the shapes in the types that can be combined, or in all. */
export function samplesOf<A extends GroupAttrs>(
  dtypes: readonly DType[],
  shapes: readonly Shape[],
  attrs: A,
): readonly Sample<A>[] {
  return dtypes.flatMap((dtype) => {
    const range = typeOf(dtype).samples;
    return shapes.map((shape) => ({ inputs: [tensorType(dtype, shape)], attrs, range }));
  });
}
