/** @file The site, built once for all of its tests, and its pages as text. `SITE=FOLDER` takes one that is built already. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../support/project.ts";

export interface BuiltSite {
  readonly folder: string;
  /** Paths of all pages, from the folder. */
  readonly pages: readonly string[];
}

export function builtSite(): BuiltSite {
  const folder = process.env.SITE ?? join(ROOT, "dist-site");
  if (!process.env.SITE || !existsSync(folder))
    execFileSync(process.execPath, [join(ROOT, "scripts", "site.mjs"), "--out", folder], {
      stdio: ["ignore", "ignore", "inherit"],
    });
  const all = readdirSync(folder, { recursive: true }).map((path) => String(path).replaceAll("\\", "/"));
  return { folder, pages: all.filter((path) => path.endsWith(".html")).sort() };
}

export const pageText = ({ folder }: BuiltSite, path: string): string => readFileSync(join(folder, path), "utf8");

/** One page of every kind, and the guides that have the most on them: what is looked at closely. */
export const CLOSELY: readonly string[] = [
  "index.html",
  "documents/Quickstart.html",
  "documents/Comparison_with_other_libraries.html",
  "documents/Memory_budgets.html",
  "modules/tidemark_nn.html",
  "classes/tidemark_tape.Pool.html",
  "functions/tidemark.compile.html",
  "functions/tidemark.softmax.html",
  "interfaces/tidemark.CompileOptions.html",
  "types/tidemark.Tree.html",
  "variables/tidemark.random.html",
  "source/src/api/math.ts.html",
  "plans/cnn.html",
  "playground/edit.html",
];
