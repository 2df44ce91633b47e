/**
 * @file The parts of documents that are made by the program: ARCHITECTURE.md follows one function through every stage,
 * README.md shows what its own example prints, docs/numerics.md has the bounds that the kernels' tests assert, and
 * docs/adding-a-target.md what the types say that a target is written against.
 * `UPDATE=1 npx vitest run tests/architecture-doc.test.ts` rewrites them.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { type Tensor, valueAndGrad, zeros } from "../src/api/index.ts";
import { at } from "../src/base/invariant.ts";
import { isKernel } from "../src/codegen/placed.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { detectFeatures } from "../src/codegen/wasm/features.ts";
import { assemble } from "../src/compiler/assemble.ts";
import { print } from "../src/ir/print.ts";
import { type MathName, ULP_BOUNDS } from "../src/kernel/math.ts";
import { printKernel } from "../src/kernel/print.ts";
import { sgd } from "../src/optim/index.ts";
import { fusedPipeline, pipeline, runPasses } from "../src/passes/pipeline.ts";
import { memoryMap, printPlan } from "../src/plan/index.ts";
import { traceFunction } from "../src/trace/function.ts";
import { againstSources, markdownExamples } from "./support/examples.ts";
import { block, checkDocument, type Parts, regenerate } from "./support/generated.ts";
import { layersText } from "./support/layer-rules.ts";
import { projectFiles, ROOT, subpathSources } from "./support/project.ts";
import { descriptionTable, nestLines } from "./support/target-doc.ts";

/** The program of ARCHITECTURE.md; the document has the same text. */
const optimizer = sgd({ lr: 0.1 });

function lossOf(w: Tensor, x: Tensor, y: Tensor): Tensor {
  return x.matmul(w).relu().sub(y).square().sum();
}

function train(s: ReturnType<typeof optimizer.init<Tensor>>, x: Tensor, y: Tensor) {
  const [loss, dw] = valueAndGrad(lossOf)(s.params, x, y);
  return [optimizer.update(s, dw), loss] as const;
}

function stages(): Parts {
  const [w, x, y] = [zeros([64, 16]), zeros([32, 64]), zeros([32, 16])];
  const traced = traceFunction(train, [optimizer.init(w), x, y]).graph;
  // As `compile(train, { donate: [0] })` on an engine without fused multiply-add.
  const donated = new Map([
    [0, 0],
    [1, 1],
  ]);
  const placed = assemble({ graph: traced, donated, persistent: new Set(donated.keys()) }, wasmDescription(false), {
    validate: true,
  });
  const products = placed.kernels
    .filter(isKernel)
    .filter(({ kernel }) => kernel.nests.some((nest) => nest.kind === "contract"));
  return {
    loss: block(print(traceFunction(lossOf, [w, x, y]).graph)),
    joint: block(print(traced)),
    passes: block(print(runPasses(traced, pipeline))),
    fused: block(print(runPasses(traced, fusedPipeline))),
    plan: block(printPlan(placed.plan)),
    map: block(memoryMap(placed.plan)),
    kernel: block(printKernel(at(products, products.length - 1).kernel)),
  };
}

/** Runs the example of README.md with a chart and collects what it prints. */
async function readmeOutput(): Promise<string> {
  const files = projectFiles();
  const text = (path: string): string => files.find((file) => file.path === path)?.text ?? "";
  const examples = markdownExamples({ path: "README.md", text: text("README.md") });
  const example = at(
    examples.filter(({ code }) => code.includes("console.log(memoryChart(")),
    0,
  );
  const parent = join(ROOT, "tests", ".examples");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "readme-"));
  const printed: string[] = [];
  try {
    const file = join(folder, "readme.ts");
    writeFileSync(file, againstSources(example.code, relative(ROOT, file), subpathSources(text("package.json"))));
    vi.spyOn(console, "log").mockImplementation((line) => printed.push(String(line).trimEnd()));
    await import(/* @vite-ignore */ pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return printed.join("\n");
}

function ulpTable(): string {
  const names = Object.keys(ULP_BOUNDS.f32) as MathName[];
  const rows = names.map((name) => `| \`${name}\` | ${ULP_BOUNDS.f32[name]} | ${ULP_BOUNDS.f64[name]} |`);
  return ["| function | f32 | f64 |", "| --- | --- | --- |", ...rows].join("\n");
}

describe("generated parts", () => {
  it("are replaced by name, and a name that nobody makes or uses is a problem", () => {
    const text = "a\n<!-- generated: one -->\nold\n<!-- end -->\nb\n<!-- generated: two -->\n<!-- end -->\n";
    expect(regenerate(text, { one: "new\n" })).toEqual({
      text: text.replace("old", "new"),
      problems: ["two: nobody makes it"],
    });
    expect(regenerate("<!-- generated: one -->\n<!-- end -->".repeat(2), { one: "", three: "" }).problems).toEqual([
      "one: occurs twice",
      "three: the document has no such part",
    ]);
  });

  it("of ARCHITECTURE.md are what the stages print, and the layers that tests hold it to", () => {
    const { found, expected } = checkDocument("ARCHITECTURE.md", { ...stages(), layers: block(layersText()) });
    expect(found).toBe(expected);
  });

  it("and its program is the one that this test runs", () => {
    const own = projectFiles().find((file) => file.path === "tests/architecture-doc.test.ts")?.text ?? "";
    const shown = projectFiles().find((file) => file.path === "ARCHITECTURE.md")?.text ?? "";
    const [code] = /const optimizer = [\s\S]*?as const;\n}/.exec(own) ?? [""];
    expect(code).toContain("function train");
    expect(shown).toContain(code);
  });

  // Where products may use fused multiply-add, their workspace has another size.
  it.skipIf(detectFeatures().relaxedMadd)("of README.md are what its example prints", async () => {
    const { found, expected } = checkDocument("README.md", { output: block(await readmeOutput()) });
    expect(found).toBe(expected);
  });

  it("of docs/adding-a-target.md are all kinds of nests, and all fields of a description", () => {
    const files = projectFiles();
    const parts = { nests: block(nestLines(files)), fields: descriptionTable(files) };
    const { found, expected } = checkDocument("docs/adding-a-target.md", parts);
    expect(found).toBe(expected);
  });

  it("of docs/numerics.md are the bounds that the tests of the kernels assert", () => {
    const { found, expected } = checkDocument("docs/numerics.md", { ulp: ulpTable() });
    expect(found).toBe(expected);
  });
});
