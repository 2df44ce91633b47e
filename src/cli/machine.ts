/**
 * @file The measured speed of this machine, stored by `tidemark calibrate` for later commands: a small JSON file in the
 * user's cache folder. It is valid only for the same processor and major version of Node. The file is not trusted:
 * implausible rates, a file that is too long or no file at all leave the default model in place, with one line on
 * stderr if the user should act.
 *
 *   TIDEMARK_CACHE, or XDG_CACHE_HOME/tidemark, or ~/.cache/tidemark   /   cost-wasm.json, cost-native.json
 */
import { lstatSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { wasmDescription } from "../codegen/wasm/description.ts";
import { replaceFile } from "../node/cache-files.ts";
import { cacheFolder, NO_CACHE_FOLDER } from "../node/cache-folder.ts";
import { existingPrivateFolder, privateFolder } from "../node/private-folder.ts";
import type { CostModel } from "../target/work.ts";

const VERSION = 1;
const wasmModel = (): CostModel => wasmDescription().rates;
/** A valid file has about half a kilobyte. */
const LONGEST_FILE = 16 * 1024;

/** The measured part of a cost model; the blocking of products comes from the code generator. */
const RATES = ["productRate", "arithmeticRate", "byteRate", "cachedByteRate", "callSeconds"] as const;
type Rates = Readonly<Record<(typeof RATES)[number], number>>;

/** Plausible rates: from slower than an emulator to faster than a rack. */
const LEAST: Rates = { productRate: 1e5, arithmeticRate: 1e5, byteRate: 1e5, cachedByteRate: 1e5, callSeconds: 1e-12 };
const MOST: Rates = { productRate: 1e16, arithmeticRate: 1e16, byteRate: 1e16, cachedByteRate: 1e16, callSeconds: 1 };

/** The contents of the file. */
export interface MachineFile {
  readonly version: number;
  readonly cpu: string;
  readonly node: string;
  readonly target: string;
  /** ISO 8601. */
  readonly date: string;
  readonly rates: Rates;
}

/** The model to predict with, and where it comes from. */
export interface MachineModel {
  readonly costs: CostModel;
  readonly costModel: "calibrated" | "default";
  /** Of the calibration, if there is one. */
  readonly date: string | null;
}

export const cpuName = (): string => cpus()[0]?.model.trim() ?? "unknown";
const majorOf = (version: string): string => version.split(".")[0] ?? "";

/** The path of a target's calibration, WebAssembly by default; null if there is no cache folder. */
export function machinePath({ name }: Pick<CostModel, "name"> = wasmModel()): string | null {
  const cache = cacheFolder();
  return cache === null ? null : join(cache, `cost-${name}.json`);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The contents if valid; otherwise what is wrong with them. */
function checkFile(value: unknown): MachineFile | string {
  if (!isRecord(value) || value.version !== VERSION) return "it has another version";
  const texts = ["cpu", "node", "target", "date"];
  if (texts.some((key) => typeof value[key] !== "string" || (value[key] as string).length > 200)) {
    return `one of ${texts.join(", ")} is not a text`;
  }
  const { rates } = value;
  const wrong = RATES.find((key) => {
    const rate = isRecord(rates) ? rates[key] : undefined;
    return typeof rate !== "number" || !(rate >= LEAST[key] && rate <= MOST[key]);
  });
  return wrong === undefined ? (value as unknown as MachineFile) : `${wrong} is not a plausible rate`;
}

/** null if there is no file; a text if it cannot be used. */
function readMachine(path: string): MachineFile | string | null {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (!stats) return null;
    if (!stats.isFile()) return "it is not a file";
    const folder = existingPrivateFolder(dirname(path));
    if ("problem" in folder) return folder.problem;
    if (stats.size > LONGEST_FILE) return `it has ${stats.size} bytes`;
    return checkFile(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    return error instanceof SyntaxError ? "it is not JSON" : ((error as NodeJS.ErrnoException).code ?? String(error));
  }
}

/** The calibrated model of a target for this processor and Node version, otherwise its default. */
export function machineModel(err: (text: string) => void, model: CostModel = wasmModel()): MachineModel {
  const path = machinePath(model);
  const file = path === null ? null : readMachine(path);
  const none: MachineModel = { costs: model, costModel: "default", date: null };
  if (typeof file === "string") {
    err(`${path} is ignored: ${file}; tidemark calibrate writes a new one\n`);
    return none;
  }
  const here =
    file !== null &&
    file.cpu === cpuName() &&
    file.target === model.name &&
    majorOf(file.node) === majorOf(process.versions.node);
  if (!here) return none;
  const rates = Object.fromEntries(RATES.map((key) => [key, file.rates[key]])) as Rates;
  return { costs: { ...model, ...rates }, costModel: "calibrated", date: file.date };
}

/** Stores a model for later commands; returns why that failed, or null. */
export function storeModel(model: CostModel, date: Date): string | null {
  const path = machinePath(model);
  const { productRate, arithmeticRate, byteRate, cachedByteRate = byteRate, callSeconds } = model;
  const file: MachineFile = {
    version: VERSION,
    cpu: cpuName(),
    node: process.versions.node,
    target: model.name,
    date: date.toISOString(),
    rates: { productRate, arithmeticRate, byteRate, cachedByteRate, callSeconds },
  };
  if (path === null) return NO_CACHE_FOLDER;
  const folder = privateFolder(dirname(path));
  if ("problem" in folder) return folder.problem;
  const written = replaceFile(path, `${JSON.stringify(file, null, 2)}\n`);
  return written ? null : `${path} cannot be written`;
}

/** The rates as one line of text. */
export function ratesText({ productRate, arithmeticRate, byteRate, cachedByteRate, callSeconds }: CostModel): string {
  const giga = (rate: number): string => (rate / 1e9).toFixed(1);
  const cached = cachedByteRate === undefined ? "" : ` (${giga(cachedByteRate)} in caches)`;
  const arithmetic = `products ${giga(productRate)} GFLOP/s, other arithmetic ${giga(arithmeticRate)} G/s`;
  return `${arithmetic}, memory ${giga(byteRate)} GB/s${cached}, a call ${(callSeconds * 1e9).toFixed(1)} ns`;
}
