/** @file The command as people install it: built, run by Node, with programs that import the package. */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPackage } from "./support/build.ts";
import { expectRefusal, lastLine, type Outcome } from "./support/outcome.ts";
import { ROOT } from "./support/project.ts";
import { plainTargets } from "./support/targets.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}

beforeAll(() => {
  buildPackage(join(folder, "dist"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
});

describe("the command as installed", () => {
  const PROGRAM = `import { mse, tensor, valueAndGrad } from "./dist/api/index.js";
export const program = {
  name: "line",
  init: () => ({ params: { w: tensor([[1], [2]]) } }),
  batch: () => [tensor([[1, 2], [3, 4]]), tensor([[1], [0]])],
  step(state, x, y) {
    const [loss, g] = valueAndGrad((p) => mse(x.matmul(p.w), y))(state.params);
    return [{ params: { w: state.params.w.sub(g.w.mul(0.01)) } }, loss];
  },
};
`;

  const cache = join(folder, "cache");

  const commandWith = (env: Readonly<Record<string, string>>, ...args: readonly string[]): Outcome => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ["bin/tidemark.js", ...args], {
      ...{ cwd: folder, encoding: "utf8", env: { ...process.env, TIDEMARK_CACHE: cache, ...env } },
    });
    return { code: status ?? -1, out: stdout, err: stderr };
  };

  const command = (...args: readonly string[]): Outcome => commandWith({}, ...args);

  beforeAll(() => {
    mkdirSync(join(folder, "bin"));
    cpSync(join(ROOT, "bin", "tidemark.js"), join(folder, "bin", "tidemark.js"));
    cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
  });

  it("runs modules that export a program", () => {
    file("line.mjs", PROGRAM);
    const { code, out } = command("bench", "line.mjs", "--steps", "2", "--json");
    expect(code).toBe(0);
    const { program, losses } = lastLine(out) as { program: string; losses: readonly number[] };
    expect(program).toBe("line");
    // predictions 5 and 11 for targets 1 and 0: (4² + 11²) / 2
    expect(losses[0]).toBe(68.5);
    expect(losses[1]).toBeLessThan(68.5);
  });

  it("finds a plan again that took long, and makes it again where it is damaged", () => {
    const planned = (env: Readonly<Record<string, string>> = {}) => {
      const words = ["plan", "lstm", "--budget", "min", "--json", "--plan-json", "lstm.json"];
      const { planCached, planMs, traceMs, ...figures } = lastLine(commandWith(env, ...words).out);
      return { planCached, figures, plan: readFileSync(join(folder, "lstm.json"), "utf8") };
    };
    const off = planned({ TIDEMARK_PLAN_CACHE: "off" });
    expect(existsSync(join(cache, "plans"))).toBe(false);
    expect(planned()).toEqual(off);
    const again = planned();
    expect(again).toEqual({ ...off, planCached: true });
    const files = readdirSync(join(cache, "plans")).map((name) => join(cache, "plans", name));
    for (const path of files) writeFileSync(path, readFileSync(path, "utf8").slice(0, -1));
    expect(planned()).toEqual(off);
    expect(planned()).toEqual(again);
    const kept = { folder: cache, plans: join(cache, "plans"), problem: null };
    expect(lastLine(command("doctor", "--json").out).cache).toEqual(kept);
  });

  it("packs many buffers", () => {
    const rows = Array.from({ length: 1200 }, (_, i) => {
      const start = (i * 7919) % 500;
      return { start, end: start + 1 + ((i * 104729) % 97), size: 8 * (1 + ((i * 15485863) % 61)) };
    });
    const csv = rows.map(({ start, end, size }, i) => `${i},${start},${end},${size}`).join("\n");
    file("many.csv", `id,lower,upper,size\n${csv}\n`);
    const { code, out } = command("pack", "many.csv", "--timeout", "2", "--json", "--output", "placed.csv");
    expect(code).toBe(0);
    const { heightBytes, lowerBoundBytes } = lastLine(out) as Readonly<Record<string, number>>;
    expect(heightBytes).toBeGreaterThanOrEqual(lowerBoundBytes as number);
    const [, ...placed] = readFileSync(join(folder, "placed.csv"), "utf8").trim().split("\n");
    const offsets = placed.map((line) => Number(line.split(",")[4]));
    expect(offsets.length).toBe(rows.length);
    const collide = rows.flatMap((a, i) =>
      rows.filter((b, j) => {
        const [from, other] = [offsets[i] as number, offsets[j] as number];
        return j > i && a.start < b.end && b.start < a.end && from < other + b.size && other < from + a.size;
      }),
    );
    expect(collide).toEqual([]);
    expect(Math.max(...rows.map(({ size }, i) => (offsets[i] as number) + size))).toBe(heightBytes);
  });

  it("builds what a module exports, to run without the package", () => {
    const functions = `export const double = { params: () => ({ by: tensor(2) }), batch: () => [tensor([1, 2])], run: ({ by }, x) => x.mul(by) };
export const plain = { batch: () => [tensor([1, 2]), 3], run: (x, n) => x.add(n) };
export const wrong = { run: (x) => x };
`;
    file("parts.mjs", `${PROGRAM}${functions}`);
    const { code, out } = command("build", "parts.mjs", "--out", "built/line", "--budget", "1MB", "--json");
    expect(code).toBe(0);
    const { files, ...figures } = lastLine(out) as {
      files: readonly { name: string; bytes: number }[];
      arenaBytes: number;
    };
    expect(figures).toMatchObject({ program: "line", target: "wasm", budgetBytes: 1_000_000, folder: "built/line" });
    for (const { name, bytes } of files) expect(statSync(join(folder, "built", "line", name)).size, name).toBe(bytes);
    for (const name of ["double", "plain"]) {
      expect(command("build", "parts.mjs", "--name", name, "--out", `built/${name}`).code).toBe(0);
    }
    const script = `const [line, double, plain] = await Promise.all(["line", "double", "plain"].map(async (name) => (await import("./built/" + name + "/index.js")).load()));
      const [, loss] = line([[1, 2], [3, 4]], [[1], [0]]);
      console.log(JSON.stringify([loss[0], [...double([3, 4])], [...plain([3, 4], 0.5)]]));`;
    rmSync(join(folder, "elsewhere"), { recursive: true, force: true });
    cpSync(join(folder, "built"), join(folder, "elsewhere", "built"), { recursive: true });
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      ...{ cwd: join(folder, "elsewhere"), encoding: "utf8" },
    });
    expect([run.stdout, run.stderr]).toEqual(["[68.5,[6,8],[3.5,4.5]]\n", ""]);
    const refused = "UnknownProgram: parts: it has `run` and no function `batch`";
    expectRefusal(command("build", "parts.mjs", "--name", "wrong", "--out", "built/wrong"), refused);
    const missing = "UnknownProgram: parts.mjs: exports no `other`";
    expectRefusal(command("build", "parts.mjs", "--name", "other", "--out", "built/other"), missing);
    file("built/line/weights.safetensors", "mine");
    const kept = "StorageError: built/line has files that no build has written";
    expectRefusal(command("build", "parts.mjs", "--out", "built/line"), kept);
    expect(command("build", "parts.mjs", "--out", "built/line", "--force").code).toBe(0);
  });

  it("says what is wrong with a module", () => {
    file("empty.mjs", "export const model = 1;\n");
    expectRefusal(command("plan", "empty.mjs"), "UnknownProgram: empty.mjs: exports no `program`");
    file("part.mjs", PROGRAM.replace("init:", "start:"));
    expectRefusal(command("plan", "part.mjs"), "UnknownProgram: part.mjs: `program` has no function init");
    file("broken.mjs", "export const = 1;\n");
    expectRefusal(command("plan", "broken.mjs"), "UnknownProgram: broken.mjs could not be loaded");
  });

  it("says which promise a module breaks", () => {
    const refusal = (change: readonly [string, string], start: string): void => {
      file("changed.mjs", PROGRAM.replace(...change));
      const { code, err } = command("bench", "changed.mjs", "--steps", "2");
      // what a step returns shows when it has run, below the line that it was compiled
      expectRefusal({ code, out: "", err: err.replace(/^line: compiled .*\n/, "") }, `UnknownProgram: line: ${start}`);
    };
    refusal(["init: () => ({ params: { w: tensor([[1], [2]]) } })", "init: () => 3"], "init() returned 3");
    refusal(["batch: () => [", "batch: () => tensor(1) ?? ["], "batch() returned the tensor f32[]");
    refusal(["batch: () => [", "batch: () => [3, "], "item 0 of batch() is 3");
    refusal(["return [{", "return {} && [loss]; [{"], "step returned an array of 1");
    refusal([", loss];", ", x];"], "step returned the tensor f32[2,2] as the loss");
    refusal(["params: { w: state", "params: { v: state"], "step returned a state that differs from the one it got");
  });

  it("exits with 1 and the line for what a module throws", () => {
    file("thrower.mjs", PROGRAM.replace("const [loss, g]", "null.x; const [loss, g]"));
    for (const name of ["plan", "bench", "trace"]) {
      const outcome = command(name, "thrower.mjs");
      expectRefusal(outcome, "UnknownProgram: TypeError: Cannot read properties of null (reading 'x')");
      expect(outcome.err).toContain("\n  at thrower.mjs:7:10 in step\n");
      expect(outcome.out).toBe("");
    }
  });
});

