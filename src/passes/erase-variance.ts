/**
 * @file The program of one device, once it is differentiated: types no longer say over which axes of a mesh values vary, and the marks
 * that only say so are gone. Sums of a program that asks for one order become nodes that add up in that order (ops/collective.ts).
 */
import { rulesOf } from "../ir/variance.ts";
import type { Pass } from "./pass.ts";

/** Removes what types say about meshes of devices, and marks. */
export const eraseVariance: Pass = {
  name: "erase-variance",
  run: (graph) => rulesOf(graph)?.erased(graph) ?? graph,
};
