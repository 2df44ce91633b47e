/** @file Rules about the text of code: sizes, headers, errors, `any`, and asking an operation or an element type for its name. */
import { basename } from "node:path";
import { DTYPES } from "../../src/kernel/dtype.ts";
import { isProduct, isScript, isTest, type ProjectFile } from "./project.ts";
import { type Ast, isAst, lastName, lineAt, parse, select } from "./syntax.ts";

export const MAX_FILE_LINES = 500;
export const MAX_FUNCTION_LINES = 60;

/** What may be longer than the limits, and why. `name` is a function; without one the file is meant. */
export interface SizeException {
  readonly path: string;
  readonly name?: string;
  readonly reason: string;
}

export function sizeViolations(files: readonly ProjectFile[], exceptions: readonly SizeException[]): readonly string[] {
  const found = files.filter((f) => isScript(f.path)).flatMap((file) => [...longFile(file), ...longFunctions(file)]);
  const matches = (e: SizeException, v: SizeViolation): boolean => e.path === v.path && e.name === v.name;
  const stale = exceptions.filter((e) => !found.some((v) => matches(e, v)));
  return [
    ...found.filter((v) => !exceptions.some((e) => matches(e, v))).map((v) => v.message),
    ...stale.map((e) => `${e.path}: the exception for ${e.name ?? "the file"} (${e.reason}) is no longer needed`),
  ];
}

interface SizeViolation {
  readonly path: string;
  readonly name?: string;
  readonly message: string;
}

function longFile({ path, text }: ProjectFile): readonly SizeViolation[] {
  const lines = text.trimEnd().split("\n").length;
  return lines <= MAX_FILE_LINES ? [] : [{ path, message: `${path}: ${lines} lines, the limit is ${MAX_FILE_LINES}` }];
}

/** In tests, functions handed to `describe`, `it` and the like are sections rather than functions. */
function longFunctions(file: ProjectFile): readonly SizeViolation[] {
  const long: SizeViolation[] = [];
  select(file, (node, ancestors) => {
    if (!/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) return false;
    const parent = ancestors.at(-1);
    if (isTest(file.path) && parent?.type === "CallExpression") return false;
    const line = lineAt(file, node.start);
    const lines = lineAt(file, node.end) - line + 1;
    if (lines <= MAX_FUNCTION_LINES) return false;
    const name = lastName(node.id) ?? lastName(parent?.key) ?? lastName(parent?.id) ?? "a function";
    const message = `${file.path}:${line}: ${name} has ${lines} lines, the limit is ${MAX_FUNCTION_LINES}`;
    long.push({ path: file.path, name, message });
    return true;
  });
  return long;
}

export const MAX_PARAMETERS = 4;

/** Files, all that begin with `prefix`, whose functions may have more parameters, and why. */
export interface ParameterException {
  readonly prefix: string;
  readonly reason: string;
}

/** More than four parameters are an object with names; in types of functions and signatures of methods as well. */
export function parameterViolations(
  files: readonly ProjectFile[],
  exceptions: readonly ParameterException[],
): readonly string[] {
  const long = files
    .filter((file) => isProduct(file.path) && !file.path.endsWith(".d.ts"))
    .flatMap((file) =>
      select(file, (node) => parametersOf(node) > MAX_PARAMETERS).map((node) => ({
        path: file.path,
        message: `${place(file, node)}: ${parametersOf(node)} parameters, the limit is ${MAX_PARAMETERS}`,
      })),
    );
  const excepts = ({ prefix }: ParameterException, path: string): boolean => path.startsWith(prefix);
  const stale = exceptions.filter((e) => !long.some(({ path }) => excepts(e, path)));
  return [
    ...long.filter(({ path }) => !exceptions.some((e) => excepts(e, path))).map(({ message }) => message),
    ...stale.map((e) => `${e.prefix}: the exception (${e.reason}) is no longer needed`),
  ];
}

