/** @file Programs that are compiled function by function: the same results, functions found again, damage noticed. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { useOwnCache } from "../../../tests/support/cache-folder.ts";
import { nativeFor } from "../../../tests/support/targets.ts";
import { loadGraph } from "../../api/load-graph.ts";
import { at } from "../../base/invariant.ts";
import { Build } from "../../ir/build.ts";
import type { Graph } from "../../ir/graph.ts";
import { elementsOf, tensorType } from "../../ir/type.ts";
import { matmul } from "../../ops/matmul.ts";
import { LinkedProgram, lanesOf } from "./units.ts";

const native = nativeFor("native", {});
const folder = useOwnCache();

const files = (ending: string): readonly string[] =>
  readdirSync(join(folder, "native")).filter((name) => name.endsWith(ending));

/** Products of a row of odd sizes, which have tiles of their own. */
function products(...sizes: readonly number[]): Graph {
  const b = new Build("products");
  const results = sizes.map((n) => {
    const [x, y] = [b.param(tensorType("f32", [n, n + 2])), b.param(tensorType("f32", [n + 2, n + 5]))];
    return b.call(matmul, [x, y], { ta: false, tb: false });
  });
  return b.finish(results);
}

/** All results, of numbers that follow from positions. */
function run(graph: Graph): readonly (readonly number[])[] {
  const executable = loadGraph(graph, { target: native.target() });
  const { params, results } = executable.placed;
  graph.params.forEach(({ type }, i) => {
    const numbers = Float32Array.from({ length: elementsOf(type.shape) }, (_, n) => Math.fround(Math.sin(n + i)));
    executable.write(type, at(params, i), numbers);
  });
  executable.run();
  return graph.results.map(({ type }, i) => [...executable.read(type, at(results, i))]);
}

describe.skipIf(native.missing)("a program of many functions", () => {
  const first = products(17, 29, 41, 53);

  it("has the bits of its functions compiled as a whole", () => {
    const linked = run(first);
    expect(files(".o").length).toBeGreaterThan(0);
    // one product alone is not worth several compilers
    [17, 29, 41, 53].forEach((n, i) => {
      const graph = products(n);
      const alone = loadGraph(graph, { target: native.target() });
      graph.params.forEach(({ type }, p) => {
        const numbers = Float32Array.from({ length: elementsOf(type.shape) }, (_, k) =>
          Math.fround(Math.sin(k + 2 * i + p)),
        );
        alone.write(type, at(alone.placed.params, p), numbers);
      });
      alone.run();
      expect([...alone.read(at(graph.results, 0).type, at(alone.placed.results, 0))]).toEqual(at(linked, i));
    });
    expect(files(".tmp")).toEqual([]);
  });

  it("shares its functions with the next one, which compiles only what is new", () => {
    const [functions, objects] = [files(".in").length, files(".o").length];
    const changed = run(products(17, 29, 41, 53, 61));
    expect(changed.slice(0, 4)).toEqual(run(first));
    expect(files(".o").length).toBeGreaterThan(objects);
    expect(files(".in").length - functions).toBeLessThan(functions);
  });

  it("is compiled again where an object was changed", () => {
    for (const name of files(".o")) {
      const path = join(folder, "native", name);
      writeFileSync(
        path,
        readFileSync(path).map((byte, i) => (i === 200 ? byte ^ 1 : byte)),
      );
    }
    const all = run(products(17, 29, 41, 53, 67));
    expect(all.slice(0, 4)).toEqual(run(first));
  });
});

const TEXT = `// section: types
typedef int idx;
// section: registers
// section: inline
typedef int tide_pair;
// section: function
FUNCTION void tide_tile(tide_pair x) {
}
// section: function rare
FUNCTION void tide_kernel_NUMBER(idx lo) {
  tide_tile(lo);
}
// section: program
void run(void) { tide_kernel_NUMBER(1); }
`;

describe("the functions of a text", () => {
  const numbered = (n: number): LinkedProgram => new LinkedProgram(TEXT.replaceAll("NUMBER", String(n)), "compiler");

  it("have keys of what they are and use, whatever their names", () => {
    const keys = (program: LinkedProgram): readonly string[] => program.functions.map(({ key }) => key);
    const [tile, kernel] = keys(numbered(1));
    expect(keys(numbered(7))).toEqual([tile, kernel]);
    const other = new LinkedProgram(TEXT.replace("typedef int tide_pair", "typedef long tide_pair"), "compiler");
    for (const key of keys(other)) expect([tile, kernel]).not.toContain(key);
    expect(keys(new LinkedProgram(TEXT, "another compiler"))).not.toContain(tile);
  });

  it("are declared where they are used and defined once", () => {
    const program = numbered(1);
    const [, kernel] = program.functions;
    const text = program.unitText({ level: "rare", functions: kernel ? [kernel] : [] });
    expect(text.match(/FUNCTION void/g)).toHaveLength(1);
    expect(text).toContain('__attribute__((visibility("hidden"))) void tide_tile(tide_pair x);');
    expect(program.programText).not.toContain("tide_pair;");
  });

  it("are shared out evenly, all of them, rare ones together", () => {
    const functions = Array.from({ length: 40 }, (_, section) => {
      return { key: `${section}`, level: section % 4 === 0 ? "rare" : "full", weight: 5000, section } as const;
    });
    const lanes = lanesOf(functions, 4);
    const weights = lanes.map((units) => units.flatMap((unit) => unit.functions).length);
    expect(weights).toEqual([10, 10, 10, 10]);
    expect(lanes.map((units) => units.length)).toEqual([1, 1, 1, 1]);
    expect(lanesOf(functions.slice(0, 3), 4)).toHaveLength(1);
  });
});
