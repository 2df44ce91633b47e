/**
 * @file The build, to where a test wants it: other tests may be reading dist/. It is made once for the same sources, and copied from
 * then on; two test files that want it at the same time may both make it.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./project.ts";

const BUILDS = join(ROOT, "node_modules", ".cache", "test-build");

/** All that a build depends on, but the packages that are installed. */
const INPUTS: readonly RegExp[] = [
  /^(src|scripts|bench)\/.*(?<!\.test)\.(ts|mjs)$/,
  /^(package|package-lock|tsconfig.*)\.json$/,
];

function sourcesDigest(): string {
  const hash = createHash("sha256");
  const tops = readdirSync(ROOT).filter((name) => name.endsWith(".json") || ["src", "scripts", "bench"].includes(name));
  const paths = tops.flatMap((name) => {
    if (!statSync(join(ROOT, name)).isDirectory()) return [name];
    const below = readdirSync(join(ROOT, name), { recursive: true, encoding: "utf8" });
    return below.map((path) => `${name}/${path.replaceAll("\\", "/")}`);
  });
  for (const path of paths.filter((name) => INPUTS.some((input) => input.test(name))).sort()) {
    hash.update(`${path}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest("hex");
}

/** Fails with all that the build printed, warnings too. */
function build(folder: string): void {
  const words = [join(ROOT, "scripts", "build.mjs"), "--out", folder];
  const printed = execFileSync(process.execPath, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  if (printed !== "") throw new Error(`the build printed:\n${printed}`);
}

function madeOnce(made: string): void {
  mkdirSync(BUILDS, { recursive: true });
  const unfinished = `${made}.${process.pid}.tmp`;
  build(unfinished);
  // of other sources, or left by a run that was killed
  for (const name of readdirSync(BUILDS)) {
    const path = join(BUILDS, name);
    if (!path.startsWith(made)) rmSync(path, { recursive: true, force: true });
  }
  if (existsSync(made)) rmSync(unfinished, { recursive: true });
  else renameSync(unfinished, made);
}

/** The package's dist/ of the current sources, in a folder that does not exist yet. */
export function buildPackage(folder: string): void {
  const made = join(BUILDS, sourcesDigest());
  if (!existsSync(made)) madeOnce(made);
  cpSync(made, folder, { recursive: true });
}
