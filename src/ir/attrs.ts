/**
 * @file Attributes as data: their text, their equality, and what an operation expects of them. Numbers print so that
 * they read back as the same double, -0, inf and nan included. An operation declares no schema; its defaults and its
 * samples say which attributes there are and of what kind.
 */
import type { AnyOp, Attr, Attrs } from "./op.ts";

/** Letters, digits, `_` and `.`, not starting with a digit or a dot. */
export const NAME = /^[\p{L}_][\p{L}\p{N}_.]*$/u;

/** Bare words that are not strings inside attributes. */
const WORDS: ReadonlySet<string> = new Set(["true", "false", "inf", "nan"]);

/**
 * The shortest text that reads back as the same double.
 *
 * @example
 * import { numberText } from "tidemark/ir";
 *
 * console.log(numberText(0.1), numberText(-0)); // → 0.1 -0
 */
export function numberText(n: number): string {
  if (Number.isNaN(n)) return "nan";
  if (Object.is(n, -0)) return "-0";
  if (n === Number.POSITIVE_INFINITY) return "inf";
  return n === Number.NEGATIVE_INFINITY ? "-inf" : String(n);
}

/**
 * `[2,3]`, `f32`, `"a b"`, `0.5`, `true`: a string that is a plain name needs no quotes.
 *
 * @example
 * import { attrText } from "tidemark/ir";
 *
 * console.log(attrText([2, 3]), attrText("a b")); // → [2,3] "a b"
 */
export function attrText(attr: Attr): string {
  if (typeof attr === "number") return numberText(attr);
  if (typeof attr === "boolean") return String(attr);
  if (typeof attr === "string") return NAME.test(attr) && !WORDS.has(attr) ? attr : JSON.stringify(attr);
  return `[${attr.map(attrText).join(",")}]`;
}

/** The value of a bare word in attribute position. */
export function attrOfWord(word: string): Attr {
  if (word === "inf") return Number.POSITIVE_INFINITY;
  if (word === "nan") return Number.NaN;
  return WORDS.has(word) ? word === "true" : word;
}

/**
 * Deep equality in which 0 and -0 differ and nan equals itself.
 *
 * @example
 * import { sameAttr } from "tidemark/ir";
 *
 * console.log(sameAttr([1, 2], [1, 2]), sameAttr(0, -0)); // → true false
 */
export function sameAttr(a: Attr, b: Attr): boolean {
  if (typeof a !== "object" || typeof b !== "object") return Object.is(a, b);
  return a.length === b.length && a.every((item, i) => sameAttr(item, b[i] as Attr));
}

/** The attributes with those left out filled in. */
export function withDefaults(op: AnyOp, attrs: Attrs): Attrs {
  return { ...(op.defaults as Attrs), ...attrs };
}

/** ` {axis=1, keep}`, sorted by key, without those that equal the defaults; empty when none is left. */
export function attrsText(op: AnyOp, attrs: Attrs): string {
  const defaults = op.defaults as Attrs;
  const parts: string[] = [];
  for (const key of Object.keys(attrs).sort()) {
    const value = attrs[key] as Attr;
    const usual = defaults[key];
    if (usual !== undefined && sameAttr(usual, value)) continue;
    parts.push(value === true ? key : `${key}=${attrText(value)}`);
  }
  return parts.length === 0 ? "" : ` {${parts.join(", ")}}`;
}

/** Whether attributes are equal; written defaults and left-out ones are the same. */
export function sameAttrs(op: AnyOp, a: Attrs, b: Attrs): boolean {
  if (a === b) return true;
  const defaults = op.defaults as Attrs;
  const agree = (key: string): boolean => {
    const [x, y] = [a[key] ?? defaults[key], b[key] ?? defaults[key]];
    return x !== undefined && y !== undefined && sameAttr(x, y);
  };
  return Object.keys(a).every(agree) && Object.keys(b).every((key) => key in a || agree(key));
}

/** A number that is equal for equal attributes. */
export function attrsHash(op: AnyOp, attrs: Attrs): number {
  const defaults = op.defaults as Attrs;
  let hash = 0;
  for (const key of Object.keys(attrs)) {
    const [value, usual] = [attrs[key] as Attr, defaults[key]];
    // A sum, so that the order does not matter, of what is not left out.
    if (usual === undefined || !sameAttr(value, usual)) hash += attrHash(value, key.length + key.charCodeAt(0));
  }
  return hash | 0;
}

