/** @file The documents as the site reads them, in a folder that was not there: all of them, with links that lead to one another. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ROOT } from "./support/project.ts";

const { SITE_ROOT, stageDocuments } = (await import(new URL("../site/stage.mjs", import.meta.url).href)) as {
  readonly SITE_ROOT: string;
  stageDocuments(root: string, stage: string): { home: string; documents: string[]; linked: Set<string> };
};
const base = mkdtempSync(join(tmpdir(), "tidemark-site-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe("the documents of the site", () => {
  const folder = join(base, "not", "there", "yet");
  const { home, documents, linked } = stageDocuments(ROOT, folder);
  const written = readdirSync(folder, { recursive: true }).map((path) => join(folder, String(path)));
  const pages = written.filter((path) => path.endsWith(".md"));

  it("are where the site looks for them", () => {
    expect(home).toBe(join(folder, "README.md"));
    expect([home, ...documents].filter((path) => !existsSync(path))).toEqual([]);
    expect(pages.length).toBeGreaterThan(100);
  });

  it("link one another, files of the repository and pages of the site", () => {
    const dead = pages.flatMap((page) => {
      const text = readFileSync(page, "utf8").replace(/^```[\s\S]*?^```|`[^`\n]+`/gm, "");
      return [...text.matchAll(/\]\(([^()\s]+)\)/g)].flatMap(([, link = ""]) => {
        if (/^(https?:|mailto:|#)/.test(link) || link.startsWith(SITE_ROOT)) return [];
        return existsSync(join(dirname(page), link.split("#")[0] ?? "")) ? [] : [`${relative(folder, page)}: ${link}`];
      });
    });
    expect(dead).toEqual([]);
    expect([...linked].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
