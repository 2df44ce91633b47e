/**
 * @file A real browser for tests: Debian's Chromium, driven by playwright-core. A person without one is told loudly and
 * the tests are skipped; on a build machine (CI=true) that is a failure.
 */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** CHROMIUM, or the first of the usual names on the path. */
export function browserPath(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.CHROMIUM) return env.CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
  const folders = (env.PATH ?? "").split(delimiter);
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path)) ?? null;
}

export const NO_BROWSER =
  "no Chromium found: apt-get install chromium, or set CHROMIUM to one. Tests of the page did not run.";

export function launch(path: string): Promise<Browser> {
  // Containers have neither user namespaces for the sandbox nor a large /dev/shm; what is opened is our own page.
  return chromium.launch({ executablePath: path, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
}
