/**
 * @file Plans that outlive the page, in its database (IndexedDB), so that a second visit shows and trains at once. What
 * is kept belongs to one build of the workers' script: plans of another one are not read. Where there is no database,
 * or it refuses, nothing is kept and everything is planned.
 */
import type { ViewCurve } from "../../view/data.ts";
import type { SentPlan } from "../planner.ts";

/** The digest of the workers' script, written by the build. */
declare const PLAYGROUND_BUILD: string;

const [DATABASE, MODELS] = ["tidemark-playground", "models"] as const;

/** Budgets kept of a model: the latest ones. */
const MOST_BUDGETS = 4;

/** All that is known of a model. */
export interface KeptModel {
  readonly stored: SentPlan;
  readonly budgets: ReadonlyMap<number, SentPlan>;
  /** Once it is whole. */
  readonly curve: ViewCurve | null;
}

export interface KeptPlans {
  read(model: string): Promise<KeptModel | null>;
  write(model: string, kept: KeptModel): void;
}

function answered<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function opened(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(MODELS);
  return answered(request);
}

export function createKeptPlans(): KeptPlans {
  let database: Promise<IDBDatabase> | null = null;
  const models = async (mode: IDBTransactionMode): Promise<IDBObjectStore> => {
    database ??= opened();
    return (await database).transaction(MODELS, mode).objectStore(MODELS);
  };
  return {
    async read(model) {
      try {
        const record = (await answered((await models("readonly")).get(model))) as
          | { readonly build: string; readonly kept: KeptModel }
          | undefined;
        return record?.build === PLAYGROUND_BUILD ? record.kept : null;
      } catch {
        return null;
      }
    },
    write(model, { stored, budgets, curve }) {
      const kept: KeptModel = { stored, curve, budgets: new Map([...budgets].slice(-MOST_BUDGETS)) };
      const put = async () => answered((await models("readwrite")).put({ build: PLAYGROUND_BUILD, kept }, model));
      // A full or missing database: the next visit plans again.
      put().catch(() => {});
    },
  };
}
