/** @file The target `native` as users meet it: found or not, cached, broken, beyond 4 GiB, with loops on threads. */

import { mkdtempSync, readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { useOwnCache } from "../../../tests/support/cache-folder.ts";
import { testHost } from "../../../tests/support/host.ts";
import { nativeFor } from "../../../tests/support/targets.ts";
import { compile } from "../../api/compile.ts";
import { cond, whileLoop } from "../../api/control.ts";
import { loadGraph } from "../../api/load-graph.ts";
import { tensor } from "../../trace/literal.ts";
import type { Tensor } from "../../trace/tensor.ts";
import "../../api/methods.ts";
import { at } from "../../base/invariant.ts";
import { Build } from "../../ir/build.ts";
import { tensorType } from "../../ir/type.ts";
import { add } from "../../ops/elementwise.ts";
import { slice } from "../../ops/slice.ts";
import { chooseTarget } from "../../runtime/choose-target.ts";
import { prune, touch } from "../cache-files.ts";
import { systemCompiler } from "./compiler.ts";
import { nativeTarget } from "./target.ts";

const native = nativeFor("native", {});
const folder = useOwnCache();

const objects = (): readonly string[] => readdirSync(join(folder, "native")).filter((name) => name.endsWith(".so"));

/** Changes every compiled file; as a file of its own, since this process has the old one mapped. */
function damage(change: (bytes: Uint8Array) => Uint8Array): void {
  for (const name of objects()) {
    const path = join(folder, "native", name);
    writeFileSync(`${path}.damaged`, change(readFileSync(path)));
    renameSync(`${path}.damaged`, path);
  }
}

/** x + x for numbers of its own, run. */
function doubled(numbers: readonly number[]): readonly number[] {
  const b = new Build("double");
  const x = b.param(tensorType("f32", [numbers.length]));
  const executable = loadGraph(b.finish([b.call(add, [x, x], {})]), { target: native.target() });
  executable.write(x.type, at(executable.placed.params, 0), numbers);
  executable.run();
  return [...executable.read(x.type, at(executable.placed.results, 0))];
}

describe.skipIf(native.missing)("compiled programs", () => {
  it("are compiled once and found again", () => {
    expect(doubled([1, 2, 3])).toEqual([2, 4, 6]);
    const [name] = objects();
    const made = statSync(join(folder, "native", name as string)).ino;
    expect(doubled([4, 5, 6])).toEqual([8, 10, 12]);
    expect(objects()).toEqual([name]);
    expect(statSync(join(folder, "native", name as string)).ino).toBe(made);
  });

  it("are compiled again where the file was cut short or changed", () => {
    expect(doubled([1, 2, 3, 4, 5])).toEqual([2, 4, 6, 8, 10]);
    damage((bytes) => bytes.subarray(0, bytes.length / 2));
    expect(doubled([1, 2, 3, 4, 5])).toEqual([2, 4, 6, 8, 10]);
    damage((bytes) => bytes.map((byte, i) => (i === 100 ? byte ^ 1 : byte)));
    expect(doubled([1, 2, 3])).toEqual([2, 4, 6]);
    expect(doubled([1, 2, 3, 4, 5])).toEqual([2, 4, 6, 8, 10]);
    expect(readdirSync(join(folder, "native")).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("have no word of the user's in them: names that are C make the same code", () => {
    const before = new Set(objects());
    const made = [
      "double",
      '*/ __attribute__((constructor)) void f(void) { system("id"); } /*',
      '\n#include "/etc/passwd"\n',
    ];
    for (const name of made) {
      const b = new Build(name);
      const x = b.param(tensorType("f32", [11]), name);
      const executable = loadGraph(b.finish([b.call(add, [x, x], {})]), { target: native.target() });
      executable.write(x.type, at(executable.placed.params, 0), new Array(11).fill(2));
      executable.run();
      expect([...executable.read(x.type, at(executable.placed.results, 0))]).toEqual(new Array(11).fill(4));
    }
    expect(objects().filter((name) => !before.has(name))).toHaveLength(1);
  });

  it("make room for others when they were used longest ago", () => {
    const place = mkdtempSync(join(folder, "prune-"));
    const days = (n: number): Date => new Date(2020, 0, n);
    ["a", "b", "c", "d"].forEach((name, i) => {
      writeFileSync(join(place, name), new Uint8Array(100));
      utimesSync(join(place, name), days(10 - i), days(10 - i));
    });
    prune(place, 400);
    expect(readdirSync(place)).toEqual(["a", "b", "c", "d"]);
    touch(join(place, "d"));
    prune(place, 399);
    expect(readdirSync(place)).toEqual(["d"]);
  });

  it("need no folder that can be written", () => {
    process.env.TIDEMARK_CACHE = join(folder, "native", objects()[0] as string, "below");
    try {
      expect(doubled([7])).toEqual([14]);
    } finally {
      process.env.TIDEMARK_CACHE = folder;
    }
  });

  it("have arenas beyond 4 GiB, of which only what is touched takes memory", () => {
    const elements = 1_250_000_000;
    const b = new Build("far");
    const x = b.param(tensorType("f32", [elements]));
    const end = b.call(slice, [x], { start: [elements - 4], limit: [elements], stride: [1] });
    const graph = b.finish([b.call(add, [end, end], {})]);
    const executable = loadGraph(graph, { target: native.target() });
    expect(executable.placed.plan.height).toBeGreaterThan(2 ** 32);
    const last = at(executable.placed.params, 0) + 4 * (elements - 4);
    executable.write(end.type, last, [1, 2, 3, 4]);
    executable.run();
    expect([...executable.read(end.type, at(executable.placed.results, 0))]).toEqual([2, 4, 6, 8]);
  });
});

describe("a machine without a compiler", () => {
  it("is told so in one line, and `auto` falls back to WebAssembly", () => {
    const none = systemCompiler({ PATH: folder });
    expect(none).toBe("no C compiler: looked for cc, gcc, clang in PATH");
    testHost.targets = { native: () => none as string };
    try {
      expect(chooseTarget(testHost, "auto").note).toBe(`wasm, not native: ${none}`);
      const twice = compile((x: Tensor) => x.mul(2), { target: "auto" });
      expect(twice.program(tensor([1]))).toMatchObject({ target: "wasm", targetNote: `wasm, not native: ${none}` });
      expect(() => compile((x: Tensor) => x.mul(2), { target: "native" })(tensor([1]))).toThrow(/no C compiler/);
    } finally {
      testHost.targets = { native: nativeTarget };
    }
  });
});

describe.skipIf(native.missing)("loops and branches on threads", () => {
  /** Collatz steps of n, on tensors large enough to be shared, with a branch in every iteration. */
  const collatz = (x: Tensor): Tensor => {
    const grow = (n: Tensor): Tensor => n.mul(3).add(1);
    const halve = (n: Tensor): Tensor => n.div(2).floor();
    const [, iterations] = whileLoop(
      ([n]: readonly [Tensor, Tensor]) => n.max().greater(1),
      ([n, count]: readonly [Tensor, Tensor]) => {
        const odd = n.max().sub(n.max().div(2).floor().mul(2)).greater(0);
        return [cond(odd, grow, halve, n), count.add(1)] as const;
      },
      [x, x.mul(0)] as const,
    );
    return iterations.sum();
  };

  it("go the same way on every thread, run after run", () => {
    const size = 40_000;
    const count = compile(collatz, { target: "native", threads: 3 });
    for (let i = 0; i < 15; i++) {
      expect(count(tensor(new Float32Array(size).fill(27))).item()).toBe(111 * size);
      expect(count(tensor(new Float32Array(size).fill(6))).item()).toBe(8 * size);
    }
  });
});
