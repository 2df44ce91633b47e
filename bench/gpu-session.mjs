/**
 * @file Everything that is to be known of the targets `cuda` and `webgpu` on a machine with an NVIDIA GPU, in calls of at most nine
 * minutes: checks of bits and memory, the sanitizer, and figures beside PyTorch (gpu-beside.mjs) and jax-js (webgpu-beside.mjs). The
 * machine may be bare: it needs a driver, a CUDA toolkit and Python with PyTorch, and gets the rest in one folder (gpu-pack.mjs).
 *
 *   sh FOLDER/run.sh OUT [MINUTES [PART]]                          where the GPU is
 *   node bench/gpu-beside.mjs --from OUT/gpu-beside.json --write   the tables for docs/speed.md
 *
 * PART is one of
 *
 *   cuda        checks, and programs beside PyTorch (the default)
 *   webgpu      WebGPU through Dawn: bits, products, steps and their encoding, steps beside jax-js, the sanitizer once more
 *   profile     kernels of GPT-2 small in bf16: each waited for, beside predictions, and as the profiler counts them
 *   policies    pasted policies under torch.compile, beside PyTorch's own budget (bench/policies)
 *   threads     native code on all processors beside PyTorch (threads.mjs)
 *
 * Results are in OUT as soon as they are there: session.log (what ran when, and how it ended), and a text for each step. A second call
 * of `cuda` with the same OUT measures what is missing.
 *
 *   cuda   0 ────────────── 2 min ────────────────────────────────────────────── 9
 *          checks, sanitizer │ one after the other, most wanted first:
 *          programs planned  │ gpt2, bf16, anchors, bf16 anchors, resnet, small, products, gaps, host, soak
 *          and compiled      │
 *
 * Planning and compiling take longer than running, and need no GPU to themselves: every program is run for one step first, all side by
 * side, which leaves plans and code in a cache.
 */
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchWords, LARGE } from "./gpu-programs.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const MINUTE = 60_000;

/** Of the time in all, for checks and for planning and compiling. */
const WARM_SHARE = 0.27;
/** Programs that are planned and compiled at once. */
const ABREAST = Math.max(2, availableParallelism() - 3);

/** Words of `tidemark bench` for every program that is timed later. */
const variants = () => Object.values(LARGE).flatMap((section) => section.map((what) => benchWords(what, 1)));

