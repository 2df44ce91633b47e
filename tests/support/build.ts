/** @file The build, to where a test wants it: other tests may be reading dist/. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "./project.ts";

/** Fails with all that the build printed, warnings too. */
export function buildPackage(folder: string): void {
  const words = [join(ROOT, "scripts", "build.mjs"), "--out", folder];
  const printed = execFileSync(process.execPath, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  if (printed !== "") throw new Error(`the build printed:\n${printed}`);
}
