/**
 * @file The CUDA driver of this machine (libcuda), called through koffi: functions by their C names, an error for every status
 * that is not success. Handles and device addresses are bigints. No toolkit is needed for any of it, only the driver.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { foreignFunctions, type Koffi } from "../native/library.ts";

const LIBRARY = "libcuda.so.1";
/** CUDA 12.0, as the driver says it. */
const OLDEST_VERSION = 12_000;
const NO_DEVICE = 100;
const OUT_OF_MEMORY = 2;
const NOT_READY = 600;

/** C types of arguments; all functions return a status. */
const FUNCTIONS = {
  cuInit: ["uint"],
  cuDriverGetVersion: ["void *"],
  cuGetErrorName: ["int", "void *"],
  cuDeviceGetCount: ["void *"],
  cuDeviceGet: ["void *", "int"],
  cuDeviceGetName: ["void *", "int", "int"],
  cuDeviceGetUuid_v2: ["void *", "int"],
  cuDeviceGetAttribute: ["void *", "int", "int"],
  cuDevicePrimaryCtxRetain: ["void *", "int"],
  cuCtxSetCurrent: ["void *"],
  cuMemGetInfo_v2: ["void *", "void *"],
  cuMemAlloc_v2: ["void *", "size_t"],
  cuMemFree_v2: ["uint64"],
  cuMemHostAlloc: ["void *", "size_t", "uint"],
  cuMemFreeHost: ["void *"],
  cuMemcpyHtoDAsync_v2: ["uint64", "void *", "size_t", "void *"],
  cuMemcpyDtoHAsync_v2: ["void *", "uint64", "size_t", "void *"],
  cuMemcpyDtoDAsync_v2: ["uint64", "uint64", "size_t", "void *"],
  cuMemsetD8Async: ["uint64", "uint8", "size_t", "void *"],
  cuMemsetD32Async: ["uint64", "uint", "size_t", "void *"],
  cuStreamCreate: ["void *", "uint"],
  cuStreamSynchronize: ["void *"],
  cuStreamWaitEvent: ["void *", "void *", "uint"],
  cuStreamBeginCapture_v2: ["void *", "int"],
  cuStreamEndCapture: ["void *", "void *"],
  cuGraphInstantiateWithFlags: ["void *", "void *", "uint64"],
  cuGraphLaunch: ["void *", "void *"],
  cuGraphDestroy: ["void *"],
  cuGraphExecDestroy: ["void *"],
  cuModuleLoadData: ["void *", "void *"],
  cuModuleUnload: ["void *"],
  cuModuleGetFunction: ["void *", "void *", "str"],
  cuFuncSetAttribute: ["void *", "int", "int"],
  cuTensorMapEncodeTiled: [
    "void *",
    "int",
    "uint",
    "uint64",
    ...Array<string>(4).fill("void *"),
    ...Array<string>(4).fill("int"),
  ],
  cuLaunchKernel: ["void *", ...Array<string>(7).fill("uint"), "void *", "void *", "void *"],
  cuEventCreate: ["void *", "uint"],
  cuEventDestroy_v2: ["void *"],
  cuEventRecord: ["void *", "void *"],
  cuEventQuery: ["void *"],
  cuEventSynchronize: ["void *"],
  cuEventElapsedTime: ["void *", "void *", "void *"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** What a driver must have. */
export const driverFunctions = (): readonly string[] => Object.keys(FUNCTIONS);

type FunctionName = keyof typeof FUNCTIONS;
type Functions = Readonly<Record<FunctionName, (...args: unknown[]) => number>>;

export class Driver {
  readonly #koffi: Koffi;
  readonly #functions: Functions;

  private constructor(koffi: Koffi, functions: Functions) {
    this.#koffi = koffi;
    this.#functions = functions;
  }

  /** The driver with at least one device, or one line that says why there is none. */
  static open(library: string = LIBRARY): Driver | string {
    const koffi = foreignFunctions();
    if (typeof koffi === "string") return koffi;
    const functions = functionsOf(koffi, library);
    if (typeof functions === "string") return functions;
    const driver = new Driver(koffi, functions);
    return driver.#problem() ?? driver;
  }

  #problem(): string | null {
    const version = new Int32Array(1);
    this.#functions.cuDriverGetVersion(version);
    const [found = 0] = version;
    if (found < OLDEST_VERSION) {
      return `the NVIDIA driver is for CUDA ${versionText(found)} and ${versionText(OLDEST_VERSION)} is needed: update the driver`;
    }
    const status = this.#functions.cuInit(0);
    const count = new Int32Array(1);
    if (status === 0) this.call("cuDeviceGetCount", count);
    if (status === NO_DEVICE || (status === 0 && count[0] === 0)) return "no CUDA device: the driver sees no GPU";
    return status === 0 ? null : `the NVIDIA driver cannot be used: cuInit gave ${this.errorName(status)}`;
  }

  /** Calls a function; throws what the driver says where it does not succeed. */
  call(name: FunctionName, ...args: readonly unknown[]): void {
    const status = this.#functions[name](...args);
    if (status !== 0) throw cudaError(name, this.errorName(status));
  }

  /** Gives something back; a device that failed refuses that too, and everything on it goes with the process. */
  release(name: FunctionName, ...args: readonly unknown[]): void {
    this.#functions[name](...args);
  }

  /** Allocates; whether there was enough. */
  tryAllocate(name: "cuMemAlloc_v2" | "cuMemHostAlloc", ...args: readonly unknown[]): boolean {
    const status = this.#functions[name](...args);
    if (status !== 0 && status !== OUT_OF_MEMORY) throw cudaError(name, this.errorName(status));
    return status === 0;
  }

  /** Whether everything before an event is done. */
  isDone(event: bigint): boolean {
    const status = this.#functions.cuEventQuery(event);
    if (status !== 0 && status !== NOT_READY) throw cudaError("cuEventQuery", this.errorName(status));
    return status === 0;
  }

  /** A handle or an address that a function writes to its first argument. */
  handle(name: FunctionName, ...args: readonly unknown[]): bigint {
    const out = new BigUint64Array(1);
    this.call(name, out, ...args);
    return out[0] ?? 0n;
  }

  /** Of all that this process sees. */
  get devices(): number {
    return this.int("cuDeviceGetCount");
  }

  int(name: FunctionName, ...args: readonly unknown[]): number {
    const out = new Int32Array(1);
    this.call(name, out, ...args);
    return out[0] ?? 0;
  }

  errorName(status: number): string {
    const out = new BigUint64Array(1);
    return this.#functions.cuGetErrorName(status, out) === 0 ? this.#koffi.decode(out, "str") : `error ${status}`;
  }

  /** Memory of the host at an address, which must outlive the view. */
  hostView(address: bigint, bytes: number): Uint8Array {
    return new Uint8Array(this.#koffi.view(address, bytes));
  }

  addressOf(array: ArrayBufferView): bigint {
    return this.#koffi.address(array);
  }
}

const versionText = (version: number): string => `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;

function functionsOf(koffi: Koffi, path: string): Functions | string {
  let library: ReturnType<Koffi["load"]>;
  try {
    library = koffi.load(path);
  } catch (error) {
    return `no CUDA driver: ${path} cannot be loaded (${(error as Error).message.split("\n")[0]})`;
  }
  const functions: Record<string, (...args: unknown[]) => unknown> = {};
  const missing: string[] = [];
  for (const [name, args] of Object.entries(FUNCTIONS)) {
    try {
      functions[name] = library.func(name, "int", args);
    } catch {
      missing.push(name);
    }
  }
  return missing.length > 0
    ? `the CUDA driver ${path} is too old: it has no ${missing.join(", ")}`
    : (functions as Functions);
}

/** A call that failed; after a fault of a kernel every later call fails alike. */
export const cudaError = (name: string, said: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", `the CUDA driver refused ${name}: ${said}`, {
    help: "start a new process: a device that failed once refuses everything after; if it fails again, report it with the program",
  });

/** The device has not got so much memory. */
export function deviceMemoryRefused(bytes: number, device: DeviceFacts, free: number): TidemarkError {
  const summary = `an arena of ${grouped(bytes)} bytes cannot be had: ${device.name} has ${grouped(free)} of its ${grouped(device.bytes)} bytes free`;
  return new TidemarkError("TargetUnsupported", summary, {
    help: "plan within a budget (compile(fn, { memory })), use smaller batches, or end other programs on the device",
  });
}

/** What the code of a program depends on, and reports say. */
export interface DeviceFacts {
  readonly name: string;
  /** Of all its memory. */
  readonly bytes: number;
  /** 9.0 is 90. */
  readonly capability: number;
  readonly multiprocessors: number;
  /** That a block may have where it asks for more than 48 KiB. */
  readonly sharedBytes: number;
}
