/**
 * @file NCCL, the library by which NVIDIA GPUs exchange data (libnccl), called through koffi: functions by their C names, an error for
 * every result that is not success. What it is asked for goes into a stream, where the driver may record it into a graph.
 */
import { TidemarkError } from "../../base/errors.ts";
import type { CudaExchange } from "../../codegen/cuda/exchange.ts";
import type { DType } from "../../kernel/dtype.ts";
import { foreignFunctions, type Koffi } from "../native/library.ts";

const LIBRARY = "libnccl.so.2";
/** Bytes of what the devices of a group have in common before they know each other. */
export const ID_BYTES = 128;
/** 2.14: some older ones ask that two devices have exchanged something before that is recorded into a graph. */
const OLDEST_VERSION = 21_400;

/** How NCCL is installed, in every message that says it is not there. */
export const INSTALL_NCCL =
  "install NCCL (Debian 13 with contrib, or NVIDIA's packages: apt-get install libnccl2), or name its file: TIDEMARK_NCCL=…/libnccl.so.2";

const ncclPath = ({ TIDEMARK_NCCL }: NodeJS.ProcessEnv = process.env): string => TIDEMARK_NCCL || LIBRARY;

/** An address of the device, a handle, a count, and an id, which is passed by its value. */
const [ADDRESS, HANDLE, COUNT, ID] = ["uint64", "void *", "size_t", "ncclUniqueId"];

/** C types of arguments; all functions return a result. */
const FUNCTIONS = {
  ncclGetVersion: ["void *"],
  ncclGetUniqueId: ["void *"],
  ncclCommInitRank: ["void *", "int", ID, "int"],
  ncclCommGetAsyncError: [HANDLE, "void *"],
  ncclCommAbort: [HANDLE],
  ncclGroupStart: [],
  ncclGroupEnd: [],
  ncclAllReduce: [ADDRESS, ADDRESS, COUNT, "int", "int", HANDLE, HANDLE],
  ncclReduceScatter: [ADDRESS, ADDRESS, COUNT, "int", "int", HANDLE, HANDLE],
  ncclAllGather: [ADDRESS, ADDRESS, COUNT, "int", HANDLE, HANDLE],
  ncclBroadcast: [ADDRESS, ADDRESS, COUNT, "int", "int", HANDLE, HANDLE],
  ncclSend: [ADDRESS, COUNT, "int", "int", HANDLE, HANDLE],
  ncclRecv: [ADDRESS, COUNT, "int", "int", HANDLE, HANDLE],
} as const satisfies Readonly<Record<string, readonly string[]>>;

type FunctionName = keyof typeof FUNCTIONS;
type Functions = Readonly<Record<FunctionName, (...args: unknown[]) => number>>;
type ErrorText = (result: number) => string;

/** Numbers of `ncclDataType_t`. */
const TYPES: Readonly<Record<DType, number>> = {
  i8: 0,
  u8: 1,
  bool: 1,
  i32: 2,
  i64: 4,
  f16: 6,
  f32: 7,
  f64: 8,
  bf16: 9,
};
/** Of whole numbers that wrap around. */
const UNSIGNED: Readonly<Partial<Record<DType, number>>> = { i32: 3, i64: 5 };

/** Numbers of `ncclRedOp_t`. */
const COMBINES: Readonly<Record<CudaExchange["combine"], number>> = { add: 0, max: 2 };

/** Of elements that are moved; of elements that are added, as which their sums wrap around. */
export const movedAs = (dtype: DType): number => TYPES[dtype];
export const combinedAs = (dtype: DType, combine: CudaExchange["combine"]): readonly [type: number, op: number] => [
  (combine === "add" ? UNSIGNED[dtype] : undefined) ?? TYPES[dtype],
  COMBINES[combine],
];

export class Nccl {
  /** `NCCL 2.21.5`. */
  readonly version: string;
  readonly #functions: Functions;
  readonly #text: ErrorText;

  private constructor(functions: Functions, text: ErrorText, version: string) {
    this.#functions = functions;
    this.#text = text;
    this.version = version;
  }

