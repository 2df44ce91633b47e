/**
 * @file Names in generated C never collide. A thousand random programs full of index arithmetic become C that the system's
 * compiler accepts, and some of them run and give the bits of the interpreter; and nothing that is not generated has the
 * form of a generated name: no word of the C headers, of the prelude or of the text around kernels.
 */
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { at } from "../src/base/invariant.ts";
import { NativeLibrary } from "../src/codegen/native/kernel.ts";
import { isFileName, isLocalName, localName } from "../src/codegen/native/names.ts";
import { preludeText } from "../src/codegen/native/prelude.ts";
import { emitNativeProgram } from "../src/codegen/native/program.ts";
import { type Compiler, systemCompiler } from "../src/node/native/compiler.ts";
import { nativeTarget } from "../src/node/native/target.ts";
import { interpretGraph, kernelsOfGraph } from "./support/kernels-of-graph.ts";
import { randomInputs, together } from "./support/random-graph.ts";
import { randomIndexing } from "./support/random-indexing.ts";
import { runGraph } from "./support/run-graph.ts";
import { plainTargets, type TestedTarget } from "./support/targets.ts";

const native = plainTargets[1] as TestedTarget;
const OPTIONS = { lanes: 16, fma: false, threads: 1 } as const;
const PROGRAMS = 1000;
/** Programs in one file of C. */
const BATCH = 125;

const seeds = (count: number, from = 0): readonly number[] => Array.from({ length: count }, (_, i) => from + i);

function compiler(): Compiler {
  const found = systemCompiler();
  if (typeof found === "string") throw new Error(`native cannot be tested: ${found}`);
  return found;
}

/** What the compiler says against a file; empty where it is C. */
function complaints(text: string): string {
  const { status, stderr } = spawnSync(compiler().command, ["-std=gnu11", "-w", "-fsyntax-only", "-x", "c", "-"], {
    input: text,
    encoding: "utf8",
  });
  return status === 0 ? "" : `status ${status}\n${stderr.split("\n").slice(0, 12).join("\n")}`;
}

/** The functions of some programs as one file. */
function fileOf(programs: readonly number[]): string {
  const target = nativeTarget({ fma: false });
  if (typeof target === "string") throw new Error(target);
  const library = new NativeLibrary(OPTIONS);
  for (const seed of programs) {
    for (const { kernel } of kernelsOfGraph(randomIndexing(seed, 2 + (seed % 7)), target.description).kernels) {
      library.functions(kernel);
    }
  }
  return `${preludeText([OPTIONS.lanes, OPTIONS.lanes / 2])}\n${library.text()}`;
}

describe.skipIf(native.missing !== null)("generated C", () => {
  it(`of ${PROGRAMS} random programs compiles`, () => {
    for (let from = 0; from < PROGRAMS; from += BATCH) {
      expect(complaints(fileOf(seeds(BATCH, from))), `seeds from ${from}`).toBe("");
    }
  });

  it("gives the bits of the interpreter", () => {
    // Side by side in one program: a compiler takes a moment to start.
    const graphs = seeds(24, 5000).map((seed) => randomIndexing(seed, 2 + (seed % 7)));
    const inputs = graphs.map((graph, i) => randomInputs(graph, i));
    const given = inputs.flat();
    const results = runGraph(native.target(), together(graphs), (_, i) => at(given, i));
    expect(results).toEqual(graphs.flatMap((graph, i) => interpretGraph(graph, at(inputs, i))));
  });

  it("has no written name of the form of a generated one", () => {
    const { text } = emitNativeProgram([], [], { ...OPTIONS, threads: 2 });
    const { command, flags } = compiler();
    const preprocess = (how: readonly string[]): string => {
      const { status, stdout } = spawnSync(
        command,
        [...flags.filter((f) => f.startsWith("-m")), ...how, "-x", "c", "-"],
        {
          input: text,
          encoding: "utf8",
          maxBuffer: 2 ** 28,
        },
      );
      expect(status).toBe(0);
      return stdout;
    };
    // What headers declare, and what they define as macros.
    const words = new Set(
      [...preprocess(["-E", "-P"]), "\n", ...preprocess(["-E", "-dM"])].join("").match(/[A-Za-z_]\w*/g),
    );
    expect(words.has("memcpy") && words.has("i32x16_load") && words.has("UINT64_C")).toBe(true);
    expect([...words].filter(isLocalName)).toEqual([]);
    expect([...words].filter((word) => isFileName(word) && !/^tide_part_\d+$/.test(word))).toEqual([]);
  });
});

describe("names", () => {
  it("of locals are no type, whatever the number", () => {
    expect(seeds(70).map((n) => localName("i", n))).not.toContain("i32");
    expect(seeds(70).every((n) => isLocalName(localName("u", n)))).toBe(true);
    expect(() => localName("tide_kernel", 1)).toThrow();
    expect(() => localName("2nd", 1)).toThrow();
  });
});
