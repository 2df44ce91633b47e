/**
 * @file Programs that tests use and that are no dev packages: a second Node (fused multiply-add in WebAssembly, and with it
 * other tiles, workspaces, costs and budgets), Deno and Bun (workers), and the least TypeScript that reads the published types,
 * whose command has the name of the current one's. They come from npm, the engines as the packages that `node`, `deno` and `bun`
 * are made of, which have no scripts to run. Each is in a folder of its own, so that no command finds it in its path by accident.
 *
 *   node tests/support/tool.mjs NAME                      installs it; NAME is node24, deno, bun, typescript or webgpu
 *   node tests/support/tool.mjs NAME ARGUMENTS…           runs it
 *
 * Where it cannot be had, nothing is run and a message says so; under CI that is a failure.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const { platform, arch } = process;
const exe = platform === "win32" ? ".exe" : "";

/** Each with its package and the path of the program inside of it. */
const TOOLS = {
  node24: {
    ...{ title: "Node", version: "24.21.0", path: `bin/node${exe}` },
    pack: `node-${platform === "win32" ? "win" : platform}-${arch}`,
  },
  deno: {
    ...{ title: "Deno", version: "2.9.6", path: `deno${exe}` },
    pack: `@deno/${platform}-${arch}${platform === "linux" ? "-glibc" : ""}`,
  },
  bun: {
    ...{ title: "Bun", version: "1.4.4", path: `bin/bun${exe}` },
    pack: `@oven/bun-${platform === "win32" ? "windows" : platform}-${arch === "arm64" ? "aarch64" : arch}`,
  },
  /** No program: a package that tests import, with libraries for all systems in it. */
  webgpu: { title: "the package webgpu", version: "0.6.2", path: "index.js", pack: "webgpu" },
  typescript: { title: "TypeScript", version: "5.4.5", path: "bin/tsc", pack: "typescript", by: [process.execPath] },
};

/** The version of a package that is installed for a tool. */
function versionOf(name, pack) {
  const file = join(folderOf(name), "node_modules", pack, "package.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : "none";
}

/** The file of a package that tests import, installed if it is not there; or one line that says why there is none. */
export function library(name) {
  const { title, version, pack, path } = TOOLS[name];
  if (versionOf(name, pack) !== version) install(name, TOOLS[name]);
  if (versionOf(name, pack) !== version) return { missing: `${title} ${version}: npm could not install it` };
  return { file: join(folderOf(name), "node_modules", pack, path) };
}

const folderOf = (name) => fileURLToPath(new URL(`../../node_modules/.cache/tool-${name}/`, import.meta.url));

function install(name, { title, version, pack }) {
  console.log(`installing ${title} ${version} for tests`);
  const cwd = folderOf(name);
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, "package.json"), '{ "private": true }\n');
  const options = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
  try {
    execFileSync("npm", ["install", ...options, `${pack}@${version}`], { cwd, stdio: ["ignore", "ignore", "inherit"] });
  } catch (error) {
    console.error(`${pack} could not be installed: ${error.message}`);
  }
}

/** The command of a tool, which is installed if it is not there; or one line that says why there is none. */
export function tool(name) {
  const { title, version, pack, path, by = [] } = TOOLS[name];
  const file = join(folderOf(name), "node_modules", pack, path);
  const [command, ...args] = [...by, file];
  const said = () => spawnSync(command, [...args, "--version"], { encoding: "utf8" }).stdout ?? "";
  const isThere = () => existsSync(file) && said().includes(version);
  if (!isThere()) install(name, TOOLS[name]);
  return isThere()
    ? { title: `${title} ${version}`, command, args }
    : `${title} ${version}: npm could not install ${pack}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, ...args] = process.argv.slice(2);
  const found = tool(name);
  if (typeof found === "string") {
    console.error(`NOT TESTED on ${found}`);
    process.exitCode = process.env.CI ? 1 : 0;
  } else if (args.length > 0) {
    console.log(`on ${found.title}:`);
    process.exitCode = spawnSync(found.command, [...found.args, ...args], { stdio: "inherit" }).status ?? 1;
  }
}
