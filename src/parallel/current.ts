/** @file The mesh of the function that is being recorded. */
import { fail } from "../trace/arguments.ts";
import type { Mesh } from "./mesh.ts";
import { textOf } from "./mesh.ts";

export interface Current {
  readonly mesh: Mesh;
  /** As attributes hold it, with the order of sums. */
  readonly text: string;
}

/** Of the functions that are running, the innermost last. */
const meshes: Current[] = [];

/** Runs `body` on every device of a mesh. */
export function onMesh<T>(mesh: Mesh, ordered: boolean, body: () => T): T {
  meshes.push({ mesh, text: textOf(mesh, ordered) });
  try {
    return body();
  } finally {
    meshes.pop();
  }
}

export const isOnMesh = (): boolean => meshes.length > 0;

/** The mesh that a function of `tidemark/parallel` works on. */
export function currentMesh(name: string): Current {
  return (
    meshes.at(-1) ??
    fail("InvalidArgument", `${name}: there is no mesh here`, "call it inside of a function that is given to shard")
  );
}