  /** The library, or one line that says why there is none. TIDEMARK_NCCL names another file. */
  static open(path: string = ncclPath()): Nccl | string {
    const koffi = foreignFunctions();
    if (typeof koffi === "string") return koffi;
    const loaded = functionsOf(koffi, path);
    if (typeof loaded === "string") return loaded;
    const [functions, text] = loaded;
    const out = new Int32Array(1);
    const result = functions.ncclGetVersion(out);
    if (result !== 0) return `${path} does not say its version: ${text(result)}`;
    const [found = 0] = out;
    if (found >= OLDEST_VERSION) return new Nccl(functions, text, `NCCL ${versionText(found)}`);
    return `${path} is NCCL ${versionText(found)}, and ${versionText(OLDEST_VERSION)} is needed`;
  }

  /** Calls a function; throws what the library says where it does not succeed. */
  call(name: FunctionName, ...args: readonly unknown[]): void {
    const result = this.#functions[name](...args);
    if (result !== 0) throw ncclError(name, this.#text(result));
  }

  /** Gives something back, whatever the library says. */
  release(name: FunctionName, ...args: readonly unknown[]): void {
    this.#functions[name](...args);
  }

  uniqueId(): Uint8Array {
    const id = new Uint8Array(ID_BYTES);
    this.call("ncclGetUniqueId", id);
    return id;
  }

  /** The group of so many devices with an id, in which this one has a number; all of them call it. */
  join(id: Uint8Array, devices: number, number: number): bigint {
    const out = new BigUint64Array(1);
    this.call("ncclCommInitRank", out, devices, { internal: id }, number);
    return out[0] ?? 0n;
  }

  /** What went wrong in a group since it was made; null: nothing. */
  failure(group: bigint): string | null {
    const out = new Int32Array(1);
    const result = this.#functions.ncclCommGetAsyncError(group, out);
    const found = result === 0 ? (out[0] ?? 0) : result;
    return found === 0 || found === IN_PROGRESS ? null : this.#text(found);
  }

  /** Everything that a function asks for is one exchange. */
  together(ask: () => void): void {
    this.call("ncclGroupStart");
    try {
      ask();
    } finally {
      this.call("ncclGroupEnd");
    }
  }
}

/** What a group says while it is being made. */
const IN_PROGRESS = 7;

/** 22105 is 2.21.5. */
const versionText = (version: number): string =>
  `${Math.floor(version / 10_000)}.${Math.floor((version % 10_000) / 100)}.${version % 100}`;

function functionsOf(koffi: Koffi, path: string): readonly [Functions, ErrorText] | string {
  let library: ReturnType<Koffi["load"]>;
  try {
    library = koffi.load(path);
  } catch (error) {
    return `no NCCL: ${path} cannot be loaded (${(error as Error).message.split("\n")[0]})`;
  }
  const id = koffi.struct({ internal: koffi.array("uint8", ID_BYTES) });
  const functions: Record<string, (...args: unknown[]) => unknown> = {};
  const missing: string[] = [];
  const find = (name: string, result: string, args: readonly string[]): ((...args: unknown[]) => unknown) | null => {
    try {
      return library.func(
        name,
        result,
        args.map((type) => (type === ID ? id : type)),
      );
    } catch {
      missing.push(name);
      return null;
    }
  };
  for (const [name, args] of Object.entries(FUNCTIONS)) {
    const found = find(name, "int", args);
    if (found) functions[name] = found;
  }
  const text = find("ncclGetErrorString", "str", ["int"]);
  return missing.length > 0 || text === null
    ? `${path} is no NCCL that can be used: it has no ${missing.join(", ")}`
    : [functions as Functions, text as ErrorText];
}

/** A call that failed. */
const ncclError = (name: string, said: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", `NCCL refused ${name}: ${said}`, {
    help: "NCCL_DEBUG=WARN in the environment makes it say more; every process needs a GPU of its own, and the same NCCL",
  });

/** What is there of NCCL, for reports. */
export interface NcclState {
  readonly available: boolean;
  readonly note: string;
}

/** Found out by loading it. */
export function ncclState(env: NodeJS.ProcessEnv = process.env): NcclState {
  const path = ncclPath(env);
  const found = Nccl.open(path);
  if (typeof found === "string") return { available: false, note: `${found}; one GPU runs. ${INSTALL_NCCL}` };
  return { available: true, note: `${found.version}: ${path}` };
}
