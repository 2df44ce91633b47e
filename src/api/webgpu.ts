/** @file The target `webgpu` as users have it: a promise of an object for `compile`, or an error that says what is missing. */
import { TidemarkError } from "../base/errors.ts";
import type { Target } from "../runtime/device.ts";
import type { GpuAdapter } from "../runtime/webgpu/gpu.ts";
import { describe, requireOptions } from "../trace/arguments.ts";
import { currentHost } from "./host.ts";

/** Options of {@link webgpu}. */
export interface WebgpuTargetOptions {
  /** The adapter (a `GPUAdapter`) to run on, from which no device was requested yet; default: the fastest one. */
  readonly adapter?: object;
}

const isAdapter = (value: object): value is GpuAdapter =>
  typeof (value as Partial<GpuAdapter>).requestDevice === "function" && "limits" in value;

/**
 * A GPU through WebGPU, to be given to `compile(fn, { target })`: of the browser in pages and workers, in Node of the package `webgpu`
 * with `tidemark/node`. Results are read by waiting: `await x.dataAsync()`. Without an adapter it is the same target for all callers, and
 * afterwards `compile` has it by its name, `target: "webgpu"`. After the loss of the device it is a new one.
 *
 * @throws TargetUnsupported where there is no WebGPU or no adapter
 *
 * @example
 * import { webgpu } from "tidemark";
 *
 * // Where there is no WebGPU, this fails with UnsupportedTarget and says why.
 * console.log(await webgpu().then((target) => target.description.name, (error) => error.code)); // → TargetUnsupported
 */
export async function webgpu(options: WebgpuTargetOptions = {}): Promise<Target> {
  requireOptions("webgpu", options, { adapter: "anything" });
  const { adapter } = options;
  if (adapter === undefined) return currentHost().webgpu.target();
  if (typeof adapter === "object" && adapter !== null && isAdapter(adapter))
    return currentHost().webgpu.target(adapter);
  throw new TidemarkError("InvalidArgument", `webgpu: adapter is ${describe(adapter)}`, {
    help: "give what `await navigator.gpu.requestAdapter()` gives, or leave it out",
  });
}
