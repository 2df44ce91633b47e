/** @file Rules about what is written around the code: pass tests, error sections, links, hosts and paths. */
import { existsSync } from "node:fs";
import { basename, join, posix } from "node:path";
import { type ProjectFile, ROOT } from "./project.ts";
import { type Ast, isAst, lastName, lineAt, parse, walk } from "./syntax.ts";

/** Hosts that tracked files may mention, and what for. */
export const HOSTS: ReadonlyMap<string, string> = new Map([
  ["arxiv.org", "papers"],
  ["doi.org", "papers"],
  ["github.com", "published instances and issues of other projects"],
  ["webassembly.github.io", "the WebAssembly specification"],
  ["www.w3.org", "the namespace of SVG, and specifications"],
  ["localhost", "examples that serve a page"],
  ...["docs.pytorch.org", "docs.jax.dev", "js.tensorflow.org"].map((host) => [host, "what is compared"] as const),
]);

/** A pass is an exported `const x: Pass`, or `function x(options): Pass` in the file of that name. */
export function passNames(file: ProjectFile): readonly string[] {
  const names: string[] = [];
  walk(parse(file), (node, ancestors) => {
    if (ancestors.at(-1)?.type !== "ExportNamedDeclaration") return;
    const own = basename(file.path, ".ts");
    if (node.type === "FunctionDeclaration" && isPassType(node.returnType) && kebab(lastName(node.id)) === own)
      names.push(own);
    if (node.type !== "VariableDeclaration") return;
    for (const { id } of node.declarations as { id: Ast }[]) {
      if (isPassType(id.typeAnnotation)) names.push(kebab(lastName(id)));
    }
  });
  return names;
}

function isPassType(annotation: unknown): boolean {
  if (!isAst(annotation) || !isAst(annotation.typeAnnotation)) return false;
  return (
    annotation.typeAnnotation.type === "TSTypeReference" && lastName(annotation.typeAnnotation.typeName) === "Pass"
  );
}

function kebab(name: string | null): string {
  return (name ?? "").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function passViolations(files: readonly ProjectFile[]): readonly string[] {
  const paths = new Set(files.map((file) => file.path));
  return files
    .filter((file) => /^src\/passes\/.*(?<!\.test)\.ts$/.test(file.path))
    .flatMap((file) => passNames(file).map((name) => ({ file, test: `tests/passes/${name}.ir` })))
    .filter(({ test }) => !paths.has(test))
    .map(({ file, test }) => `${file.path}: the pass has no ${test}`);
}

/** The members of `type ErrorCode = "A" | "B" | …`. */
export function errorCodes(file: ProjectFile): readonly string[] {
  const codes: string[] = [];
  walk(parse(file), (node, ancestors) => {
    const inside = ancestors.some((a) => a.type === "TSTypeAliasDeclaration" && lastName(a.id) === "ErrorCode");
    if (inside && node.type === "Literal") codes.push(String(node.value));
  });
  return codes;
}

/** Sections `## Code` of docs/errors.md: one for each code, none for others, each with a wrong and a right example. */
export function errorSectionViolations(codes: readonly string[], document: ProjectFile): readonly string[] {
  const sections = new Map(
    document.text
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.slice(0, section.indexOf("\n")).trim(), section]),
  );
  return [
    ...codes.filter((code) => !sections.has(code)).map((code) => `${document.path}: has no section '## ${code}'`),
    ...[...sections.keys()]
      .filter((name) => !codes.includes(name))
      .map((name) => `${document.path}: '${name}' is no ErrorCode`),
    ...[...sections]
      .filter(([, body]) => !/^Wrong:\n\n```/m.test(body) || !/^Right:\n\n```/m.test(body))
      .map(([name]) => `${document.path}: '${name}' lacks a block after 'Wrong:' or 'Right:'`),
  ];
}

/** Relative links of Markdown files name a file or folder, and `#anchors` a heading of it. */
export function linkViolations(files: readonly ProjectFile[]): readonly string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const folders = new Set(
    files.flatMap((file) => file.path.split("/").map((_, i, parts) => parts.slice(0, i).join("/"))),
  );
  return files
    .filter((file) => file.path.endsWith(".md"))
    .flatMap((file) =>
      [...withoutCode(file.text).matchAll(/\]\(([^()\s]+)\)|^\[[^\]]+\]:\s*(\S+)/gm)].flatMap((match) => {
        const link = match[1] ?? match[2] ?? "";
        if (/^[a-z]+:/.test(link)) return [];
        const [path = "", anchor] = link.split("#");
        const target = path === "" ? file.path : posix.join(posix.dirname(file.path), path).replace(/\/$/, "");
        const place = `${file.path}:${lineAt(file, match.index)}: the link ${link}`;
        // Pictures are no text files: they are looked for where they should be.
        const isPicture = target.endsWith(".png") && existsSync(join(ROOT, target));
        if (!byPath.has(target) && !folders.has(target) && !isPicture) return [`${place} leads nowhere`];
        const found = anchor === undefined || anchors(byPath.get(target)?.text ?? "").includes(anchor);
        return found ? [] : [`${place} names a heading that ${target} does not have`];
      }),
    );
}

