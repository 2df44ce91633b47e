/** @file An operation without a rule for batches: a loop over the elements, with the operation as its body. */

import { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";
import { withShape } from "../ir/type.ts";
import { scan } from "../ops/loops.ts";
import { INDEX } from "../ops/region-checks.ts";
import { all, type Batched, type NodeSite } from "./batched.ts";

export function overElements({ b, node, batched, size }: NodeSite): Batched {
  const body = new Build(node.op.name);
  body.param(INDEX, "i");
  const [rows, rest] = [node.inputs.filter((_, i) => batched[i]), node.inputs.filter((_, i) => !batched[i])];
  const own = rows.map(({ type, name }) => body.param(withShape(type, type.shape.slice(1)), name));
  const same = rest.map(({ type, name }) => body.param(type, name));
  let [nextOwn, nextSame] = [0, 0];
  const inputs = node.inputs.map((_, i) => (batched[i] ? own[nextOwn++] : same[nextSame++]) as Value);
  const outputs = node.outputs.map(({ type, name }) => newValue(type, name));
  body.append(nodeLike(node, { inputs, outputs }));
  const attrs = {
    ...{ carries: 0, xs: rows.length, length: size, reverse: false },
    ...{ counted: false, reversal: "auto", snapshots: 0 },
  };
  const values = b.callAll(scan, [...rows, ...rest], attrs, { regions: [body.finish(outputs)] });
  return { values, batched: all(values) };
}
