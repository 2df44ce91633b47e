/**
 * @file Parts of documents that are made by the code they speak of, so that they cannot go stale:
 *
 *     <!-- generated: plan -->
 *     whatever the test named `plan` says is between the two marks
 *     <!-- end -->
 *
 * A test says what belongs there; it compares, or with UPDATE=1 writes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./project.ts";

/** Makers of text by the name of the part. */
export type Parts = Readonly<Record<string, string>>;

const PART = /(<!-- generated: ([\w-]+) -->\n)[\s\S]*?(<!-- end -->)/g;

/** The document with every part made anew, and the names of parts that nobody makes or that are not there. */
export function regenerate(
  text: string,
  parts: Parts,
): { readonly text: string; readonly problems: readonly string[] } {
  const left = new Set(Object.keys(parts));
  const problems: string[] = [];
  const made = text.replace(PART, (whole, opening: string, name: string, closing: string) => {
    const part = parts[name];
    if (part === undefined) problems.push(`${name}: nobody makes it`);
    if (part !== undefined && !left.delete(name)) problems.push(`${name}: occurs twice`);
    return part === undefined ? whole : `${opening}${part.trimEnd()}\n${closing}`;
  });
  return { text: made, problems: [...problems, ...[...left].map((name) => `${name}: the document has no such part`)] };
}

/** Text as a block of code. */
export const block = (text: string, language = ""): string => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``;

/** What a document says and what it should say; with UPDATE=1 it is made to say it first. */
export function checkDocument(path: string, parts: Parts): { readonly found: string; readonly expected: string } {
  const file = join(ROOT, path);
  const before = readFileSync(file, "utf8");
  const { text, problems } = regenerate(before, parts);
  if (process.env.UPDATE) writeFileSync(file, text);
  const found = readFileSync(file, "utf8");
  return { found: `${problems.join("\n")}\n${found}`, expected: `\n${text}` };
}
