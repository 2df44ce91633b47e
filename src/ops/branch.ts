/**
 * @file Branches: one of several regions runs, chosen by a number that is known only at run time.
 *
 *   switch   index, operands…      region k: operands… → results…      → the results of the region that was chosen
 *
 * The index is an i32 or a bool (false is 0); it is clamped to the existing regions. All regions take the
 * same operands, which they need not all read, and return results of the same types.
 */

import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type Group, ONE, type Wiring } from "../ir/control.ts";
import type { Node } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { typeText } from "../ir/type.ts";
import { isBool, isIndexType } from "../kernel/dtype.ts";
import { graphCost } from "./control.ts";
import { defineOp } from "./define.ts";
import { requireTypes, typesOf } from "./region-checks.ts";

function switchWiring({ inputs, outputs, regions }: Node): Wiring {
  const operands: Group = { kind: "const", size: inputs.length - 1 };
  const results: Group = { kind: "result", size: outputs.length };
  return {
    inputs: [ONE, operands],
    outputs: [results],
    regions: regions.map(() => ({ params: [operands], results: [results] })),
    repeats: false,
    forgets: {},
  };
}

/** The region with the number given by the first input, applied to the others. */
export const switchOp: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "switch",
  infer([index, ...operands], _, regions) {
    const first = regions[0];
    if (!first) throw new TidemarkError("InvalidGraph", "switch: has no regions, needs at least 1");
    if (!index || index.shape.length > 0 || !(isIndexType(index.dtype) || isBool(index.dtype))) {
      const got = index ? typeText(index) : "none";
      throw new TidemarkError("InvalidGraph", `switch: the index is ${got}, expected i32[] or bool[]`);
    }
    const results = typesOf(first.results);
    for (const region of regions) {
      requireTypes(`switch: region ${region.name} takes`, typesOf(region.params), operands);
      requireTypes(`switch: region ${region.name} returns`, typesOf(region.results), results);
    }
    return results;
  },
  derivative: { kind: "region", rule: () => ({ kind: "control", control: { kind: "branch" } }) },
  cost: (_, __, ___, regions) => ({ flops: Math.max(...regions.map((region) => graphCost(region).flops)) }),
  lower: { kind: "control", control: () => ({ kind: "branch" }), wiring: switchWiring },
  evaluate({ inputs: [index, ...operands], regions, run }) {
    const chosen = Math.min(Math.max(index?.[0] ?? 0, 0), regions.length - 1);
    return run(at(regions, chosen), operands);
  },
  // Samples have no regions; tests/control-flow/values.test.ts tests it in programs.
  samples: () => [],
});
