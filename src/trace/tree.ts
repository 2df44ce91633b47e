/**
 * @file Nested objects and arrays of tensors, as functions take and return. A tree is flattened into its tensors, in the order
 * of the object's keys, and a `TreeDef` that rebuilds it with other tensors. Booleans among arguments, and numbers that
 * are not to be traced, belong to the structure: they are constants of the trace.
 *
 *   { w: Tensor, layers: [Tensor, 2] }   ⇄   [w, layers[0]]   and   {w:*,layers:[*,2]}
 *
 * Two trees with the same keys in another order are different structures, because their tensors come in another order. A key
 * whose value is undefined is not there.
 */
import { TidemarkError, withLocation } from "../base/errors.ts";
import { describe } from "./arguments.ts";
import { MAX_DEPTH, tensor } from "./literal.ts";
import { sourceLocation } from "./source-location.ts";
import { numberOf, Tensor } from "./tensor.ts";

/**
 * A tensor, or arrays and plain objects of trees, nested at will; numbers and booleans are constants. Other leaves are
 * refused at run time: TypeScript cannot say it in a way that accepts interfaces.
 */
export type Tree = number | boolean | object;

export type TreeDef =
  | { readonly kind: "tensor"; readonly path: string }
  /** A tensor here is a number that is traced already, and stays what it is. */
  | { readonly kind: "static"; readonly value: number | boolean | undefined | Tensor; readonly path: string }
  /** A number that may differ between calls. */
  | { readonly kind: "number"; readonly path: string }
  | { readonly kind: "array"; readonly items: readonly TreeDef[]; readonly path: string }
  | { readonly kind: "object"; readonly entries: readonly (readonly [string, TreeDef])[]; readonly path: string };

export interface Flat {
  readonly leaves: readonly Tensor[];
  /** Beside the leaves, `params.layers[2].w`. */
  readonly paths: readonly string[];
  readonly def: TreeDef;
  /** Numbers that are to be traced. */
  readonly numbers: readonly NumberLeaf[];
}

export interface NumberLeaf {
  readonly path: string;
  readonly value: number;
}

/** Whether a number at a path may differ between calls; else it is a constant. */
export type IsTraced = (path: string) => boolean;

/** The uses of trees, and the leaves that each allows. */
const ROLE_HELP = {
  argument: "pass tensors, numbers, booleans, and arrays and plain objects of them; close over anything else",
  result: "return tensors, and arrays and plain objects of them",
} as const;

export type TreeRole = keyof typeof ROLE_HELP;

function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

const member = (path: string, key: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;

interface Walk {
  readonly leaves: Tensor[];
  readonly paths: string[];
  readonly role: TreeRole;
  readonly numbers: NumberLeaf[];
  readonly isTraced: IsTraced;
}

function leafOf(value: Tensor, path: string, walk: Walk): TreeDef {
  walk.leaves.push(value);
  walk.paths.push(path);
  return { kind: "tensor", path };
}

function constantOf(value: number | boolean | Tensor, path: string, walk: Walk): TreeDef {
  if (walk.role === "result") return leafOf(value instanceof Tensor ? value : tensor(value), path, walk);
  if (typeof value !== "number" || !walk.isTraced(path)) return { kind: "static", value, path };
  walk.numbers.push({ path, value });
  return { kind: "number", path };
}

/** Errors have no location yet: from deep in a tree, the stack does not reach the user's line. */
function defOf(value: unknown, path: string, walk: Walk, depth: number): TreeDef {
  if (value instanceof Tensor) return numberOf(value) ? constantOf(value, path, walk) : leafOf(value, path, walk);
  if (typeof value === "number" || typeof value === "boolean") return constantOf(value, path, walk);
  if (depth > MAX_DEPTH) {
    throw new TidemarkError("InvalidTree", `${path.slice(0, 40)}… is nested more than ${MAX_DEPTH} deep`, {
      help: "a tree must not contain itself: remove the reference to its parent, or make it flatter",
    });
  }
  if (Array.isArray(value)) {
    const items = value.map((item, i) => defOf(item, `${path}[${i}]`, walk, depth + 1));
    return { kind: "array", items, path };
  }
  if (typeof value === "object" && value !== null && isPlainObject(value)) {
    const entries = Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, defOf(item, member(path, key), walk, depth + 1)] as const);
    return { kind: "object", entries, path };
  }
  throw new TidemarkError("InvalidTree", `${path} is ${describe(value)}, not a tensor`, { help: ROLE_HELP[walk.role] });
}

