/**
 * @file The playground as static files: two pages and the script of their workers. They load nothing from anywhere else and
 * open from any static server. Pages and the workers' script are bundled apart: a worker is one file, so that a stack says
 * which code is the library's and which is the user's.
 */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { completionList } from "./completions.mjs";

const SRC = fileURLToPath(new URL("../src/", import.meta.url));

/** All that is written: a folder that is given may have other files in it. */
export const PLAYGROUND_FILES = ["index.html", "edit.html", "worker.js"];

/** A module of the sources: Node 20 runs no TypeScript, so it is bundled first. */
export async function sourceModule(path) {
  const { output } = await build({ input: join(SRC, path), write: false, platform: "node", logLevel: "silent" });
  return import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
}

const { scriptText, shellHtml } = await sourceModule("view/page-shell.ts");

/** A page: one script, allowed by its digest; what it loads comes from where it came from. */
function pageHtml(title, script) {
  return shellHtml({
    title: `${title} · Tidemark playground`,
    noscript: "This page trains and plans with scripts of its own.",
    script,
    digest: createHash("sha256").update(script, "utf8").digest("base64"),
    policy: ["worker-src 'self'"],
    scriptSource: "'self'",
  });
}

/**
 * The bundled script of an entry point. Every file counts: some make methods and targets known when they are loaded. The
 * worker keeps the names of its variables: graphs show those of the library's own functions.
 */
async function bundled(entry, types, define = {}) {
  const input = join(SRC, "playground", "page", entry);
  const { output } = await build({
    input,
    write: false,
    treeshake: { moduleSideEffects: (id) => id.startsWith(SRC) },
    output: { format: "iife", minify: entry === "worker.ts" ? { mangle: false, compress: true, codegen: true } : true },
    transform: { define },
    logLevel: "silent",
    plugins: [completionList(types)],
  });
  return scriptText(output[0].code);
}

/**
 * @param {string} folder where the files go
 * @param {string} types the folder with the published types
 */
export async function buildPlayground(folder, types) {
  const worker = await bundled("worker.ts", types);
  // Plans that a browser keeps are those of this script.
  const digest = createHash("sha256").update(worker).digest("hex");
  const define = { PLAYGROUND_BUILD: JSON.stringify(digest) };
  const [train, edit] = await Promise.all(["train.ts", "edit.ts"].map((entry) => bundled(entry, types, define)));
  mkdirSync(folder, { recursive: true });
  const texts = [pageHtml("train", train), pageHtml("edit", edit), worker];
  PLAYGROUND_FILES.forEach((name, i) => {
    writeFileSync(join(folder, name), texts[i]);
  });
}
