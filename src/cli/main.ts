/**
 * @file The command line. `main` finds the command, runs it and returns an exit code: 0 for success, 1 for a user error
 * (message, no stack), 2 for an internal error (with the stack).
 */

import { readFileSync } from "node:fs";
import { installPart } from "../api/host.ts";
import { TidemarkError } from "../base/errors.ts";
import { guess } from "../base/suggest.ts";
import { nodeHost } from "../node/host.ts";
import { wantsColour } from "../plan/terminal.ts";
import { type Command, commandHelp, type Io, parseArguments, usageError } from "./command.ts";
import { bench } from "./commands/bench.ts";
import { build } from "./commands/build.ts";
import { calibrate } from "./commands/calibrate.ts";
import { curve } from "./commands/curve.ts";
import { doctor } from "./commands/doctor.ts";
import { exportCommand } from "./commands/export.ts";
import { fit } from "./commands/fit.ts";
import { importCommand } from "./commands/import.ts";
import { opt } from "./commands/opt.ts";
import { pack } from "./commands/pack.ts";
import { plan } from "./commands/plan.ts";
import { playground } from "./commands/playground.ts";
import { remat } from "./commands/remat.ts";
import { revolve } from "./commands/revolve.ts";
import { scale } from "./commands/scale.ts";
import { tape } from "./commands/tape.ts";
import { trace } from "./commands/trace.ts";
import { view } from "./commands/view.ts";
import { LOAD_SECONDS, LOAD_VARIABLE } from "./load.ts";
import { ALL_PROGRAMS } from "./programs/built-in.ts";
import { withProgress } from "./progress.ts";
import { asUserError } from "./thrown.ts";

const COMMANDS: readonly Command[] = [
  ...[plan, view, playground, bench, build, curve, fit, scale, tape, trace, importCommand, exportCommand],
  ...[opt, pack, remat, revolve, calibrate, doctor],
];

/** The package's version; its manifest is two levels up from here, in the sources and in the published package. */
export function version(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

function help(): string {
  const width = Math.max(...COMMANDS.map((command) => command.name.length));
  const longest = Math.max(...ALL_PROGRAMS.map(({ name }) => name.length));
  const programs = ALL_PROGRAMS.map(({ name, title }) => `  ${name.padEnd(longest)}  ${title}`);
  return [
    "usage: tidemark COMMAND [arguments] [options]",
    "",
    "Plans the memory of training programs, runs them, and reports on both.",
    "",
    "commands:",
    ...COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    "PROGRAM is a module (.js, .mjs, .ts) that exports `program`, a graph (.ir), a model (.onnx, .pt2), or one of the built-in programs:",
    ...programs,
    "",
    `A module has ${LOAD_SECONDS} seconds to load; ${LOAD_VARIABLE} sets another limit.`,
    "",
    "tidemark COMMAND --help shows a command's options; tidemark --version the version.",
    "Exit code: 0 success, 1 an error that you can fix, 2 an internal error.",
    "",
  ].join("\n");
}

function commandNamed(name: string): Command {
  const match = COMMANDS.find((command) => command.name === name);
  if (match) return match;
  const names = COMMANDS.map((command) => command.name);
  throw usageError(`there is no command ${name}`, `${guess(name, names)}commands are ${names.join(", ")}`);
}

async function run(argv: readonly string[], io: Io): Promise<void> {
  const [name, ...rest] = argv;
  if (name === undefined) throw usageError("no command given", "tidemark --help");
  if (name === "--version" || name === "-v") return io.out(`${version()}\n`);
  if (name === "--help" || name === "-h" || name === "help") {
    return io.out(rest[0] === undefined ? help() : commandHelp(commandNamed(rest[0])));
  }
  if (name.startsWith("-")) throw usageError(`unknown option ${name}`, "options follow the command; tidemark --help");
  const command = commandNamed(name);
  const args = parseArguments(command, rest);
  if (args === null) return io.out(commandHelp(command));
  const shown = withProgress(io, args);
  try {
    await command.run(args, shown.io);
  } finally {
    shown.end();
  }
}

/** The process's streams; a closed reader (`| head`) ends the process quietly. */
function processIo(): Io {
  process.stdout.on("error", (error: Error & { readonly code?: string }) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
  const io = {
    out: (text: string) => process.stdout.write(text),
    err: (text: string) => process.stderr.write(text),
    colour: wantsColour(process.stdout.isTTY === true, process.env),
    terminal: process.stderr.isTTY === true,
  };
  // errors that a module throws later, from a timer or a promise
  process.once("uncaughtException", (thrown) => process.exit(report(thrown, io)));
  return io;
}

/** The command's own file is not a line of the user's. */
function messageOf(error: TidemarkError): string {
  if (!/^tidemark\.js:/.test(error.where ?? "")) return error.message;
  return new TidemarkError(error.code, error.summary, { help: error.help }).message;
}

/** Prints an error and returns the exit code. */
function report(thrown: unknown, io: Io): number {
  const error = asUserError(thrown);
  if (error instanceof TidemarkError) {
    io.err(`${messageOf(error)}\n`);
    return 1;
  }
  io.err(`${error instanceof Error ? error.stack : String(error)}\n`);
  return 2;
}

/** Runs the command line `tidemark ...argv` and returns the exit code. */
export async function main(argv: readonly string[], io: Io = processIo()): Promise<number> {
  installPart("host", nodeHost);
  try {
    await run(argv, io);
    return 0;
  } catch (thrown) {
    return report(thrown, io);
  }
}
