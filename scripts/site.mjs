/**
 * @file Builds the site: guides, the reference of every entry point, the playground, plans to look at. Static files without a
 * server, which open from a folder and from any path of a server, and load nothing from elsewhere.
 *
 *   npm run site                     into dist-site/
 *   npm run site -- --out FOLDER     elsewhere
 *
 * Typedoc needs a TypeScript of its own, since its plugins read the compiler's trees: both are packages of site/, installed there
 * when they are first needed (docs/decisions/0064-site.md).
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SITE = join(ROOT, "site");

const { values: options } = parseArgs({ options: { out: { type: "string", default: join(ROOT, "dist-site") } } });

if (!existsSync(join(SITE, "node_modules", "typedoc"))) {
  console.error("installing what the site is built with, in site/");
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: SITE, stdio: "inherit" });
}
const { buildSite } = await import("../site/build.mjs");
const out = resolve(options.out);
const { pages, seconds } = await buildSite(ROOT, out);
console.log(`${out}: ${pages} pages in ${seconds.toFixed(0)} s; open ${join(out, "index.html")}`);
