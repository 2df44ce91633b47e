/**
 * @file Loads the program named on the command line: a built-in name, a module that exports one, or a graph as text.
 */
import { existsSync } from "node:fs";
import { basename, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { TidemarkError } from "../base/errors.ts";
import { guess } from "../base/suggest.ts";
import type { Graph } from "../ir/graph.ts";
import { parse } from "../ir/parse.ts";
import { verify } from "../ir/verify.ts";
import { allOps } from "../ops/all.ts";
import { usageError } from "./command.ts";
import { checkedFunction, checkedProgram, type FunctionProgram } from "./contract.ts";
import { readText, requireFile } from "./files.ts";
import { isModelFile, modelProgram } from "./model-program.ts";
import { ALL_PROGRAMS, type AnyProgram } from "./programs/built-in.ts";
import { thrownText } from "./thrown.ts";

/** A training step with values to start from, or a graph, of which only the types are known. */
export type Loaded =
  | { readonly kind: "training"; readonly name: string; readonly program: AnyProgram }
  | { readonly kind: "graph"; readonly name: string; readonly graph: Graph };

/** What can be built: also a function without a state. */
export type Buildable =
  | Loaded
  | { readonly kind: "function"; readonly name: string; readonly program: FunctionProgram };

const MODULES: readonly string[] = [".js", ".mjs", ".ts", ".mts"];
const KINDS = ".js, .mjs, .ts or .ir";

function unknownProgram(summary: string, help: string): TidemarkError {
  return new TidemarkError("UnknownProgram", summary, { help });
}

/** Functions of a `.ir` file. */
export function readGraphs(path: string): readonly Graph[] {
  if (!existsSync(path)) throw unknownProgram(`there is no file ${path}`, "give the path of a .ir file");
  const graphs = parse(readText(path, ".ir"), allOps, { file: basename(path) });
  for (const graph of graphs) verify(graph);
  return graphs;
}

/** `sizes` are those of a model's inputs that are open. */
export async function loadProgram(word: string, sizes: Readonly<Record<string, number>> = {}): Promise<Loaded> {
  if (isModelFile(word)) return loadModel(word, sizes);
  return builtInOrGraph(word) ?? trainingOf(await moduleExport(word), "program", word);
}

/** A model of another framework, with a training step made for it. */
async function loadModel(path: string, sizes: Readonly<Record<string, number>>): Promise<Loaded> {
  const program = (await modelProgram(path, sizes)) as AnyProgram;
  return { kind: "training", name: program.name, program };
}

/** The same, and functions; `name` is the export that a module has it under. */
export async function loadBuildable(word: string, name = "program"): Promise<Buildable> {
  const known = builtInOrGraph(word);
  if (known) return known;
  const exported = await moduleExport(word, name);
  const { run } = membersOf<FunctionProgram>(exported);
  if (typeof run !== "function") return trainingOf(exported, name, word);
  const program = checkedFunction({ ...(exported as FunctionProgram), name: nameIn(exported, word) });
  return { kind: "function", name: program.name, program };
}

const membersOf = <T>(exported: unknown): Partial<T> =>
  (typeof exported === "object" && exported !== null ? exported : {}) as Partial<T>;

/** The name that a program gives itself, or that of its file. */
function nameIn(exported: unknown, path: string): string {
  const { name } = membersOf<AnyProgram>(exported);
  return typeof name === "string" ? name : basename(path, extname(path));
}

/** Null: it is in a module. */
function builtInOrGraph(word: string): Loaded | null {
  const builtIn = ALL_PROGRAMS.find((program) => program.name === word);
  if (builtIn) return { kind: "training", name: builtIn.name, program: builtIn };
  const extension = extname(word);
  if (extension === ".ir") {
    const [graph, ...more] = readGraphs(word);
    if (graph && more.length === 0) return { kind: "graph", name: graph.name, graph };
    throw unknownProgram(
      `${word} holds ${more.length + Number(!!graph)} functions`,
      "a program is a file with one function",
    );
  }
  if (!MODULES.includes(extension)) {
    if (existsSync(word)) requireFile(word, KINDS);
    throw unknownName(word);
  }
  if (!existsSync(word))
    throw unknownProgram(`there is no file ${word}`, "give the path of a module, or a built-in name");
  return null;
}

function unknownName(word: string): TidemarkError {
  const names = ALL_PROGRAMS.map((program) => program.name);
  const files = `or give a ${KINDS} file, a model as .onnx or .pt2`;
  return unknownProgram(
    `there is no program ${word}`,
    `${guess(word, names)}built in are ${names.join(", ")}; ${files}`,
  );
}

async function moduleExport(path: string, name = "program"): Promise<unknown> {
  const exports = await importModule(path);
  if (exports[name] !== undefined) return exports[name];
  throw unknownProgram(`${path}: exports no \`${name}\``, CONTRACT_LINE.replace("program", name));
}

const CONTRACT_LINE = "export const program = { name, init(), batch(), step(state, ...batch) }";

function trainingOf(exported: unknown, name: string, path: string): Loaded {
  const functions = ["init", "batch", "step"] as const;
  const members = membersOf<AnyProgram>(exported);
  const missing = functions.filter((member) => typeof members[member] !== "function");
  if (missing.length > 0) {
    throw unknownProgram(`${path}: \`${name}\` has no function ${missing.join(", ")}`, CONTRACT_LINE);
  }
  const program = checkedProgram({ ...(members as AnyProgram), name: nameIn(exported, path) });
  return { kind: "training", name: program.name, program };
}

async function importModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  requireFile(path, "module");
  const url = pathToFileURL(resolve(path)).href;
  try {
    return await awaitModule(path, import(url) as Promise<Readonly<Record<string, unknown>>>);
  } catch (error) {
    if (error instanceof TidemarkError) throw error;
    const said = thrownText(error);
    if (isForeignSyntax(error, path)) {
      const help = "compile it to .js, or use Node 22.18 or newer with types that can be erased";
      throw unknownProgram(`${path}: Node ${process.versions.node} does not read this TypeScript (${said})`, help);
    }
    throw unknownProgram(`${path} could not be loaded: ${said}`, "run it with node to see where");
  }
}