function parametersOf(node: Ast): number {
  if (
    !/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|TSFunctionType|TSMethodSignature)$/.test(
      node.type,
    )
  )
    return 0;
  return Array.isArray(node.params) ? node.params.length : 0;
}

export function headerViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isScript(file.path) && !/^(#!.*\n)?\/\*\*\s(\s*\*\s)?@file\s/.test(file.text))
    .map((file) => `${file.path}: does not open with /** @file … */`);
}

/** Users' mistakes are TidemarkErrors, ours are InternalErrors; there is no third kind. */
export function errorViolations(files: readonly ProjectFile[]): readonly string[] {
  const kinds = ["TidemarkError", "InternalError"];
  return files
    .filter((file) => isProduct(file.path) && !file.path.endsWith(".d.ts"))
    .flatMap((file) => {
      const made = select(file, (n) => /^(New|Call)Expression$/.test(n.type) && isBareError(n.callee));
      const derived = select(
        file,
        (n) => n.type === "ClassDeclaration" && isBareError(n.superClass) && !kinds.includes(lastName(n.id) ?? ""),
      );
      return [
        ...made.map((n) => `${place(file, n)}: a bare error; throw a TidemarkError with a code, or use invariant`),
        ...derived.map((n) => `${place(file, n)}: a new kind of error; the kinds are ${kinds.join(" and ")}`),
      ];
    });
}

function isBareError(callee: unknown): boolean {
  return (
    isAst(callee) &&
    callee.type === "Identifier" &&
    /^(|Type|Range|Syntax|Reference|Eval|URI)Error$/.test(lastName(callee) ?? "")
  );
}

/** The one sanctioned `any` is in the declaration of AnyOp: attribute types are contravariant. */
export function anyViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isScript(file.path))
    .flatMap((file) => {
      const found = select(file, (node, ancestors) => {
        const sanctioned =
          file.path === "src/ir/op.ts" &&
          ancestors.some((a) => a.type === "TSTypeAliasDeclaration" && lastName(a.id) === "AnyOp");
        return node.type === "TSAnyKeyword" && !sanctioned;
      });
      return found.map((node) => `${place(file, node)}: any; the only one is AnyOp in src/ir/op.ts`);
    });
}

/** What a layer needs to know of an operation is a field of it; only the text form deals in names. */
export function opNameViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isProduct(file.path) && !["print.ts", "parse.ts"].includes(basename(file.path)))
    .flatMap((file) =>
      select(file, asksOpName).map((node) => `${place(file, node)}: asks an operation for its name; give it a field`),
    );
}

function asksOpName(node: Ast): boolean {
  switch (node.type) {
    case "BinaryExpression":
      return /^[!=]==?$/.test(String(node.operator)) && (isOpName(node.left) || isOpName(node.right));
    case "SwitchStatement":
      return isOpName(node.discriminant);
    case "CallExpression": {
      const member = isAst(node.callee) && node.callee.type === "MemberExpression" ? lastName(node.callee) : null;
      if (isAst(node.callee) && isOpName(node.callee.object))
        return /^(startsWith|endsWith|includes|match)$/.test(member ?? "");
      return /^(has|includes|indexOf|test)$/.test(member ?? "") && (node.arguments as unknown[]).some(isOpName);
    }
    default:
      return false;
  }
}

/** `op.name`, `node.op.name`, `someOp.name`. */
function isOpName(node: unknown): boolean {
  if (!isAst(node) || node.type !== "MemberExpression" || lastName(node.property) !== "name") return false;
  return /^op$|Op$/.test(lastName(node.object) ?? "");
}

/**
 * A comparison with one operation is false for every operation that is added later, in silence. What a layer needs to know is a
 * field of the operation: a fact (ir/facts.ts), what it says of its regions (ir/control.ts), a derivative or a lowering.
 */
