/**
 * @file Caches and temporary folders that somebody else can write, that cannot be written, that are full or not there: what
 * was planted is not loaded, and a program runs all the same and says what is wrong. With real users where this is root.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemCompiler } from "../src/node/native/compiler.ts";
import { buildPackage } from "./support/build.ts";
import type { Outcome } from "./support/outcome.ts";
import { ROOT } from "./support/project.ts";
import { plainTargets } from "./support/targets.ts";

const missing = plainTargets[1]?.missing ?? null;
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn("tests as other users are skipped: only root can be another user");

function isMountable(): boolean {
  const place = mkdtempSync(join(tmpdir(), "tidemark-mount-"));
  try {
    if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=16k", "tmpfs", place]).status !== 0) return false;
    return spawnSync("umount", [place]).status === 0;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

const canMount = isMountable();
if (!canMount) console.warn("the test with a full disk is skipped: nothing can be mounted here");

/** Numbers that no user of the system has. */
const OTHER = 54_321;
const uid = process.getuid?.() ?? 0;
/** Somebody whom modes hold back. */
const plainUser = isRoot ? OTHER : uid;

const folder = mkdtempSync(join(tmpdir(), "tidemark-safety-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PROGRAM = `import { chmodSync } from "node:fs";
import { compile, grad, tensor } from "./dist/api/index.js";
import "./dist/node/index.js";
const target = process.argv[2];
const f = compile(grad((x) => x.sin().sum()), { target });
try {
  const info = f.program(tensor([0, 0]));
  console.log(JSON.stringify({ results: f(tensor([0, 0])).toArray(), target: info.target, note: info.targetNote }));
  if (process.argv[3] === "spoil") {
    chmodSync(process.env.TIDEMARK_CACHE + "/native", 0o500);
    process.env.TMPDIR = "/nowhere";
    const g = compile(grad((x) => x.cos().sum()), { target });
    const later = g.program(tensor([0]));
    console.log(JSON.stringify({ results: g(tensor([0])).toArray(), target: later.target, note: later.targetNote }));
  }
} catch (error) {
  console.log(JSON.stringify({ code: error.code, summary: error.summary }));
}
`;

interface Said {
  readonly results?: readonly number[];
  readonly target?: string;
  readonly note?: string | null;
  readonly code?: string;
  readonly summary?: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Runs Node with a script of the folder as some user, without a home unless one is given. */
function runAs(user: number, env: Env, ...args: readonly string[]): Outcome {
  const clean: Env = { PATH: process.env.PATH, ...env };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    ...{ cwd: folder, encoding: "utf8", env: clean as NodeJS.ProcessEnv },
    ...(user === uid ? {} : { uid: user, gid: user }),
  });
  return { code: status ?? -1, out: stdout, err: stderr };
}

function said({ code, out, err }: Outcome): readonly Said[] {
  expect([code, err]).toEqual([0, ""]);
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Said);
}

let folders = 0;
/** A new folder of a user. */
function folderOf(user: number, mode: number): string {
  const path = join(folder, `folder-${folders++}`);
  mkdirSync(path);
  if (user !== uid) chownSync(path, user, user);
  chmodSync(path, mode);
  return path;
}

beforeAll(() => {
  chmodSync(folder, 0o755);
  buildPackage(join(folder, "dist"));
  for (const name of ["koffi", "@koromix"]) {
    const from = join(ROOT, "node_modules", name);
    if (existsSync(from)) cpSync(from, join(folder, "node_modules", name), { recursive: true });
  }
  mkdirSync(join(folder, "bin"));
  cpSync(join(ROOT, "bin", "tidemark.js"), join(folder, "bin", "tidemark.js"));
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
  writeFileSync(join(folder, "program.mjs"), PROGRAM);
});

const RIGHT = [1, 1];

describe.skipIf(missing)("a compiled file that somebody planted", () => {
  /** A shared object that leaves a mark when it is loaded, under every name of a cache, with a hash at its end. */
  function plant(cache: string, names: readonly string[], mark: string): void {
    const compiler = systemCompiler();
    if (typeof compiler === "string") throw new Error(compiler);
    const text = `#include <stdio.h>\n__attribute__((constructor)) static void mark(void) { fclose(fopen("${mark}", "w")); }\n`;
    const planted = join(folder, "planted.so");
    execFileSync(compiler.command, ["-shared", "-fPIC", "-x", "c", "-", "-o", planted], { input: text });
    appendFileSync(planted, createHash("sha256").update(readFileSync(planted)).digest());
    for (const name of names) {
      rmSync(join(cache, "native", name), { force: true });
      cpSync(planted, join(cache, "native", name));
    }
  }

  const objectsOf = (cache: string): readonly string[] =>
    readdirSync(join(cache, "native")).filter((name) => name.endsWith(".so"));

  /** A cache in which every program was replaced, and where the planted one leaves its mark. */
  function plantedCache(): { readonly cache: string; readonly mark: string } {
    const cache = folderOf(uid, 0o700);
    expect(said(runAs(uid, { TIDEMARK_CACHE: cache }, "program.mjs", "native"))[0]?.results).toEqual(RIGHT);
    expect(objectsOf(cache).length).toBeGreaterThan(0);
    const mark = join(folder, `mark-${folders}`);
    plant(cache, objectsOf(cache), mark);
    return { cache, mark };
  }

  it("is compiled again in a folder of one's own", () => {
    const { cache, mark } = plantedCache();
    const [answer] = said(runAs(uid, { TIDEMARK_CACHE: cache }, "program.mjs", "native"));
    expect(answer).toEqual({ results: RIGHT, target: "native", note: null });
    expect(existsSync(mark)).toBe(false);
  });

  it("is left where it is in a folder that others can write", () => {
    const { cache, mark } = plantedCache();
    for (const open of [cache, join(cache, "native")]) {
      chmodSync(open, 0o777);
      const [answer] = said(runAs(uid, { TIDEMARK_CACHE: cache }, "program.mjs", "native"));
      expect(answer).toMatchObject({ results: RIGHT, target: "native" });
      expect(answer?.note).toBe(
        `compiled programs are not cached: ${open}: others can write to it (mode 777; chmod 700)`,
      );
      chmodSync(open, 0o700);
    }
    expect(existsSync(mark)).toBe(false);
  });

  it.skipIf(!isRoot)("is left where it is in somebody else's folder", () => {
    const { cache, mark } = plantedCache();
    chmodSync(cache, 0o777);
    chmodSync(join(cache, "native"), 0o777);
    const [answer] = said(runAs(OTHER, { TIDEMARK_CACHE: cache }, "program.mjs", "auto"));
    expect(answer).toMatchObject({ results: RIGHT, target: "native" });
    expect(answer?.note).toBe(`compiled programs are not cached: ${cache}: it belongs to user ${uid}`);
    expect(existsSync(mark)).toBe(false);
  });
});