/** Threads of Node have caches, counters and libraries of their own in one process. */
describe.skipIf(plainTargets[1]?.missing)("native code in workers of Node", () => {
  const WORKERS = `import { isMainThread, parentPort, Worker } from "node:worker_threads";
const [count, threads, atOnce] = process.argv.slice(2).map(Number);
if (isMainThread) {
  const start = () => new Promise((done, fail) => {
    const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
    worker.on("message", (text) => console.log(text));
    worker.on("error", fail);
    worker.on("exit", done);
  });
  if (atOnce) await Promise.all(Array.from({ length: count }, start));
  else for (let i = 0; i < count; i++) await start();
  await new Promise((done) => setTimeout(done, 50));
} else {
  const { compile, grad, tensor } = await import("./dist/api/index.js");
  await import("./dist/node/index.js");
  const f = compile(grad((w, x) => x.matmul(w).tanh().sum()), { target: "native", threads });
  const [w, x] = [tensor(new Float32Array(1024).fill(0.1), { shape: [64, 16] }), tensor(new Float32Array(8192).fill(0.2), { shape: [128, 64] })];
  try {
    parentPort.postMessage(String(f(w, x).sum().item()));
  } catch (error) {
    parentPort.postMessage(String(error));
  }
}
`;
  const run = (cache: string, ...args: readonly number[]): readonly [number | null, readonly string[]] => {
    file("workers.mjs", WORKERS);
    const env = { ...process.env, TIDEMARK_CACHE: join(folder, cache) };
    const made = spawnSync(process.execPath, ["workers.mjs", ...args.map(String)], {
      cwd: folder,
      encoding: "utf8",
      env,
    });
    return [made.status, made.stdout.trim().split("\n")];
  };

  it("is compiled by several of them at once, with one answer", () => {
    const [status, answers] = run("at-once", 3, 1, 1);
    expect(status).toBe(0);
    expect(answers).toHaveLength(3);
    expect(new Set(answers).size).toBe(1);
    expect(Number(answers[0])).toBeGreaterThan(0);
  });

  it("outlives a worker that ends while its threads wait", () => {
    const [status, answers] = run("one-by-one", 4, 3, 0);
    expect(status).toBe(0);
    expect(new Set(answers).size).toBe(1);
    expect(answers).toHaveLength(4);
  });

  it("is not asked for where a compiler cannot build: auto says why it is wasm", () => {
    file(
      "auto.mjs",
      `import { compile, tensor } from "./dist/api/index.js";
import "./dist/node/index.js";
const f = compile((x) => x.mul(2), { target: "auto" });
console.log(f(tensor([1])).item(), f.program(tensor([1])).targetNote);
`,
    );
    const broken = join(folder, "broken-cc");
    writeFileSync(
      broken,
      '#!/bin/sh\ncase "$*" in *--version*) echo cc 1;; *-dM*) echo "#define __x86_64__ 1";; *) echo no linker >&2; exit 1;; esac\n',
      { mode: 0o755 },
    );
    for (const [compiler, why] of [
      [broken, "no linker"],
      ["/bin/true", "produced no file"],
    ] as const) {
      const env = { ...process.env, TIDEMARK_CACHE: join(folder, "broken"), TIDEMARK_CC: compiler };
      const { status, stdout } = spawnSync(process.execPath, ["auto.mjs"], { cwd: folder, encoding: "utf8", env });
      expect([status, stdout]).toEqual([0, expect.stringMatching(/^2 wasm, not native: /)]);
      expect(stdout).toContain(why);
    }
  });
});