export function opIdentityViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isProduct(file.path) && !isTest(file.path) && !file.path.startsWith("src/ops/"))
    .flatMap((file) => {
      const operations = new Set(
        select(file, (node) => node.type === "ImportDeclaration" && isAst(node.source) && isOpsFile(node.source.value))
          .flatMap((node) => node.specifiers as readonly Ast[])
          .map((specifier) => lastName(specifier.local)),
      );
      return select(file, (node) => asksIdentity(node, operations)).map(
        (node) => `${place(file, node)}: asks which operation it is; give it a field`,
      );
    });
}

const isOpsFile = (path: unknown): boolean => /\/ops\/[\w-]+\.ts$/.test(String(path));

/** `op === full`, `node.op !== full`, `[full, iota].includes(op)`, `switch (op) { case full: … }`. */
function asksIdentity(node: Ast, operations: ReadonlySet<string | null>): boolean {
  const isOp = (side: unknown): boolean => {
    if (!isAst(side)) return false;
    return lastName(side.type === "ChainExpression" ? side.expression : side) === "op";
  };
  const isImported = (side: unknown): boolean =>
    isAst(side) && side.type === "Identifier" && operations.has(lastName(side));
  switch (node.type) {
    case "BinaryExpression":
      return (
        /^[!=]==?$/.test(String(node.operator)) &&
        ((isOp(node.left) && isImported(node.right)) || (isOp(node.right) && isImported(node.left)))
      );
    case "SwitchStatement":
      return isOp(node.discriminant) && (node.cases as readonly Ast[]).some((branch) => isImported(branch.test));
    case "CallExpression": {
      const list = isAst(node.callee) && isAst(node.callee.object) ? node.callee.object : null;
      const elements = list?.type === "ArrayExpression" ? (list.elements as unknown[]) : [];
      return elements.some(isImported) && (node.arguments as unknown[]).some(isOp);
    }
    default:
      return false;
  }
}

/** The one file that may compare an element type with a name: the rows are there, and the predicates over them. */
const TYPES_FILE = "src/kernel/dtype.ts";

/**
 * A comparison with the name of a type is false for every type that is added later, in silence. What a layer needs to know
 * is a field of the row, a predicate beside the rows, or a table over all types, which must be complete.
 */
export function typeNameViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isProduct(file.path) && file.path !== TYPES_FILE)
    .flatMap((file) =>
      select(file, asksTypeName).map(
        (node) =>
          `${place(file, node)}: compares an element type with a name; ask its row, or use a table over all types`,
      ),
    );
}

function asksTypeName(node: Ast): boolean {
  switch (node.type) {
    case "BinaryExpression":
      return /^[!=]==?$/.test(String(node.operator)) && (isTypeName(node.left) || isTypeName(node.right));
    case "SwitchStatement": {
      const tests = (node.cases as readonly Ast[]).map((branch) => branch.test);
      return tests.some(isTypeName) && tests.includes(null);
    }
    case "CallExpression": {
      if (!isAst(node.callee) || !/^(includes|indexOf|startsWith|endsWith)$/.test(lastName(node.callee) ?? ""))
        return false;
      const list = isAst(node.callee.object) ? node.callee.object : null;
      const elements = list?.type === "ArrayExpression" ? (list.elements as unknown[]) : [];
      return [...elements, ...(node.arguments as unknown[])].some(isTypeName);
    }
    default:
      return false;
  }
}

function isTypeName(node: unknown): boolean {
  return isAst(node) && node.type === "Literal" && [...DTYPES, "i64"].some((name) => name === node.value);
}

/** The one function that keeps what it is given in its module: the parts of the system that the process runs on. */
export const INSTALLER = { path: "src/api/host.ts", name: "installPart" };

const isFunction = (node: Ast): boolean =>
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type);

/** `a` of `a.b` and of `a[b].c`. */
function recordName(node: unknown): string | null {
  if (!isAst(node) || node.type !== "MemberExpression") return null;
  return recordName(node.object) ?? lastName(node.object);
}