const never: IsTraced = () => false;

/**
 * Flattens a tree; `path` names its root in messages. Numbers and booleans in a result become tensors: they are
 * constants of the program.
 */
export function flatten(tree: unknown, path: string, role: TreeRole = "argument", isTraced: IsTraced = never): Flat {
  const walk: Walk = { leaves: [], paths: [], role, numbers: [], isTraced };
  try {
    const def = defOf(tree, path, walk, 0);
    return { leaves: walk.leaves, paths: walk.paths, def, numbers: walk.numbers };
  } catch (error) {
    throw withLocation(error, sourceLocation());
  }
}

/** Builds a structure from leaves, in order, and the stand-ins of its numbers. */
export function unflatten<T>(def: TreeDef, leaves: readonly T[], numbers: readonly unknown[] = []): unknown {
  let next = 0;
  let nextNumber = 0;
  const build = (node: TreeDef): unknown => {
    switch (node.kind) {
      case "tensor":
        return leaves[next++];
      case "static":
        return node.value;
      case "number":
        return numbers[nextNumber++];
      case "array":
        return node.items.map(build);
      case "object":
        return Object.fromEntries(node.entries.map(([key, item]) => [key, build(item)]));
    }
  };
  return build(def);
}

/** Equal keys mean equal structures, constants included. */
export function treeKey(def: TreeDef): string {
  switch (def.kind) {
    case "tensor":
      return "*";
    case "static":
      return Object.is(def.value, -0) ? "-0" : String(def.value);
    case "number":
      return "#";
    case "array":
      return `[${def.items.map(treeKey).join(",")}]`;
    case "object":
      return `{${def.entries.map(([key, item]) => `${JSON.stringify(key)}:${treeKey(item)}`).join(",")}}`;
  }
}

const NOTHING: ReadonlySet<string> = new Set();

/**
 * The leaves of a tree that must have the structure of another; keys may come in another order. Leaves
 * whose path (in the other) is in `skip` are ignored.
 */
export function flattenLike(
  def: TreeDef,
  tree: unknown,
  path: string,
  skip: ReadonlySet<string> = NOTHING,
): readonly Tensor[] {
  try {
    return leavesLike(def, tree, path, skip);
  } catch (error) {
    throw withLocation(error, sourceLocation());
  }
}

function leavesLike(def: TreeDef, tree: unknown, path: string, skip: ReadonlySet<string>): readonly Tensor[] {
  const mismatch = (wanted: string): never => {
    throw new TidemarkError("InvalidTree", `${path} should be ${wanted}, like ${def.path}; it is ${describe(tree)}`, {
      help: "both must have the same structure",
    });
  };
  switch (def.kind) {
    case "tensor":
      if (skip.has(def.path)) return [];
      return tree instanceof Tensor ? [tree] : mismatch("a tensor");
    case "static":
    case "number":
      return [];
    case "array": {
      if (!Array.isArray(tree) || tree.length !== def.items.length) return mismatch(`an array of ${def.items.length}`);
      return def.items.flatMap((item, i) => leavesLike(item, tree[i], `${path}[${i}]`, skip));
    }
    case "object": {
      if (typeof tree !== "object" || tree === null || !isPlainObject(tree)) return mismatch("an object");
      return def.entries.flatMap(([key, item]) => leavesLike(item, tree[key], member(path, key), skip));
    }
  }
}

/** Number of tensors in a structure. */
export function leafCount(def: TreeDef): number {
  if (def.kind === "tensor") return 1;
  if (def.kind === "array") return def.items.reduce((n, item) => n + leafCount(item), 0);
  return def.kind === "object" ? def.entries.reduce((n, [, item]) => n + leafCount(item), 0) : 0;
}

/** Paths of the tensors in a structure, in order. */
export function leafPaths(def: TreeDef): readonly string[] {
  if (def.kind === "tensor") return [def.path];
  if (def.kind === "array") return def.items.flatMap(leafPaths);
  return def.kind === "object" ? def.entries.flatMap(([, item]) => leafPaths(item)) : [];
}

/** The constants in a structure. */
export function staticsOf(def: TreeDef): readonly (TreeDef & { kind: "static" })[] {
  if (def.kind === "static") return [def];
  if (def.kind === "array") return def.items.flatMap(staticsOf);
  return def.kind === "object" ? def.entries.flatMap(([, item]) => staticsOf(item)) : [];
}
