/** @file Meshes of devices, and the axes of one that arguments and results vary over. */
import { inOrder, meshText } from "../ops/collective/mesh.ts";
import { describe, fail } from "../trace/arguments.ts";

/** Names of axes with their extents. */
export interface MeshAxes {
  readonly [name: string]: number;
}

/** Devices in rows and columns: made by `mesh`. */
export interface Mesh<A extends MeshAxes = MeshAxes> {
  /** Names of axes with their extents, the slowest first. */
  readonly axes: A;
  /** The number of devices. */
  readonly size: number;
}

/**
 * A mesh of devices by the names and extents of its axes. A device's rank is its place in row-major order, the first axis slowest: in
 * `mesh({ data: 2, tensor: 2 })` ranks 0 and 1 are neighbours along `tensor`.
 *
 * @example
 * import { mesh } from "tidemark/parallel";
 *
 * console.log(mesh({ data: 2, tensor: 4 }).size); // 8
 */
export function mesh<A extends MeshAxes>(axes: A): Mesh<A> {
  const entries = typeof axes === "object" && axes !== null ? Object.entries(axes) : [];
  const isRight = ([name, extent]: readonly [string, unknown]): boolean =>
    /^[A-Za-z_]\w*$/.test(name) && Number.isInteger(extent) && (extent as number) >= 1;
  if (entries.length === 0 || !entries.every(isRight)) {
    const got =
      entries.length === 0 ? describe(axes) : entries.map(([name, extent]) => `${name}: ${extent}`).join(", ");
    fail(
      "InvalidArgument",
      `mesh: the axes are ${got}`,
      "give names and extents of at least 1: mesh({ data: 2, tensor: 2 })",
    );
  }
  return { axes: { ...axes }, size: entries.reduce((n, [, extent]) => n * extent, 1) };
}

/** Names of axes: one, several, or none. */
export type Over = string | readonly string[];

/** A mesh as attributes hold it. */
export const textOf = ({ axes }: Mesh, ordered: boolean): string => meshText({ axes: Object.entries(axes), ordered });

/** Names of axes, checked and in the order of the mesh. */
export function axesOf(name: string, over: unknown, mesh: Mesh): readonly string[] {
  const names: readonly unknown[] = Array.isArray(over) ? over : [over];
  const known = Object.keys(mesh.axes);
  const unknown = names.filter((axis) => typeof axis !== "string" || !known.includes(axis));
  if (unknown.length > 0) {
    const text = unknown.map((axis) => (typeof axis === "string" ? axis : describe(axis))).join(", ");
    fail("InvalidArgument", `${name}: the mesh has no axis ${text}`, `its axes are ${known.join(", ")}`);
  }
  return inOrder(textOf(mesh, false), names as readonly string[]);
}

/** Axes for the tensors of a tree: for all of them, or for the members of an array or object. */
export type Spec = Over | null | readonly Spec[] | { readonly [key: string]: Spec };

const isOver = (spec: unknown): spec is Over | null =>
  spec === null || typeof spec === "string" || (Array.isArray(spec) && spec.every((item) => typeof item === "string"));

/** The axes of a leaf, whose path in the tree is `keys`. */
export function specAt(name: string, spec: unknown, keys: readonly string[], mesh: Mesh): readonly string[] {
  let here: unknown = spec;
  for (const [depth, key] of keys.entries()) {
    if (isOver(here)) break;
    const members = typeof here === "object" && here !== null ? (here as { readonly [key: string]: unknown }) : {};
    if (!Object.hasOwn(members, key)) {
      const place = keys.slice(0, depth + 1).join(".");
      fail(
        "InvalidArgument",
        `${name}: nothing is said about ${place}`,
        `give its axes, or [] where it is equal on all devices`,
      );
    }
    here = members[key];
  }
  if (!isOver(here)) {
    fail(
      "InvalidArgument",
      `${name}: the axes of ${keys.join(".") || "the tensor"} are ${describe(here)}`,
      "give a name, a list of names, or []",
    );
  }
  return here === null ? [] : axesOf(name, here, mesh);
}

/** Axes, and others besides, for all tensors of a tree. */
export function withAxes(spec: Spec, more: Over): Spec {
  const names = (over: Over | null): readonly string[] => [over ?? []].flat();
  if (isOver(spec)) return [...names(spec), ...names(more)];
  if (Array.isArray(spec)) return (spec as readonly Spec[]).map((item) => withAxes(item, more));
  return Object.fromEntries(Object.entries(spec).map(([key, item]) => [key, withAxes(item as Spec, more)]));
}
