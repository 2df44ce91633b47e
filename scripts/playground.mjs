/**
 * @file The playground as static files, and a server for them on this machine.
 *
 *   node scripts/playground.mjs [--out FOLDER] [--port N] [--build-only]
 *
 * The files load nothing from anywhere else and open from any static server. Pages and the workers' script are bundled
 * apart: a worker is one file, so that a stack says which code is the library's and which is the user's.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "rolldown";
import { completionList } from "./completions.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SRC = join(ROOT, "src/");
const HOST = "127.0.0.1";
/** All that is written and served: a folder that is given may have other files in it. */
const FILES = ["index.html", "edit.html", "worker.js"];
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8" };

const OPTIONS = {
  out: { type: "string", default: join(ROOT, "dist", "playground") },
  port: { type: "string", default: "0" },
  "build-only": { type: "boolean", default: false },
};

/** Prints a usage error and exits. */
function refuse(why) {
  console.error(`playground: ${why}\n  help: npm run playground -- [--out FOLDER] [--port N] [--build-only]`);
  process.exit(1);
}

function optionsGiven() {
  try {
    const { values } = parseArgs({ options: OPTIONS });
    const port = Number(values.port);
    if (!/^\d+$/.test(values.port) || port > 65535) refuse(`there is no port ${values.port}`);
    return { ...values, port };
  } catch (error) {
    return refuse(error.message);
  }
}

const options = optionsGiven();

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
    treeshake: { moduleSideEffects: (id) => id.startsWith(SRC) },
    output: { format: "iife", minify: entry === "worker.ts" ? { mangle: false, compress: true, codegen: true } : true },
    logLevel: "silent",
    plugins: [completionList(join(ROOT, "dist"))],
  });
  return output[0].code.replaceAll(/<(?=\/script|!--)/gi, "\\x3c").trim();
}

async function buildTo(folder) {
  const [train, edit, worker] = await Promise.all(["train.ts", "edit.ts", "worker.ts"].map(bundled));
  mkdirSync(folder, { recursive: true });
  const texts = [pageHtml("train", train), pageHtml("edit", edit), worker];
  FILES.forEach((name, i) => {
    writeFileSync(join(folder, name), texts[i]);
  });
}

/** Name, size and size when compressed, of every file. */
function sizes(folder) {
  const kB = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
  const rows = FILES.map((name) => {
    const bytes = readFileSync(join(folder, name));
    return { name, bytes: bytes.length, packed: gzipSync(bytes).length };
  });
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  const lines = [...rows, { name: "total", bytes: sum("bytes"), packed: sum("packed") }];
  return lines
    .map((r) => `${r.name.padEnd(12)} ${kB(r.bytes).padStart(8)} ${kB(r.packed).padStart(8)} gzip`)
    .join("\n");
}

/** Serves the files in a folder by their names, to this machine alone. */
function serve(folder, port) {
  const files = new Map(FILES.map((name) => [`/${name}`, readFileSync(join(folder, name))]));
  const server = createServer(({ method, headers, url = "/" }, response) => {
    const own = server.address()?.port;
    const send = (status, type, body) => {
      response.writeHead(status, {
        "content-type": type,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": "frame-ancestors 'none'",
      });
      response.end(body);
    };
    if (![`${HOST}:${own}`, `localhost:${own}`].includes(headers.host)) return send(403, "text/plain", "not here\n");
    if (method !== "GET" && method !== "HEAD") return send(405, "text/plain", "read only\n");
    if (!url.startsWith("/")) return send(400, "text/plain", "not an address\n");
    const { pathname } = new URL(`http://${HOST}${url}`);
    const name = pathname === "/" ? "/index.html" : pathname;
    const body = files.get(name);
    return body
      ? send(200, TYPES[extname(name)] ?? "application/octet-stream", body)
      : send(404, "text/plain", "not found\n");
  });
  server.once("error", (error) => refuse(`port ${port}: ${error.code ?? error.message}`));
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
if (!options["build-only"]) serve(options.out, options.port);
