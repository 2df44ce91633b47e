/**
 * @file The part of the WebAssembly API that the runtime uses, for a core that is type-checked without DOM types. Node,
 * Deno, Bun and browsers all provide it. Not part of the published types: nothing public may mention `WebAssembly`.
 */
declare namespace WebAssembly {
  interface MemoryDescriptor {
    /** In pages of 65,536 bytes. */
    readonly initial: number;
    readonly maximum?: number;
    readonly shared?: boolean;
  }

  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }

  class CompileError extends Error {}

  class LinkError extends Error {}

  class Module {
    constructor(bytes: ArrayBufferView | ArrayBuffer);
    static customSections(module: Module, name: string): ArrayBuffer[];
  }

  type ImportValue = Memory | number | bigint | ((...args: never[]) => unknown);
  type Imports = Readonly<Record<string, Readonly<Record<string, ImportValue>>>>;

  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Readonly<Record<string, unknown>>;
  }

  function compile(bytes: ArrayBufferView | ArrayBuffer): Promise<Module>;
  /** Of a `Response`. */
  function compileStreaming(response: object): Promise<Module>;
  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
  function validate(bytes: ArrayBufferView | ArrayBuffer): boolean;
}
