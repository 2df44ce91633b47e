/**
 * @file Programs that were built ahead of time, in plain Node and in a page that has nothing but their files: the bits of `compile`,
 * files that do not depend on when they were made, and what is refused.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";
import { build as bundle } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BuildOptions, type BuiltProgram, buildFiles, parseBuild } from "../src/api/ahead.ts";
import { sourceOfFunction } from "../src/api/ahead-source.ts";
import { plainHost } from "../src/api/host.ts";
import { writeProgram } from "../src/node/build.ts";
import { FILES } from "../src/runtime/ahead/format.ts";
import {
  AHEAD_CASES,
  type AheadCase,
  type AheadOutcome,
  argumentsOf,
  compiledOutcome,
} from "./support/ahead-programs.ts";
import { browserPath, launch, NO_BROWSER } from "./support/browser.ts";
import { patience } from "./support/patience.ts";
import { ROOT } from "./support/project.ts";

const path = browserPath();
if (path === null) {
  if (process.env.CI) throw new Error(NO_BROWSER);
  console.warn(NO_BROWSER);
}

const DRIVE = join(ROOT, "tests", "support", "ahead-drive.mjs");
const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
  ".json": "application/json",
  ".html": "text/html",
};

/** Files of a folder, as any server has them. */
function serve(folder: string): Promise<Server> {
  const server = createServer((request, response) => {
    const name = normalize((request.url ?? "/").replace(/[?#].*/, ""));
    try {
      const bytes = readFileSync(join(folder, name === "/" ? "index.html" : name));
      const type = TYPES[extname(name === "/" ? ".html" : name)] ?? "application/octet-stream";
      response.writeHead(200, { "Content-Type": name === "/" ? "text/html" : type }).end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

interface DrivenOutcome extends AheadOutcome {
  readonly resumed: readonly string[];
  readonly arenaBytes: number;
}

type Outcomes = Readonly<Record<string, DrivenOutcome>>;

describe("a program built ahead of time", () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-ahead-"));
  const built = new Map<string, BuiltProgram>();
  const expected = new Map<string, ReturnType<typeof compiledOutcome>>();
  let runtime: Uint8Array;

  const make = (testCase: AheadCase, options: BuildOptions = {}): BuiltProgram => {
    const { fn, calls, name } = testCase;
    const request = parseBuild({ name, ...testCase.options, ...options });
    const source = sourceOfFunction(fn, argumentsOf(testCase, calls[0] ?? []), request, request.resident);
    return buildFiles(source, request, runtime, plainHost());
  };

  beforeAll(async () => {
    const { AHEAD_OUTPUT, aheadRuntime } = await import(new URL("../scripts/ahead-runtime.mjs", import.meta.url).href);
    const { output } = await bundle({ ...aheadRuntime(), output: AHEAD_OUTPUT, write: false });
    runtime = new TextEncoder().encode(output[0].code);
    for (const testCase of AHEAD_CASES) {
      expected.set(testCase.name, compiledOutcome(testCase, false));
      built.set(testCase.name, make(testCase));
      await writeProgram(join(folder, testCase.name), built.get(testCase.name) as BuiltProgram);
    }
  }, patience(120_000));

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const cases = AHEAD_CASES.map(({ name, calls, options }) => ({ name, calls, hasState: Boolean(options.donate) }));

  const requireSame = (outcomes: Outcomes): void => {
    for (const { name } of AHEAD_CASES) {
      const outcome = outcomes[name] as DrivenOutcome;
      const { results, state } = expected.get(name) as AheadOutcome;
      expect([name, outcome.results], name).toEqual([name, results]);
      expect([name, outcome.state], name).toEqual([name, state]);
      expect([name, outcome.resumed], name).toEqual([name, state]);
    }
  };

  it("has the bits of `compile` in plain Node, with the arena of its plan", () => {
    writeFileSync(join(folder, "cases.json"), JSON.stringify(cases));
    const said = execFileSync(process.execPath, [DRIVE, folder, join(folder, "cases.json")], { encoding: "utf8" });
    const outcomes = JSON.parse(said) as Outcomes;
    requireSame(outcomes);
    for (const name of ["training", "small-gpt", "loop", "mixed"]) {
      expect(outcomes[name]?.arenaBytes).toBe(expected.get(name)?.arenaBytes);
    }
    expect(outcomes["small-gpt"]?.arenaBytes).toBeLessThanOrEqual(140_000);
    expect(built.get("small-gpt")?.program.plan.strategy).not.toBe("store-all");
  });

  it.runIf(path !== null)(
    "has them in a page that has nothing else",
    async () => {
      writeFileSync(join(folder, "drive.js"), readFileSync(DRIVE));
      writeFileSync(join(folder, "index.html"), "<!doctype html><title>ahead</title>");
      const [server, browser] = await Promise.all([serve(folder), launch(path as string)]);
      try {
        const page = await browser.newPage();
        const { address, port } = server.address() as AddressInfo;
        const asked: string[] = [];
        page.on("request", (request) => asked.push(new URL(request.url()).pathname));
        await page.goto(`http://${address}:${port}/`);
        const code = `import("/drive.js").then(({ driveAll }) => driveAll(location.href, ${JSON.stringify(cases)}))`;
        requireSame(await page.evaluate<Outcomes>(code));
        const names = new Set(asked.filter((name) => name.startsWith("/training/")).map((name) => name.slice(10)));
        expect([...names].sort()).toEqual(
          [FILES.index, FILES.program, FILES.code, FILES.runtime, FILES.weights].sort(),
        );
      } finally {
        await browser.close();
        server.close();
      }
    },
    patience(120_000),
  );

  it("is the same files every time", () => {
    for (const testCase of AHEAD_CASES.filter(({ name }) => name !== "small-gpt")) {
      const again = make(testCase).files;
      for (const [name, bytes] of (built.get(testCase.name) as BuiltProgram).files) {
        expect(Buffer.compare(bytes, again.get(name) as Uint8Array), `${testCase.name}/${name}`).toBe(0);
      }
    }
  });

  it("has types that fit its function", () => {
    const use = `import { load, type NetValues } from "./index.js";
const run = await load();
const { logits, best }: { logits: Float32Array; best: Float32Array } = run(new Float32Array(84));
const net: NetValues = run.read("net");
run.write("net", { layers: [{ w: [[1]], b: [2] }, net.layers[1]] });
console.log(logits, best, run.read<Float32Array>("net.layers.0.w"), run.inputs[0]?.shape);
await load({ weights: run.save() });
// @ts-expect-error a text is no tensor
run("x");
// @ts-expect-error another type of elements
run(new Float64Array(84));
// @ts-expect-error no layers
run.write("net", {});
`;
    const forward = join(folder, "forward");
    writeFileSync(join(forward, "use.ts"), use);
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const options =
      "--noEmit --ignoreConfig --strict --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom";
    const args = [tsc, ...options.split(" "), join(forward, "use.ts")];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, ""]);
  });

  it("comes with a runtime of at most 15 kB after gzip", () => {
    const bytes = gzipSync(runtime, { level: 9 }).length;
    console.log(`runtime.js: ${runtime.length} bytes, ${bytes} after gzip`);
    expect(bytes).toBeLessThanOrEqual(15_000);
    const kB = `runtime of ${Math.round(bytes / 1000)} kB`;
    for (const page of ["README.md", "docs/ahead-of-time.md", "docs/choosing.md", "docs/faq.md"]) {
      expect(readFileSync(join(ROOT, page), "utf8"), page).toContain(kB);
    }
  });
});
