/**
 * @file Named dimensions, as users say them: the extents that each may have, and which axes of the arguments they are.
 *
 *   shapes { T: [64, 128] }       axes [null, [null, "T"]]   the second axis of the second argument is T: 64 or 128
 *   shapes { T: { max: 128 } }    the same axes              T is anything from 1 to 128
 *
 * Names stand for all tensors of a tree, or are a tree of names that has the structure of the tensors down to where one is enough.
 */
import { guess } from "../base/suggest.ts";
import { typeText } from "../ir/type.ts";
import { describe, fail } from "../trace/arguments.ts";
import { type AnyFunction, argumentNames } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, leafCount, type TreeDef, unflatten } from "../trace/tree.ts";

/** All extents from 1 up to one. */
export interface BoundedExtent {
  readonly max: number;
}

/** The extents that a dimension may have, by its name. */
export interface NamedShapes {
  readonly [name: string]: readonly number[] | BoundedExtent;
}

/** The same, parsed. @internal */
export interface AllowedExtents {
  /** Those that programs are planned for before the first run, from the smallest to the largest: of a bounded one, the largest. */
  readonly planned: readonly number[];
  /** Whether smaller ones are allowed too. */
  readonly isBounded: boolean;
}

/** The names of a tensor's axes; null for one that has none, or where no axis has one. */
export type AxisNames = readonly (string | null)[] | null;

/** Names for all tensors of an argument, or a tree of them like the argument. */
export type NamedAxes = AxisNames | readonly NamedAxes[] | { readonly [key: string]: NamedAxes };

/** The lengths before padding, scalars of i32 by the names of their dimensions: what a function gets with `pad`. */
export type Lengths<Name extends string = string> = { readonly [name in Name]: Tensor };

/** What the options of `compile` say of named dimensions. @internal */
export interface ShapeOptions {
  /** The function that has the options. */
  readonly caller: string;
  /** The name that the compiled function was given. */
  readonly name: string | undefined;
  readonly shapes: NamedShapes | undefined;
  readonly axes: readonly NamedAxes[] | undefined;
  readonly pad: boolean;
}

/** An extent for each name. */
export type Extents = Readonly<Record<string, number>>;

const isNames = (names: unknown): names is AxisNames =>
  names === null || (Array.isArray(names) && names.every((name) => name === null || typeof name === "string"));

const isExtent = (n: unknown): boolean => Number.isInteger(n) && (n as number) >= 1;

const isBound = (extents: unknown): extents is BoundedExtent =>
  typeof extents === "object" && extents !== null && "max" in extents && !Array.isArray(extents);

/** Throws unless the extents of every name are different whole numbers, or one that is the largest; sorts them. @internal */
export function parseShapes({ caller, shapes, pad }: ShapeOptions): ReadonlyMap<string, AllowedExtents> {
  const example =
    "give the extents that each name may have, { shapes: { T: [64, 128, 256] } }, or the largest, { T: { max: 256 } }";
  const wrong = (what: string, help = example): never => fail("InvalidArgument", `${caller}: ${what}`, help);
  if (shapes === undefined) wrong(`${pad ? "pad" : "axes"} without shapes`);
  if (typeof shapes !== "object" || shapes === null || Array.isArray(shapes))
    wrong(`shapes must be an object, got ${describe(shapes)}`);
  const names = Object.entries(shapes as Readonly<Record<string, unknown>>);
  if (names.length === 0) wrong("shapes names no dimension");
  return new Map(
    names.map(([name, extents]): [string, AllowedExtents] => {
      if (isBound(extents)) {
        const other = Object.keys(extents).find((key) => key !== "max");
        if (other !== undefined) wrong(`shapes.${name} has ${other}`, `give the largest extent alone: { max: 512 }`);
        if (!isExtent(extents.max))
          wrong(`shapes.${name}.max is ${describe(extents.max)}`, "give a whole number from 1 on");
        return [name, { planned: [extents.max], isBounded: true }];
      }
      if (!Array.isArray(extents)) return wrong(`shapes.${name} must be a list or { max }, got ${describe(extents)}`);
      const list = extents as readonly number[];
      if (list.length === 0 || !list.every(isExtent) || new Set(list).size < list.length)
        wrong(`shapes.${name} is [${list.join(", ")}]`, "give different whole numbers from 1 on");
      return [name, { planned: [...list].sort((x, y) => x - y), isBounded: false }];
    }),
  );
}

