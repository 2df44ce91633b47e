/**
 * @file Plans that outlive a page, in the page's own database (IndexedDB), for `compileAsync`: reading takes a while, so `compile` does
 * not. Keys are as on disk (compiler/plan-cache.ts): everything that plans depend on, with the build of the library and the
 * engine. What is read is checked by the worker like any plan that was kept. Where there is no database, or it refuses, plans
 * are not kept, and nothing else changes.
 */
import type { PlanStore } from "../compiler/plan-cache.ts";

/** Defined by the build. */
declare const TIDEMARK_SOURCES: string | undefined;

/** A store that answers later. */
export interface LaterPlanStore extends Pick<PlanStore, "planner" | "leastMs"> {
  read(key: string): Promise<string | null>;
  write(key: string, text: string): Promise<void>;
}

/** What is used of IndexedDB, for a core without the types of pages. */
interface Request<T> {
  readonly result: T;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
}

interface OpenRequest extends Request<Database> {
  onupgradeneeded: (() => void) | null;
  onblocked: (() => void) | null;
}

interface Database {
  createObjectStore(name: string): { createIndex(name: string, path: string): unknown };
  transaction(name: string, mode: "readonly" | "readwrite"): { objectStore(name: string): ObjectStore };
}

interface ObjectStore {
  get(key: string): Request<Stored | undefined>;
  put(value: Stored, key: string): Request<unknown>;
  delete(key: string): Request<unknown>;
  index(name: string): { getAllKeys(): Request<readonly string[]> };
}

/** A plan, and when it was last read or written. */
interface Stored {
  readonly text: string;
  readonly used: number;
}

interface PageScope {
  readonly indexedDB?: { open(name: string, version: number): OpenRequest };
  readonly crypto?: { readonly subtle?: { digest(name: "SHA-256", bytes: Uint8Array): Promise<ArrayBuffer> } };
  readonly navigator?: { readonly userAgent?: string };
}

const [DATABASE, PLANS, BY_USE] = ["tidemark", "plans", "used"] as const;

/** Plans beyond this many are dropped, the one that was not used for longest first. */
const MOST_PLANS = 128;

/** As on disk: faster plans are read about as fast as they are made. */
const LEAST_MS = 50;

/** The result of a request; null where it is refused. */
function answered<T>(request: Request<T>): Promise<T | null> {
  return new Promise((resolve) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(null);
  });
}

async function openPlans(scope: PageScope): Promise<Database | null> {
  const request = scope.indexedDB?.open(DATABASE, 1);
  if (!request) return null;
  request.onupgradeneeded = () => {
    request.result.createObjectStore(PLANS).createIndex(BY_USE, BY_USE);
  };
  return await answered(request);
}

async function writePlan(database: Database, digest: string, text: string): Promise<void> {
  const plans = database.transaction(PLANS, "readwrite").objectStore(PLANS);
  await answered(plans.put({ text, used: Date.now() }, digest));
  const oldest = (await answered(plans.index(BY_USE).getAllKeys())) ?? [];
  for (const key of oldest.slice(0, Math.max(0, oldest.length - MOST_PLANS))) await answered(plans.delete(key));
}

async function readPlan(database: Database, digest: string): Promise<string | null> {
  const plans = database.transaction(PLANS, "readwrite").objectStore(PLANS);
  const stored = await answered(plans.get(digest));
  if (typeof stored?.text !== "string") return null;
  await answered(plans.put({ text: stored.text, used: Date.now() }, digest));
  return stored.text;
}

/** Does without what a page refuses: a database in a private window, a digest outside of secure origins. */
async function orNull<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch {
    return null;
  }
}

/** The store of this page; null where there is none, and for unbuilt sources, which have no identity. @internal */
export async function pagePlans(scope = globalThis as unknown as PageScope): Promise<LaterPlanStore | null> {
  const subtle = scope.crypto?.subtle;
  if (typeof TIDEMARK_SOURCES === "undefined" || !subtle || !scope.indexedDB) return null;
  const database = await orNull(() => openPlans(scope));
  if (!database) return null;
  const digestOf = async (key: string): Promise<string> => {
    const bytes = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(key)));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  return {
    planner: `${TIDEMARK_SOURCES} ${scope.navigator?.userAgent ?? ""}`,
    leastMs: LEAST_MS,
    read: (key) => orNull(async () => readPlan(database, await digestOf(key))),
    write: async (key, text) => {
      await orNull(async () => writePlan(database, await digestOf(key), text));
    },
  };
}
