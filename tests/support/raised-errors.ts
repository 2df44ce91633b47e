/**
 * @file Which codes of errors a declaration of the sources leads to by names: it names the code itself, or another declaration that
 * leads to it. Types are left out, and so is what is called as a method of a value, whose declaration its name does not say.
 */
import type { ProjectFile } from "./project.ts";
import { type Ast, isAst, isTypeNode, lastName, parse, resolveImport } from "./syntax.ts";

/** What a name of a file stands for: a declaration there, or one of another file (`*` for all of them). */
interface Binding {
  readonly path: string;
  readonly name: string;
}

interface Sources {
  readonly declared: ReadonlyMap<string, Ast>;
  readonly bound: ReadonlyMap<string, Binding>;
}

/** What a declaration itself names. */
interface Named {
  readonly codes: readonly string[];
  readonly others: readonly Binding[];
}

export class RaisedErrors {
  readonly #files: ReadonlyMap<string, ProjectFile>;
  readonly #codes: ReadonlySet<string>;
  readonly #ends: ReadonlySet<string>;
  readonly #sources = new Map<string, Sources>();
  readonly #named = new Map<string, Named>();

  /** @param ends declarations, `path name`, that are not followed */
  constructor(files: readonly ProjectFile[], codes: ReadonlySet<string>, ends: ReadonlySet<string> = new Set()) {
    this.#files = new Map(files.map((file) => [file.path, file]));
    this.#codes = codes;
    this.#ends = ends;
  }

  /** The codes that a declaration leads to, each with the declarations on the way to it, in order of code. */
  of(path: string, name: string): ReadonlyMap<string, readonly string[]> {
    const codes = new Map<string, readonly string[]>();
    const visited = new Set<string>(this.#ends);
    const open: { readonly binding: Binding; readonly way: readonly string[] }[] = [
      { binding: { path, name }, way: [] },
    ];
    for (let next = open.shift(); next; next = open.shift()) {
      const { binding, way } = next;
      const key = `${binding.path} ${binding.name}`;
      if (visited.has(key)) continue;
      visited.add(key);
      const named = this.#namedBy(binding);
      const onward = [...way, binding.name];
      for (const code of named.codes) if (!codes.has(code)) codes.set(code, onward);
      for (const other of named.others) open.push({ binding: other, way: onward });
    }
    return new Map([...codes].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #namedBy({ path, name }: Binding): Named {
    const key = `${path} ${name}`;
    const known = this.#named.get(key);
    if (known) return known;
    const { declared, bound } = this.#sourcesOf(path);
    const node = declared.get(name);
    const elsewhere = bound.get(name);
    const found = node ? this.#collected(node, path) : { codes: [], others: elsewhere ? [elsewhere] : [] };
    this.#named.set(key, found);
    return found;
  }

  #collected(root: Ast, path: string): Named {
    const { declared, bound } = this.#sourcesOf(path);
    const codes = new Set<string>();
    const others: Binding[] = [];
    const members = new Set<string>();
    const loaded: string[] = [];
    const enter = (node: Ast): void => {
      if (isTypeNode(node)) return;
      if (node.type === "Literal" && this.#codes.has(String(node.value))) codes.add(String(node.value));
      if (node.type === "Identifier") {
        const name = String(node.name);
        const there = bound.get(name);
        if (declared.has(name)) others.push({ path, name });
        else if (there && there.name !== "*") others.push(there);
      }
      if (node.type === "MemberExpression") members.add(lastName(node.property) ?? "");
      if (node.type === "ImportExpression" && isAst(node.source))
        loaded.push(resolveImport(path, String(node.source.value)) ?? "");
      if (node.type === "MemberExpression" && isAst(node.object) && node.object.type === "Identifier") {
        const space = bound.get(String(node.object.name));
        if (space?.name === "*") others.push({ path: space.path, name: lastName(node.property) ?? "" });
      }
      for (const field of Object.values(node)) {
        if (Array.isArray(field)) field.filter(isAst).forEach(enter);
        else if (isAst(field)) enter(field);
      }
    };
    enter(root);
    // of a module that is loaded when it is needed: what is named like one of its parts
    for (const source of loaded) others.push(...[...members].map((name) => ({ path: source, name })));
    return { codes: [...codes], others };
  }

  #sourcesOf(path: string): Sources {
    const known = this.#sources.get(path);
    if (known) return known;
    const declared = new Map<string, Ast>();
    const bound = new Map<string, Binding>();
    const file = this.#files.get(path);
    for (const node of file && file.text !== "" ? (parse(file).body as readonly Ast[]) : []) {
      const source = isAst(node.source) ? resolveImport(path, String(node.source.value)) : null;
      for (const each of (node.specifiers ?? []) as readonly Ast[]) {
        const local = lastName(each.type === "ExportSpecifier" ? each.exported : each.local) ?? "";
        const inner = each.type === "ExportSpecifier" ? each.local : each.imported;
        const name = each.type === "ImportNamespaceSpecifier" ? "*" : (lastName(inner) ?? local);
        if (source) bound.set(local, { path: source, name });
        else if (name !== local) bound.set(local, { path, name });
      }
      const declaration = isAst(node.declaration) ? node.declaration : node;
      const nodes = declaration.type === "VariableDeclaration" ? (declaration.declarations as Ast[]) : [declaration];
      for (const each of nodes) {
        const name = /Declara(tion|tor)$|Function$/.test(each.type) ? lastName(each.id) : null;
        // of overloads, the one with a body
        if (name && (each.type !== "TSDeclareFunction" || !declared.has(name))) declared.set(name, each);
      }
    }
    const found = { declared, bound };
    this.#sources.set(path, found);
    return found;
  }
}
