/**
 * @file One folder with all that gpu-session.mjs needs on a bare machine with an NVIDIA GPU: Node, the built package, koffi, WebGPU with
 * Vulkan's loader, jax-js, scripts of PyTorch. 32 MiB, most of them Node.
 *
 *   npm run build && node bench/gpu-pack.mjs FOLDER --anchors FILE --spec FOLDER
 *
 *   --anchors    a script with PyTorch's variants of GPT-2 small and ResNet-50 (gpu-beside.mjs)
 *   --spec       the folder of the peers' harness
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { installPeers, PEERS_FOLDER, prepareHarness } from "./peer-runners.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const MIB = 2 ** 20;
const system = `${process.platform}-${process.arch}`;

/** Unpacks itself once. */
const RUN = `#!/bin/sh
set -e
here=$(cd "$(dirname "$0")" && pwd)
to="\${TMPDIR:-/tmp}/tidemark-session"
[ -e "$to/ready" ] || { mkdir -p "$to" && tar -xJf "$here/session.tar.xz" -C "$to" && touch "$to/ready"; }
exec "$to/node" "$to/bench/gpu-session.mjs" "$1" --minutes "\${2:-9}" --part "\${3:-cuda}"
`;

function required(command, args, how = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", ...how });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr}`);
  return stdout;
}

/** Bundles, and what they are made from. */
const BUNDLES = {
  "cuda.mjs": "bench/cuda.ts",
  "cuda-device.mjs": "tests/support/cuda-device.ts",
  "webgpu-device.mjs": "tests/support/webgpu-device.ts",
};

function bundle(folder) {
  for (const [name, source] of Object.entries(BUNDLES)) {
    const how = ["-p", "node", "--no-treeshake", "--no-codeSplitting", "--external", "koffi", "--external", "highs"];
    const words = ["rolldown", source, ...how, "--external", "webgpu", "--file", join(folder, name)];
    required("npx", words, { cwd: root });
  }
}

/** Copies a package's folder without what other systems need of it. */
function copyPackage(from, folder, isWanted = () => true) {
  if (!existsSync(from)) throw new Error(`${from} is not there`);
  const name = from.slice(from.lastIndexOf("node_modules/"));
  const filter = (path) => statSync(path).isDirectory() || isWanted(path.slice(from.length + 1));
  cpSync(from, join(folder, name), { recursive: true, dereference: true, filter });
}

function packProject(folder) {
  const scripts = readdirSync(join(root, "bench")).filter((name) => /\.(mjs|py)$/.test(name));
  mkdirSync(join(folder, "bench"), { recursive: true });
  for (const name of [...scripts, "networks", "policies"]) {
    cpSync(join(root, "bench", name), join(folder, "bench", name), { recursive: true });
  }
  for (const name of ["bin", "dist", "package.json"]) {
    cpSync(join(root, name), join(folder, name), { recursive: true, filter: (path) => !path.endsWith(".map") });
  }
  bundle(folder);
  const isOfKoffi = (path) => !/^(doc|vendor)\//.test(path) && !/\.(cc|hh|h|c|asm|S)$/i.test(path);
  copyPackage(join(root, "node_modules/koffi"), folder, isOfKoffi);
  copyPackage(join(root, `node_modules/@koromix/koffi-${system}`), folder, (path) => !path.startsWith("musl"));
}

/** What Dawn loads the driver with, which machines with a GPU for computing lack. */
const VULKAN = "libvulkan1 libx11-6 libxext6 libxcb1 libxau6 libxdmcp6 libbsd0 libmd0 libegl1 libglvnd0".split(" ");
/** NVIDIA's driver without a display. */
const ICD = { file_format_version: "1.0.0", ICD: { library_path: "libEGL_nvidia.so.0", api_version: "1.3.0" } };

function packVulkan(folder) {
  const [to, packages] = [join(folder, "vulkan"), mkdtempSync(join(tmpdir(), "tidemark-vulkan-"))];
  mkdirSync(to);
  required("apt-get", ["download", ...VULKAN], { cwd: packages });
  for (const name of readdirSync(packages)) required("dpkg", ["-x", name, "."], { cwd: packages });
  const found = readdirSync(packages, { recursive: true }).filter((path) => /\.so\.\d+$/.test(path));
  for (const path of found) cpSync(realpathSync(join(packages, path)), join(to, basename(path)));
  if (!existsSync(join(to, "libvulkan.so.1"))) throw new Error("no libvulkan.so.1 in Debian's packages");
  rmSync(packages, { recursive: true });
  writeFileSync(join(to, "icd.json"), JSON.stringify(ICD));
}

function packWebgpu(folder) {
  const cache = join(root, "node_modules/.cache/gpu-pack");
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, "package.json"), '{ "private": true }\n');
  required("npm", ["install", "--no-audit", "--no-fund", "--no-save", "webgpu"], { cwd: cache });
  copyPackage(
    join(cache, "node_modules/webgpu"),
    folder,
    (path) => !path.startsWith("dist/") || path.startsWith(`dist/${system}/`),
  );
  packVulkan(folder);
}

/** The peers' harness with jax-js, which is all that runs of it on WebGPU. */
function packPeers(folder, harness) {
  prepareHarness(harness);
  const missing = installPeers();
  if (missing !== null) throw new Error(missing);
  const to = join(folder, "peers");
  mkdirSync(to);
  for (const name of readdirSync(PEERS_FOLDER).filter((name) => /\.(mjs|py)$/.test(name))) {
    cpSync(join(PEERS_FOLDER, name), join(to, name));
  }
  copyPackage(join(PEERS_FOLDER, "node_modules/@jax-js/jax"), to);
}

function packNode(folder) {
  const to = join(folder, "node");
  cpSync(realpathSync(process.execPath), to);
  required("strip", [to]);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { anchors: { type: "string" }, spec: { type: "string" } },
});
const [out] = positionals;
if (out === undefined || !values.anchors || !values.spec) {
  console.error("usage: node bench/gpu-pack.mjs FOLDER --anchors FILE --spec FOLDER");
  process.exit(1);
}
if (!existsSync(join(root, "dist/cli/main.js"))) throw new Error("there is no dist: npm run build");
const inside = mkdtempSync(join(tmpdir(), "tidemark-pack-"));
packProject(inside);
packWebgpu(inside);
packPeers(inside, values.spec);
packNode(inside);
cpSync(values.anchors, join(inside, "anchors.py"));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const file = join(resolve(out), "session.tar.xz");
required("tar", ["-cJf", file, "-C", inside, "."], { env: { ...process.env, XZ_OPT: "-6 -T0" } });
rmSync(inside, { recursive: true });
writeFileSync(join(out, "run.sh"), RUN);
chmodSync(join(out, "run.sh"), 0o755);
console.log(`${out}: ${Math.ceil(statSync(file).size / MIB)} MiB; sh ${join(out, "run.sh")} OUT`);
