/**
 * @file What is known about this machine's speed, from one run of `tidemark calibrate` to all later commands: a small JSON
 * file in the user's cache folder. It counts only where it was measured: the processor and Node's major version must be
 * the same. Whatever else is in the file is not trusted: rates outside of what any machine has, a file that is too long or
 * no file at all leave the default model in place, with one line on stderr where somebody should look.
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
/** Ours have half a kilobyte. */
const LONGEST_FILE = 16 * 1024;

/** The measured part of a cost model; how products are blocked is the code generator's to say. */
const RATES = ["productRate", "arithmeticRate", "byteRate", "cachedByteRate", "callSeconds"] as const;
type Rates = Readonly<Record<(typeof RATES)[number], number>>;

/** What any machine may have: from slower than an emulator to faster than a rack. */
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

/** Where the calibration of a target is kept, of WebAssembly here if none is named; null where nothing is. */
export function machinePath({ name }: Pick<CostModel, "name"> = wasmModel()): string | null {
  const cache = cacheFolder();
  return cache === null ? null : join(cache, `cost-${name}.json`);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The contents if they are what we write; otherwise what is wrong with them. */
function checkFile(value: unknown): MachineFile | string {
  if (!isRecord(value) || value.version !== VERSION) return "it is of another version";
  const texts = ["cpu", "node", "target", "date"];
  if (texts.some((key) => typeof value[key] !== "string" || (value[key] as string).length > 200)) {
    return `one of ${texts.join(", ")} is not a text`;
  }
  const { rates } = value;
  const wrong = RATES.find((key) => {
    const rate = isRecord(rates) ? rates[key] : undefined;
    return typeof rate !== "number" || !(rate >= LEAST[key] && rate <= MOST[key]);
  });
  return wrong === undefined ? (value as unknown as MachineFile) : `${wrong} is no possible rate`;
}

/** null where there is no file; a text where there is one that cannot be used. */
function readMachine(path: string): MachineFile | string | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found) return null;
    if (!found.isFile()) return "it is not a file";
    const folder = existingPrivateFolder(dirname(path));
    if ("problem" in folder) return folder.problem;
    if (found.size > LONGEST_FILE) return `it has ${found.size} bytes`;
    return checkFile(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    return error instanceof SyntaxError ? "it is not JSON" : ((error as NodeJS.ErrnoException).code ?? String(error));
  }
}

/** The calibrated model of a target where there is one for this processor and this Node, else its default. */
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

/** Keeps a model for later commands; returns why that failed, or null. */
export function keepModel(model: CostModel, date: Date): string | null {
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

/** The rates for people, one line. */
export function ratesText({ productRate, arithmeticRate, byteRate, cachedByteRate, callSeconds }: CostModel): string {
  const giga = (rate: number): string => (rate / 1e9).toFixed(1);
  const cached = cachedByteRate === undefined ? "" : ` (${giga(cachedByteRate)} in caches)`;
  const arithmetic = `products ${giga(productRate)} GFLOP/s, other arithmetic ${giga(arithmeticRate)} G/s`;
  return `${arithmetic}, memory ${giga(byteRate)} GB/s${cached}, a call ${(callSeconds * 1e9).toFixed(1)} ns`;
}
