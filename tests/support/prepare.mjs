/**
 * @file What the tests need from the system: Chromium, for the page. Installed here where that is allowed (root, apt); where
 * it is not, the tests that need it skip with a word, and fail when CI is set.
 */
import { execFileSync, spawnSync } from "node:child_process";

const has = (command) => spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;

if (!has("chromium")) {
  if (process.getuid?.() === 0 && has("apt-get")) {
    console.log("installing chromium, which the tests of the page run in");
    try {
      execFileSync("apt-get", ["update", "-qq"], { stdio: "ignore" });
      execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], { stdio: "ignore" });
    } catch (error) {
      console.error(`chromium could not be installed: ${error.message}`);
    }
  } else {
    console.error("chromium is missing: tests of the page are skipped (Debian: apt-get install chromium)");
  }
}
