/**
 * @file The playground as static files, and a server for them on this machine.
 *
 *   node scripts/playground.mjs [--out FOLDER] [--port N] [--build-only]
 *
 * The files load nothing from anywhere else and open from any static server. Pages and the workers' script are bundled
 * apart: a worker is one file, so that a stack says which code is the library's and which is the user's.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "rolldown";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const HOST = "127.0.0.1";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8" };

const { values: options } = parseArgs({
  options: {
    out: { type: "string", default: join(ROOT, "dist", "playground") },
    port: { type: "string", default: "0" },
    "build-only": { type: "boolean", default: false },
  },
});

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
async function bundled(entry) {
  const input = join(ROOT, "src", "playground", "page", entry);
  const { output } = await build({
    input,
    write: false,
    treeshake: { moduleSideEffects: (id) => id.startsWith(ROOT) },
    output: { format: "iife", minify: entry === "worker.ts" ? { mangle: false, compress: true, codegen: true } : true },
    logLevel: "silent",
  });
  return output[0].code.replaceAll(/<(?=\/script|!--)/gi, "\\x3c").trim();
}

async function buildTo(folder) {
  const [train, edit, worker] = await Promise.all(["train.ts", "edit.ts", "worker.ts"].map(bundled));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "index.html"), pageHtml("train", train));
  writeFileSync(join(folder, "edit.html"), pageHtml("edit", edit));
  writeFileSync(join(folder, "worker.js"), worker);
}

/** Name, size and size when compressed, of every file. */
function sizes(folder) {
  const kB = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
  const rows = readdirSync(folder)
    .sort()
    .map((name) => {
      const bytes = readFileSync(join(folder, name));
      return { name, bytes: bytes.length, packed: gzipSync(bytes).length };
    });
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  const lines = [...rows, { name: "total", bytes: sum("bytes"), packed: sum("packed") }];
  return lines
    .map((r) => `${r.name.padEnd(12)} ${kB(r.bytes).padStart(8)} ${kB(r.packed).padStart(8)} gzip`)
    .join("\n");
}

/** Serves the files of a folder by their names, to this machine alone. */
function serve(folder, port) {
  const files = new Map(readdirSync(folder).map((name) => [`/${name}`, readFileSync(join(folder, name))]));
  const server = createServer(({ method, headers, url = "/" }, response) => {
    const own = server.address()?.port;
    const send = (status, type, body) => {
      response.writeHead(status, {
        "content-type": type,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      });
      response.end(body);
    };
    if (![`${HOST}:${own}`, `localhost:${own}`].includes(headers.host)) return send(403, "text/plain", "not here\n");
    if (method !== "GET" && method !== "HEAD") return send(405, "text/plain", "read only\n");
    const { pathname } = new URL(url, `http://${HOST}`);
    const name = pathname === "/" ? "/index.html" : pathname;
    const body = files.get(name);
    return body
      ? send(200, TYPES[extname(name)] ?? "application/octet-stream", body)
      : send(404, "text/plain", "not found\n");
  });
  server.listen(port, HOST, () => console.log(`http://${HOST}:${server.address().port}/`));
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      server.close();
      server.closeAllConnections();
    });
  }
}

await buildTo(options.out);
console.error(`${options.out}\n${sizes(options.out)}`);
if (!options["build-only"]) serve(options.out, Number(options.port));
