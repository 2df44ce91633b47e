/** @file Operations by name, for plans that are kept or sent; a store of plans has them. */
import type { AnyOp } from "../ir/op.ts";
import { allOps } from "../ops/all.ts";

export const OPS: ReadonlyMap<string, AnyOp> = new Map(allOps.map((op) => [op.name, op]));