/** Throws unless `axes` is a list that has every name. @internal */
export function requireAxes({ caller, shapes = {}, axes }: ShapeOptions): void {
  const names = Object.keys(shapes);
  const example = `say for each argument which axes are ${names.join(", ")}: { axes: [null, [null, "${names[0]}"]] }`;
  if (!Array.isArray(axes)) fail("InvalidArgument", `${caller}: axes must be a list, got ${describe(axes)}`, example);
  const used = new Set<string>();
  const visit = (part: unknown): void => {
    if (typeof part === "string") used.add(part);
    else if (typeof part === "object" && part !== null) Object.values(part).forEach(visit);
    else if (part !== null && part !== undefined) {
      fail("InvalidArgument", `${caller}: axes contains ${describe(part)}`, `axes have names, or null: ${example}`);
    }
  };
  visit(axes);
  const unknown = [...used].find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const help = `${guess(unknown, names)}shapes has ${names.join(", ")}; an axis without a name is null`;
    fail("InvalidArgument", `${caller}: axes names ${unknown}, which shapes has no extents for`, help);
  }
  const missing = names.find((name) => !used.has(name));
  if (missing !== undefined) fail("InvalidArgument", `${caller}: no axis is named ${missing}`, example);
}

/** A tensor among the arguments with named axes. @internal */
export interface NamedLeaf {
  readonly path: string;
  readonly tensor: Tensor;
  readonly names: AxisNames;
}

/** Names for each tensor of a structure, in order. */
function namesIn(caller: string, def: TreeDef, names: unknown): readonly AxisNames[] {
  if (isNames(names)) return new Array<AxisNames>(leafCount(def)).fill(names);
  const wrong = (wanted: string): never =>
    fail("InvalidAxis", `${caller}: axes for ${def.path} is ${describe(names)}`, `give ${wanted}`);
  switch (def.kind) {
    case "tensor":
      return wrong("a list with a name or null for each of its axes, or null");
    case "static":
    case "number":
      return [];
    case "array": {
      const list = Array.isArray(names) ? (names as readonly unknown[]) : null;
      if (list?.length !== def.items.length) return wrong(`names for all of it, or a list of ${def.items.length}`);
      return def.items.flatMap((item, i) => namesIn(caller, item, list[i]));
    }
    case "object": {
      const keys = def.entries.map(([key]) => key);
      const own = typeof names === "object" && !Array.isArray(names) ? (names as Record<string, unknown>) : {};
      const given = Object.keys(own);
      if (given.length === 0 || given.some((key) => !keys.includes(key)))
        return wrong(`names for all of it, or for some of ${keys.join(", ")}`);
      return def.entries.flatMap(([key, item]) => namesIn(caller, item, own[key] ?? null));
    }
  }
}

/** Calls a function for each tensor of an argument that has named axes, and puts what it gives in its place. @internal */
export function mapNamed(
  { caller, axes = [] }: ShapeOptions,
  fn: AnyFunction,
  args: readonly unknown[],
  change: (leaf: NamedLeaf) => Tensor,
): readonly unknown[] {
  const paths = argumentNames(fn, args.length);
  return args.map((arg, i) => {
    const names = axes[i] ?? null;
    if (names === null || arg === undefined) return arg;
    const { def, leaves, paths: own } = flatten(arg, paths[i] as string);
    const named = namesIn(caller, def, names);
    const changed = leaves.map((tensor, k) => {
      const leaf = { path: own[k] as string, tensor, names: named[k] ?? null };
      requireRank(caller, leaf);
      return leaf.names ? change(leaf) : tensor;
    });
    return changed.every((tensor, k) => tensor === leaves[k]) ? arg : unflatten(def, changed);
  });
}

function requireRank(caller: string, { path, tensor, names }: NamedLeaf): void {
  if (!names || names.length === tensor.rank) return;
  const text = `[${names.map((name) => name ?? "null").join(", ")}]`;
  const help = `give ${tensor.rank} names, null for an axis that has none`;
  fail("InvalidAxis", `${caller}: axes for ${path} is ${text}, and it is ${typeText(tensor)}`, help);
}