describe.skipIf(missing)("processes that begin a cache together", () => {
  it("agree on one key: what any of them compiled is found again", async () => {
    const cache = folderOf(uid, 0o700);
    const env = { PATH: process.env.PATH, TIDEMARK_CACHE: cache };
    const ended = Array.from({ length: 4 }, () => {
      const child = spawn(process.execPath, ["program.mjs", "native"], { cwd: folder, env, stdio: "ignore" });
      return new Promise<number | null>((resolve) => child.on("close", resolve));
    });
    expect(await Promise.all(ended)).toEqual([0, 0, 0, 0]);
    const filesOf = (): readonly string[] =>
      readdirSync(join(cache, "native")).map((name) => `${name} ${statSync(join(cache, "native", name)).ino}`);
    const before = filesOf();
    expect(said(runAs(uid, { TIDEMARK_CACHE: cache }, "program.mjs", "native"))[0]?.results).toEqual(RIGHT);
    expect(filesOf()).toEqual(before);
    expect(readdirSync(cache).sort()).toEqual(["native", "seal-key"]);
  });
});

describe.skipIf(missing)("without a place to write", () => {
  const tidemark = (user: number, env: Env, ...args: readonly string[]): Outcome =>
    runAs(user, env, "bin/tidemark.js", ...args);

  it.skipIf(!isRoot)("a user without home and name runs native code, and is told that it is not kept", () => {
    const [answer] = said(runAs(OTHER, {}, "program.mjs", "auto"));
    expect(answer).toMatchObject({ results: RIGHT, target: "native" });
    expect(answer?.note).toMatch(/^compiled programs are not cached: this user has no home folder; set TIDEMARK_CACHE/);
    const doctor = tidemark(OTHER, {}, "doctor");
    expect(doctor.code).toBe(0);
    expect(doctor.out).toMatch(/cache +not used: this user has no home folder/);
    expect(doctor.out).toMatch(/native +available: .*; compiled programs are not cached: this user has no home folder/);
    const calibrate = tidemark(OTHER, {}, "calibrate", "--quick");
    expect(calibrate).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^the rates are not stored: this user has no/),
    });
    expect(tidemark(OTHER, {}, "bench", "mlp", "--steps", "1", "--target", "auto").code).toBe(0);
  });

  it("auto is WebAssembly, and says why", () => {
    const closed = folderOf(plainUser, 0o500);
    const env = { TIDEMARK_CACHE: join(closed, "cache"), TMPDIR: closed };
    const [answer] = said(runAs(plainUser, env, "program.mjs", "auto"));
    expect(answer).toMatchObject({ results: RIGHT, target: "wasm" });
    const why = `there is no folder for compiled programs: ${closed}/cache: permission denied; ${closed}: permission denied`;
    expect(answer?.note).toBe(`wasm, not native: ${why}`);
    expect(said(runAs(plainUser, env, "program.mjs", "native"))[0]).toMatchObject({
      code: "TargetUnsupported",
      summary: why,
    });
    const bench = tidemark(plainUser, env, "bench", "mlp", "--steps", "1", "--target", "auto");
    expect([bench.code, bench.err]).toEqual([0, expect.stringContaining(`wasm, not native: ${why}\n`)]);
    const refused = tidemark(plainUser, env, "plan", "mlp", "--target", "native");
    expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/^TargetUnsupported: there is no folder/)]);
    const doctor = tidemark(plainUser, env, "doctor");
    expect([doctor.code, doctor.out]).toEqual([0, expect.stringContaining(`native    not available: ${why}`)]);
  });

  it("auto is WebAssembly where files may not grow", () => {
    const cache = folderOf(uid, 0o700);
    const script = `ulimit -f 4; exec "${process.execPath}" program.mjs auto`;
    const env = { PATH: process.env.PATH, TIDEMARK_CACHE: cache, TMPDIR: cache };
    const made = spawnSync("sh", ["-c", script], { cwd: folder, encoding: "utf8", env });
    const [answer] = said({ code: made.status ?? -1, out: made.stdout, err: made.stderr });
    expect(answer).toMatchObject({ results: RIGHT, target: "wasm" });
    expect(answer?.note).toMatch(
      /^wasm, not native: there is no folder for compiled programs: .*files may not be that/,
    );
  });

  it.skipIf(!canMount)("auto is WebAssembly where the disk is full, or is before the program is compiled", () => {
    // what shows that programs can be loaded fits the second, a program does not
    for (const [bytes, ...command] of [
      ["16k", "program.mjs", "auto"],
      ["64k", "bin/tidemark.js", "bench", "mlp", "--steps", "1", "--target", "auto"],
    ] as const) {
      const full = folderOf(uid, 0o700);
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=700`, "tmpfs", full]);
      try {
        const { code, out, err } = runAs(uid, { TIDEMARK_CACHE: join(full, "cache"), TMPDIR: full }, ...command);
        expect(code).toBe(0);
        expect(`${out}${err}`).toMatch(
          /wasm, not native: there is no folder for compiled programs: .*no space is left/,
        );
      } finally {
        execFileSync("umount", [full]);
      }
    }
  });

  it("auto goes over to WebAssembly where the place is lost after the first program", () => {
    const answersOf = (target: string): readonly Said[] => {
      const cache = folderOf(plainUser, 0o700);
      const answers = said(runAs(plainUser, { TIDEMARK_CACHE: cache }, "program.mjs", target, "spoil"));
      // so that it can be removed
      chmodSync(join(cache, "native"), 0o700);
      return answers;
    };
    const answers = answersOf("auto");
    expect(answers.map(({ target, results }) => [target, results?.map((x) => x + 0)])).toEqual([
      ["native", RIGHT],
      ["wasm", [0]],
    ]);
    expect(answers[1]?.note).toMatch(/^wasm, not native: there is no folder for compiled programs: .*\/nowhere/);
    expect(answersOf("native")[1]).toMatchObject({ code: "TargetUnsupported" });
  });
});