function attrHash(attr: Attr, seed: number): number {
  if (typeof attr === "number") return Math.imul(seed ^ (attr * 65537), 0x9e3779b1);
  if (typeof attr === "boolean") return seed * 3 + Number(attr);
  let hash = seed;
  if (typeof attr === "string") for (let i = 0; i < attr.length; i++) hash = Math.imul(hash ^ attr.charCodeAt(i), 31);
  else for (const item of attr) hash = attrHash(item, hash ^ (hash >>> 15));
  return hash;
}

/** Equal keys mean equal attributes; written defaults and left-out ones are the same. */
export function attrsKey(op: AnyOp, attrs: Attrs): string {
  const given = Object.keys(attrs);
  const usual = Object.keys(op.defaults as Attrs);
  // most operations have none or one, and builders write all of them
  if (given.length === 0 && usual.length === 0) return "";
  const complete = usual.every((key) => key in attrs);
  const all = complete ? attrs : withDefaults(op, attrs);
  const keys = complete ? given : Object.keys(all);
  if (keys.some((key, i) => i > 0 && key < (keys[i - 1] as string))) keys.sort();
  let text = "";
  for (const key of keys) text += `${text && ","}${key}=${keyText(all[key] as Attr)}`;
  return text;
}

/** Like the text, but strings are always quoted, so that `"1"` and 1 always differ. */
function keyText(attr: Attr): string {
  if (typeof attr === "number") return numberText(attr);
  if (typeof attr === "string") return JSON.stringify(attr);
  if (typeof attr === "boolean") return String(attr);
  let text = "";
  for (const item of attr) text += `${text && ","}${keyText(item)}`;
  return `[${text}]`;
}

/** Whether something is what attributes may hold. */
export function isAttr(value: unknown): value is Attr {
  if (Array.isArray(value)) return value.every(isAttr);
  return typeof value === "number" || typeof value === "string" || typeof value === "boolean";
}

/**
 * Kinds of values of an attribute.
 *
 * @example
 * import type { AttrKind } from "tidemark/ir";
 *
 * const kinds: AttrKind[] = ["number", "string", "boolean", "list"];
 * console.log(kinds.length); // → 4
 */
export type AttrKind = "number" | "string" | "boolean" | "list";

export function attrKind(attr: Attr): AttrKind {
  return typeof attr === "object" ? "list" : (typeof attr as AttrKind);
}

interface Schema {
  readonly kinds: ReadonlyMap<string, ReadonlySet<AttrKind>>;
  /** Keys that every sample gives and that have no default. */
  readonly required: readonly string[];
}

/** Facts about operations, computed once for each. */
const schemas = new WeakMap<AnyOp, Schema>();

function schemaOf(op: AnyOp): Schema {
  const known = schemas.get(op);
  if (known) return known;
  const samples = op.samples().map((sample) => sample.attrs as Attrs);
  const kinds = new Map<string, Set<AttrKind>>();
  for (const attrs of [op.defaults as Attrs, ...samples]) {
    for (const [key, value] of Object.entries(attrs)) {
      kinds.set(key, (kinds.get(key) ?? new Set()).add(attrKind(value)));
    }
  }
  const required = [...kinds.keys()].filter((key) => !(key in op.defaults) && samples.every((attrs) => key in attrs));
  const schema = { kinds, required };
  schemas.set(op, schema);
  return schema;
}

/** Problems of the attributes written for an operation, judged by its defaults and samples. */
export function attrProblems(op: AnyOp, given: Attrs): readonly string[] {
  const { kinds, required } = schemaOf(op);
  const problems: string[] = [];
  for (const [key, value] of Object.entries(given)) {
    const expected = kinds.get(key);
    if (!expected) {
      // Operations with regions have no samples; their attributes are judged by `infer` alone.
      const known = kinds.size === 0 ? "it has none" : `it has ${[...kinds.keys()].sort().join(", ")}`;
      if (op.samples().length > 0) problems.push(`${op.name} has no attribute ${key} (${known})`);
    } else if (!expected.has(attrKind(value))) {
      problems.push(`attribute ${key} of ${op.name} is a ${[...expected].join(" or ")}, got ${attrText(value)}`);
    }
  }
  for (const key of required) if (!(key in given)) problems.push(`${op.name} needs the attribute ${key}`);
  return problems;
}
