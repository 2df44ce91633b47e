/**
 * @file The examples in the documents work: every marked block of README.md and docs/, and every `@example` of the
 * public layers, is written to a module of its own beside the sources, type-checked and run.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { againstSources, type Example, markdownExamples, tsdocExamples } from "./support/examples.ts";
import { projectFiles, ROOT, subpathSources } from "./support/project.ts";

const files = projectFiles();
const sources = subpathSources(files.find((file) => file.path === "package.json")?.text ?? "");
const examples: readonly Example[] = files.flatMap((file) => {
  if (file.path === "README.md" || /^docs\/.*\.md$/.test(file.path)) return markdownExamples(file);
  return /^src\/(api|exchange|nn|optim|sim|node)\/.*(?<!\.test)\.ts$/.test(file.path) ? tsdocExamples(file) : [];
});

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
      writeFileSync(fileOf(i), againstSources(example.code, relative(ROOT, fileOf(i)), sources));
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

  for (const [i, { path, line, throws }] of examples.entries()) {
    it(`${path}:${line} ${throws === null ? "runs" : `fails with ${throws}`}`, async () => {
      vi.spyOn(console, "log").mockImplementation(() => undefined);
      const run = import(/* @vite-ignore */ pathToFileURL(fileOf(i)).href);
      if (throws === null) await run;
      else await expect(run).rejects.toMatchObject({ code: throws });
    });
  }
});
