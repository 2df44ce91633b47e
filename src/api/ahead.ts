/**
 * @file Ahead-of-time builds: a function becomes files that run without the compiler (docs/ahead-of-time.md). The files are bytes here;
 * src/node writes them to a folder.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { wasmDescription } from "../codegen/wasm/description.ts";
import type { Exchange } from "../codegen/wasm/exchange.ts";
import { fusedProbes } from "../codegen/wasm/features.ts";
import { assemble } from "../compiler/assemble.ts";
import type { PlannerHost } from "../compiler/host.ts";
import type { PlanRequest } from "../compiler/request.ts";
import type { ChosenProgram } from "../compiler/stored.ts";
import { planJson } from "../plan/json.ts";
import {
  FILES,
  FORMAT,
  FORMAT_VERSION,
  type ProgramFile,
  type ProgramParam,
  type ProgramResult,
  sumOf,
  withSection,
} from "../runtime/ahead/format.ts";
import { weightsFile } from "../runtime/ahead/weights.ts";
import { exchangeText } from "../runtime/communicator.ts";
import { requireArena } from "../runtime/executable.ts";
import { wasmCode } from "../runtime/wasm-code.ts";
import { fail, requireOptions } from "../trace/arguments.ts";
import type { AheadSource } from "./ahead-source.ts";
import { indexText, typesText } from "./ahead-types.ts";
import { placedFigures } from "./placed-figures.ts";
import { type CompileRequest, PLANNING_OPTIONS, type PlanningOptions, parsePlanning } from "./request.ts";

/** Options of `build`: those of `plan`, for one thread of WebAssembly. */
export interface BuildOptions extends PlanningOptions {
  /** Use fused multiply-add: faster products, for engines that round it once. Default: false, the same bits everywhere. */
  readonly fma?: boolean;
  /** Whether the values of what stays are written too, where the arguments have them; default: true. */
  readonly weights?: boolean;
}

/** Options of `build`, parsed. @internal */
export interface BuildRequest extends CompileRequest {
  readonly fma: boolean;
  readonly weights: boolean;
}

/** Files by name, and figures of the program. */
export interface BuiltProgram {
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The contents of `program.json`. */
  readonly program: ProgramFile;
}

/** Checks options; what cannot be built is refused by name. @internal */
export function parseBuild(options: BuildOptions): BuildRequest {
  requireOptions("build", options, {
    ...PLANNING_OPTIONS,
    ...{ fma: "a boolean", weights: "a boolean" },
  });
  const { fma = false, weights = true, target = "wasm", threads = 1, ...planning } = options;
  if (target !== "wasm") {
    const name = typeof target === "string" ? target : target.description.name;
    fail("TargetUnsupported", `build: programs are built for wasm, not for ${name}`, "leave the target out");
  }
  if (threads !== 1) {
    fail("TargetUnsupported", `build: programs are built for one thread, not for ${threads}`, "leave threads out");
  }
  const request = parsePlanning("build", planning);
  return { ...request, fma, weights };
}

const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

declare function btoa(text: string): string;

function paramsOf({ params }: AheadSource, placed: ChosenProgram): readonly ProgramParam[] {
  return params.map(({ name, type, kind }, i) => ({ name, ...type, kind, address: at(placed.params, i) }));
}

function resultsOf(source: AheadSource, placed: ChosenProgram): readonly ProgramResult[] {
  const replaced = new Map([...source.donated].map(([param, result]) => [result, param]));
  return source.graph.results.map(({ type: { dtype, shape } }, i) => {
    const state = replaced.get(i) ?? null;
    const address = state === null ? at(placed.results, i) : at(placed.params, state);
    return { name: at(source.results, i), dtype, shape, address, state };
  });
}

type Files = readonly (readonly [name: string, bytes: Uint8Array])[];

/** `program.json` for code and the other files. */
function programFile(
  source: AheadSource,
  placed: ChosenProgram,
  request: BuildRequest,
  { code, pages, others }: { readonly code: Uint8Array; readonly pages: number; readonly others: Files },
): ProgramFile {
  const { strategy, lowerBoundBytes, persistentBytes, kernelCalls } = placedFigures(placed);
  const probes = request.fma ? fusedProbes() : null;
  return {
    ...{ format: FORMAT, version: FORMAT_VERSION, name: source.graph.name, target: "wasm", threads: 1 },
    fused: probes && { f32: base64(probes.f32), f64: base64(probes.f64) },
    ...{ arenaBytes: placed.plan.height, pages, code: sumOf(code) },
    params: paramsOf(source, placed),
    results: resultsOf(source, placed),
    arguments: source.arguments,
    result: source.result,
    plan: {
      ...{ strategy, lowerBoundBytes, persistentBytes, kernelCalls },
      budgetBytes: request.memory.budgetBytes ?? null,
    },
    files: Object.fromEntries(others.map(([name, bytes]) => [name, sumOf(bytes)])),
  };
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The values of what stays, if there are any. */
function weightsOf({ params }: AheadSource, { weights }: BuildRequest): Files {
  const given = params.flatMap(({ name, type, value }) => (weights && value ? [{ name, ...type, value }] : []));
  if (given.length === 0) return [];
  return [[FILES.weights, weightsFile(given, ({ value }) => value.data())]];
}

/** Files have no devices to exchange with. */
function requireAlone([first]: readonly Exchange[]): void {
  if (!first) return;
  const summary = `build: the program connects devices: ${exchangeText(first)}`;
  throw new TidemarkError("TargetUnsupported", summary, { help: "take a mesh of one device" });
}

/** Plans a program and makes its files. `runtime` is the text of `runtime.js`. @internal */
export function buildFiles(
  source: AheadSource,
  request: BuildRequest,
  runtime: Uint8Array,
  host: PlannerHost,
): BuiltProgram {
  const { fma } = request;
  const target = wasmDescription(fma);
  const planned: PlanRequest = request;
  const placed = assemble(source, target, planned, host);
  requireArena(placed.base + placed.plan.height, target);
  const { bytes: code, pages, exchanges } = wasmCode(placed, { fma, threads: 1, stepwise: false, sharesMemory: false });
  requireAlone(exchanges);
  const weights = weightsOf(source, request);
  const others: Files = [
    [FILES.runtime, runtime],
    [FILES.index, encode(indexText(weights.length > 0))],
    [FILES.types, encode(typesText(source))],
    [FILES.plan, encode(`${JSON.stringify(planJson(placed.plan, { stories: true }))}\n`)],
    ...weights,
  ];
  const program = programFile(source, placed, request, { code, pages, others });
  const files = new Map([
    [FILES.code, withSection(code, program)],
    [FILES.program, encode(`${JSON.stringify(program)}\n`)],
    ...others,
  ]);
  return { files, program };
}