/** Whether an assignment is to a variable of the module, or to a field of a record there. */
function writesModule(file: ProjectFile): (assignment: Ast) => boolean {
  const declared = topLevel(file).filter((node) => node.type === "VariableDeclaration");
  const variables = new Set(
    declared.filter(({ kind }) => kind === "let").flatMap((each) => namesIn(each.declarations, "id")),
  );
  const declarators = declared.flatMap(({ declarations }) => declarations as readonly Ast[]);
  const records = new Set(
    namesIn(
      declarators.filter(({ init }) => isAst(init) && init.type === "ObjectExpression"),
      "id",
    ),
  );
  return ({ left }) => {
    const isVariable = isAst(left) && left.type === "Identifier" && variables.has(String(left.name));
    return isVariable || records.has(recordName(left) ?? "");
  };
}

/**
 * A variable of a module, or a field of a record there, that a function sets to something that it was given makes the module
 * depend on who called it before. What a system has is passed down as an argument (api/host.ts). Counters and results that are
 * computed once stay possible: they come from no argument.
 */
export function providerViolations(files: readonly ProjectFile[]): readonly string[] {
  return files
    .filter((file) => isProduct(file.path))
    .flatMap((file) => {
      const isWrite = writesModule(file);
      const writes = select(file, (node, ancestors) => {
        if (node.type !== "AssignmentExpression" || !isWrite(node)) return false;
        const functions = ancestors.filter(isFunction);
        if (file.path === INSTALLER.path && functions.some(({ id }) => lastName(id) === INSTALLER.name)) return false;
        const given = new Set(functions.flatMap((each) => namesIn(each.params)));
        return namesIn(node.right).some((name) => given.has(name));
      });
      return writes.map((node) => `${place(file, node)}: an argument becomes a variable of the module; pass it down`);
    });
}

/** Names of all identifiers in a tree, or in one field of each of a list. */
function namesIn(tree: unknown, field?: string): readonly string[] {
  if (Array.isArray(tree)) return tree.flatMap((each) => namesIn(field && isAst(each) ? each[field] : each));
  if (!isAst(tree)) return [];
  if (tree.type === "Identifier") return [String(tree.name)];
  return Object.entries(tree).flatMap(([key, value]) => (key === "typeAnnotation" ? [] : namesIn(value)));
}

/** What a module consists of, without the word `export`. */
function topLevel(file: ProjectFile): readonly Ast[] {
  return (parse(file).body as readonly Ast[]).map((node) => (isAst(node.declaration) ? node.declaration : node));
}

/** Files that do something when they are imported, each with what it does. */
export interface ImportEffect {
  readonly path: string;
  readonly effect: string;
}

const DECLARATION = /^(Import|Export|Function|Class|Variable|TS)\w*Declaration$|^TSDeclareFunction$/;

/** A module declares things; what it does, its functions do when they are called. */
export function importEffectViolations(
  files: readonly ProjectFile[],
  listed: readonly ImportEffect[],
): readonly string[] {
  const effects = files
    .filter((file) => isProduct(file.path) && !file.path.endsWith(".d.ts"))
    .flatMap((file) =>
      effectsOf(file).map((node) => ({
        path: file.path,
        message: `${place(file, node)}: does something when it is imported; do it in a function`,
      })),
    );
  const stale = listed.filter(({ path }) => !effects.some((found) => found.path === path));
  return [
    ...effects.filter(({ path }) => !listed.some((each) => each.path === path)).map(({ message }) => message),
    ...stale.map(({ path, effect }) => `${path}: is listed (${effect}) and does nothing when it is imported`),
  ];
}

/** Statements of a module that do something when it is imported, and waiting in the value of a declaration. */
export function effectsOf(file: ProjectFile): readonly Ast[] {
  const statements = topLevel(file).filter(({ type }) => !DECLARATION.test(type));
  const waits = select(file, (node, above) => node.type === "AwaitExpression" && !above.some(isFunction));
  return [...new Set([...statements, ...waits])];
}

function place(file: ProjectFile, node: Ast): string {
  return `${file.path}:${lineAt(file, node.start)}`;
}
