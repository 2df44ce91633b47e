/**
 * @file From tokens to statements, with nothing resolved yet: recursive descent over the grammar of docs/ir.md. A
 * statement that cannot be read is skipped to the end of its line, so that one run reports every such line.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { DTYPES, type DType } from "../kernel/dtype.ts";
import { attrOfWord } from "./attrs.ts";
import type { Phase } from "./graph.ts";
import { type Place, type Token, tokenize } from "./lexer.ts";
import type { Attr } from "./op.ts";
import { elementsOf, MOST_ELEMENTS, type TensorType, tensorType } from "./type.ts";

export interface Problem extends Place {
  readonly message: string;
}

export interface BindingSyntax {
  readonly name: Token;
  readonly type: TensorType;
  /** Axes that it varies over. */
  readonly over: readonly string[];
}

export interface AttrSyntax {
  readonly key: Token;
  readonly value: Attr;
}

export interface StatementSyntax {
  readonly results: readonly BindingSyntax[];
  readonly op: Token;
  readonly inputs: readonly Token[];
  readonly attrs: readonly AttrSyntax[];
  readonly replay: number;
  readonly regions: readonly FuncSyntax[];
  readonly phase: Phase;
  readonly where: string | undefined;
}

export interface FuncSyntax {
  readonly name: Token;
  /** The mesh whose axes its types name. */
  readonly mesh: string | undefined;
  readonly params: readonly BindingSyntax[];
  readonly body: readonly StatementSyntax[];
  readonly results: readonly Token[];
}

/** Most levels of functions and lists: graphs are traversed by recursion. */
const DEEPEST = 100;

class Reader {
  readonly problems: Problem[] = [];
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] as Token;
  }

  next(): Token {
    const token = this.peek();
    if (token.kind !== "end") this.#at++;
    return token;
  }

  isPunct(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "punct" && token.text === text;
  }

  isWord(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "name" && token.text === text;
  }

  fail(expected: string): never {
    const token = this.peek();
    const found = token.kind === "end" ? "the end of the text" : JSON.stringify(token.text.slice(0, 80));
    this.refuse(token, `expected ${expected}, found ${found}`);
  }

  refuse(token: Token, message: string): never {
    this.problems.push({ line: token.line, column: token.column, message });
    // Unwinds to the nearest statement and never leaves this file: the problem is on the list already.
    throw new TidemarkError("ParseError", message);
  }

  punct(text: string, context: string): void {
    if (!this.isPunct(text)) this.fail(`"${text}" ${context}`);
    this.next();
  }

  accept(text: string): boolean {
    if (!this.isPunct(text)) return false;
    this.next();
    return true;
  }

  name(what: string): Token {
    if (this.peek().kind !== "name") this.fail(what);
    return this.next();
  }

  /** Reads a nested element, one level deeper. */
  inside<T>(read: () => T): T {
    if (this.#depth === DEEPEST) this.refuse(this.peek(), `more than ${DEEPEST} levels inside of each other`);
    this.#depth++;
    try {
      return read();
    } finally {
      this.#depth--;
    }
  }

  /** Drops the rest of a line. */
  skipLine(line: number): void {
    while (this.peek().kind !== "end" && this.peek().line <= line) this.next();
  }

  /** `item, item, … close`. */
  list<T>(close: string, context: string, item: () => T): T[] {
    const items: T[] = [];
    if (this.accept(close)) return items;
    do items.push(item());
    while (this.accept(","));
    this.punct(close, context);
    return items;
  }
}

function readExtent(reader: Reader): number {
  const token = reader.peek();
  if (token.kind !== "number" || !/^\d+$/.test(token.text)) reader.fail("a whole number as extent");
  return Number(reader.next().text);
}

function readType(reader: Reader): TensorType {
  const dtype = reader.peek().text;
  if (!(DTYPES as readonly string[]).includes(dtype)) reader.fail(`an element type (${DTYPES.join(", ")})`);
  const first = reader.next();
  reader.punct("[", "after the element type");
  const shape = reader.list("]", "after the shape", () => readExtent(reader));
  if (elementsOf(shape) > MOST_ELEMENTS) reader.refuse(first, `more than ${grouped(MOST_ELEMENTS)} elements`);
  return tensorType(dtype as DType, shape);
}

function readBinding(reader: Reader): BindingSyntax {
  const name = reader.name("a name");
  reader.punct(":", "and a type after the name");
  const type = readType(reader);
  const over = reader.accept("{") ? reader.list("}", "after the axes", () => reader.name("an axis").text) : [];
  return { name, type, over };
}

