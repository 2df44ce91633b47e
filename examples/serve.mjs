/**
 * @file Serves the examples that are pages, and the built package that they import:
 *
 *   npm run example:pages -- [--port 8000]
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { parseArgs } from "node:util";

const ROOT = new URL("../", import.meta.url);
/** This machine only. */
const HOST = "127.0.0.1";
const TYPES = {
  ".html": "text/html",
  ".mjs": "text/javascript",
  ".js": "text/javascript",
  ".css": "text/css",
  ".md": "text/plain",
};
/** What a page may ask for. */
const OPEN = /^\/(?:dist\/[\w./-]+\.js|examples\/[\w./-]+\.(?:html|mjs|css|safetensors)|README\.md)$/;

/** Answers requests to this machine; `..` never gets here, since addresses are resolved first. */
export function serve(port = 0) {
  const server = createServer(async ({ url = "/" }, response) => {
    const path = new URL(url, "http://localhost").pathname.replace(/\/$/, "/index.html");
    const bytes = OPEN.test(path) ? await readFile(new URL(`.${path}`, ROOT)).catch(() => null) : null;
    response.writeHead(bytes ? 200 : 404, {
      "Content-Type": `${TYPES[extname(path)] ?? "application/octet-stream"}; charset=utf-8`,
    });
    response.end(bytes ?? "there is no such page\n");
  });
  return new Promise((resolve) => {
    server.listen(port, HOST, () => resolve({ server, address: `http://${HOST}:${server.address().port}` }));
  });
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { values } = parseArgs({ options: { port: { type: "string", default: "8000" } } });
  const { address } = await serve(Number(values.port));
  for (const name of ["char-gpt", "wave-inversion", "foreign-weights", "lora"])
    console.log(`${address}/examples/${name}/`);
}
