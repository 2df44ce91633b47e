/**
 * @file The identity of a run: code, shapes, numbers. A folder records it in `run.json`, part by part, so that a run
 * with another step, other constants or other arithmetic is refused and the error names the part; every file in the
 * folder carries the hash of all parts.
 */
import { dirname, join } from "node:path";
import { TidemarkError } from "../base/errors.ts";
import type { Graph } from "../ir/graph.ts";
import { structuralKey } from "../ir/hash.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Files } from "./files.ts";
import { bytesOfTensors } from "./layout.ts";
import { digestOf, storageError } from "./snapshot-file.ts";

const MANIFEST = "run.json";
const FORMAT = "tidemark run 1";
/** A manifest has about half a kilobyte. */
const LONGEST = 64 * 1024;

/** Named parts, in the user's terms. */
export type Identity = Readonly<Record<string, string | number>>;

const text = new TextEncoder();
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex").slice(0, 32);

export const hashOfText = (of: string): string => hex(digestOf(text.encode(of)));
export const hashOfGraph = (graph: Graph): string => hashOfText(structuralKey(graph));
export const hashOfTensors = (tensors: readonly Tensor[]): string => hex(digestOf(...bytesOfTensors(tensors)));

export function fingerprintOf(identity: Identity): Uint8Array {
  return digestOf(text.encode(JSON.stringify([FORMAT, Object.entries(identity)])));
}

async function readManifest(files: Files, path: string): Promise<string> {
  const size = await files.sizeOf(path);
  const bytes = new Uint8Array(Math.min(size, LONGEST));
  await files.read(path, bytes);
  return new TextDecoder().decode(bytes);
}

/** What a manifest says. */
interface Manifest {
  readonly run: Identity;
  /** Of a run on devices, what depends on them. */
  readonly devices?: unknown;
}

function parseManifest(path: string, manifest: string): Manifest {
  let parsed: unknown = null;
  try {
    parsed = JSON.parse(manifest);
  } catch {
    // reported below
  }
  const { format, run, devices } = (parsed ?? {}) as Partial<Manifest> & { readonly format?: unknown };
  if (format === FORMAT && typeof run === "object" && run !== null) return { run, devices };
  throw new TidemarkError("StorageError", `${path} does not identify a run`, {
    help: "give the folder of this run, an empty one, or one that does not exist yet",
  });
}

export function requireSame(folder: string, there: Identity, here: Identity): void {
  const names = new Set([...Object.keys(there), ...Object.keys(here)]);
  const other = [...names].filter((name) => there[name] !== here[name]);
  if (other.length === 0) return;
  throw new TidemarkError("StorageError", `${folder} contains another run: different ${other.join(", ")}`, {
    help: "continue with the code and values it was started with, or give an empty folder",
  });
}

/** The manifest of a folder; null where there is none. */
export async function manifestIn(files: Files, folder: string): Promise<Manifest | null> {
  const path = join(folder, MANIFEST);
  try {
    await files.makeFolder(folder);
    if (!(await files.list(folder)).includes(MANIFEST)) return null;
    return parseManifest(path, await readManifest(files, path));
  } catch (error) {
    throw storageError("write", path, error, "then run again");
  }
}

/** Writes or replaces the manifest of a folder. */
export async function writeManifest(files: Files, folder: string, { run, devices }: Manifest): Promise<void> {
  const path = join(folder, MANIFEST);
  const aside = `${path}.${process.pid}.tmp`;
  try {
    await files.write(aside, text.encode(`${JSON.stringify({ format: FORMAT, run, devices }, null, 2)}\n`));
    await files.rename(aside, path);
    await files.syncFolder(folder);
    await files.syncFolder(dirname(folder));
  } catch (error) {
    throw storageError("write", path, error, "then run again");
  }
}

/** Claims a folder for this run; returns whether it already belonged to it. */
export async function claimFolder(files: Files, folder: string, identity: Identity): Promise<boolean> {
  const there = await manifestIn(files, folder);
  if (there) {
    requireSame(folder, there.run, identity);
    return true;
  }
  await writeManifest(files, folder, { run: identity });
  return false;
}
