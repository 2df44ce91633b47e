/**
 * @file The names that the playground's editor completes, from the library's published types: the exports of the modules
 * that a text imports most, the methods of tensors, each with its signature and the first sentence of its documentation.
 * A plugin of the bundler puts the list in the place of src/playground/completion-list.ts.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript-least";

/** Modules by the names under which they are imported, and the folders of their types. */
const MODULES = { tidemark: "api", "tidemark/nn": "nn", "tidemark/optim": "optim", "tidemark/sim": "sim" };

const LIST_FILE = fileURLToPath(new URL("../src/playground/completion-list.ts", import.meta.url));

const OPTIONS = {
  noEmit: true,
  skipLibCheck: true,
  strict: true,
  types: [],
  lib: ["lib.es2023.d.ts"],
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  allowImportingTsExtensions: true,
};

const FORMAT = ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope;

/** The first sentence; a period after a single letter is that of an initial. */
function firstSentence(text) {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const end = /(?<!\b[A-Za-z])\.(?=\s|$)/.exec(line);
  return end ? line.slice(0, end.index + 1) : line;
}

/** Without what a question mark already says. */
const shortened = (text) => text.replaceAll(/(\?: (?:[^(),]|\([^()]*\))*?) \| undefined(?=[,)])/g, "$1");

function isHidden(symbol) {
  return /^(#|_)/.test(symbol.name) || symbol.getJsDocTags().some(({ name }) => name === "internal");
}

/** Reads symbols of one program. */
function reader(checker, place) {
  const aliased = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  const typeOf = (symbol) => checker.getTypeOfSymbolAtLocation(symbol, place);

  /** What a symbol is, and its signature or type. */
  const described = (symbol, isMember) => {
    if (!(symbol.flags & ts.SymbolFlags.Value)) return { kind: "type", signature: "" };
    if (symbol.flags & ts.SymbolFlags.Class) return { kind: "class", signature: "" };
    if (symbol.flags & ts.SymbolFlags.Module) return { kind: "namespace", signature: "" };
    const type = typeOf(symbol);
    const [call] = type.getCallSignatures();
    if (!call) {
      const text = checker.typeToString(type, place, FORMAT);
      return { kind: isMember ? "property" : "constant", signature: text.length > 60 ? "" : text };
    }
    const text = checker.signatureToString(call, place, FORMAT);
    return { kind: isMember ? "method" : "function", signature: shortened(text) };
  };

  const item = (isMember) => (symbol) => {
    const own = aliased(symbol);
    if (isHidden(symbol) || isHidden(own)) return [];
    const about = firstSentence(ts.displayPartsToString(own.getDocumentationComment(checker)));
    return [{ name: symbol.name, ...described(own, isMember), about }];
  };

  /** The members of a module or of an object of functions, such as `random`; null of anything else. */
  const inside = (symbol) => {
    const own = aliased(symbol);
    if (own.flags & ts.SymbolFlags.Module) return list(checker.getExportsOfModule(own), true);
    if (!(own.flags & ts.SymbolFlags.Variable) || typeOf(own).getNumberIndexType()) return null;
    const members = checker.getPropertiesOfType(typeOf(own));
    return members.some((member) => typeOf(member).getCallSignatures().length > 0) ? list(members, true) : null;
  };

  const list = (symbols, isMember) => symbols.flatMap(item(isMember)).sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    exportsOf: (symbol) => checker.getExportsOfModule(symbol),
    items: (symbols) => list(symbols, false),
    /** Of an instance of a class. */
    members: (symbol) => list(checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(aliased(symbol))), true),
    inside,
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
  const program = ts.createProgram(files, OPTIONS);
  const checker = program.getTypeChecker();
  const sources = files.map((file) => program.getSourceFile(file));
  const { exportsOf, items, members, inside } = reader(checker, sources[0]);
  const exported = sources.map((source) => exportsOf(checker.getSymbolAtLocation(source)));
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
