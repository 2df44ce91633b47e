/**
 * @file The target `webgpu`: kernels as WGSL, an arena in a buffer of the device. A run encodes its commands, hands them over and
 * returns; results are read by waiting.
 */
import { invariant } from "../../base/invariant.ts";
import type { PlacedProgram } from "../../codegen/placed.ts";
import { type WebgpuOptions, webgpuDescription } from "../../codegen/wgsl/description.ts";
import { emitWebgpuProgram } from "../../codegen/wgsl/program.ts";
import type { LoadOptions, Machine, Target } from "../device.ts";
import { GpuContext } from "./context.ts";
import type { GpuAdapter, GpuDevice, GpuInfo, GpuLimits } from "./gpu.ts";
import { GpuMachine } from "./machine.ts";
import { GpuMemory, SLACK } from "./memory.ts";
import { probe } from "./probe.ts";

/** Limits that are asked of an adapter: all that it has. */
const ASKED: readonly (keyof GpuLimits)[] = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
];
/** Elements of one part are reached by indices of 32 bits, which are bytes where elements are. */
const LARGEST_PART = 2 ** 31 - 256;

/** What it is called: names that a browser keeps to itself are empty. */
export const adapterName = ({ vendor, architecture, device, description }: GpuInfo): string =>
  description || [vendor, architecture, device].filter((word) => word !== "").join(" ") || "an adapter without a name";

const aligned = (bytes: number): number => Math.floor(bytes / 256) * 256;

function load(context: GpuContext, options: WebgpuOptions, placed: PlacedProgram, how: LoadOptions): Machine {
  const { stepwise, memory = new GpuMemory(context, context.device.limits.maxBufferSize) } = how;
  invariant(memory instanceof GpuMemory, () => "a memory of another target");
  const program = emitWebgpuProgram(placed.kernels, placed.copies, { options, stepwise });
  memory.reserve(placed.base + placed.plan.height);
  return new GpuMachine(context, program, memory);
}

/** Tests ask for less than an adapter has. */
export type WebgpuLimits = Partial<WebgpuOptions>;

export interface WebgpuAnswer {
  readonly target: Target;
  readonly device: GpuDevice;
  /** When the device is gone. */
  readonly lost: Promise<unknown>;
}

/** A device of an adapter. Its arithmetic is tried once, so that results can be promised. */
export async function webgpuTarget(adapter: GpuAdapter, less: WebgpuLimits = {}): Promise<WebgpuAnswer> {
  const requiredLimits = Object.fromEntries(ASKED.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({ requiredLimits });
  const { limits } = device;
  const name = adapterName(adapter.info);
  const context = new GpuContext(device);
  const arithmetic = await probe(device, name);
  const options: WebgpuOptions = {
    bufferBytes: aligned(limits.maxBufferSize - SLACK),
    bindingBytes: Math.min(aligned(limits.maxStorageBufferBindingSize), LARGEST_PART),
    storageBuffers: limits.maxStorageBuffersPerShaderStage,
    sharedBytes: limits.maxComputeWorkgroupStorageSize,
    isSoftware: adapter.info.isFallbackAdapter === true,
    ...arithmetic,
    ...less,
  };
  const target: Target = {
    description: webgpuDescription(options),
    threads: 1,
    code: "WGSL",
    uses: name,
    arenaIsArray: false,
    readsLater: true,
    load: (placed, how) => load(context, options, placed, how),
    allocate: () => new GpuMemory(context, limits.maxBufferSize),
  };
  return { target, device, lost: device.lost };
}
