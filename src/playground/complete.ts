/**
 * @file Completions at a position of a text: after a dot, members of the expression before it; inside of an import, the
 * names of its module; elsewhere all names, with the import that they need. No types are computed: an expression is a
 * tensor if its end says so (an annotation, a call that returns one), and unknown expressions count as tensors.
 */
import type { CompletionItem, CompletionList } from "./completion-list.ts";

/** A name that can be inserted. */
export interface Offer extends CompletionItem {
  /** The module to import it from; null if it needs none. */
  readonly module: string | null;
}

export interface Offers {
  /** Where the word begins that an offer replaces. */
  readonly from: number;
  readonly items: readonly Offer[];
}

/** A change of the text. */
export interface Insertion {
  readonly at: number;
  readonly text: string;
}

const COMMENT_OR_STRING =
  /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|$)|'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|$)|`(?:[^`\\]|\\[\s\S])*(?:`|$)/g;

/** Objects of JavaScript itself, and methods whose results are no tensors. */
const FOREIGN = ["Math", "console", "JSON", "Object", "Array", "Number", "String", "Promise", "Symbol", "Map", "Set"];
const FOREIGN_METHODS = ["map", "filter", "keys", "values", "entries", "join", "forEach", "at", "from"];

/** How many variables an expression is followed through. */
const DEEPEST = 6;

/** @param asked also where no word has begun */
export function offersAt(list: CompletionList, text: string, position: number, asked: boolean): Offers | null {
  const inside = insideOf(text, position);
  if (inside !== null) return modulesAt(list, text, inside, position);
  const before = text.slice(0, position);
  const word = /[A-Za-z_$][\w$]*$/.exec(before)?.[0] ?? "";
  const from = position - word.length;
  if (/\d$/.test(before.slice(0, from))) return null;
  const named = importAt(before, text.slice(position));
  if (named !== null) return { from, items: noImport(list.modules[named] ?? []) };
  const stem = before.slice(0, from).trimEnd();
  if (stem.endsWith(".") && !stem.endsWith("..")) {
    const members = membersOf(list, text, stem.slice(0, -1).replace(/\?$/, "").trimEnd(), DEEPEST);
    return members.length > 0 ? { from, items: noImport(members) } : null;
  }
  if (word === "" && !asked) return null;
  return { from, items: namesFor(list, text) };
}

const noImport = (items: readonly CompletionItem[]): readonly Offer[] =>
  items.map((item) => ({ ...item, module: null }));

/** The start of the comment or string at a position; null in code. */
function insideOf(text: string, position: number): number | null {
  for (const { index, 0: part } of text.matchAll(COMMENT_OR_STRING)) {
    if (index >= position) return null;
    const end = index + part.length;
    const isOpen = part.startsWith("//") || part.length === 1 || part.at(-1) !== part[0];
    if (position < end || (position === end && isOpen && !part.endsWith("*/"))) return index;
  }
  return null;
}

/** Names of modules, in the string of an import. */
function modulesAt(list: CompletionList, text: string, start: number, position: number): Offers | null {
  if (!/["']/.test(text.charAt(start)) || !/\bfrom\s*$/.test(text.slice(0, start))) return null;
  if (position <= start) return null;
  const names = Object.keys(list.modules);
  const items = names.map((name): Offer => ({ name, kind: "namespace", signature: "", about: "", module: null }));
  return { from: start + 1, items };
}

/** The module whose import braces a position is in; `tidemark` if it is not written yet, null outside. */
function importAt(before: string, after: string): string | null {
  if (!/\bimport\s+(?:type\s+)?\{[^}]*$/.test(before)) return null;
  return /^[^}]*\}\s*from\s*["']([^"']+)["']/.exec(after)?.[1] ?? "tidemark";
}

/** Everything that is exported; a name that is imported already, from its module alone. */
function namesFor(list: CompletionList, text: string): readonly Offer[] {
  const imported = importsOf(text);
  return Object.entries(list.modules).flatMap(([module, items]) =>
    items.flatMap((item): readonly Offer[] => {
      const from = imported.get(item.name);
      if (from !== undefined) return from === module ? [{ ...item, module: null }] : [];
      return [{ ...item, module }];
    }),
  );
}

/** Imported names with their modules. */
function importsOf(text: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const [, inner = "", module = ""] of text.matchAll(
    /\bimport\s+(?:type\s+)?\{([^}]*)\}\s*from\s*["']([^"']+)["']/g,
  ))
    for (const part of inner.split(",")) {
      const name = /^\s*(?:type\s+)?([\w$]+)/.exec(part)?.[1];
      if (name !== undefined) names.set(name, module);
    }
  return names;
}

