/** @file Links of the site lead somewhere, nothing is loaded from elsewhere, and pages are small. */
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { projectFiles, ROOT, subpathSources } from "../support/project.ts";
import { PublicExports } from "../support/public-exports.ts";
import { builtSite, pageText } from "./built.ts";

const site = builtSite();

/** Pages with scripts of their own, which other tests open. Their markup is in those scripts. */
const isApplication = (page: string): boolean => /^(playground|plans|explainer)\//.test(page);

/** Scripts of workers, which pages start themselves. */
const STARTED: Readonly<Record<string, readonly string[]>> = {
  "playground/index.html": ["worker.js"],
  "playground/edit.html": ["worker.js"],
};

/** Pages above the limit, each with its own and its reason. */
const LARGE: Readonly<Record<string, { readonly most: number; readonly why: string }>> = {
  "playground/index.html": {
    most: 680_000,
    why: "it trains: the whole library, the compiler and the planner of budgets",
  },
  "playground/edit.html": { most: 880_000, why: "the same, an editor, and the names and types that it completes" },
  "explainer/your-function.html": { most: 720_000, why: "every name of the library may be imported there; an editor" },
};

const attributes = (text: string, names: string): readonly string[] =>
  [
    ...text
      .replace(/<script(?![^>]*\bsrc=)[\s\S]*?<\/script>/g, "")
      .matchAll(new RegExp(`<[a-z][^>]*?\\s(?:${names})="([^"]*)"`, "g")),
  ].map(([, value = ""]) => value.replaceAll("&amp;", "&"));

const idsOf = new Map<string, ReadonlySet<string>>();
function hasId(page: string, id: string): boolean {
  const ids = idsOf.get(page) ?? new Set(attributes(pageText(site, page), "id"));
  idsOf.set(page, ids);
  return ids.has(id);
}

/** What is wrong with a link of a page, or null. */
function linkProblem(page: string, link: string): string | null {
  if (/^(https?|mailto):/.test(link)) return null;
  if (/^([a-z]+:|\/)/.test(link)) return "is no relative path";
  const [path = "", id = ""] = link.split("#");
  const target = path === "" ? page : posix.join(posix.dirname(page), decodeURIComponent(path));
  if (target.startsWith("..") || !existsSync(join(site.folder, target))) return "leads to no file";
  const isIcon = id.startsWith("icon-");
  if (id === "" || isIcon || isApplication(target) || !target.endsWith(".html")) return null;
  return hasId(target, decodeURIComponent(id)) ? null : "leads to no place in its page";
}

const KINDS = ["functions", "classes", "interfaces", "types", "variables", "modules"];
const known = new Set(site.pages);

/** Whether an export has a page, or is listed by its module as that of another; types of namespaces are pages of the entry point. */
function hasEntry(entry: string, name: string): boolean {
  const slug = entry.replaceAll("/", "_");
  const [first = "", ...rest] = name.split(".");
  const names = [name, rest.at(-1) ?? name];
  if (KINDS.some((kind) => names.some((each) => known.has(`${kind}/${slug}.${each}.html`)))) return true;
  const listed = pageText(site, `modules/${slug}.html`).replaceAll("<wbr/>", "");
  return new RegExp(`>${first}<`).test(listed);
}

describe("the site", () => {
  it("has every part", () => {
    expect(site.pages.length).toBeGreaterThan(1000);
    const parts = [
      "index.html",
      "documents/Quickstart.html",
      "modules/tidemark_nn.html",
      "playground/index.html",
      "plans/cnn.html",
    ];
    expect(parts.filter((page) => !site.pages.includes(page))).toEqual([]);
  });

  it("has an entry for every export", () => {
    const files = projectFiles(ROOT);
    const entries = subpathSources(files.find(({ path }) => path === "package.json")?.text ?? "");
    const exports = new PublicExports(files);
    const all = [...entries].flatMap(([entry, path]) => exports.of(entry, path));
    const shown = all.filter(({ comment }) => !comment.includes("@internal"));
    expect(shown.length).toBeGreaterThan(1000);
    expect(
      shown.filter((each) => !hasEntry(each.entry, each.name)).map(({ entry, name }) => `${entry} ${name}`),
    ).toEqual([]);
    expect(hasEntry("tidemark/nn", "nowhere")).toBe(false);
  });

  it("has no dead link", () => {
    const dead = site.pages
      .filter((page) => !isApplication(page))
      .flatMap((page) =>
        [...new Set(attributes(pageText(site, page), "href|src"))].flatMap((link) => {
          const problem = linkProblem(page, link);
          return problem ? [`${page}: ${link} ${problem}`] : [];
        }),
      );
    expect(dead).toEqual([]);
    expect(linkProblem("index.html", "documents/Nowhere.html")).toBe("leads to no file");
    expect(linkProblem("index.html", "documents/Errors.html#nowhere")).toBe("leads to no place in its page");
  });

  it("loads nothing from elsewhere", () => {
    const loaded = /<(?:script|link|img|iframe|source|video)\b[^>]*?\s(?:src|href)="((?:https?:)?\/\/[^"]*)"/g;
    expect(
      site.pages.flatMap((page) => [...pageText(site, page).matchAll(loaded)].map(([, url]) => `${page}: ${url}`)),
    ).toEqual([]);
    const styles = ["assets/style.css", "assets/custom.css", "assets/highlight.css"]
      .map((path) => pageText(site, path))
      .join();
    expect(styles).not.toMatch(/url\(["']?(https?:)?\/\/|@import/);
  });

  it("has pages of at most 400 kB, compressed, with all that they load at once", () => {
    const sizes = new Map<string, number>();
    const packed = (path: string): number => {
      const size = sizes.get(path) ?? gzipSync(readFileSync(join(site.folder, path))).length;
      sizes.set(path, size);
      return size;
    };
    const large = site.pages.flatMap((page) => {
      const text = pageText(site, page);
      const loaded = [
        ...text.matchAll(
          /<(?:script|img)\b(?![^>]*loading="lazy")[^>]*?\ssrc="([^"]*)"|<link rel="stylesheet" href="([^"]*)"/g,
        ),
      ];
      const files = [...loaded.map((match) => match[1] ?? match[2] ?? ""), ...(STARTED[page] ?? [])];
      const own = files.map((file) => posix.join(posix.dirname(page), file));
      const bytes = [page, ...new Set(own)].reduce((sum, path) => sum + packed(path), 0);
      return bytes > (LARGE[page]?.most ?? 400_000) ? [`${page}: ${bytes}`] : [];
    });
    expect(large).toEqual([]);
  });
});
