/**
 * @file The package as people install it: built, packed, and installed into an empty project without a network. And programs
 * that are no dev packages, which run or read it there.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildPackage } from "./build.ts";
import { ROOT } from "./project.ts";

/** Runs a command; on failure the error carries everything it printed. */
export function run(cwd: string, command: string, ...args: readonly string[]): string {
  try {
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`);
  }
}

/** Paths below a folder, with forward slashes. */
export function filesBelow(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.map((name) => name.replaceAll("\\", "/")).sort();
}

interface Folders {
  readonly folder: string;
  readonly staging: string;
  readonly consumer: string;
}

/** Builds, packs and installs; the path of the archive. */
export function installPackage({ folder, staging, consumer }: Folders): string {
  mkdirSync(staging);
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: readonly string[] };
  const kept = files.filter((name) => !/^!|^dist\b/.test(name));
  for (const name of ["package.json", "README.md", "LICENSE", ...kept]) {
    cpSync(join(ROOT, name), join(staging, name), { recursive: true });
  }
  buildPackage(join(staging, "dist"));
  // Scripts are off because they would build; a person who installs the archive has none to switch off.
  run(staging, "npm", "pack", "--ignore-scripts", "--pack-destination", folder);
  const archive = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "");
  cpSync(join(ROOT, "tests", "fixtures", "consumer"), consumer, { recursive: true });
  writeFileSync(join(consumer, "package.json"), '{ "name": "consumer", "private": true, "type": "module" }');
  run(consumer, "npm", "install", "--offline", "--no-audit", "--no-fund", archive);
  return archive;
}

/** A program of tests/support/tool.mjs. */
interface Tool {
  readonly title: string;
  readonly command: string;
  readonly args: readonly string[];
}

interface TestedTool {
  /** Whether its tests are skipped. */
  readonly missing: boolean;
  found(): Tool;
}

// JavaScript, since it also runs without a build
const { tool } = (await import(pathToFileURL(join(ROOT, "tests", "support", "tool.mjs")).href)) as {
  tool: (name: string) => Tool | string;
};

/** Where it cannot be had, its tests are skipped with a message; under CI they fail. */
export function testedTool(name: string): TestedTool {
  const found = tool(name);
  if (typeof found !== "string") return { missing: false, found: () => found };
  console.warn(`NOT TESTED on ${found}`);
  return {
    missing: !process.env.CI,
    found() {
      throw new Error(`not tested on ${found}`);
    },
  };
}
