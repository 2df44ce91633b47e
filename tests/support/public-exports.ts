/** @file What the entry points export: every name with the declaration that it leads to, through re-exports. */
import { posix } from "node:path";
import type { ProjectFile } from "./project.ts";
import { type Ast, isAst, lastName, lineAt, parse } from "./syntax.ts";

export interface PublicExport {
  /** `tidemark/nn`. */
  readonly entry: string;
  /** Behind its namespace, if it is in one: `linalg.qr`. */
  readonly name: string;
  readonly path: string;
  readonly line: number;
  /** A type alone: an interface or alias. */
  readonly isType: boolean;
  /** The comment before the declaration, without its marks; empty if there is none. */
  readonly comment: string;
  /** The text of the declaration, of a function without its body. */
  readonly declaration: string;
}

type Found = Omit<PublicExport, "entry" | "name">;

export class PublicExports {
  readonly #files: ReadonlyMap<string, ProjectFile>;

  constructor(files: readonly ProjectFile[]) {
    this.#files = new Map(files.map((file) => [file.path, file]));
  }

  /** All that an entry point exports, by name. */
  of(entry: string, path: string): readonly PublicExport[] {
    return [...this.#namesOf(path)].map(([name, found]) => ({ entry, name, ...found }));
  }

  #file(path: string): ProjectFile {
    const file = this.#files.get(path);
    if (!file) throw new Error(`there is no ${path}`);
    return file;
  }

  #namesOf(path: string): Map<string, Found> {
    const names = new Map<string, Found>();
    for (const node of this.#file(path).text === "" ? [] : (parse(this.#file(path)).body as readonly Ast[])) {
      const source = this.#sourceOf(path, node);
      if (node.type === "ExportAllDeclaration" && source) {
        const prefix = isAst(node.exported) ? `${lastName(node.exported)}.` : "";
        for (const [name, found] of this.#namesOf(source)) names.set(prefix + name, found);
      }
      if (node.type !== "ExportNamedDeclaration") continue;
      for (const { local, exported } of (node.specifiers ?? []) as readonly { local: Ast; exported: Ast }[]) {
        const found = source ? this.#namesOf(source).get(lastName(local) ?? "") : this.#local(path, lastName(local));
        if (found) names.set(lastName(exported) ?? "", found);
        else throw new Error(`${path}: ${lastName(exported)} leads nowhere`);
      }
      if (isAst(node.declaration)) this.#declared(path, node, names);
    }
    return names;
  }

  #sourceOf(path: string, node: Ast): string | null {
    const source = isAst(node.source) ? String(node.source.value) : "";
    return source.startsWith(".") ? posix.join(posix.dirname(path), source) : null;
  }

  #declared(path: string, node: Ast, names: Map<string, Found>): void {
    // of overloads, the first is described
    for (const name of declaredNames(node.declaration as Ast))
      if (!names.has(name)) names.set(name, foundAt(this.#file(path), node));
  }

  /** A name that is exported apart from its declaration, or was imported. */
  #local(path: string, name: string | null): Found | undefined {
    for (const node of parse(this.#file(path)).body as readonly Ast[]) {
      const source = this.#sourceOf(path, node);
      const specifiers = node.type === "ImportDeclaration" ? (node.specifiers as readonly Ast[]) : [];
      const imported = specifiers.find((specifier) => lastName(specifier.local) === name);
      if (imported && source) return this.#namesOf(source).get(lastName(imported.imported) ?? "");
      if (/Declaration$/.test(node.type) && declaredNames(node).includes(name ?? ""))
        return foundAt(this.#file(path), node);
    }
    return undefined;
  }
}

function declaredNames(node: Ast): readonly string[] {
  const nodes = node.type === "VariableDeclaration" ? (node.declarations as readonly Ast[]) : [node];
  return nodes.flatMap((each) => lastName(each.id) ?? []);
}

function foundAt(file: ProjectFile, node: Ast): Found {
  const declaration = isAst(node.declaration) ? node.declaration : node;
  const before = file.text.slice(0, node.start).replace(/(\/\/ biome-ignore.*\s*)+$/, "");
  const start = before.lastIndexOf("/**");
  const comment =
    start >= 0 && /^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.test(before.slice(start)) ? before.slice(start) : "";
  const end = isAst(declaration.body) && /Function/.test(declaration.type) ? declaration.body.start : declaration.end;
  return {
    path: file.path,
    line: lineAt(file, node.start),
    isType: /^TS(Interface|TypeAlias)Declaration$/.test(declaration.type),
    comment: comment
      .replace(/^\/\*\*|\*\/\s*$/g, "")
      .replace(/^\s*\* ?/gm, "")
      .trim(),
    declaration: file.text.slice(declaration.start, end),
  };
}
