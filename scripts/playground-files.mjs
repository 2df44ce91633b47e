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

/** What pages may do beside their own script: start the worker that is served with them. */
const SERVED = { policy: ["worker-src 'self'"], scriptSource: "'self'" };

/** Opened from files, they make the worker of its text, and it runs under their policy: it compiles WebAssembly and runs what is typed. */
const FROM_FILES = { policy: ["worker-src 'self' blob:"], scriptSource: "'self' file: blob: 'unsafe-eval'" };

/** A page: one script, allowed by its digest; what it loads comes from where it came from. */
function pageHtml(title, script, allowed) {
  return shellHtml({
    title: `${title} · Tidemark playground`,
    noscript: "This page trains and plans with scripts of its own.",
    script,
    digest: createHash("sha256").update(script, "utf8").digest("base64"),
    ...allowed,
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

/** Runs in a worker; a page that reads it has it as a function, of whose text it makes workers. */
const workerScript = (code) =>
  `((work)=>{typeof document==="undefined"?work():window.TIDEMARK_WORK=work})(function(){${code}\n});\n`;

/**
 * @param {string} folder where the files go
 * @param {string} types the folder with the published types
 * @param {{ fromFiles?: boolean, home?: string | null }} options `fromFiles`: the pages are also opened from a folder, without a
 * server; `home`: what the name in the title leads to
 */
export async function buildPlayground(folder, types, { fromFiles = false, home = null } = {}) {
  const worker = workerScript(await bundled("worker.ts", types));
  // Plans that a browser keeps are those of this script.
  const digest = createHash("sha256").update(worker).digest("hex");
  const define = { PLAYGROUND_BUILD: JSON.stringify(digest), PLAYGROUND_HOME: JSON.stringify(home) };
  const [train, edit] = await Promise.all(["train.ts", "edit.ts"].map((entry) => bundled(entry, types, define)));
  mkdirSync(folder, { recursive: true });
  const allowed = fromFiles ? FROM_FILES : SERVED;
  const texts = [pageHtml("train", train, allowed), pageHtml("edit", edit, allowed), worker];
  PLAYGROUND_FILES.forEach((name, i) => {
    writeFileSync(join(folder, name), texts[i]);
  });
}
