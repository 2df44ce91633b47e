/**
 * @file Syntax highlighting: a scanner for comments, strings, numbers, words and calls, without a grammar. Every
 * character of the input is in exactly one token, so the coloured text equals the input.
 */

export type TokenKind = "plain" | "comment" | "string" | "number" | "keyword" | "type" | "call";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const KEYWORDS = new Set(
  (
    "as async await break case catch class const continue default delete do else enum export extends false finally for " +
    "from function if implements import in instanceof interface keyof let new null of readonly return satisfies static " +
    "super switch this throw true try type typeof undefined var void while yield"
  ).split(" "),
);

/** Comment, string (possibly unterminated), number, word. */
const PIECE =
  /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|`(?:\\[\s\S]|[^`\\])*`?)|(\b\d[\w.]*)|([A-Za-z_$][\w$]*)/g;

function wordKind(word: string, next: string): TokenKind {
  if (KEYWORDS.has(word)) return "keyword";
  if (/^\s*\(/.test(next)) return "call";
  return /^[A-Z]/.test(word) ? "type" : "plain";
}

export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let done = 0;
  for (const match of text.matchAll(PIECE)) {
    const [whole, comment, string, number, word] = match;
    if (match.index > done) tokens.push({ kind: "plain", text: text.slice(done, match.index) });
    done = match.index + whole.length;
    if (word !== undefined) tokens.push({ kind: wordKind(word, text.slice(done, done + 20)), text: whole });
    else if (comment !== undefined) tokens.push({ kind: "comment", text: whole });
    else if (string !== undefined) tokens.push({ kind: "string", text: whole });
    else tokens.push({ kind: number === undefined ? "plain" : "number", text: whole });
  }
  if (done < text.length) tokens.push({ kind: "plain", text: text.slice(done) });
  return tokens;
}

/** The same line by line; a token that spans several lines is split. */
export function linesOf(text: string): readonly (readonly Token[])[] {
  const lines: Token[][] = [[]];
  for (const { kind, text: whole } of tokensOf(text)) {
    whole.split("\n").forEach((part, i) => {
      if (i > 0) lines.push([]);
      if (part !== "") lines.at(-1)?.push({ kind, text: part });
    });
  }
  return lines;
}