function readAttr(reader: Reader): Attr {
  const token = reader.peek();
  if (reader.accept("[")) return reader.inside(() => reader.list("]", "after the list", () => readAttr(reader)));
  if (token.kind === "name") return attrOfWord(reader.next().text);
  if (token.kind === "string") return reader.next().text;
  if (token.kind !== "number") reader.fail("a number, word, string or list");
  const text = reader.next().text;
  return text === "-inf" ? Number.NEGATIVE_INFINITY : Number(text);
}

function readAttrs(reader: Reader): AttrSyntax[] {
  if (!reader.isPunct("{") || startsRegions(reader)) return [];
  reader.next();
  return reader.list("}", "after the attributes", () => {
    const key = reader.name("an attribute");
    return { key, value: reader.accept("=") ? readAttr(reader) : true };
  });
}

function startsRegions(reader: Reader): boolean {
  if (!reader.isPunct("{")) return false;
  // A location may follow the brace; `{func}` and `{func=…}` would be an attribute of that name.
  const skip = reader.peek(1).kind === "where" ? 2 : 1;
  return reader.isWord("func", skip) && reader.peek(skip + 1).kind === "name";
}

function readReplay(reader: Reader): number {
  if (!reader.accept("~")) return 0;
  const token = reader.peek();
  if (token.kind !== "number" || !/^[1-9]\d*$/.test(token.text)) reader.fail("a replay number ≥ 1");
  return Number(reader.next().text);
}

/** Addresses are output of the planner: they are allowed and skipped. */
function skipPlace(reader: Reader): void {
  const { line } = reader.peek();
  if (!reader.isPunct("@")) return;
  while (reader.peek().line === line && !startsRegions(reader) && reader.peek().kind !== "where") {
    if (reader.peek().kind === "end") return;
    reader.next();
  }
}

function readWhere(reader: Reader): string | undefined {
  return reader.peek().kind === "where" ? reader.next().text : undefined;
}

function readStatement(reader: Reader, phase: Phase): StatementSyntax {
  const results: BindingSyntax[] = [];
  do results.push(readBinding(reader));
  while (reader.accept(","));
  reader.punct("=", "after the type");
  const op = reader.name("an operation");
  reader.punct("(", "after the operation");
  const inputs = reader.list(")", "after the inputs", () => reader.name("the name of a value"));
  const attrs = readAttrs(reader);
  const replay = readReplay(reader);
  skipPlace(reader);
  let where = readWhere(reader);
  const regions: FuncSyntax[] = [];
  if (startsRegions(reader)) {
    reader.next();
    where = readWhere(reader);
    while (reader.isWord("func")) regions.push(reader.inside(() => readFunc(reader, phase)));
    reader.punct("}", "after the regions");
    where ??= readWhere(reader);
  }
  return { results, op, inputs, attrs, replay, regions, phase, where };
}

function readFunc(reader: Reader, outer: Phase): FuncSyntax {
  if (!reader.isWord("func")) reader.fail('"func"');
  reader.next();
  const name = reader.name("the name of the function");
  const mesh = reader.peek().kind === "string" ? reader.next().text : undefined;
  reader.punct("(", "after the function's name");
  const params = reader.list(")", "after the parameters", () => readBinding(reader));
  reader.punct("{", "after the parameters");
  const body: StatementSyntax[] = [];
  let phase = outer;
  while (!reader.isWord("return")) {
    const token = reader.peek();
    if (token.kind === "phase") {
      phase = reader.next().text as Phase;
      continue;
    }
    if (token.kind === "end" || reader.isPunct("}")) reader.fail('a statement or "return"');
    try {
      body.push(readStatement(reader, phase));
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error;
      reader.skipLine(Math.max(token.line, reader.problems.at(-1)?.line ?? 0));
    }
  }
  reader.next();
  const results: Token[] = [];
  if (!reader.isPunct("}")) {
    do results.push(reader.name("the name of a result"));
    while (reader.accept(","));
  }
  reader.punct("}", "after the results");
  return { name, mesh, params, body, results };
}

/** Reads a module of functions; problems are in the order of the text. */
export function readModule(text: string): {
  readonly funcs: readonly FuncSyntax[];
  readonly problems: readonly Problem[];
} {
  const reader = new Reader(text);
  const funcs: FuncSyntax[] = [];
  try {
    while (reader.peek().kind !== "end") {
      if (reader.peek().kind === "phase" || reader.peek().kind === "where") reader.next();
      else funcs.push(readFunc(reader, "forward"));
    }
  } catch (error) {
    if (!(error instanceof TidemarkError)) throw error;
  }
  return { funcs, problems: reader.problems };
}
