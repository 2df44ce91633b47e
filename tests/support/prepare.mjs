/**
 * @file What the tests need from the system: Chromium, for the page, a C compiler, for the target `native`, MPI, for programs on
 * several processes, the operator tests of ONNX, and a Vulkan driver that needs no GPU, for the target `webgpu`. Installed here where
 * that is allowed (root, apt); where it is not, the tests that need them skip with a word, and fail when CI is set.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { driverProblem, lavapipeSteps } from "./lavapipe.mjs";

const has = (command) => spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;

const needs = [
  { commands: ["chromium"], packages: ["chromium"], use: "which the tests of the page run in" },
  { commands: ["firefox-esr", "firefox"], packages: ["firefox-esr"], use: "which pages of the site are opened in" },
  { commands: ["cc", "gcc", "clang"], packages: ["gcc", "libc6-dev"], use: "which the target native compiles with" },
  {
    commands: ["mpicc"],
    packages: ["openmpi-bin", "libopenmpi-dev"],
    use: "which programs on several processes run with",
  },
  { path: "/usr/share/libonnx-testdata", packages: ["libonnx-testdata"], use: "which has the operator tests of ONNX" },
];
const missing = needs.filter(({ commands, path }) => !(path ? existsSync(path) : commands.some(has)));
const allowed = process.getuid?.() === 0 && has("apt-get");

if (missing.length > 0 && allowed) {
  try {
    execFileSync("apt-get", ["update", "-qq"], { stdio: "ignore" });
  } catch (error) {
    console.error(`the list of packages could not be updated: ${error.message}`);
  }
}
for (const { packages, use } of missing) {
  const names = packages.join(" ");
  if (!allowed) {
    console.error(`${names}, ${use}, is missing: its tests are skipped (Debian: apt-get install ${names})`);
    continue;
  }
  console.log(`installing ${names}, ${use}`);
  try {
    execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], { stdio: "ignore" });
  } catch (error) {
    console.error(`${names} could not be installed: ${error.message}`);
  }
}

/** Another source of packages is added to a machine of continuous integration alone. */
const driver = driverProblem();
if (driver !== null) {
  const { source, commands } = lavapipeSteps();
  if (allowed && process.env.CI) {
    console.log(`installing lavapipe, on which the target webgpu is tested: ${driver}`);
    try {
      if (source) writeFileSync(source.path, source.text);
      for (const [command, ...args] of commands) execFileSync(command, args, { stdio: "ignore" });
    } catch (error) {
      console.error(`lavapipe could not be installed: ${error.message}`);
    }
  } else {
    const lines = commands.map((words) => words.join(" ")).join(" && ");
    console.error(`lavapipe, on which the target webgpu is tested, is missing (${driver}): its tests are skipped`);
    if (source) console.error(`(write to ${source.path}:\n${source.text})`);
    console.error(`(${lines})`);
  }
}
