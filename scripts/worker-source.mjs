/**
 * @file A bundler's plugin that puts the text of the worker (src/api/compile-worker.ts) in the place of src/api/worker-source.ts: one
 * minified script without imports. Used by the build, by tests and by bundles of pages.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const API = fileURLToPath(new URL("../src/api/", import.meta.url));

export const WORKER_SOURCE_FILE = join(API, "worker-source.ts");

/** @returns {Promise<string>} the text of the worker */
export async function workerText() {
  const bundle = await rolldown({ input: join(API, "compile-worker.ts"), platform: "neutral", logLevel: "silent" });
  const { output } = await bundle.generate({ format: "iife", minify: true, codeSplitting: false });
  await bundle.close();
  return output[0].code;
}

const HEADER = "/** @file The text of a worker, written by scripts/worker-source.mjs. */\n";

/** @returns a plugin for rolldown and for vitest */
export function workerSource() {
  /** @type {Promise<string> | undefined} */
  let text;
  return {
    name: "worker-source",
    /** @param {string} id */
    async load(id) {
      if (id.replace(/[?#].*$/, "") !== WORKER_SOURCE_FILE) return null;
      text ??= workerText();
      return `${HEADER}export const WORKER_SOURCE = ${JSON.stringify(await text)};\n`;
    },
  };
}
