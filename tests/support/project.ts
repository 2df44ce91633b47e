/**
 * @file The project's own files as data, for tests that look at the project itself. What `.gitignore` names is left out,
 * so a build, an install or a scratch file never changes an answer; no git is needed, so a source archive works too.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface ProjectFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

/** Every text file of the project, in order of path. */
export function projectFiles(root: string = ROOT): readonly ProjectFile[] {
  const ignored = ignoreRules(readFileSync(join(root, ".gitignore"), "utf8"));
  const files: ProjectFile[] = [];
  const visit = (directory: string): void => {
    for (const entry of readdirSync(join(root, directory), { withFileTypes: true })) {
      const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
      if (entry.name === ".git" || ignored(path, entry.isDirectory())) continue;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) files.push({ path, text: readFileSync(join(root, path), "utf8") });
    }
  };
  visit("");
  return files.filter((file) => !file.text.includes("\0")).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Understands the forms that our `.gitignore` uses: `name/`, `a/b/` and `*.ext`; anything else is refused. */
export function ignoreRules(text: string): (path: string, isDirectory: boolean) => boolean {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const rules = lines.map((line) => {
    const directory = /^(?:[\w.-]+\/)+$/.test(line) ? line.slice(0, -1) : null;
    const extension = /^\*\.[\w.]+$/.test(line) ? line.slice(1) : null;
    if (directory === null && extension === null)
      throw new Error(`.gitignore: '${line}' is a form that tests cannot read`);
    return { directory, extension };
  });
  return (path, isDirectory) =>
    rules.some(({ directory, extension }) => {
      if (extension !== null) return path.endsWith(extension);
      return isDirectory && (path === directory || (!directory?.includes("/") && path.endsWith(`/${directory}`)));
    });
}

/** The package's subpaths and the source that each is built from: `tidemark/ir` → `src/ir/index.ts`. */
export function subpathSources(manifest: string): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(manifest) as {
    name: string;
    exports: Record<string, string | { default: string }>;
  };
  const sources = new Map<string, string>();
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === "string") continue;
    sources.set(name + subpath.slice(1), target.default.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts"));
  }
  return sources;
}

export function isTest(path: string): boolean {
  return path.startsWith("tests/") || path.endsWith(".test.ts");
}

export function isScript(path: string): boolean {
  return /\.(ts|mts|js|mjs)$/.test(path);
}

/** A file of `src/` that is compiled into the package. */
export function isProduct(path: string): boolean {
  return path.startsWith("src/") && isScript(path) && !isTest(path);
}
