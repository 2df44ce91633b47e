/**
 * @file The names that the playground's editor completes, from the library's published types: the exports of the modules
 * that a text imports most, the methods of tensors, each with its signature and the first sentence of its documentation.
 * They are read by the compiler's own interface. A plugin of the bundler puts the list in the place of src/playground/completion-list.ts.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { API, NodeBuilderFlags, SignatureKind, SymbolFlags } from "typescript/unstable/sync";

/** Modules by the names under which they are imported, and the folders of their types. */
const MODULES = { tidemark: "api", "tidemark/nn": "nn", "tidemark/optim": "optim", "tidemark/sim": "sim" };

const LIST_FILE = fileURLToPath(new URL("../src/playground/completion-list.ts", import.meta.url));

const OPTIONS = {
  ...{ noEmit: true, skipLibCheck: true, strict: true, types: [], lib: ["es2023"], target: "es2022" },
  ...{ module: "nodenext", allowImportingTsExtensions: true },
};

/** The first sentence; a period after a single letter is that of an initial. */
function firstSentence(text) {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const end = /(?<!\b[A-Za-z])\.(?=\s|$)/.exec(line);
  return end ? line.slice(0, end.index + 1) : line;
}

/** Without what a question mark already says. */
const shortened = (text) => text.replaceAll(/(\?: (?:[^(),]|\([^()]*\))*?) \| undefined(?=[,)])/g, "$1");

/** The end of the bracket at a position. */
function closing(text, open) {
  let depth = 0;
  for (let i = open; i < text.length; i++) {
    const letter = text.charAt(i);
    if ("([{<".includes(letter)) depth += 1;
    if (")]}".includes(letter) || (letter === ">" && text.charAt(i - 1) !== "=")) depth -= 1;
    if (depth === 0) return i + 1;
  }
  return text.length;
}

/** A function's type, `(x: A) => B` or `{ (x: A): B; … }`, as a signature, `(x: A): B`; the first of several. */
function signatureText(type) {
  const [first] = type.startsWith("{ ") ? type.slice(2).split(/; (?=[<(])|; \}$/) : [type];
  const end = closing(first, first.startsWith("<") ? closing(first, 0) : 0);
  return shortened(`${first.slice(0, end)}${first.slice(end).replace(/^( =>|:) /, ": ")}`);
}

/** Reads symbols of one project. */
function reader({ checker }) {
  const aliased = (symbol) => (symbol.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  const callsOf = (type) => checker.getSignaturesOfType(type, SignatureKind.Call);

  const isInternal = (symbol) => checker.getJsDocTagsOfSymbol(symbol).some(({ name }) => name === "internal");

  /** What a symbol is, and its signature or type. */
  const described = (symbol, isMember) => {
    if (!(symbol.flags & SymbolFlags.Value)) return { kind: "type", signature: "" };
    if (symbol.flags & SymbolFlags.Class) return { kind: "class", signature: "" };
    if (symbol.flags & SymbolFlags.Module) return { kind: "namespace", signature: "" };
    const type = checker.getTypeOfSymbol(symbol);
    const text = checker.typeToString(type, undefined, NodeBuilderFlags.NoTruncation);
    if (callsOf(type).length > 0) return { kind: isMember ? "method" : "function", signature: signatureText(text) };
    return { kind: isMember ? "property" : "constant", signature: text.length > 60 ? "" : text };
  };

  const item = (isMember) => (symbol) => {
    const own = aliased(symbol);
    if (!/^[A-Za-z]/.test(symbol.name) || isInternal(own)) return [];
    const about = firstSentence(checker.getDocumentationCommentOfSymbol(own));
    return [{ name: symbol.name, ...described(own, isMember), about }];
  };

  const list = (symbols, isMember) => symbols.flatMap(item(isMember)).sort((a, b) => (a.name < b.name ? -1 : 1));

  return {
    exportsOf: (symbol) => checker.getExportsOfModule(symbol),
    items: (symbols) => list(symbols, false),
    /** Of an instance of a class. */
    members: (symbol) => list(checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(aliased(symbol))), true),
    /** The members of a module or of an object of functions, such as `random`; null of anything else. */
    inside(symbol) {
      const own = aliased(symbol);
      if (own.flags & SymbolFlags.Module) return list(checker.getExportsOfModule(own), true);
      if (!(own.flags & SymbolFlags.Variable)) return null;
      const type = checker.getTypeOfSymbol(own);
      if (checker.isArrayLikeType(type)) return null;
      const members = checker.getPropertiesOfType(type);
      const isObject = members.some((member) => callsOf(checker.getTypeOfSymbol(member)).length > 0);
      return isObject ? list(members, true) : null;
    },
  };
}

/** A method that is a function of the same name has its documentation. */
function withAbout(methods, functions) {
  const abouts = new Map(functions.map(({ name, about }) => [name, about]));
  return methods.map((method) => ({ ...method, about: method.about || (abouts.get(method.name) ?? "") }));
}

/**
 * @param {string} types the folder with the published types
 * @returns {import("../src/playground/completion-list.ts").CompletionList}
 */
export function completionsOf(types) {
  const files = Object.values(MODULES).map((folder) => join(types, folder, "index.d.ts"));
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`${missing} is missing: npm run build`);
  // A project of these files alone, which is on no disk.
  const config = join(types, "completions.json");
  const text = JSON.stringify({ compilerOptions: OPTIONS, files });
  const fs = {
    readFile: (path) => (path === config ? text : undefined),
    fileExists: (path) => (path === config ? true : undefined),
  };
  const api = new API({ cwd: types, fs });
  try {
    return listOf(api.updateSnapshot({ openProjects: [config] }).getProject(config), files);
  } finally {
    api.close();
  }
}

function listOf(project, files) {
  const { exportsOf, items, members, inside } = reader(project);
  const modulesOf = files.map((file) => project.checker.getSymbolAtLocation(project.program.getSourceFile(file)));
  const exported = modulesOf.map(exportsOf);
  const all = exported.flat();
  const modules = Object.fromEntries(Object.keys(MODULES).map((name, i) => [name, items(exported[i])]));
  const tensor = members(all.find(({ name }) => name === "Tensor"));
  const namespaces = Object.fromEntries(
    all.flatMap((symbol) => {
      const inner = inside(symbol);
      return inner ? [[symbol.name, inner]] : [];
    }),
  );
  return { modules, tensor: withAbout(tensor, modules.tidemark), namespaces };
}

/**
 * @param {string} types the folder with the published types
 * @returns a plugin for rolldown
 */
export function completionList(types) {
  return {
    name: "completion-list",
    /** @param {string} id */
    load(id) {
      if (id !== LIST_FILE) return null;
      return `export const COMPLETIONS = ${JSON.stringify(completionsOf(types))};\n`;
    },
  };
}
