/** @file `tidemark build`: a program compiled ahead of time, with a runtime that needs no compiler. */
import { gzipSync } from "node:zlib";
import { type BuildOptions, type BuiltProgram, buildFiles, parseBuild } from "../../api/ahead.ts";
import { sourceOfFunction, sourceOfGraph } from "../../api/ahead-source.ts";
import { currentHost } from "../../api/host.ts";
import { MOST_THREADS } from "../../api/request.ts";
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import { aheadRuntime, writeProgram } from "../../node/build.ts";
import { FILES } from "../../runtime/ahead/format.ts";
import { TARGET_NAMES } from "../../runtime/choose-target.ts";
import type { AnyFunction } from "../../trace/function.ts";
import { type Arguments, type Command, choice, type Io, integerOption, usageError, writeJson } from "../command.ts";
import { CONTRACT, FUNCTION_CONTRACT } from "../contract.ts";
import { type Buildable, loadBuildable } from "../load.ts";
import { MEMORY_OPTIONS, memoryOf, memoryOptions, progressTo } from "../plan-figures.ts";
import { PROGRESS_OPTION } from "../progress.ts";

interface Call {
  readonly fn: AnyFunction;
  readonly args: readonly unknown[];
  readonly options: BuildOptions;
}

/** A program as a function, its arguments, and what happens to them. */
function callOf(loaded: Exclude<Buildable, { readonly kind: "graph" }>, withValues: boolean): Call {
  const { program, name } = loaded;
  if (loaded.kind === "function") {
    const { run, batch, params } = loaded.program;
    const fn = run as AnyFunction;
    if (!params) return { fn, args: batch(), options: { name } };
    return { fn, args: [params(), ...batch()], options: { name, resident: [0] } };
  }
  const { step, init, batch, specs } = program as (typeof loaded)["program"];
  const args = withValues ? [init(), ...batch()] : (specs?.() ?? [init(), ...batch()]);
  return { fn: step as AnyFunction, args, options: { name, donate: [0] } };
}

function optionsOf(args: Arguments, io: Io): BuildOptions {
  const progress = progressTo(io, () => "planning", true);
  return {
    ...memoryOptions(memoryOf(args)),
    ...{
      target: choice(args, "target", TARGET_NAMES),
      threads: integerOption(args, "threads", 1, { least: 1, most: MOST_THREADS }),
    },
    ...{ fma: args.has("fma"), weights: !args.has("no-weights") },
    ...(progress ? { progress } : {}),
  };
}

function built(loaded: Buildable, options: BuildOptions): BuiltProgram {
  const [runtime, host] = [aheadRuntime(), currentHost()];
  if (loaded.kind === "graph") {
    return buildFiles(sourceOfGraph(loaded.graph), parseBuild(options), runtime, host);
  }
  const { fn, args, options: own } = callOf(loaded, options.weights ?? true);
  const request = parseBuild({ ...options, ...own });
  return buildFiles(sourceOfFunction(fn, args, request, request.resident), request, runtime, host);
}

/** A file of the build; weights hardly become smaller. */
function fileFigures(name: string, bytes: Uint8Array) {
  return { name, bytes: bytes.length, gzipBytes: name === FILES.weights ? null : gzipSync(bytes, { level: 9 }).length };
}

function reportText(folder: string, { files, program }: BuiltProgram): string {
  const rows = [...files].map(([name, bytes]) => fileFigures(name, bytes));
  const width = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.map(({ name, bytes, gzipBytes }) => {
    return `  ${name.padEnd(width)}  ${formatBytes(bytes).padStart(9)}${gzipBytes === null ? "" : `  ${formatBytes(gzipBytes).padStart(9)} gzip`}`;
  });
  const { arenaBytes, plan } = program;
  const arena = `arena ${grouped(arenaBytes)} bytes, ${plan.kernelCalls} kernel calls`;
  return `${folder}: ${program.name}, ${arena}\n${lines.join("\n")}\n`;
}

export const build: Command = {
  name: "build",
  positionals: ["MODULE"],
  summary: "compile a program ahead of time: WebAssembly, plan and a small runtime",
  details: [
    "Writes a folder whose index.js has load(): it runs in pages and in Node, without the compiler.",
    "The program is for the shapes of its arguments, for WebAssembly and one thread (docs/ahead-of-time.md).",
    `\n${CONTRACT}\n\n${FUNCTION_CONTRACT}`,
  ].join("\n"),
  options: {
    out: { value: "DIR", help: "the folder to write to" },
    name: { value: "EXPORT", help: "the export of the module to build; default: program" },
    ...MEMORY_OPTIONS,
    target: { value: "NAME", help: "wasm, the only target of a build" },
    threads: { value: "N", help: "1, the only number of a build" },
    fma: { help: "use fused multiply-add: faster products, only for engines that have it" },
    "no-weights": { help: "write no values: parameters and state are written before the first call" },
    force: { help: "replace files that no build has written, or that have changed since" },
    json: { help: "print one line of JSON instead of the report" },
    ...PROGRESS_OPTION,
  },
  async run(args, io) {
    const folder = args.value("out");
    if (folder === undefined) throw usageError("build: --out is missing", "give the folder to write to: --out model");
    const options = optionsOf(args, io);
    parseBuild(options);
    const made = built(await loadBuildable(args.positionals[0] as string, args.value("name")), options);
    await writeProgram(folder, made, { force: args.has("force") });
    if (!args.has("json")) return io.out(reportText(folder, made));
    const { name, arenaBytes, plan } = made.program;
    const files = [...made.files].map(([file, bytes]) => fileFigures(file, bytes));
    writeJson(io, { program: name, target: "wasm", folder, arenaBytes, ...plan, files });
  },
};
