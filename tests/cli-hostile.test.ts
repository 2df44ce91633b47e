/**
 * @file The command as installed, with inputs that are no files or never end, and modules that throw what is no error or never
 * finish: exit code 1 and a message, and it ends. A command that does not is killed after a minute, and fails here.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPackage } from "./support/build.ts";
import { expectRefusal, type Outcome } from "./support/outcome.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-hostile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  buildPackage(join(folder, "dist"));
  mkdirSync(join(folder, "bin"));
  cpSync(join(ROOT, "bin", "tidemark.js"), join(folder, "bin", "tidemark.js"));
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"));
});

function command(env: Readonly<Record<string, string>>, ...args: readonly string[]): Outcome {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--max-old-space-size=512", "bin/tidemark.js", ...args],
    {
      ...{ cwd: folder, encoding: "utf8", timeout: patience(60_000), killSignal: "SIGKILL" },
      env: { ...process.env, TIDEMARK_CACHE: join(folder, "cache"), ...env },
    },
  );
  return { code: status ?? -1, out: stdout, err: stderr };
}

const tidemark = (...args: readonly string[]): Outcome => command({}, ...args);

const named = (name: string, make: (path: string) => void): string => {
  make(join(folder, name));
  return name;
};

describe("an input that is no file", () => {
  const folderNamed = (name: string): string => named(name, (path) => mkdirSync(path));
  const pipeNamed = (name: string): string => named(name, (path) => execFileSync("mkfifo", [path]));
  const zerosNamed = (name: string): string => named(name, (path) => symlinkSync("/dev/zero", path));
  const hugeNamed = (name: string): string =>
    named(name, (path) => {
      writeFileSync(path, "");
      truncateSync(path, 2 ** 40);
    });

  /** Commands that read a file whole, by the kind that they read. */
  const READERS: readonly (readonly [string, readonly string[]])[] = [
    [".csv", ["pack"]],
    [".json", ["remat", "--budget", "1MB"]],
    [".ir", ["plan"]],
    [".ir", ["opt", "all"]],
    [".mjs", ["plan"]],
    [".mjs", ["bench"]],
    [".pickle", ["view", "--html", "page.html"]],
  ];

  it.each(READERS)("is refused: %s by %j", (kind, words) => {
    const start = `cannot read ${words[0]}`;
    const [name, ...rest] = words;
    for (const [what, file] of [
      ["it is a folder", folderNamed(`${name}-folder${kind}`)],
      ["it is a pipe, which may never end", pipeNamed(`${name}-pipe${kind}`)],
      ["it is a device, not a file", zerosNamed(`${name}-zeros${kind}`)],
      ["it has 1024 GiB, and at most", hugeNamed(`${name}-huge${kind}`)],
    ] as const) {
      const args = name === "opt" ? ["opt", ...rest, file] : [name as string, file, ...rest];
      expectRefusal(tidemark(...args), `UsageError: ${start}-${file.slice((name as string).length + 1)}: ${what}`);
    }
  });

  it("is refused under the names of the system", () => {
    expectRefusal(tidemark("pack", "/dev/zero"), "UsageError: cannot read /dev/zero: it is a device, not a file");
    expectRefusal(tidemark("remat", "/dev/zero", "--budget", "1"), "UsageError: cannot read /dev/zero: it is a device");
    expectRefusal(tidemark("pack", "/"), "UsageError: cannot read /: it is a folder");
    expectRefusal(tidemark("pack", "none.csv"), "UsageError: cannot read none.csv: there is no such file or folder");
  });
});

