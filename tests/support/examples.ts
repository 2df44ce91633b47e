/**
 * @file Finding the examples in documents and comments, so that they can be run.
 *
 * In Markdown a block counts when its first line says so:      In TSDoc every `@example` counts:
 *
 *     ```ts                                                        * @example
 *     // run                                                       * ```ts
 *     import { tensor } from "tidemark";                           * import { tensor } from "tidemark";
 *     ```                                                          * ```
 *
 * `// run, throws ShapeMismatch` marks an example that must fail with that code. What a line prints can be written behind it, and is
 * compared: `console.log(…); // → [1, 2]`.
 */
import { dirname, relative, sep } from "node:path";
import type { ProjectFile } from "./project.ts";
import { lineAt } from "./syntax.ts";

export interface Example {
  readonly path: string;
  /** Where its code begins. */
  readonly line: number;
  readonly code: string;
  /** The code of the error that it must end with, or null when it must succeed. */
  readonly throws: string | null;
}

const MARK = /^\/\/ run(?:, throws (\w+))?\s*\n/;

export function markdownExamples(file: ProjectFile): readonly Example[] {
  return fences(file.text)
    .filter(({ code }) => MARK.test(code))
    .map(({ code, offset }) => example(file, code, offset));
}

export function tsdocExamples(file: ProjectFile): readonly Example[] {
  return [...file.text.matchAll(/\/\*\*[\s\S]*?\*\//g)].flatMap((comment) => {
    // Stars become spaces, so that offsets and lines stay what they were.
    const text = comment[0].slice(0, -2).replace(/^(\s*)\/?\*+/gm, (stars) => stars.replace(/[/*]/g, " "));
    return [...text.matchAll(/@example\b([\s\S]*?)(?=\n\s*@\w|$(?![\s\S]))/g)].flatMap((match) => {
      const [all, body = ""] = match;
      const start = comment.index + match.index + all.length - body.length;
      const fenced = fences(body);
      const parts = fenced.length > 0 ? fenced : [{ code: body, offset: 0 }];
      return parts.map(({ code, offset }) => example(file, code, start + offset));
    });
  });
}

/** The contents of ```ts fences and where they begin. */
function fences(text: string): readonly { readonly code: string; readonly offset: number }[] {
  return [...text.matchAll(/^([ \t]*```ts[ \t]*\n)([\s\S]*?)^[ \t]*```[ \t]*$/gm)].map((match) => {
    const [, opening = "", code = ""] = match;
    return { code, offset: match.index + opening.length };
  });
}

function example(file: ProjectFile, code: string, offset: number): Example {
  const lines = code.split("\n");
  const indent = Math.min(...lines.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)));
  const plain = `${lines
    .map((line) => line.slice(indent).trimEnd())
    .join("\n")
    .trim()}\n`;
  const first = offset + code.search(/\S/);
  return { path: file.path, line: lineAt(file, first), code: plain, throws: MARK.exec(plain)?.[1] ?? null };
}

/** The code with `from "tidemark/x"` replaced by the relative path of that entry point's source, for a file at `path`. */
export function againstSources(code: string, path: string, sources: ReadonlyMap<string, string>): string {
  return code.replace(
    /((?:\bfrom|\bimport)\s*\(?\s*)"(tidemark(?:\/[^"]*)?)"/g,
    (whole, before: string, name: string) => {
      const source = sources.get(name);
      if (source === undefined) throw new Error(`the package exports no ${name}: ${whole}`);
      const target = relative(dirname(path), source).split(sep).join("/");
      return `${before}"${target.startsWith(".") ? target : `./${target}`}"`;
    },
  );
}

const SAID = /^(.*\bconsole\.log\()(.*\);) \/\/ →(.*)$/;

/** What lines of the code must print, by their numbers from 0. */
export function expectedOutputs(code: string): ReadonlyMap<number, string> {
  const lines = code.split("\n").map((line) => SAID.exec(line)?.[3]?.trim());
  return new Map(lines.flatMap((text, i) => (text === undefined ? [] : [[i, text] as const])));
}

/** The code in which those lines print their numbers first. */
export function withLineNumbers(code: string): string {
  return code
    .split("\n")
    .map((line, i) => line.replace(SAID, (_, before: string, after: string) => `${before}"line ${i}", ${after}`))
    .join("\n");
}

/** The number of the line that printed these values, where it has one, and what it printed. */
export function outputOf(values: readonly unknown[]): { readonly line: number; readonly text: string } | null {
  const line = /^line (\d+)$/.exec(String(values[0]))?.[1];
  return line === undefined ? null : { line: Number(line), text: values.slice(1).map(shown).join(" ") };
}

/** Numbers to six digits: how many of an f32 are right differs between engines. */
function shown(value: unknown): string {
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  if (Array.isArray(value) || ArrayBuffer.isView(value))
    return `[${Array.from(value as ArrayLike<unknown>, shown).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const fields = Object.entries(value).map(([key, field]) => `${key}: ${shown(field)}`);
  return fields.length > 0 ? `{ ${fields.join(", ")} }` : "{}";
}
