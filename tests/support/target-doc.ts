/** @file What docs/adding-a-target.md says of the types that a target is written against, from those types and their comments. */
import { at } from "../../src/base/invariant.ts";
import type { ProjectFile } from "./project.ts";
import { type Ast, isAst, lastName, select } from "./syntax.ts";

/** The comment before a node, in one line. */
function commentOf({ text }: ProjectFile, { start }: Ast): string {
  const [, comment = ""] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text.slice(0, start)) ?? [];
  return comment
    .replace(/^\s*\* ?/gm, "")
    .replace(/@param (\w+)/g, "`$1`:")
    .replace(/\s+/g, " ")
    .trim();
}

const nameOf = ({ id }: Ast): string => lastName(id) ?? "";

function interfaceOf(files: readonly ProjectFile[], name: string): { readonly file: ProjectFile; readonly node: Ast } {
  const found = files.flatMap((file) =>
    select(file, (node) => node.type === "TSInterfaceDeclaration" && nameOf(node) === name).map((node) => ({
      file,
      node,
    })),
  );
  return at(found, 0);
}

const membersOf = ({ body }: Ast): readonly Ast[] => (isAst(body) ? (body.body as Ast[]) : []);

/** Names of the members of a union of names. */
function unionOf(file: ProjectFile, name: string): readonly string[] {
  const [alias] = select(file, (node) => node.type === "TSTypeAliasDeclaration" && nameOf(node) === name);
  const types = isAst(alias?.typeAnnotation) ? (alias.typeAnnotation.types as Ast[]) : [];
  return types.map(({ typeName }) => lastName(typeName) ?? "");
}

/** The `kind` of every nest. */
export function nestKinds(files: readonly ProjectFile[]): readonly string[] {
  const loops = at(
    files.filter(({ path }) => path === "src/kernel/loops.ts"),
    0,
  );
  const kernel = files.filter(({ path }) => /^src\/kernel\/[\w-]+(?<!\.test)\.ts$/.test(path));
  return unionOf(loops, "Nest").map((name) => {
    const { file, node } = interfaceOf(kernel, name);
    const kind = membersOf(node).find(({ key }) => lastName(key) === "kind") as Ast;
    return /readonly kind: "(\w+)"/.exec(file.text.slice(kind.start, kind.end))?.[1] ?? name;
  });
}

/** The lines of kernel/loops.ts that say what each kind of nest does; a kind without a line is a problem. */
export function nestLines(files: readonly ProjectFile[]): string {
  const header = files.find(({ path }) => path === "src/kernel/loops.ts")?.text.split("*/", 1)[0] ?? "";
  const lines = new Map(
    [...header.matchAll(/^ \* {3}((\w+) {2,}.*)$/gm)].map(([, line = "", kind = ""]) => [kind, line]),
  );
  const kinds = nestKinds(files);
  const others = [...lines.keys()].filter((kind) => !kinds.includes(kind));
  if (others.length > 0) throw new Error(`src/kernel/loops.ts describes ${others.join(", ")}, which are no nests`);
  const missing = kinds.filter((kind) => !lines.has(kind));
  if (missing.length > 0) throw new Error(`src/kernel/loops.ts does not say what ${missing.join(", ")} do`);
  return [...lines.values()].join("\n");
}

/** A table of all fields of a target's description. */
export function descriptionTable(files: readonly ProjectFile[]): string {
  const own = files.filter(({ path }) => path === "src/target/description.ts");
  const rows = ["TargetDescription", "LoweringTarget"].flatMap((name) => {
    const { file, node } = interfaceOf(own, name);
    return membersOf(node).map((member) => {
      const params = Array.isArray(member.params)
        ? `(${member.params.map((param) => lastName(param)).join(", ")})`
        : "";
      const field = `\`${lastName(member.key)}${params}\``;
      const meaning = commentOf(file, member);
      if (meaning === "") throw new Error(`${file.path}: ${field} has no comment`);
      return `| ${field}${member.optional ? ", optional" : ""} | ${meaning} |`;
    });
  });
  return ["| field | meaning |", "| --- | --- |", ...rows].join("\n");
}