/** Members of the expression that a text ends with. */
function membersOf(list: CompletionList, text: string, stem: string, depth: number): readonly CompletionItem[] {
  if (depth === 0) return list.tensor;
  if (stem.endsWith(")")) return callIsTensor(list, stem) ? list.tensor : [];
  if (stem.endsWith("]")) return list.tensor;
  const name = /[A-Za-z_$][\w$]*$/.exec(stem)?.[0];
  if (name === undefined) return [];
  const isProperty = /\.\s*$/.test(stem.slice(0, -name.length));
  if (!isProperty && FOREIGN.includes(name)) return [];
  if (!isProperty && Object.hasOwn(list.namespaces, name)) return list.namespaces[name] ?? [];
  if (isProperty) {
    const known = list.tensor.find((member) => member.name === name);
    if (known?.kind === "property" && known.signature !== "Tensor") return [];
  }
  return membersOfName(list, text, name, depth);
}

function membersOfName(list: CompletionList, text: string, name: string, depth: number): readonly CompletionItem[] {
  const type = new RegExp(
    `(?<![\\w$.])${escaped(name)}\\??\\s*:\\s*(?:readonly\\s+)?([A-Za-z_$][\\w$]*)(\\[\\])?`,
  ).exec(text);
  const value = new RegExp(`\\b(?:const|let|var)\\s+${escaped(name)}\\s*=\\s*((?:[^;\\n]|\\n\\s*[.)\\]}])*)`).exec(
    text,
  )?.[1];
  if (type?.[1] === "Tensor") return type[2] === undefined ? list.tensor : [];
  if (type?.[1] !== undefined) {
    const fields = fieldsOf(text, type[1]);
    if (fields.length > 0) return fields;
  }
  if (value !== undefined) return membersOf(list, text, value.trimEnd(), depth - 1);
  return type && /^(?:number|string|boolean|unknown|Shape)$/.test(type[1] ?? "") ? [] : list.tensor;
}

/** Fields of a type that the text declares, `type Params = { w: Tensor; … }`. */
function fieldsOf(text: string, type: string): readonly CompletionItem[] {
  const body = new RegExp(`\\b(?:type\\s+${escaped(type)}\\s*=|interface\\s+${escaped(type)})\\s*\\{([^{}]*)\\}`).exec(
    text,
  )?.[1];
  const fields = [...(body ?? "").matchAll(/([A-Za-z_$][\w$]*)\??\s*:\s*([^;,\n]+)/g)];
  return fields.map(([, name = "", signature = ""]) => ({
    ...{ name, kind: "property" as const, signature: signature.trim(), about: "" },
  }));
}

const escaped = (name: string): string => name.replaceAll("$", "\\$");

/** Whether the call that a text ends with may return a tensor. */
function callIsTensor(list: CompletionList, stem: string): boolean {
  const open = openingOf(stem);
  const [, dot, name] = /(\.?)\s*([A-Za-z_$][\w$]*)\s*$/.exec(stem.slice(0, Math.max(0, open))) ?? [];
  if (name === undefined) return true;
  const known = (dot ? list.tensor : Object.values(list.modules).flat()).filter((item) => item.name === name);
  if (known.length > 0) return known.some(({ signature }) => signature.endsWith("): Tensor"));
  return !(dot && FOREIGN_METHODS.includes(name));
}

/** The bracket that the last one closes; -1 if there is none. */
function openingOf(text: string): number {
  let depth = 0;
  for (let i = text.length - 1; i >= 0; i--) {
    const letter = text.charAt(i);
    if (")]}".includes(letter)) depth += 1;
    if ("([{".includes(letter)) depth -= 1;
    if (depth === 0) return i;
  }
  return -1;
}

/** The change that imports a name: into the braces of an import that exists, or a line after the last import. */
export function importEdit(text: string, { name, kind, module }: Offer): Insertion | null {
  if (module === null || importsOf(text).has(name)) return null;
  const word = kind === "type" ? `type ${name}` : name;
  const own = new RegExp(`\\bimport\\s*\\{([^}]*?),?\\s*\\}\\s*from\\s*["']${module}["']`).exec(text);
  if (own) {
    const inner = own[1] ?? "";
    return {
      at: own.index + own[0].indexOf("{") + 1 + inner.length,
      text: inner.trim() === "" ? ` ${word} ` : `, ${word}`,
    };
  }
  const last = [...text.matchAll(/^import\b[^;]*?from\s*["'][^"'\n]+["'];?[^\n]*\n/gm)].at(-1);
  return { at: last ? last.index + last[0].length : 0, text: `import { ${word} } from "${module}";\n` };
}
