/** @file The option `spill` in workers of pages: a file of the origin's private file system (docs/spill.md). */
import { TidemarkError } from "../base/errors.ts";
import { spilledPlans } from "../compiler/spill.ts";
import { PageFile, type SyncHandle, wasmWithPageFile } from "../runtime/page-file.ts";
import { fail, requireOptions } from "../trace/arguments.ts";
import type { CompileRequest, SpillOptions } from "./request.ts";
import { budgetFor, parseRate } from "./spill.ts";

/** Settles the option for a file, and is known by it: bundles without `pageFile` have no code for files. */
export interface SpillFile {
  readonly name: string;
  /** Closes and removes it. Tensors that are still in it cannot be read any more. */
  close(): Promise<void>;
  /** @internal */
  settle(request: CompileRequest, spill: SpillOptions): CompileRequest;
}

/** The parts of the private file system that are used. */
interface Directory {
  getFileHandle(
    name: string,
    options: { readonly create: boolean },
  ): Promise<{ createSyncAccessHandle?(): Promise<SyncHandle> }>;
  removeEntry(name: string): Promise<void>;
  keys(): AsyncIterable<string>;
}

interface WorkerScope {
  readonly navigator?: {
    readonly storage?: {
      getDirectory?(): Promise<Directory>;
      estimate?(): Promise<{ readonly quota?: number; readonly usage?: number }>;
    };
  };
  readonly crypto?: { randomUUID?(): string };
}

const PREFIX = "tidemark-spill-";

class SettledFile extends PageFile implements SpillFile {
  settle(request: CompileRequest, spill: SpillOptions): CompileRequest {
    requireOptions("spill", spill, { to: "anything", bandwidth: "a text", limit: "a text" });
    if (spill.limit !== undefined) fail("InvalidArgument", "spill: a file of a page has no limit", "leave limit out");
    const { target, threads = 1, memory } = request;
    if (target !== "wasm" && target !== "auto") {
      fail("TargetUnsupported", "spill: files of a page are for wasm", 'give { target: "wasm" }, or leave target out');
    }
    if (threads > 1)
      fail("TargetUnsupported", `spill: wasm on ${threads} threads moves no values to files`, "give { threads: 1 }");
    const { bandwidth = "auto" } = spill;
    const bytesPerSecond = bandwidth === "auto" ? this.bytesPerSecond : parseRate("the bandwidth of spill", bandwidth);
    const asked = { bytesPerSecond, blocks: true, plans: spilledPlans };
    return {
      ...request,
      memory: { ...budgetFor(memory), spill: asked },
      spillTo: { to: this },
      target: wasmWithPageFile(),
    };
  }
}

/**
 * A file for the option `spill`, in a worker of a page: in the private file system of the page's origin. One for each compiled
 * function; `close()` removes it. What workers that have ended left behind is removed when the next one is made.
 *
 * @throws TargetUnsupported where there is no private file system: outside of workers of pages
 *
 * @memory None: the file is on the disk.
 *
 * @example
 * // run, throws TargetUnsupported
 * // it is for workers of pages
 * import { compile, grad, pageFile, type Tensor } from "tidemark";
 *
 * const file = await pageFile();
 * const slope = compile(grad((w: Tensor) => w.tanh().sum()), { memory: "64MiB", spill: { to: file } });
 */
export async function pageFile(): Promise<SpillFile> {
  const { navigator, crypto } = globalThis as unknown as WorkerScope;
  const help = "call it in a worker of a page from https or localhost; in Node give spill a folder";
  const directory = await navigator?.storage?.getDirectory?.();
  if (!directory) return fail("TargetUnsupported", "pageFile: there is no private file system here", help);
  for await (const name of directory.keys()) {
    // one that is open cannot be removed
    if (name.startsWith(PREFIX)) await directory.removeEntry(name).catch(() => undefined);
  }
  const name = `${PREFIX}${crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random()}`}`;
  const entry = await directory.getFileHandle(name, { create: true });
  if (!entry.createSyncAccessHandle) {
    await directory.removeEntry(name);
    return fail("TargetUnsupported", "pageFile: only workers have files that are read at once", help);
  }
  try {
    const handle = await entry.createSyncAccessHandle();
    const { quota = Number.POSITIVE_INFINITY, usage = 0 } = (await navigator?.storage?.estimate?.()) ?? {};
    return new SettledFile(name, handle, { roomBytes: quota - usage, remove: () => directory.removeEntry(name) });
  } catch (error) {
    throw new TidemarkError("StorageError", `pageFile: ${name} cannot be opened (${String(error)})`, { help });
  }
}
