/** @file Plans of built-in programs to look at: the pages that `tidemark view --html` writes. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

/** The first is what the navigation leads to. */
export const PROGRAMS = ["cnn", "lstm", "mlp"];

export function writeViews(root, folder) {
  mkdirSync(folder, { recursive: true });
  for (const name of PROGRAMS) {
    const words = [join(root, "bin", "tidemark.js"), "view", name, "--html", join(folder, `${name}.html`)];
    execFileSync(process.execPath, words, { stdio: ["ignore", "ignore", "inherit"] });
  }
}
