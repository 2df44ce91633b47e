/**
 * @file The words of the textual form, with their places. Comments vanish, but for the two that carry meaning: a line
 * that is just `// backward` (a phase), and a source location at the end of a line.
 */
import type { Phase } from "./graph.ts";

export interface Place {
  readonly line: number;
  readonly column: number;
}

export interface Token extends Place {
  readonly kind: "name" | "number" | "string" | "punct" | "phase" | "where" | "end" | "bad";
  /** As written; of strings, phases and locations the contents. */
  readonly text: string;
}

export const PHASES: readonly Phase[] = ["forward", "backward", "update"];

/** One token at the start of the rest of the text; the group that matched says which. */
const TOKEN =
  /(?<space>[ \t\r]+)|(?<comment>\/\/[^\n]*)|(?<name>[\p{L}_][\p{L}\p{N}_.]*)|(?<number>-?(?:inf\b|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))|(?<string>"(?:[^"\\\n]|\\.)*")|(?<punct>[(){}[\],:=~@])/uy;

/** `model.ts:14`, `model.ts:14:3 in decoder`. */
const LOCATION = /^\S+:\d+(?::\d+)?(?: in .+)?$/;

function commentToken(comment: string, first: boolean, place: Place): Token | null {
  const text = comment.slice(2).trim();
  if (first && (PHASES as readonly string[]).includes(text)) return { kind: "phase", text, ...place };
  return !first && LOCATION.test(text) ? { kind: "where", text, ...place } : null;
}

function stringToken(raw: string, place: Place): Token {
  try {
    return { kind: "string", text: JSON.parse(raw) as string, ...place };
  } catch {
    return { kind: "bad", text: raw, ...place };
  }
}

function lineTokens(text: string, line: number): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const place = { line, column: at + 1 };
    if (!match?.groups) {
      tokens.push({ kind: "bad", text: text.charAt(at), ...place });
      at++;
      continue;
    }
    const { comment, name, number, string, punct } = match.groups;
    at += match[0].length;
    if (comment !== undefined)
      tokens.push(...[commentToken(comment, tokens.length === 0, place)].filter((t) => t !== null));
    else if (name !== undefined) tokens.push({ kind: "name", text: name, ...place });
    else if (number !== undefined) tokens.push({ kind: "number", text: number, ...place });
    else if (punct !== undefined) tokens.push({ kind: "punct", text: punct, ...place });
    else if (string !== undefined) tokens.push(stringToken(string, place));
  }
  return tokens;
}

/** All tokens of a text; the last one is `end`. Characters that belong nowhere come out as `bad`. */
export function tokenize(text: string): readonly Token[] {
  const lines = text.split("\n");
  const tokens = lines.flatMap((line, i) => lineTokens(line, i + 1));
  return [...tokens, { kind: "end", text: "end of text", line: lines.length, column: (lines.at(-1) ?? "").length + 1 }];
}
