/**
 * @file Nothing grows: ten thousand steps of one program, and a thousand programs made and dropped. Runs in child
 * processes with a small heap, so that what is measured is the program and not the test runner.
 */

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { patience } from "./support/patience.ts";

const api = new URL("../dist/api/index.js", import.meta.url).href;

function child(script: string): { readonly before: number; readonly after: number } {
  const source = `import * as t from ${JSON.stringify(api)};
    const settle = async () => { for (let i = 0; i < 4; i++) { gc(); await new Promise((r) => setTimeout(r, 20)); } };
    const rss = () => process.memoryUsage.rss();
    ${script}`;
  const output = execFileSync(
    process.execPath,
    ["--expose-gc", "--max-old-space-size=128", "--input-type=module", "-e", source],
    {
      encoding: "utf8",
    },
  );
  return JSON.parse(output) as { before: number; after: number };
}

test(
  "steps of a training program leave resident memory where it was",
  () => {
    const { before, after } = child(`
    const u = (shape, seed) => t.tensor(Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i * seed)), { shape });
    const step = t.compile((s, x, y) => {
      const [loss, g] = t.valueAndGrad((p) => t.crossEntropy(x.matmul(p.w0).relu().matmul(p.w1), y))(s);
      return [{ w0: s.w0.sub(g.w0.mul(0.01)), w1: s.w1.sub(g.w1.mul(0.01)) }, loss];
    }, { donate: [0] });
    let state = { w0: u([64, 64], 0.1), w1: u([64, 10], 0.2) }, loss;
    const x = u([32, 64], 0.3), y = t.tensor(Int32Array.from({ length: 32 }, (_, i) => i % 10));
    const run = (n) => { for (let i = 0; i < n; i++) [state, loss] = step(state, x, y); };
    run(500); await settle();
    const before = rss();
    run(10_000); await settle();
    console.log(JSON.stringify({ before, after: rss() }));`);
    expect(after - before).toBeLessThan(12e6);
  },
  patience(120_000),
);

test(
  "programs that are made and dropped leave nothing behind",
  () => {
    const { before, after } = child(`
    const x = t.tensor(new Float32Array(1000));
    const make = (n) => {
      for (let i = 0; i < n; i++) {
        t.compile((v) => v.mul(2).add(i).reshape([10, 100]).sum(1))(x);
      }
    };
    make(300); await settle();
    const before = rss();
    make(1000); await settle();
    console.log(JSON.stringify({ before, after: rss() }));`);
    // A thousand arenas that were kept would be 64 MB and more; the collector's own swings are well below.
    expect(after - before).toBeLessThan(40e6);
  },
  patience(240_000),
);
