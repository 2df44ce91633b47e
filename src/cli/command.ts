/**
 * @file A command: a name, its arguments and options as data, and a function. Parsing, `--help` and usage errors are
 * derived from the data, so that all commands behave alike.
 */
import { parseArgs } from "node:util";
import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { guess } from "../base/suggest.ts";
import type { Paint } from "../plan/memory-map.ts";
import { terminalPaint } from "../plan/terminal.ts";
import type { Progress } from "./progress.ts";

/** Output of a command: results to `out`, progress and messages to `err`. Texts end with a line break. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Whether `out` is a terminal with colours. */
  readonly colour?: boolean;
  /** Whether `err` is a terminal. */
  readonly terminal?: boolean;
  /** Is told how far a command is, where its user sees that (progress.ts). */
  readonly progress?: (told: Progress) => void;
}

/** The paint option for pictures of memory. */
export const paintFor = (io: Io): { readonly paint?: Paint } => (io.colour ? { paint: terminalPaint } : {});

export interface OptionSpec {
  /** The placeholder for the value in the help; an option without one is a switch. */
  readonly value?: string;
  readonly help: string;
}

/** Arguments after parsing. */
export interface Arguments {
  readonly positionals: readonly string[];
  /** The value of an option, if it was given. */
  value(name: string): string | undefined;
  has(name: string): boolean;
}

export interface Command {
  readonly name: string;
  /** `PROGRAM`, or several; one in brackets is optional. */
  readonly positionals: readonly string[];
  readonly summary: string;
  /** Further lines of the help. */
  readonly details?: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  run(args: Arguments, io: Io): void | Promise<void>;
}

const HELP: OptionSpec = { help: "show this text" };

export function usageError(summary: string, help: string): TidemarkError {
  return new TidemarkError("UsageError", summary, { help });
}

/** The text of `tidemark NAME --help`. */
export function commandHelp(command: Command): string {
  const rows = Object.entries({ ...command.options, help: HELP }).map(([name, { value, help }]) => {
    const short = name === "help" ? "-h, " : "";
    return [`${short}--${name}${value ? ` ${value}` : ""}`, help] as const;
  });
  const width = Math.max(...rows.map(([left]) => left.length));
  const lines = [
    `usage: ${["tidemark", command.name, ...command.positionals].join(" ")} [options]`,
    "",
    command.summary,
    ...(command.details ? ["", command.details] : []),
    "",
    "options:",
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** Reads arguments as the command declares them; null when help is asked for. */
export function parseArguments(command: Command, argv: readonly string[]): Arguments | null {
  const specs = { ...command.options, help: HELP };
  const types = Object.entries(specs).map(([name, { value }]) => {
    return [name, { type: value ? "string" : "boolean", ...(name === "help" ? { short: "h" } : {}) }] as const;
  });
  const options = Object.fromEntries(types) as Record<string, { type: "string" | "boolean"; short?: string }>;
  const parsed = orUsageError(command, () =>
    parseArgs({ args: withNegatives(argv, options), options, allowPositionals: true }),
  );
  const values = parsed.values as Readonly<Record<string, string | boolean | undefined>>;
  if (values.help) return null;
  requireCount(command, parsed.positionals, values);
  return {
    positionals: parsed.positionals,
    value(name) {
      const value = values[name];
      return typeof value === "string" ? value : undefined;
    },
    has: (name) => values[name] !== undefined,
  };
}

/**
 * `--steps -5` as `--steps=-5`: a number after an option that takes a value is its value; Node's parser refuses
 * negative ones.
 */
function withNegatives(
  argv: readonly string[],
  options: Readonly<Record<string, { readonly type: string }>>,
): string[] {
  const joined: string[] = [];
  for (const word of argv) {
    const before = joined.at(-1) ?? "";
    const takesValue = before.startsWith("--") && options[before.slice(2)]?.type === "string";
    if (takesValue && /^-[\d.]/.test(word)) joined[joined.length - 1] = `${before}=${word}`;
    else joined.push(word);
  }
  return joined;
}

function requireCount(command: Command, given: readonly string[], values: Readonly<Record<string, unknown>>): void {
  const required = command.positionals.filter((name) => !name.startsWith("["));
  // a switch like --list needs no arguments
  if (given.length === 0 && values.list) return;
  const missing = required.slice(given.length);
  const help = `tidemark ${command.name} --help`;
  if (missing.length > 0) throw usageError(`${command.name}: ${missing.join(" and ")} missing`, help);
  const extra = given.slice(command.positionals.length);
  if (extra.length > 0) throw usageError(`${command.name}: unexpected argument ${extra.join(" ")}`, help);
}

/** Rewrites Node's parse errors as usage errors. */
function orUsageError<T>(command: Command, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string };
    if (!code?.startsWith("ERR_PARSE_ARGS")) throw error;
    const unknown = /Unknown option '(-[^']*)'/.exec(message)?.[1];
    if (!unknown) throw usageError(`${command.name}: ${message.split(". ")[0]}`, `tidemark ${command.name} --help`);
    const options = [...Object.keys(command.options), "help"].map((name) => `--${name}`);
    throw usageError(
      `${command.name}: unknown option ${unknown}`,
      `${guess(unknown, options)}options are ${options.join(", ")}`,
    );
  }
}

/** The range of a number. */
export interface IntegerRange {
  readonly least: number;
  readonly most?: number;
}

/** An integer within a range. */
export function integerOption(args: Arguments, name: string, fallback: number, within: IntegerRange): number {
  const { least, most = Number.MAX_SAFE_INTEGER } = within;
  const text = args.value(name);
  if (text === undefined) return fallback;
  const n = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(n) && n >= least && n <= most) return n;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw usageError(`--${name} ${text}`, `give a whole number ${range}`);
}

/** A number of bytes, with or without a unit; null if not given. */
export function sizeOf(args: Arguments, name: string): number | null {
  const text = args.value(name);
  try {
    return text === undefined ? null : parseBytes(text);
  } catch (error) {
    if (error instanceof TidemarkError) throw usageError(`--${name}: ${error.summary}`, error.help ?? "");
    throw error;
  }
}

/** One of several allowed values. */
export function choice<T extends string>(args: Arguments, name: string, words: readonly [T, ...T[]]): T {
  const text = args.value(name);
  if (text === undefined) return words[0];
  const match = words.find((word) => word === text);
  if (match === undefined) throw usageError(`--${name} ${text}`, `this version has ${words.join(", ")}`);
  return match;
}

/** The last line on stdout. */
export function writeJson(io: Io, value: object): void {
  io.out(`${JSON.stringify(value)}\n`);
}
