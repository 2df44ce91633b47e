/**
 * @file The part of WebGPU that programs are run with, as structural types: `navigator.gpu` of a page or a worker has it, and so has the
 * package `webgpu` in Node. The core is type-checked without DOM types.
 */

export interface GpuLimits {
  readonly maxBufferSize: number;
  readonly maxStorageBufferBindingSize: number;
  readonly maxStorageBuffersPerShaderStage: number;
  readonly maxComputeWorkgroupStorageSize: number;
}

export interface GpuInfo {
  readonly vendor: string;
  readonly architecture: string;
  readonly device: string;
  readonly description: string;
  /** It runs on the processor; not every implementation says so. */
  readonly isFallbackAdapter?: boolean;
}

export interface GpuBuffer {
  mapAsync(mode: number): Promise<unknown>;
  getMappedRange(): ArrayBuffer;
  unmap(): void;
  destroy(): void;
}

/** Objects that are only passed on. */
export interface GpuPipeline {
  readonly label: string;
}
export interface GpuLayout {
  readonly label: string;
}
export interface GpuBindGroup {
  readonly label: string;
}
export interface GpuModule {
  readonly label: string;
}
export interface GpuCommands {
  readonly label: string;
}

export interface GpuBinding {
  readonly binding: number;
  readonly resource: { readonly buffer: GpuBuffer; readonly offset: number; readonly size: number };
}

export interface GpuPass {
  setPipeline(pipeline: GpuPipeline): void;
  setBindGroup(group: number, bindings: GpuBindGroup): void;
  dispatchWorkgroups(x: number, y: number): void;
  end(): void;
}

export interface GpuEncoder {
  beginComputePass(): GpuPass;
  copyBufferToBuffer(...copy: readonly [from: GpuBuffer, at: number, to: GpuBuffer, toAt: number, bytes: number]): void;
  finish(): GpuCommands;
}

export interface GpuQueue {
  submit(commands: readonly GpuCommands[]): void;
  writeBuffer(buffer: GpuBuffer, at: number, data: Uint8Array): void;
  onSubmittedWorkDone(): Promise<unknown>;
}

export interface GpuError {
  readonly message: string;
}

export interface GpuDevice {
  readonly limits: GpuLimits;
  readonly queue: GpuQueue;
  readonly lost: Promise<{ readonly reason: string; readonly message: string }>;
  createBuffer(buffer: { readonly size: number; readonly usage: number }): GpuBuffer;
  createShaderModule(module: { readonly code: string }): GpuModule;
  createBindGroupLayout(layout: {
    readonly entries: readonly {
      readonly binding: number;
      readonly visibility: number;
      readonly buffer: { readonly type: string };
    }[];
  }): GpuLayout;
  createPipelineLayout(layout: { readonly bindGroupLayouts: readonly GpuLayout[] }): GpuLayout;
  createComputePipelineAsync(pipeline: {
    readonly layout: GpuLayout;
    readonly compute: { readonly module: GpuModule; readonly entryPoint: string };
  }): Promise<GpuPipeline>;
  createBindGroup(group: { readonly layout: GpuLayout; readonly entries: readonly GpuBinding[] }): GpuBindGroup;
  createCommandEncoder(): GpuEncoder;
  pushErrorScope(filter: "out-of-memory" | "validation" | "internal"): void;
  popErrorScope(): Promise<GpuError | null>;
  destroy(): void;
}

export interface GpuAdapter {
  readonly info: GpuInfo;
  readonly limits: GpuLimits;
  requestDevice(device: { readonly requiredLimits: Readonly<Record<string, number>> }): Promise<GpuDevice>;
}

export interface Gpu {
  requestAdapter(options?: { readonly powerPreference: "high-performance" }): Promise<GpuAdapter | null>;
}

/** Bits of a buffer's use, and of what a binding is visible to. */
export const USAGE = { mapRead: 1, copyFrom: 4, copyTo: 8, uniform: 64, storage: 128 } as const;
export const MAP_READ = 1;
export const COMPUTE = 4;
