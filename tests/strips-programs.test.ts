/**
 * @file Training steps of a GPT, a ViT and a U-Net in strips: every number of strips that is allowed, around the result of each kind
 * of product, for as few nodes as must be inside and for as many as can be, has the bits of the step without strips, on
 * WebAssembly and native code, on one thread and on two.
 */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { conv2d } from "../src/api/conv.ts";
import {
  attention,
  crossEntropy,
  gelu,
  layerNorm,
  matmul,
  spec,
  type Tensor,
  valueAndGrad,
  zeros,
} from "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import { at } from "../src/base/invariant.ts";
import { languageModel } from "../src/cli/programs/gpt.ts";
import { sameBitsOn } from "../src/compiler/strip-bits.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import { byteLength, elementsOf } from "../src/ir/type.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { StripGraph, stripRegion } from "../src/loops/strips/region.ts";
import { intoStrips } from "../src/loops/strips/rewrite.ts";
import { sharedLowering } from "../src/lower/share.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import { pipeline, runPasses } from "../src/passes/pipeline.ts";
import type { Target } from "../src/runtime/device.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { Random } from "./support/random.ts";
import { runGraph } from "./support/run-graph.ts";

const graphOf = (fn: AnyFunction, args: readonly unknown[]): Graph =>
  runPasses(plansOf(fn, args, { name: "step", cache: false }).source.graph, pipeline);

function gpt(): Graph {
  const size = { batch: 8, time: 256, width: 32, heads: 2, blocks: 1, vocabulary: 96, tied: true };
  const program = languageModel("gpt", "", size);
  return graphOf(program.step as AnyFunction, program.specs?.() ?? []);
}

/** 16 images of 64 patches. */
function vit(): Graph {
  const [images, patches, width, heads] = [16, 64, 16, 2];
  const rows = images * patches;
  const loss = (p: Readonly<Record<string, Tensor>>, x: Tensor, y: Tensor): Tensor => {
    const w = (name: string): Tensor => p[name] as Tensor;
    const own = (v: Tensor): Tensor => v.reshape([images, patches, heads, width / heads]).transpose([0, 2, 1, 3]);
    const h = matmul(x.reshape([rows, 12]), w("embed"));
    const n = layerNorm(h);
    const seen = attention(own(matmul(n, w("q"))), own(matmul(n, w("k"))), own(matmul(n, w("v"))));
    const mid = h.add(matmul(seen.transpose([0, 2, 1, 3]).reshape([rows, width]), w("o")));
    const last = mid.add(matmul(gelu(matmul(layerNorm(mid), w("fc")).add(w("b"))), w("fo")));
    return crossEntropy(matmul(last.reshape([images, patches, width]).mean(1), w("head")), y);
  };
  const square = spec([width, width]);
  const params = {
    ...{ embed: spec([12, width]), q: square, k: square, v: square, o: square },
    ...{ fc: spec([width, 64]), b: spec([64]), fo: spec([64, width]), head: spec([width, 10]) },
  };
  return graphOf(valueAndGrad(loss as never) as AnyFunction, [
    params,
    spec([images, patches, 12]),
    spec([images], "i32"),
  ]);
}

/** Two resolutions, with a connection between their halves. */
function unet(): Graph {
  const loss = (p: Readonly<Record<string, Tensor>>, x: Tensor, y: Tensor): Tensor => {
    const w = (name: string): Tensor => p[name] as Tensor;
    const wide = conv2d(x, w("a"), { padding: 1 }).relu();
    const low = conv2d(wide, w("b"), { stride: 2, padding: 1 }).relu();
    const up = low
      .reshape([16, 8, 4, 1, 4, 1])
      .add(zeros([16, 8, 4, 2, 4, 2]))
      .reshape([16, 8, 8, 8]);
    const back = conv2d(up.add(wide), w("c"), { padding: 1 }).relu();
    return back.sub(y).square().mean();
  };
  const params = { a: spec([8, 3, 3, 3]), b: spec([8, 8, 3, 3]), c: spec([3, 8, 3, 3]) };
  return graphOf(valueAndGrad(loss as never) as AnyFunction, [params, spec([16, 3, 8, 8]), spec([16, 3, 8, 8])]);
}

const input = (param: Value, i: number): Float64Array => {
  const random = new Random(i);
  const draw = isFloat(param.type.dtype) ? () => Math.fround(random.next() - 0.5) / 4 : () => random.int(10);
  return Float64Array.from({ length: elementsOf(param.type.shape) }, draw);
};

function hashOf(target: Target, graph: Graph): string {
  const hash = createHash("sha256");
  for (const result of runGraph(target, graph, input)) hash.update(Float64Array.from(result));
  return hash.digest("hex");
}

/** The graph in each allowed number of strips, around products of different shapes. */
function* stripped(graph: Graph, { description }: Target): Generator<readonly [string, Graph]> {
  const of = new StripGraph(graph);
  const hasSameBits = sameBitsOn(description, sharedLowering(description));
  const known = new Set<string>();
  const made = graph.nodes.filter(({ op }) => op.lower.kind === "contract").flatMap(({ outputs }) => outputs);
  for (const value of made) {
    for (const share of [1, 2 ** 20]) {
      for (const strips of [2, 4, 8, 16]) {
        const wide = byteLength(value.type) / share;
        const region = stripRegion(of, { value, axis: 0, strips }, wide);
        const key = region && `${strips}: ${[...region.nodes.keys()].map((node) => of.position.get(node)).join()}`;
        if (!region || !key || known.has(key)) continue;
        known.add(key);
        const cut = intoStrips(of, region, hasSameBits);
        if (cut) yield [`${strips} strips of ${region.nodes.size} nodes`, cut] as const;
      }
    }
  }
}

/** Regions of a program that are run: the largest, and some of the others. */
const RUN = 6;

const native = (threads: number): Target | string => nativeTarget({ threads, shareFrom: 0 });
const TARGETS: readonly (readonly [string, Target | string])[] = [
  ["wasm", wasmTarget()],
  ["native", native(1)],
  ["native on two threads", native(2)],
];

describe.each([
  ["gpt", gpt],
  ["ViT", vit],
  ["U-Net", unet],
] as const)("%s", (_, make) => {
  it.each(TARGETS)("has one hash in strips of every size on %s", (__, target) => {
    if (typeof target === "string") return;
    const graph = make();
    const all = [...stripped(graph, target)].sort(([, a], [, b]) => a.nodes.length - b.nodes.length);
    expect(all.length).toBeGreaterThan(1);
    const every = Math.max(1, Math.floor(all.length / RUN));
    const want = hashOf(target, graph);
    for (const [text, cut] of all.filter((___, i) => i % every === 0)) expect(hashOf(target, cut), text).toBe(want);
    expect(at(all, 0)[1].nodes.length).toBeLessThan(graph.nodes.length);
  });
});