/** Most wanted first. */
const SECTIONS = "gpt2 bf16 torch torch_bf16 resnet small products gaps host torch_small".split(" ");

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

  own(name, args, how) {
    return this.command(name, process.execPath, args, how);
  }

  log(text) {
    const line = `${((Date.now() - this.#started) / 1000).toFixed(1)} s  ${text}`;
    console.log(line);
    appendFileSync(this.path("session.log"), `${line}\n`);
  }

  /** Runs a command until a time; what it prints is in a file as it comes. */
  command(name, command, args, { until = this.#until, env = {} } = {}) {
    const timeout = until - Date.now();
    if (timeout < 1000) {
      this.log(`${name}: no time was left`);
      return Promise.resolve(null);
    }
    return new Promise((done) => {
      const started = Date.now();
      const child = spawn(command, args, { env: { ...this.#env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
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

const here = (name) => join(root, name);
const tidemark = here("bin/tidemark.js");

/** NCCL as PyTorch brings it along; the system may have none. */
function ncclOfPython() {
  const said = spawnSync("python3", ["-c", "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])"], {
    encoding: "utf8",
  });
  const path = join((said.stdout ?? "").trim(), "lib", "libnccl.so.2");
  return said.status === 0 && existsSync(path) ? { TIDEMARK_NCCL: path } : {};
}

async function cuda(session) {
  const warm = { until: session.warmUntil, env: ncclOfPython() };
  const checks = ["tensor", "halves", "samples", "graphs", "nccl", "budgets", "memory"];
  await Promise.all([
    session.own("checks", [here("cuda-device.mjs"), ...checks], warm),
    session.command("sanitizer", ...sanitized("memcheck", "samples", "tensor"), warm),
    abreast(
      ABREAST,
      variants().map((words) => () => session.own("warm", [tidemark, ...words], warm)),
    ),
  ]);
  const given = ["--out", session.path("."), "--until", String(session.until), "--tidemark", tidemark];
  const sides = ["--kernels", here("cuda.mjs"), "--anchors", here("anchors.py"), "--spec", here("peers")];
  await session.own("beside", [here("bench/gpu-beside.mjs"), ...given, ...sides, ...SECTIONS]);
  await session.own("programs", [here("cuda-device.mjs"), "programs"]);
  await session.own("soak", [here("cuda-device.mjs"), "soak"]);
  await session.own("attention", [here("cuda.mjs"), "attention", "epilogues"]);
}

/** compute-sanitizer on checks of the device. */
const sanitized = (tool, ...sections) => [
  "compute-sanitizer",
  ["--tool", tool, "--error-exitcode", "9", process.execPath, here("cuda-device.mjs"), ...sections],
];

async function webgpu(session) {
  const vulkan = here("vulkan");
  const { LD_LIBRARY_PATH = "", VK_ICD_FILENAMES = join(vulkan, "icd.json") } = process.env;
  const env = { LD_LIBRARY_PATH: `${vulkan}:${LD_LIBRARY_PATH}`, VK_ICD_FILENAMES };
  const on = (name, ...args) => session.own(name, args, { env });
  const first = { env, until: Math.min(session.until, Date.now() + 2 * MINUTE) };
  await session.own("adapter", [here("webgpu-device.mjs"), "adapter", "product", "steps"], first);
  await on(
    "jax-js",
    here("bench/webgpu-beside.mjs"),
    "mlp",
    "gpt",
    "lstm",
    "cnn",
    "--rounds=2",
    "--seconds=5",
    "--peers",
    here("peers"),
  );
  await on("profile", here("webgpu-device.mjs"), "profile");
  await on("bits", here("webgpu-device.mjs"), "programs", "graphs", "samples");
  await session.command("racecheck", ...sanitized("racecheck", "samples"));
}

async function profile(session) {
  await session.own("profile", [here("cuda.mjs"), "profile_bf16"]);
  const [what] = LARGE.bf16.slice(1);
  const how = ["--metrics", "gpu__time_duration.sum", "--cache-control", "none", "--clock-control", "none", "--csv"];
  await session.command("kernels", "ncu", [...how, process.execPath, tidemark, ...benchWords(what, 1)]);
}

async function policies(session) {
  const files = POLICIES.map((name) => here(`bench/policies/${name}`));
  const how = ["--compile", `--until=${session.until / 1000}`];
  await session.command("policies", "python3", [here("bench/policies/measure.py"), ...how, ...files]);
}
/** One of each model first. */
const POLICIES = [
  "resnet50.b64.sgd.3GB.py",
  "gpt2-small.b8.sgd.12GB.py",
  "resnet50.b64.sgd.5GB.py",
  "gpt2-small.b8.sgd.10GB.py",
];

async function threads(session) {
  const counts = [1, 8, 16].filter((count) => count <= availableParallelism());
  const how = [
    `--threads=${counts.join(",")}`,
    "--rounds=1",
    "--seconds=2",
    "--python=python3",
    `--harness=${here("peers")}`,
  ];
  await session.own("threads", [here("bench/threads.mjs"), ...how]);
}

const PARTS = { cuda, webgpu, profile, policies, threads };

// ---- the command ----------------------------------------------------------------------------------------------------

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: "string", default: "9" }, part: { type: "string", default: "cuda" } },
});
const [folder] = positionals;
if (folder === undefined || !(values.part in PARTS)) {
  console.error(`usage: node bench/gpu-session.mjs OUT [--minutes N] [--part ${Object.keys(PARTS).join("|")}]`);
  process.exit(1);
}
const session = new Session(resolve(folder), Number(values.minutes));
await session.own("doctor", [tidemark, "doctor"]);
await session.command("device", "nvidia-smi", []);
await PARTS[values.part](session);
session.log("done");
