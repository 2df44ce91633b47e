/** @file What functions of batches, matrices of derivatives and associative scans say about wrong arguments. UPDATE=1 rewrites the texts. */
import { join } from "node:path";
import { describe } from "vitest";
import type { Tensor } from "../src/api/index.ts";
import * as tm from "../src/api/index.ts";
import { checkErrors, wrong } from "./support/errors.ts";
import { ROOT } from "./support/project.ts";

const x = tm.zeros([4, 3]);
const y = tm.zeros([5, 3]);
const id = (v: Tensor): Tensor => v;

describe("errors of functions of batches", () => {
  checkErrors(join(ROOT, "tests", "batch-errors"), {
    "vmap-of-nothing": () => tm.vmap(wrong<typeof id>(3)),
    "vmap-option": () => tm.vmap(id, wrong({ axis: 0 })),
    "vmap-sizes": () => tm.vmap((a: Tensor, b: Tensor) => a.add(b))(x, y),
    "vmap-sizes-in-trees": () =>
      tm.vmap((p: { w: Tensor; b: Tensor }, v: Tensor) => p.w.add(p.b).add(v), { in: [{ w: 0, b: 1 }, 0] })(
        { w: x, b: tm.zeros([3, 4]) },
        y,
      ),
    "vmap-axis": () => tm.vmap(id, { in: 2 })(x),
    "vmap-axis-of-scalar": () => tm.vmap(id)(tm.tensor(1)),
    "vmap-no-axis": () => tm.vmap(id, { in: null })(x),
    "vmap-arguments": () => tm.vmap(id, { in: [0, 0] })(x),
    "vmap-axes-of-tree": () => tm.vmap((p: { w: Tensor }) => p.w, { in: [{ v: 0 }] })({ w: x }),
    "vmap-axes-of-list": () => tm.vmap((p: Tensor[]) => p[0] as Tensor, { in: [[0, 0]] })([x]),
    "vmap-axis-text": () => tm.vmap(id, { in: [wrong("rows")] })(x),
    "vmap-out-null": () => tm.vmap(id, { out: null })(x),
    "vmap-out-axis": () => tm.vmap(id, { out: 2 })(x),
    "vmap-out-tree": () => tm.vmap((v: Tensor) => ({ y: v }), { out: { z: 0 } })(x),
    "vmap-inside": () => tm.vmap((v: Tensor) => v.matmul(tm.zeros([4, 2])))(x),
    "jacrev-of-integers": () => tm.jacrev(id)(x.cast("i32")),
    "jacrev-to-integers": () => tm.jacrev((v: Tensor) => v.cast("i32"))(x),
    "jacfwd-chunk": () => tm.jacfwd(id, { chunk: 0 })(x),
    "jacfwd-argument": () => tm.jacfwd(id, { argnums: wrong<0>(2) })(x),
    "linearize-tangent": () => tm.linearize(id, x)[1](y),
    "linearize-structure": () => tm.linearize((p: { w: Tensor }) => p.w, { w: x })[1](wrong(x)),
    "associative-scan-axis": () => tm.associativeScan((a) => a, x, { axis: 2 }),
    "associative-scan-numbers": () => tm.associativeScan((a) => a, { x, y }),
    "associative-scan-type": () => tm.associativeScan((a, b) => a.add(b).sum(), x),
    "associative-scan-structure": () => tm.associativeScan((a) => wrong([a]), x),
    "associative-scan-of-nothing": () => tm.associativeScan((a) => a, wrong([])),
    "keys-number": () => tm.random.keys(tm.random.key(0), -1),
    "keys-key": () => tm.random.keys(wrong(0), 2),
  });
});
