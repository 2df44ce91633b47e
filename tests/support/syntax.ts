/** @file Reading TypeScript as a tree (ESTree with type nodes), and the few questions that the project's rules ask of it. */
import { posix } from "node:path";
import { parseAst } from "vitest/node";
import type { ProjectFile } from "./project.ts";

/** A node of any kind; the fields beyond these depend on `type`. */
export interface Ast {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

export interface Import {
  readonly specifier: string;
  /** Erased by the compiler: `import type`, `export type … from`, `import("x").T` in a type. */
  readonly typeOnly: boolean;
  readonly line: number;
}

const parsed = new WeakMap<ProjectFile, Ast>();

export function parse(file: ProjectFile): Ast {
  const known = parsed.get(file);
  if (known) return known;
  const tree = parseAst(file.text, { lang: languageOf(file.path), sourceType: "module" }, file.path) as unknown as Ast;
  parsed.set(file, tree);
  return tree;
}

function languageOf(path: string): "js" | "ts" | "dts" {
  if (path.endsWith(".d.ts")) return "dts";
  return path.endsWith("ts") ? "ts" : "js";
}

export function isAst(value: unknown): value is Ast {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

/** Calls `visit` on every node, parents first, with the chain of ancestors (nearest last). */
export function walk(root: Ast, visit: (node: Ast, ancestors: readonly Ast[]) => void): void {
  const ancestors: Ast[] = [];
  const enter = (node: Ast): void => {
    visit(node, ancestors);
    ancestors.push(node);
    for (const field of Object.values(node)) {
      if (Array.isArray(field)) field.filter(isAst).forEach(enter);
      else if (isAst(field)) enter(field);
    }
    ancestors.pop();
  };
  enter(root);
}

/** Nodes for which `test` holds, in order. */
export function select(file: ProjectFile, test: (node: Ast, ancestors: readonly Ast[]) => boolean): readonly Ast[] {
  const found: Ast[] = [];
  walk(parse(file), (node, ancestors) => {
    if (test(node, ancestors)) found.push(node);
  });
  return found;
}

/** One-based line of a character. */
export function lineAt(file: ProjectFile, offset: number): number {
  let line = 1;
  for (let i = file.text.indexOf("\n"); i !== -1 && i < offset; i = file.text.indexOf("\n", i + 1)) line++;
  return line;
}

/** Everything a file takes from elsewhere: imports, re-exports, dynamic imports and import types. */
export function importsOf(file: ProjectFile): readonly Import[] {
  const found: Import[] = [];
  walk(parse(file), (node) => {
    const source = node.source;
    if (!isAst(source) || typeof source.value !== "string") return;
    const typeOnly = node.type === "TSImportType" || node.importKind === "type" || node.exportKind === "type";
    found.push({ specifier: source.value, typeOnly, line: lineAt(file, node.start) });
  });
  return found;
}

/** The path that a relative specifier names, or null for packages and `node:` modules. */
export function resolveImport(from: string, specifier: string): string | null {
  return specifier.startsWith(".") ? posix.normalize(posix.join(posix.dirname(from), specifier)) : null;
}

/** `name` of an identifier, or of a member's last part: `a.b.c` → `c`. */
export function lastName(node: unknown): string | null {
  if (!isAst(node)) return null;
  if (node.type === "Identifier") return node.name as string;
  return node.type === "MemberExpression" ? lastName(node.property) : null;
}

/** Whether a node is part of types alone, which are erased. */
export function isTypeNode({ type }: Ast): boolean {
  return /^TS/.test(type) && !/^TS(AsExpression|SatisfiesExpression|NonNullExpression|ParameterProperty)$/.test(type);
}
