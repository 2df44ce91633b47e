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

/** A page: one script, allowed by its digest; what it loads comes from where it came from. */
function pageHtml(title, script) {
  const digest = createHash("sha256").update(script, "utf8").digest("base64");
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'sha256-${digest}'`,
    "worker-src 'self'",
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Tidemark playground</title>
</head>
<body>
<noscript>This page trains and plans with scripts of its own.</noscript>
<script>${script}</script>
</body>
</html>
`;
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
  return output[0].code.replaceAll(/<(?=\/script|!--)/gi, "\\x3c").trim();
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