describe("a module", () => {
  const module = (text: string): string => {
    writeFileSync(join(folder, "module.mjs"), text);
    return "module.mjs";
  };

  const THROWN: readonly (readonly [string, string])[] = [
    ["null", "it threw null"],
    ["undefined", "it threw undefined"],
    ['"a text"', "it threw a text"],
    ['Symbol("s")', "it threw Symbol(s)"],
    ["Object.create(null)", "it threw something that cannot be shown"],
    ["new Proxy({}, { get() { throw 1; } })", "it threw"],
    ['Object.assign(new Error("odd"), { stack: undefined })', "odd"],
    ['Object.assign(new Error("odd"), { stack: 5 })', "odd"],
    ['Object.defineProperty(new Error("odd"), "stack", { get() { throw 1; } })', "odd"],
    ['Object.defineProperty(new Error(), "message", { get() { throw 1; } })', "it threw"],
    ['(Error.stackTraceLimit = 0, new Error("odd"))', "odd"],
  ];

  it.each(THROWN)("may throw %s when it is loaded", (thrown, said) => {
    const path = module(`throw ${thrown};`);
    expectRefusal(tidemark("plan", path), `UnknownProgram: module.mjs could not be loaded: ${said}`);
  });

  it.each(THROWN)("may throw %s when its functions run", (thrown, said) => {
    for (const [part, words] of [
      ["init", "plan"],
      ["batch", "trace"],
      ["step", "bench"],
    ] as const) {
      const functions = {
        init: "() => ({})",
        batch: "() => []",
        step: "(s) => [s, s]",
        [part]: `() => { throw ${thrown}; }`,
      };
      const members = Object.entries(functions).map(([name, text]) => `${name}: ${text}`);
      const outcome = tidemark(words, module(`export const program = { ${members.join(", ")} };`));
      expectRefusal(outcome, "UnknownProgram: ");
      expect(outcome.err).toContain(said);
    }
  });

  it("is told which function threw something that has no place", () => {
    const path = module("export const program = { init() { throw null; }, batch: () => [], step: (s) => [s, s] };");
    expectRefusal(tidemark("plan", path), "UnknownProgram: module: init(): it threw null");
  });

  it.each([
    [".", "it is a folder"],
    ["/dev/zero", "it is a device, not a file"],
  ])("is not %s", (path, why) => {
    expectRefusal(tidemark("plan", path), `UsageError: cannot read ${path}: ${why}`);
  });

  it("may fail in Node's own functions, which is its own mistake", () => {
    const path = module(`import { readFileSync } from "node:fs";
export const program = { init: () => ({ w: readFileSync("none.bin") }), batch: () => [], step: (s) => [s, s] };`);
    const { code, err } = tidemark("plan", path);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^UnknownProgram: Error: ENOENT.*\n {2}at module.mjs:2:\d+/),
    ]);
  });

  it("may throw later, from a timer or a promise of its own", () => {
    for (const text of ["setTimeout(() => { throw null; }, 1)", "Promise.reject(null)", 'Promise.reject("late")']) {
      const outcome = tidemark("plan", module(`${text}; await new Promise((done) => setTimeout(done, 30_000));`));
      expectRefusal(outcome, "UnknownProgram: ");
    }
  });

  it("may wait for what never comes, with nothing left to bring it about", () => {
    const path = module("await new Promise(() => {});");
    const start = "UnknownProgram: module.mjs could not be loaded: its top level awaits a promise";
    expectRefusal(tidemark("plan", path), start);
    expectRefusal(command({ TIDEMARK_LOAD_SECONDS: "0.5" }, "view", path), start);
  });

  it("may wait for what never comes, and be busy meanwhile", () => {
    const path = module("setInterval(() => {}, 10); await new Promise(() => {});");
    const start = "UnknownProgram: module.mjs could not be loaded: its top level has not run within 0.5 s";
    expectRefusal(command({ TIDEMARK_LOAD_SECONDS: "0.5" }, "plan", path), start);
    expectRefusal(
      command({ TIDEMARK_LOAD_SECONDS: "soon" }, "plan", path),
      "UsageError: TIDEMARK_LOAD_SECONDS is soon",
    );
  });

  it("may leave something running, which does not keep the command", () => {
    const path = module(`import { tensor } from "./dist/api/index.js";
setInterval(() => {}, 10);
export const program = { init: () => ({ w: tensor([1]) }), batch: () => [], step: (s) => [s, s.w.sum()] };`);
    expect(tidemark("plan", path, "--json")).toMatchObject({ code: 0, out: expect.stringMatching(/^\{.*\}\n$/s) });
  });
});
