/**
 * @file Mesa's lavapipe: Vulkan on the processor, so that the target `webgpu` is tested on machines without a GPU. The package `webgpu`
 * refuses that of Debian 12, which lacks an indexing that it needs, and takes that of Debian 12's backports.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = "/usr/share/vulkan/icd.d";
/** Of Mesa; older ones are refused. */
const LEAST_VERSION = 23;

/** The file by which Vulkan finds it; null where it is not installed. */
export function lavapipeFile() {
  const file = existsSync(FOLDER) ? readdirSync(FOLDER).find((name) => /^lvp_icd.*\.json$/.test(name)) : undefined;
  return file === undefined ? null : join(FOLDER, file);
}

/** Why it cannot be used; null where it can. */
export function driverProblem() {
  if (process.platform !== "linux") return "it is for Linux";
  if (lavapipeFile() === null) return `no lvp_icd.json in ${FOLDER}`;
  const { status, stdout } = spawnSync("dpkg-query", ["-W", "-f", `\${Version}`, "mesa-vulkan-drivers"], {
    encoding: "utf8",
  });
  // other systems: the tests say what is wrong with it
  if (status !== 0) return null;
  return Number.parseInt(stdout, 10) < LEAST_VERSION ? `Mesa ${stdout}, ${LEAST_VERSION} is needed` : null;
}

const SOURCES = "/etc/apt/sources.list.d/debian.sources";

/** The system's own source of packages with the backports of Debian 12 in place of its suites; null on other systems. */
function backports() {
  const text = existsSync(SOURCES) ? readFileSync(SOURCES, "utf8") : "";
  const own = text.split("\n\n").find((part) => /^Suites:.* bookworm-updates/m.test(part));
  return own?.replace(/^Suites:.*$/m, "Suites: bookworm-backports").concat("\n") ?? null;
}

/** What installs it: a source of packages, where the system's own is too old, then commands. */
export function lavapipeSteps() {
  const install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
  const update = ["apt-get", "update", "-qq"];
  const packages = ["mesa-vulkan-drivers", "libvulkan1"];
  const text = backports();
  if (text === null) return { source: null, commands: [update, [...install, ...packages]] };
  return {
    source: { path: "/etc/apt/sources.list.d/bookworm-backports.sources", text },
    commands: [update, [...install, "-t", "bookworm-backports", ...packages]],
  };
}
