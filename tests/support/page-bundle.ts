/** @file The page's script, bundled as the build does it, to where a test wants it. */
import { join } from "node:path";
import { build } from "rolldown";
import { ROOT } from "./project.ts";

export async function bundlePage(file: string): Promise<void> {
  const input = join(ROOT, "src", "view", "page", "main.ts");
  await build({ input, output: { file, format: "iife", minify: true }, logLevel: "silent" });
}
