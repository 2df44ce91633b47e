/**
 * @file Everything that is to be known of the target `cuda` on a machine with an NVIDIA GPU, in one call of at most nine minutes:
 * checks of bits and memory, the sanitizer, and figures beside PyTorch (gpu-beside.mjs). The machine may be bare: it needs a driver,
 * a CUDA toolkit and Python with PyTorch, and gets the rest in one folder.
 *
 *   npm run build && node bench/gpu-session.mjs pack FOLDER --anchors FILE --spec FOLDER     where the project is
 *   sh FOLDER/run.sh OUT [MINUTES]                                                           where the GPU is
 *   node bench/gpu-beside.mjs --from OUT/gpu-beside.json --write                             the tables for docs/speed.md
 *
 * Results are in OUT as soon as they are there: session.log (what ran when, and how it ended), checks.txt, sanitizer.txt, soak.txt,
 * gpu-beside.json. A second call with the same OUT measures what is missing.
 *
 *   time   0 ────────────── 2 min ────────────────────────────────────────────── 9
 *          checks, sanitizer │ one after the other, most wanted first:
 *          programs planned  │ gpt2, bf16, anchors, bf16 anchors, resnet, small, products, gaps, host, webgpu, soak
 *          and compiled      │
 *
 * Planning and compiling take longer than running, and need no GPU to themselves: every program is run for one step first, all side by
 * side, which leaves plans and code in a cache.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { benchWords, LARGE } from "./gpu-programs.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const MINUTE = 60_000;

// ---- pack -----------------------------------------------------------------------------------------------------------

/** Bundles, and what they are made from. */
const BUNDLES = {
  "cuda.mjs": "bench/cuda.ts",
  "cuda-device.mjs": "tests/support/cuda-device.ts",
  "webgpu-device.mjs": "tests/support/webgpu-device.ts",
};

