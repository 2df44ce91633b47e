/**
 * @file Builds the playground and serves it on this machine, as `tidemark playground` does with that of the package.
 *
 *   node scripts/playground.mjs [--out FOLDER] [--port N] [--build-only]
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { buildPlayground, PLAYGROUND_FILES, sourceModule } from "./playground-files.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");

const OPTIONS = {
  out: { type: "string", default: join(DIST, "playground") },
  port: { type: "string" },
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
    if (values.port === undefined) return { ...values, port: null };
    if (!/^\d+$/.test(values.port)) refuse(`there is no port ${values.port}`);
    return { ...values, port: Number(values.port) };
  } catch (error) {
    return refuse(error.message);
  }
}

const options = optionsGiven();

/** Name, size and size when compressed, of every file. */
function sizes(folder) {
  const kB = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
  const rows = PLAYGROUND_FILES.map((name) => {
    const bytes = readFileSync(join(folder, name));
    return { name, bytes: bytes.length, packed: gzipSync(bytes).length };
  });
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  const lines = [...rows, { name: "total", bytes: sum("bytes"), packed: sum("packed") }];
  return lines
    .map((r) => `${r.name.padEnd(12)} ${kB(r.bytes).padStart(8)} ${kB(r.packed).padStart(8)} gzip`)
    .join("\n");
}

/** The package's own server. */
async function serve(folder, port) {
  const { servePlayground } = await sourceModule("cli/playground-server.ts");
  const server = await servePlayground(folder, port).catch((error) => refuse(error.message));
  console.log(server.url);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, server.close);
}

await buildPlayground(options.out, DIST);
console.error(`${options.out}\n${sizes(options.out)}`);
if (!options["build-only"]) await serve(options.out, options.port);
