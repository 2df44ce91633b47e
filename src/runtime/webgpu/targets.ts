/**
 * @file The WebGPU target of a process or page: asked for once by waiting, then there under its name. A device that is lost is followed by
 * a new one when it is asked for again.
 */
import { TidemarkError } from "../../base/errors.ts";
import type { Target, TargetAnswer, TargetRequest } from "../device.ts";
import type { Gpu, GpuAdapter } from "./gpu.ts";

/** WebGPU, or one line that says why there is none. */
export type GpuFinder = () => Promise<Gpu | string>;

/** What a page or a worker has. */
export const pageGpu: GpuFinder = async () => {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: Gpu } };
  return (
    navigator?.gpu ?? "no WebGPU here: browsers have it in pages from https and localhost, Node with tidemark/node"
  );
};

const unsupported = (summary: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", `webgpu: ${summary}`, { help: 'the target "wasm" needs no GPU' });

/** Its compiler is loaded when it is first asked for: most programs run without it. */
const targetOn = async (adapter: GpuAdapter): ReturnType<typeof import("./target.ts").webgpuTarget> =>
  (await import("./target.ts")).webgpuTarget(adapter);

export class WebgpuTargets {
  readonly #find: GpuFinder;
  #coming: Promise<Target> | null = null;
  #target: Target | null = null;

  constructor(find: GpuFinder) {
    this.#find = find;
  }

  /** Throws `TargetUnsupported` where there is no WebGPU, or no adapter. */
  async target(adapter?: GpuAdapter): Promise<Target> {
    if (adapter) return (await targetOn(adapter)).target;
    this.#coming ??= this.#make();
    return this.#coming;
  }

  /** Under its name, once it has been waited for. */
  now({ threads = 1 }: TargetRequest = {}): TargetAnswer {
    if (threads !== 1) return `webgpu runs on all of the GPU: leave threads out, which is ${threads}`;
    return (
      this.#target ?? "webgpu has to be waited for: write `await webgpu()` once, before it is asked for by its name"
    );
  }

  async #make(): Promise<Target> {
    try {
      const gpu = await this.#find();
      if (typeof gpu === "string") throw unsupported(gpu);
      const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
      if (!adapter) throw unsupported("no adapter: the system has no GPU that WebGPU can use");
      const { target, lost } = await targetOn(adapter);
      this.#target = target;
      void lost.then(() => this.#forget());
      return target;
    } catch (error) {
      this.#forget();
      throw error;
    }
  }

  #forget(): void {
    this.#target = null;
    this.#coming = null;
  }
}