/** Whether Node cannot parse the file type. */
function isForeignSyntax(error: unknown, path: string): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as Error & { readonly code?: string };
  return code === "ERR_UNKNOWN_FILE_EXTENSION" || (error instanceof SyntaxError && path.endsWith("ts"));
}

/** Seconds; modules may load data at the top level. */
export const LOAD_SECONDS = 60;
export const LOAD_VARIABLE = "TIDEMARK_LOAD_SECONDS";

function loadSeconds(): number {
  const text = process.env[LOAD_VARIABLE];
  if (!text) return LOAD_SECONDS;
  const seconds = Number(text);
  if (seconds > 0 && seconds <= 1e6) return seconds;
  throw usageError(`${LOAD_VARIABLE} is ${text}`, "give seconds, as in 300");
}

/**
 * Awaits a module's top level. A promise there that never settles would block the command forever, or end the process
 * silently: both are errors, the first after a time limit, the second at once, when the event loop is empty.
 */
function awaitModule<T>(path: string, loading: Promise<T>): Promise<T> {
  const seconds = loadSeconds();
  const refusal = (why: string, help: string): TidemarkError =>
    unknownProgram(`${path} could not be loaded: its top level ${why}`, help);
  return new Promise<T>((resolve, reject) => {
    const late = (): void =>
      reject(refusal(`has not run within ${seconds} s`, `${LOAD_VARIABLE} sets another limit, in seconds`));
    const idle = (): void =>
      reject(refusal("awaits a promise that can never settle", "look for a promise that nothing resolves"));
    // the timer alone must not keep the process alive
    const timer = setTimeout(late, seconds * 1000).unref();
    process.once("beforeExit", idle);
    loading.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      process.off("beforeExit", idle);
    });
  });
}