/** Code becomes spaces, so that offsets stay what they were. */
function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```|`[^`\n]*`/gm, (code) => code.replace(/[^\n]/g, " "));
}

/** A source by its name, with folders or without; not a pattern, nor what a program writes (`index.d.ts`). */
const SOURCE_NAME = /(?<![\w.{}$*/-])(?:\.{1,2}\/)*((?:[\w-]+\/)*[\w-]+(?:\.test)?\.ts)\b(?![\w(*])/g;

/** Sources that comments, decisions and ARCHITECTURE.md name are there: `plan.ts`, `order/list.ts` and `src/plan/order.ts` alike. */
export function sourceNameViolations(files: readonly ProjectFile[]): readonly string[] {
  const ends = new Set(files.flatMap(({ path }) => path.split("/").map((_, i, parts) => parts.slice(i).join("/"))));
  return files
    .filter(({ path }) => /^(ARCHITECTURE\.md$|docs\/decisions\/|(src|scripts)\/.*(?<!\.test)\.(ts|mjs)$)/.test(path))
    .flatMap((file) =>
      [...file.text.matchAll(SOURCE_NAME)]
        .filter(([, name = ""]) => !ends.has(name))
        .map(({ 1: name, index }) => `${file.path}:${lineAt(file, index)}: there is no ${name}`),
    );
}

/** As the usual renderers make them: lower case, punctuation dropped, spaces to hyphens. */
function anchors(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .trim()
      .replace(/ /g, "-"),
  );
}

/**
 * Phrases that make a reader translate, each with the words of the field. `*` at the end of a word stands for any ending.
 * Add to the list what reviews find; a phrase belongs here if it is never the best word.
 */
export const DIALECT: Readonly<Record<string, string>> = {
  nobody: "say what does not happen",
  whoever: "name the subject",
  somebody: "name the subject",
  "of ours": "'internal' or 'of this project'",
  anew: "'again'",
  "in vain": "'unsuccessfully'",
  "turned round": "'transposed'",
  "calm*": "say what is small",
  "compute* again": "'recompute'",
  "computing again": "'recompute'",
  "by turns": "'alternately'",
  "behind your back": "'implicitly'",
  believed: "'trusted' or 'not verified'",
  "worked out": "'computed'",
  "without further ado": "leave it out",
  shelf: "'time-window index'",
  shelves: "'time-window index'",
};

/** A phrase may go over a line break, also in a comment; offsets are those of the text. */
function phrase(words: string): RegExp {
  const pattern = words.replaceAll("*", "\\w*").split(" ").join("(?:\\s|\\*|//)+");
  return new RegExp(`\\b${pattern}\\b`, "gi");
}

/** Plain words in documents (without their code) and in sources, of the files and folders whose path begins as given. */
export function dialectViolations(files: readonly ProjectFile[], prefixes: readonly string[]): readonly string[] {
  return files
    .filter(({ path }) => /\.(md|[mc]?[jt]s)$/.test(path) && prefixes.some((prefix) => path.startsWith(prefix)))
    .flatMap((file) => {
      const text = file.path.endsWith(".md") ? withoutCode(file.text) : file.text;
      return Object.entries(DIALECT).flatMap(([words, instead]) =>
        [...text.matchAll(phrase(words))].map(
          ({ 0: found, index }) => `${file.path}:${lineAt(file, index)}: "${found.replace(/\s+/g, " ")}": ${instead}`,
        ),
      );
    });
}

const MACHINE_PATH = /(?<![\w.@*)\]}-])(\/(home|root|Users|work|workspace|tmp|mnt|private)|[A-Z]:\\\w+)[/\\]\w+/;

/** Files speak of the project alone: no paths of some machine, no hosts but the listed ones, no registry in the lock. */
export function machineViolations(files: readonly ProjectFile[]): readonly string[] {
  return files.flatMap((file) => {
    const locked = basename(file.path) === "package-lock.json";
    return file.text.split("\n").flatMap((line, i) => {
      const place = `${file.path}:${i + 1}`;
      const path = MACHINE_PATH.exec(line)?.[0];
      const hosts = [...line.matchAll(/\bhttps?:\/\/([\w.-]+)/g)].map((match) => match[1] ?? "");
      const foreign = locked ? [] : hosts.filter((host) => !HOSTS.has(host));
      return [
        ...(path ? [`${place}: ${path} is a path of some machine`] : []),
        ...foreign.map((host) => `${place}: ${host} is not one of the hosts that files may mention`),
        ...(locked && /"resolved":/.test(line) ? [`${place}: names a registry`] : []),
      ];
    });
  });
}

interface Lock {
  readonly packages: Readonly<
    Record<string, Readonly<Record<"dependencies" | "optionalDependencies", object | undefined>>>
  >;
}

/** `npm ci` refuses a lock in which a dependency has no entry, even one for another system (which npm may leave out). */
export function lockViolations(lock: ProjectFile): readonly string[] {
  const { packages } = JSON.parse(lock.text) as Lock;
  return Object.entries(packages).flatMap(([folder, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !(`node_modules/${name}` in packages) && !(`${folder}/node_modules/${name}` in packages))
      .map((name) => `${lock.path}: ${folder} depends on ${name}, which has no entry`),
  );
}
