/**
 * @file The examples in the documents work: every marked block of README.md and docs/, and every `@example` of the
 * public layers, is written to a module of its own beside the sources, type-checked and run. `UPDATE=1` writes what the lines of
 * comments print behind them.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  againstSources,
  type Example,
  expectedOutputs,
  markdownExamples,
  outputOf,
  tsdocExamples,
  withLineNumbers,
} from "./support/examples.ts";
import { projectFiles, ROOT, subpathSources } from "./support/project.ts";

const files = projectFiles();
const sources = subpathSources(files.find((file) => file.path === "package.json")?.text ?? "");
const examples: readonly Example[] = files.flatMap((file) => {
  if (file.path === "README.md" || /^docs\/.*\.md$/.test(file.path)) return markdownExamples(file);
  return /^src\/.*(?<!\.test)\.ts$/.test(file.path) ? tsdocExamples(file) : [];
});

/** Writes outputs behind the lines of an example. */
function update({ path, line }: Example, outputs: ReadonlyMap<number, string>): void {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  for (const [i, text] of outputs) {
    const at = line - 1 + i;
    lines[at] = (lines[at] ?? "").replace(/ \/\/ →.*$/, () => ` // → ${text}`);
  }
  writeFileSync(join(ROOT, path), lines.join("\n"));
}

describe("finding examples", () => {
  it("takes the marked blocks of Markdown and no others", () => {
    const text =
      "Text\n\n```ts\n// run\nf();\n```\n\n```ts\nnot();\n```\n\n```sh\n// run\n```\n\n```ts\n// run, throws Bad\ng();\n```\n";
    expect(markdownExamples({ path: "a.md", text })).toEqual([
      { path: "a.md", line: 4, code: "// run\nf();\n", throws: null },
      { path: "a.md", line: 17, code: "// run, throws Bad\ng();\n", throws: "Bad" },
    ]);
  });

  it("takes every @example of a comment, fenced or not, up to the next tag", () => {
    const text = [
      "/**",
      " * Adds.",
      " * @example",
      " * ```ts",
      ' * import { add } from "tidemark";',
      " * if (add(1, 2) * 2 !== 6) {",
      ' *   throw new Error("wrong");',
      " * }",
      " * ```",
      " * @returns the sum",
      " */",
      "export function add() {}",
      "/** @example add(); */",
    ].join("\n");
    expect(tsdocExamples({ path: "a.ts", text })).toEqual([
      {
        path: "a.ts",
        line: 5,
        code: 'import { add } from "tidemark";\nif (add(1, 2) * 2 !== 6) {\n  throw new Error("wrong");\n}\n',
        throws: null,
      },
      { path: "a.ts", line: 13, code: "add();\n", throws: null },
    ]);
  });

  it("compares what lines print, with numbers to six digits", () => {
    const code = 'console.log([1 / 3], { a: "b" }); // → [0.333333] { a: b }\nconsole.log(2); // two\n';
    expect(expectedOutputs(code)).toEqual(new Map([[0, "[0.333333] { a: b }"]]));
    expect(withLineNumbers(code)).toContain('console.log("line 0", [1 / 3], { a: "b" });');
    expect(outputOf(["line 0", [1 / 3], { a: "b" }])).toEqual({ line: 0, text: "[0.333333] { a: b }" });
    expect(outputOf([2])).toBeNull();
  });

  it("points the package's name at the sources and refuses a subpath that is not exported", () => {
    const map = new Map([
      ["tidemark", "src/api/index.ts"],
      ["tidemark/nn", "src/nn/index.ts"],
    ]);
    const code = 'import { a } from "tidemark";\nconst { b } = await import("tidemark/nn");\nimport "other";\n';
    expect(againstSources(code, "tests/x/e.ts", map)).toBe(
      'import { a } from "../../src/api/index.ts";\nconst { b } = await import("../../src/nn/index.ts");\nimport "other";\n',
    );
    expect(() => againstSources('import "tidemark/gone";', "e.ts", map)).toThrow("tidemark/gone");
  });
});

describe.runIf(examples.length > 0)("examples", () => {
  let folder = "";
  const fileOf = (index: number): string => join(folder, `example-${index}.ts`);

  beforeAll(() => {
    const parent = join(ROOT, "tests", ".examples");
    mkdirSync(parent, { recursive: true });
    folder = mkdtempSync(join(parent, "run-"));
    examples.forEach((example, i) => {
      writeFileSync(fileOf(i), againstSources(withLineNumbers(example.code), relative(ROOT, fileOf(i)), sources));
    });
    const options = { noUnusedLocals: false, noUnusedParameters: false };
    const config = { extends: "../../../tsconfig.json", compilerOptions: options, include: ["*.ts"], exclude: [] };
    // Ambient declarations of the core are found by folder, not by import.
    const ambient = files.filter((f) => /^src\/.*\.d\.ts$/.test(f.path) && f.path !== "src/base/globals.d.ts");
    const include = [...config.include, ...ambient.map((f) => relative(folder, join(ROOT, f.path)))];
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ ...config, include }));
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("type-check", () => {
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    let output = "";
    try {
      execFileSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8", cwd: ROOT });
    } catch (error) {
      output = (error as { stdout: string }).stdout;
    }
    const named = output.replace(/\S*example-(\d+)\.ts\((\d+),\d+\)/g, (_, index: string, line: string) => {
      const example = examples[Number(index)];
      return `${example?.path}:${(example?.line ?? 0) + Number(line) - 1}`;
    });
    expect(named).toBe("");
  });

  for (const [i, example] of examples.entries()) {
    const { path, line, throws, code } = example;
    it(`${path}:${line} ${throws === null ? "runs" : `fails with ${throws}`}`, async () => {
      const outputs = new Map<number, string>();
      vi.spyOn(console, "log").mockImplementation((...values) => {
        const output = outputOf(values);
        if (output) outputs.set(output.line, output.text);
      });
      const run = import(/* @vite-ignore */ pathToFileURL(fileOf(i)).href);
      if (throws === null) await run;
      else await expect(run).rejects.toMatchObject({ code: throws });
      if (process.env.UPDATE) update(example, outputs);
      else expect(outputs).toEqual(expectedOutputs(code));
    });
  }
});