const RUN = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
node="\${TMPDIR:-/tmp}/node-of-session"
[ -x "$node" ] || { gunzip -c "$here/node.gz" > "$node" && chmod +x "$node"; }
exec "$node" "$here/bench/gpu-session.mjs" run "$1" --minutes "\${2:-9}"
`;

function bundle(folder) {
  for (const [name, source] of Object.entries(BUNDLES)) {
    const how = ["-p", "node", "--no-treeshake", "--no-codeSplitting", "--external", "koffi", "--external", "highs"];
    const words = ["rolldown", source, ...how, "--external", "webgpu", "--file", join(folder, name)];
    const { status, stderr } = spawnSync("npx", words, { cwd: root, encoding: "utf8" });
    if (status !== 0) throw new Error(`${source}: ${stderr}`);
  }
}

/** A package without what other systems need of it. */
function copyPackage(name, folder, isWanted) {
  const from = join(root, "node_modules", name);
  if (!existsSync(from)) return false;
  cpSync(from, join(folder, "node_modules", name), {
    recursive: true,
    dereference: true,
    filter: (path) => statSync(path).isDirectory() || isWanted(path.slice(from.length + 1)),
  });
  return true;
}

function pack(folder, { anchors, spec }) {
  if (!existsSync(join(root, "dist/cli/main.js"))) throw new Error("there is no dist: npm run build");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "bench"), { recursive: true });
  for (const name of ["gpu-session.mjs", "gpu-programs.mjs", "gpu-beside.mjs", "gpu-torch.py", "speed-page.mjs"]) {
    cpSync(join(root, "bench", name), join(folder, "bench", name));
  }
  for (const name of ["bin", "dist", "package.json"]) {
    cpSync(join(root, name), join(folder, name), { recursive: true, filter: (path) => !path.endsWith(".map") });
  }
  bundle(folder);
  const system = `${process.platform}-${process.arch}`;
  copyPackage("koffi", folder, (path) => !/^(doc|vendor)\//.test(path) && !/\.(cc|hh|h|c|asm|S)$/i.test(path));
  if (!copyPackage(`@koromix/koffi-${system}`, folder, (path) => !path.startsWith("musl"))) throw new Error("no koffi");
  const ownDawn = (path) => !/\.node$/.test(path) || path.includes(system);
  if (!copyPackage("webgpu", folder, ownDawn)) console.error("without WebGPU: npm install webgpu, and pack again");
  if (anchors) cpSync(anchors, join(folder, "anchors.py"));
  if (spec) cpSync(join(spec, "spec.py"), join(folder, "spec", "spec.py"));
  writeFileSync(join(folder, "node.gz"), gzipSync(readFileSync(process.execPath), { level: 9 }));
  writeFileSync(join(folder, "run.sh"), RUN);
  chmodSync(join(folder, "run.sh"), 0o755);
  const { stdout } = spawnSync("du", ["-sm", folder], { encoding: "utf8" });
  console.log(`${folder}: ${stdout.split("\t")[0]} MiB; sh ${join(folder, "run.sh")} OUT`);
}

// ---- run ------------------------------------------------------------------------------------------------------------

/** Of the time in all, for checks and for planning and compiling. */
const WARM_SHARE = 0.27;
/** Programs that are planned and compiled at once. */
const ABREAST = Math.max(2, availableParallelism() - 3);

/** Words of `tidemark bench` for every program that is timed later. */
const variants = () => Object.values(LARGE).flatMap((section) => section.map((what) => benchWords(what, 1)));

/** Most wanted first. */
const SECTIONS = "gpt2 bf16 torch torch_bf16 resnet small products gaps host webgpu torch_small".split(" ");

class Session {
  #started = Date.now();
  #until;
  #out;
  #env;

  constructor(out, minutes) {
    this.#until = this.#started + minutes * MINUTE;
    this.#out = out;
    mkdirSync(out, { recursive: true });
    const cache = join(tmpdir(), "tidemark-session-cache");
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    this.#env = { ...process.env, TIDEMARK_CACHE: cache };
    this.log(`node ${process.versions.node}, ${availableParallelism()} processors, ${minutes} minutes`);
  }

  get until() {
    return this.#until;
  }

  get warmUntil() {
    return this.#started + WARM_SHARE * (this.#until - this.#started);
  }

  path(name) {
    return join(this.#out, name);
  }

  log(text) {
    const line = `${((Date.now() - this.#started) / 1000).toFixed(1)} s  ${text}`;
    console.log(line);
    appendFileSync(this.path("session.log"), `${line}\n`);
  }

  /** Runs a command until a time; what it prints is in a file as it comes. */
  command(name, command, args, until = this.#until) {
    const timeout = until - Date.now();
    if (timeout < 1000) {
      this.log(`${name}: no time was left`);
      return Promise.resolve(null);
    }
    return new Promise((done) => {
      const started = Date.now();
      const child = spawn(command, args, { env: this.#env, stdio: ["ignore", "pipe", "pipe"] });
      const timer = setTimeout(() => child.kill("SIGKILL"), timeout);
      const keep = (data) => appendFileSync(this.path(`${name}.txt`), data);
      child.stdout.on("data", keep);
      child.stderr.on("data", keep);
      let isOver = false;
      const end = (how) => {
        clearTimeout(timer);
        if (isOver) return;
        isOver = true;
        this.log(`${name}: ${how}, ${((Date.now() - started) / 1000).toFixed(1)} s`);
        done(how);
      };
      child.on("error", (error) => end(error.message));
      child.on("close", (code, signal) => end(signal ? `ended by ${signal}` : `exit code ${code}`));
    });
  }
}

/** Runs so many at a time. */
async function abreast(count, jobs) {
  const waiting = [...jobs];
  const worker = async () => {
    for (let job = waiting.shift(); job; job = waiting.shift()) await job();
  };
  await Promise.all(Array.from({ length: count }, worker));
}

async function run(out, minutes) {
  const session = new Session(resolve(out), minutes);
  const here = (name) => join(root, name);
  const tidemark = here("bin/tidemark.js");
  const own = (name, args, until) => session.command(name, process.execPath, args, until);
  await own("doctor", [tidemark, "doctor"]);
  await session.command("device", "nvidia-smi", []);
  const checks = ["tensor", "halves", "samples", "graphs", "budgets", "memory"];
  const sanitizer = "compute-sanitizer";
  await Promise.all([
    own("checks", [here("cuda-device.mjs"), ...checks], session.warmUntil),
    session.command(
      "sanitizer",
      sanitizer,
      ["--tool", "memcheck", "--error-exitcode", "9", process.execPath, here("cuda-device.mjs"), "samples", "tensor"],
      session.warmUntil,
    ),
    abreast(
      ABREAST,
      variants().map((words) => () => own("warm", [tidemark, ...words], session.warmUntil)),
    ),
  ]);
  const given = ["--out", session.path("."), "--until", String(session.until), "--tidemark", tidemark];
  const sides = ["--kernels", here("cuda.mjs"), "--anchors", here("anchors.py"), "--spec", here("spec")];
  const dawn = existsSync(here("node_modules/webgpu")) ? ["--webgpu", here("webgpu-device.mjs")] : [];
  await own("beside", [here("bench/gpu-beside.mjs"), ...given, ...sides, ...dawn, ...SECTIONS]);
  await own("programs", [here("cuda-device.mjs"), "programs"]);
  await own("soak", [here("cuda-device.mjs"), "soak"]);
  await own("attention", [here("cuda.mjs"), "attention", "epilogues"]);
  session.log("done");
}

// ---- the command ----------------------------------------------------------------------------------------------------

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    anchors: { type: "string" },
    spec: { type: "string" },
    minutes: { type: "string", default: "9" },
  },
});
const [what, folder] = positionals;
if (folder === undefined || (what !== "pack" && what !== "run")) {
  console.error("usage: node bench/gpu-session.mjs pack FOLDER, or run OUT");
  process.exit(1);
}
if (what === "pack") pack(resolve(folder), values);
else await run(folder, Number(values.minutes));
