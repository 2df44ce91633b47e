/**
 * @file Sizes as expressions of names, in the notation of sympy's constructors: `Mul(Integer(2), Symbol('s0', positive=True, integer=True))`.
 * Nothing is evaluated but the few functions that sizes are made of.
 */
import { badArchive } from "./zip-error.ts";

export type SizeExpression =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "call"; readonly name: string; readonly items: readonly SizeExpression[] };

const MOST_DEPTH = 100;

const FUNCTIONS: Readonly<Record<string, (...x: number[]) => number>> = {
  Add: (...x) => x.reduce((a, b) => a + b, 0),
  Mul: (...x) => x.reduce((a, b) => a * b, 1),
  Max: (...x) => Math.max(...x),
  Min: (...x) => Math.min(...x),
  Pow: (a = 0, b = 1) => a ** b,
  FloorDiv: (a = 0, b = 1) => Math.floor(a / b),
  CleanDiv: (a = 0, b = 1) => a / b,
  IntTrueDiv: (a = 0, b = 1) => a / b,
  CeilToInt: (a = 0) => Math.ceil(a),
  FloorToInt: (a = 0) => Math.floor(a),
  TruncToInt: (a = 0) => Math.trunc(a),
  ToFloat: (a = 0) => a,
  Mod: (a = 0, b = 1) => ((a % b) + b) % b,
  PythonMod: (a = 0, b = 1) => ((a % b) + b) % b,
  Rational: (a = 0, b = 1) => a / b,
};

/** Reads the text; throws for anything else. */
export function parseSize(text: string): SizeExpression {
  const tokens = text.match(/'[^']*'|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[(),=]/g) ?? [];
  let at = 0;
  const bad = () =>
    badArchive(`the size ${JSON.stringify(text.slice(0, 80))} is not understood`, "export the model with other sizes");
  const take = (token: string): void => {
    if (tokens[at++] !== token) throw bad();
  };
  const expression = (depth: number): SizeExpression => {
    const token = tokens[at++];
    if (token === undefined || depth > MOST_DEPTH) throw bad();
    if (/^-?\d/.test(token)) return { kind: "number", value: Number(token) };
    if (!/^[A-Za-z_]/.test(token)) throw bad();
    take("(");
    if (token === "Symbol") return symbol();
    const items: SizeExpression[] = [];
    while (tokens[at] !== ")") {
      items.push(expression(depth + 1));
      if (tokens[at] === ",") at++;
      else if (tokens[at] !== ")") throw bad();
    }
    take(")");
    const [only] = items;
    if ((token === "Integer" || token === "Float") && only) return only;
    if (!Object.hasOwn(FUNCTIONS, token)) throw bad();
    return { kind: "call", name: token, items };
  };
  /** A name in quotes, then assumptions. */
  const symbol = (): SizeExpression => {
    const name = /^'(\w+)'$/.exec(tokens[at++] ?? "")?.[1];
    if (name === undefined) throw bad();
    while (at < tokens.length && tokens[at] !== ")") at++;
    take(")");
    return { kind: "symbol", name };
  };
  const made = expression(0);
  if (at !== tokens.length) throw bad();
  return made;
}

/** Its value; undefined where a name has none. */
export function evaluateSize(of: SizeExpression, sizes: ReadonlyMap<string, number>): number | undefined {
  if (of.kind === "number") return of.value;
  if (of.kind === "symbol") return sizes.get(of.name);
  const items = of.items.map((item) => evaluateSize(item, sizes));
  return items.every((item) => item !== undefined) ? FUNCTIONS[of.name]?.(...(items as number[])) : undefined;
}
