/** @file The command line: what it prints, where, and with which exit code. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { main } from "../src/cli/main.ts";
import { parseCsv } from "../src/plan/csv.ts";
import { readPlanJson } from "../src/plan/read-json.ts";
import { tidemark } from "./support/command.ts";
import { expectRefusal, lastLine } from "./support/outcome.ts";
import { ROOT } from "./support/project.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const GRAPH = `func twice(x: f32[32,64], w: f32[64,16]) {
  a: f32[32,16] = matmul(x, w)
  b: f32[32,16] = matmul(x, w)
  y: f32[32,16] = add(a, b)
  return y
}
`;

const PLAN_NUMBERS = [
  ...["arenaBytes", "lowerBoundBytes", "persistentBytes", "storeAllArenaBytes", "nodes", "recomputedNodes"],
  ...["recomputedFlops", "totalFlops", "predictedMs", "planMs", "minimumBudgetBytes"],
  ...["movedBytes", "kernelBytes", "leastBytes"],
];

describe("tidemark plan", () => {
  it("gives every field of the contract", async () => {
    const { code, out, err } = await tidemark("plan", "mlp", "--json");
    expect([code, err]).toEqual([0, ""]);
    const figures = lastLine(out);
    expect(figures).toMatchObject({ program: "mlp", target: "wasm", strategy: "store-all", budgetBytes: null });
    expect(figures.feasible).toBe(true);
    for (const name of PLAN_NUMBERS) expect(figures[name], name).toEqual(expect.any(Number));
    // parameters, two moments each, and the step counter
    const state = 3 * 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10) + 4;
    expect(figures.persistentBytes).toBe(state);
    expect(figures.arenaBytes).toBeGreaterThan(state);
    expect(figures.arenaBytes).toBeGreaterThanOrEqual(figures.lowerBoundBytes as number);
    // three products forward, five backward, two flops for each multiply-add
    expect(figures.totalFlops).toBeGreaterThan(2 * 128 * (2 * 784 * 512 + 3 * 512 * 512 + 3 * 512 * 10));
  });

  it("says what of the persistent memory is parameters, optimizer state and constants", async () => {
    const figures = lastLine((await tidemark("plan", "cnn", "--json")).out);
    const parameters = 4 * (32 * 9 + 32 + 64 * 288 + 64 + 64 * 144 * 128 + 128 + 1280 + 10);
    // momentum for every parameter, and the step counter
    expect(figures).toMatchObject({ parameterBytes: parameters, optimizerBytes: parameters + 4, constantBytes: 0 });
    expect(figures.persistentBytes).toBe(2 * parameters + 4);
    expect(figures.ephemeralBytes).toBe((figures.arenaBytes as number) - (figures.persistentBytes as number));
  });

  it("plans what is too large to run here, and bench refuses it", async () => {
    const { code, out } = await tidemark("plan", "gpt2-small", "--json");
    expect(code).toBe(0);
    const figures = lastLine(out);
    expect(figures.parameterBytes).toBe(4 * 124_439_808);
    expect(figures.arenaBytes).toBeGreaterThan(2 ** 32);
    expectRefusal(await tidemark("bench", "gpt2-small"), "TargetUnsupported: gpt2-small needs an arena of");
  });

  it("plans a program with the casts of autocast, and says what --products is not", async () => {
    const whole = lastLine((await tidemark("plan", "mlp", "--json")).out);
    const cast = lastLine((await tidemark("plan", "mlp", "--autocast", "bf16", "--json")).out);
    expect(cast.arenaBytes).toBeLessThan(whole.arenaBytes as number);
    expect(cast.persistentBytes).toBe(whole.persistentBytes);
    expectRefusal(
      await tidemark("plan", "mlp", "--products", "bf16"),
      "UsageError: --products bf16: it says what the target",
    );
    expectRefusal(await tidemark("plan", "mlp", "--stream", "bf16"), "UsageError: --stream without --autocast");
  });

  it("prints the peak by the extents of a named dimension", async () => {
    const { code, out } = await tidemark("plan", "gpt", "--shapes", "T=16,8");
    expect(code).toBe(0);
    expect(out).toMatch(/^T = 8 +[\d,]+ bytes .*\nT = 16 .* for each more T\none arena of [\d.]+ MiB for all of them/);
    const family = lastLine((await tidemark("plan", "gpt", "--shapes", "T=8,16", "--json")).out);
    const single = lastLine((await tidemark("plan", "gpt", "--shapes", "T=16", "--json")).out);
    expect(family.arenaBytes).toBe(single.arenaBytes);
    expect((await tidemark("plan", "mlp", "--shapes", "T=8")).err).toContain("mlp names no axes");
    expect((await tidemark("plan", "gpt", "--shapes", "T:8")).err).toContain("UsageError: --shapes T:8");
    expect((await tidemark("plan", "gpt", "--shapes", "T=8", "--map")).err).toContain("--shapes with --map");
    expect((await tidemark("plan", "gpt", "--shapes", "B=8")).err).toContain(
      "axes names T, which shapes has no extents for",
    );
  });

  it("explains a value or a buffer", async () => {
    const byPath = await tidemark("plan", "mlp", "--explain", "state.params.layers[0].w");
    expect(byPath.out).toMatch(/^state_params_layers_0_w: f32\[784,512\] is at b\d+\[\d+:\d+\], 1,605,632 bytes\n/);
    expect(byPath.out).toContain("replaces it in the same storage");
    const byBuffer = await tidemark("plan", "mlp", "--explain", "b0");
    expect(byBuffer.out).toMatch(/^b0 is at \[0:\d+\], .* bytes, for steps \[0, \d+\): persistent\n/);
    expectRefusal(
      await tidemark("plan", "mlp", "--explain", "nothing"),
      "InvalidArgument: explain: mlp stores no value",
    );
  });

  it("takes a budget that is just enough and refuses one that is a byte short", async () => {
    const { arenaBytes } = lastLine((await tidemark("plan", "mlp", "--json")).out);
    const enough = await tidemark("plan", "mlp", "--json", "--budget", String(arenaBytes));
    expect(enough.code).toBe(0);
    expect(lastLine(enough.out)).toMatchObject({ feasible: true, budgetBytes: arenaBytes, arenaBytes });
    const budget = (arenaBytes as number) - 1;
    const short = await tidemark("plan", "mlp", "--json", "--budget", String(budget));
    expectRefusal(short, "PlanInfeasible: mlp needs");
    expect(lastLine(short.out)).toMatchObject({ feasible: false, budgetBytes: budget, minimumBudgetBytes: arenaBytes });
    expect((await tidemark("plan", "mlp", "--budget", String(budget))).out).toBe("");
  });

  it("computes again what does not fit, within the budget and at the predicted cost", async () => {
    const all = lastLine((await tidemark("plan", "cnn", "--json")).out);
    const tight = lastLine((await tidemark("plan", "cnn", "--json", "--budget", "13.8MB")).out);
    expect(tight).toMatchObject({ feasible: true, budgetBytes: 13.8e6 });
    expect(tight.arenaBytes).toBeLessThanOrEqual(13.8e6);
    expect(tight.storeAllArenaBytes).toBe(all.arenaBytes);
    expect(tight.recomputedNodes).toBeGreaterThan(0);
    expect(tight.recomputedFlops).toBeGreaterThan(0);
    expect(tight.predictedMs).toBeGreaterThan(all.predictedMs as number);
    const least = lastLine((await tidemark("plan", "cnn", "--json", "--budget", "min")).out);
    expect(least.arenaBytes).toBe(all.minimumBudgetBytes);
    const slow = lastLine((await tidemark("plan", "cnn", "--json", "--max-slowdown", "1.05")).out);
    expect(slow.predictedMs).toBeLessThanOrEqual(1.05 * (all.predictedMs as number));
    expect(slow.arenaBytes).toBeLessThan(all.arenaBytes as number);
    const text = (await tidemark("plan", "cnn", "--budget", "13.8MB")).out;
    expect(text).toMatch(/kernels recompute something \([\w-]+\): 0\.\d+ × the arena/);
    // With smaller kernels all can be stored in a little less than the fastest kernels take.
    const stored = lastLine((await tidemark("plan", "cnn", "--json", "--budget", "14MB")).out);
    expect(stored).toMatchObject({ feasible: true, strategy: "store-all", recomputedNodes: 0 });
    expect(stored.arenaBytes).toBeLessThanOrEqual(14e6);
  });

  it("plans by the strategy that is named", async () => {
    const { strategy } = lastLine((await tidemark("plan", "cnn", "--json", "--strategy", "selective")).out);
    expect(strategy).toBe("selective");
    expectRefusal(
      await tidemark("plan", "cnn", "--budget", "min", "--max-slowdown", "1.1"),
      "UsageError: --budget min with --max-slowdown",
    );
    expectRefusal(await tidemark("plan", "cnn", "--max-slowdown", "0.3"), "UsageError: --max-slowdown 0.3");
  });

  it("shows report, chart, map and text to people", async () => {
    const path = file("twice.ir", GRAPH);
    const { code, out } = await tidemark("plan", path, "--map", "--text");
    expect(code).toBe(0);
    for (const part of ["func twice(", "@ b", "0x0", "× bound", "planned in"]) expect(out).toContain(part);
    const { out: json } = await tidemark("plan", path, "--json");
    expect(lastLine(json)).toMatchObject({ program: "twice", persistentBytes: 0, feasible: true });
  });

  it("reads sizes with units and refuses what is none", async () => {
    const { out } = await tidemark("plan", file("twice.ir", GRAPH), "--budget", "1.5MiB", "--json");
    expect(lastLine(out).budgetBytes).toBe(1.5 * 2 ** 20);
    expectRefusal(await tidemark("plan", "mlp", "--budget", "lots"), 'UsageError: --budget: byte size "lots"');
  });

  it("suggests names for a program that does not exist", async () => {
    expectRefusal(await tidemark("plan", "lsmt"), "UnknownProgram: there is no program lsmt");
    expect((await tidemark("plan", "lsmt")).err).toContain("did you mean lstm?");
    expect((await tidemark("plan", "resnet51")).err).toContain("built in are mlp, cnn, lstm, gpt, chain64, chain256");
    expectRefusal(await tidemark("plan", "./none.mjs"), "UnknownProgram: there is no file ./none.mjs");
    expectRefusal(await tidemark("plan", join(folder, "none.ir")), "UnknownProgram: there is no file");
    expectRefusal(await tidemark("plan", file("bad.ir", "func f( {")), "ParseError");
    expectRefusal(await tidemark("plan", file("two.ir", GRAPH + GRAPH.replace("twice", "again"))), "UnknownProgram");
  });

  it("names what this version has for a target or strategy that it does not", async () => {
    expectRefusal(await tidemark("plan", "mlp", "--target", "tpu"), "UsageError: --target tpu");
    expectRefusal(await tidemark("plan", "mlp", "--strategy", "magic"), "UsageError: --strategy magic");
  });
});

describe("tidemark bench", () => {
  it("gives the plan's fields, times, memory, losses and a hash of the state", async () => {
    const { code, out, err } = await tidemark("bench", "mlp", "--steps", "4", "--json");
    expect(code).toBe(0);
    expect(err).toContain("mlp: compiled in");
    const figures = lastLine(out);
    for (const name of [...PLAN_NUMBERS, "compileMs", "moduleBytes", "kernelFunctions", "kernelCalls"]) {
      expect(figures[name], name).toEqual(expect.any(Number));
    }
    expect(figures.threads).toBe(1);
    expect(figures.stateHash).toMatch(/^[0-9a-f]{64}$/);
    const { median, p10, p90 } = figures.stepMs as Record<string, number>;
    expect(p10! <= median! && median! <= p90!).toBe(true);
    const losses = figures.losses as readonly number[];
    expect(losses).toHaveLength(4);
    expect(losses[0]).toBeCloseTo(2.62625, 4);
    expect(losses[3]).toBeLessThan(losses[0] as number);
    if (process.platform === "linux") {
      expect(figures.peakRssBytes as number).toBeGreaterThanOrEqual(figures.baselineRssBytes as number);
    }
  });

  it("ends in the same bits in every run on any number of threads, and in others after other steps", async () => {
    const benched = async (steps: number, threads = 1): Promise<Record<string, unknown>> =>
      lastLine((await tidemark("bench", "mlp", "--steps", `${steps}`, "--threads", `${threads}`, "--json")).out);
    const { stateHash: two } = await benched(2);
    expect((await benched(2)).stateHash).toBe(two);
    expect(await benched(2, 2)).toMatchObject({ stateHash: two, threads: 2 });
    expect((await benched(3)).stateHash).not.toBe(two);
  });

  it("refuses what it cannot run", async () => {
    expectRefusal(await tidemark("bench", "mlp", "--steps", "0"), "UsageError: --steps 0");
    expectRefusal(await tidemark("bench", "mlp", "--steps", "-5"), "UsageError: --steps -5");
    expectRefusal(await tidemark("bench", "mlp", "--steps=-5"), "UsageError: --steps -5");
    expectRefusal(await tidemark("plan", "mlp", "--budget", "-5"), 'UsageError: --budget: byte size "-5" is negative');
    expectRefusal(await tidemark("bench", file("twice.ir", GRAPH)), "UsageError: bench: twice is a graph");
    expectRefusal(await tidemark("bench", "mlp", "--budget", "1MB"), "PlanInfeasible: mlp needs");
  });
});

describe("tidemark opt and trace", () => {
  it("print graphs after passes", async () => {
    const path = file("twice.ir", GRAPH);
    expect((await tidemark("trace", path)).out).toBe(GRAPH);
    const { out } = await tidemark("opt", "cse,dce", path);
    expect(out).toContain("add(a, a)");
    expect((await tidemark("trace", path, "--print-after", "cse")).out).toBe(
      `// after cse\n${GRAPH.replace(/ {2}b: .*\n/, "").replace("add(a, b)", "add(a, a)")}\n`,
    );
    expect((await tidemark("trace", path, "--print-after", "all")).out).toContain("// after canonicalize, run 1 of 3");
  });

  it("print the traced step of a program, which reads back", async () => {
    const { out } = await tidemark("trace", "mlp");
    const path = file("mlp.ir", out);
    expect((await tidemark("trace", path)).out).toBe(out);
  });

  it("list the passes and know their names", async () => {
    const { out } = await tidemark("opt", "--list");
    expect(out.split("\n").slice(0, 2)).toEqual(["erase-variance", "inline"]);
    expectRefusal(await tidemark("opt", "cze", file("twice.ir", GRAPH)), "UsageError: there is no pass cze");
    expectRefusal(await tidemark("opt", "cse"), "UsageError: opt: FILE.ir missing");
    expectRefusal(await tidemark("opt", "cse", folder), `UsageError: cannot read ${folder}: it is a folder`);
  });
});

describe("tidemark pack", () => {
  const CSV = "id,lower,upper,size\na,0,2,4\nb,1,3,4\nc,2,4,4\n";

  it("places buffers and writes their offsets", async () => {
    const [path, output] = [file("in.csv", CSV), join(folder, "out.csv")];
    const { code, out } = await tidemark("pack", path, "--json", "--output", output);
    expect(code).toBe(0);
    expect(lastLine(out)).toMatchObject({
      ...{ buffers: 3, capacity: null, lowerBoundBytes: 8, heightBytes: 8, feasible: true, proven: true },
    });
    expect(readFileSync(output, "utf8")).toMatch(/^id,lower,upper,size,offset\na,0,2,4,\d\n/);
  });

  it("refuses a capacity that is too small", async () => {
    const outcome = await tidemark("pack", file("in.csv", CSV), "--json", "--capacity", "7");
    expectRefusal(outcome, "PlanInfeasible: the buffers were placed in 8 bytes, the capacity is 7");
    expect(lastLine(outcome.out)).toMatchObject({ feasible: false, proven: true });
  });

  it("refuses files that it cannot read or write, and ids that come twice", async () => {
    const nowhere = join(folder, "none", "out.csv");
    expectRefusal(await tidemark("pack", folder), `UsageError: cannot read ${folder}: it is a folder`);
    expectRefusal(await tidemark("pack", nowhere), `UsageError: cannot read ${nowhere}: there is no such file`);
    expectRefusal(
      await tidemark("pack", file("in.csv", CSV), "--output", nowhere),
      `UsageError: cannot write ${nowhere}: there is no such file or folder`,
    );
    expectRefusal(
      await tidemark("pack", file("in.csv", CSV), "--capacity", "some"),
      "UsageError: --capacity: byte size",
    );
    const twice = file("twice.csv", `${CSV}a,5,6,1\n`);
    expectRefusal(await tidemark("pack", twice), "ParseError: csv: line 5: the id a is already used in line 2");
  });
});

describe("tidemark curve", () => {
  it("gives every strategy's plans with their budgets, arenas and times", async () => {
    const { code, out } = await tidemark("curve", "cnn", "--points", "3", "--json");
    expect(code).toBe(0);
    const { points, lowerBoundBytes, storeAllArenaBytes } = lastLine(out) as {
      points: {
        strategy: string;
        arenaBytes: number;
        predictedMs: number;
        recomputedFlops: number;
        isBest: boolean;
      }[];
      lowerBoundBytes: number;
      storeAllArenaBytes: number;
    };
    expect(new Set(points.map((p) => p.strategy)).size).toBeGreaterThan(5);
    for (const { arenaBytes, predictedMs, recomputedFlops } of points) {
      expect(arenaBytes).toBeGreaterThanOrEqual(lowerBoundBytes);
      expect(predictedMs).toBeGreaterThan(0);
      expect(recomputedFlops).toBeGreaterThanOrEqual(0);
    }
    const best = points.filter((p) => p.isBest);
    for (const p of points) {
      const beaten = points.some((q) => q.arenaBytes <= p.arenaBytes && q.predictedMs < p.predictedMs * (1 - 1e-9));
      if (beaten) expect(best).not.toContain(p);
    }
    expect(best.length).toBeGreaterThan(1);
    const auto = points.filter((p) => p.strategy === "auto").map((p) => p.arenaBytes);
    expect(auto[0]).toBe(storeAllArenaBytes);
    expect([...auto].sort((a, b) => b - a)).toEqual(auto);
    const solved = await tidemark(
      "curve",
      file("solved.ir", GRAPH),
      "--points",
      "2",
      "--strategies",
      "optimal",
      "--json",
    );
    expect(lastLine(solved.out).points).toEqual([
      expect.objectContaining({ strategy: "optimal", gap: 0, proven: true }),
    ]);
    expectRefusal(
      await tidemark("curve", "cnn", "--strategies", "magic"),
      "UsageError: --strategies: there is no magic",
    );
  });
});

describe("tidemark curve as text", () => {
  it("has one line for equal plans, with a mark for those that no other beats", async () => {
    const { out } = await tidemark(
      "curve",
      file("curve.ir", GRAPH),
      "--points",
      "4",
      "--strategies",
      "store-all,sqrt,auto",
    );
    const lines = out.trimEnd().split("\n");
    const plans = lines.filter((line) => line.includes("█"));
    const figures = plans.map((line) => line.slice(2).replace(/█.*/, ""));
    expect(new Set(figures).size).toBe(figures.length);
    expect(plans[0]).toMatch(/^.* 1\.000 × .* 1\.000 × .*store-all.*auto$/);
    const best = plans.filter((line) => line.startsWith("*")).length;
    expect(best).toBeGreaterThan(0);
    expect(lines.at(-2)).toBe(`* ${best} of ${plans.length} plans that no other beats: none is smaller and as fast`);
  });
});

describe("tidemark view", () => {
  it("writes one file for a program, and for the plan file that plan writes", async () => {
    const [plan, trace, csv] = ["plan.json", "trace.json", "placed.csv"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const files = ["--plan-json", plan, "--chrome-trace", trace, "--csv", csv];
    const { out } = await tidemark("plan", file("view.ir", GRAPH), "--json", ...files);
    const { arenaBytes } = lastLine(out);
    expect(readPlanJson(readFileSync(plan, "utf8")).heightBytes).toBe(arenaBytes);
    const { traceEvents } = JSON.parse(readFileSync(trace, "utf8")) as { traceEvents: { ph: string; dur?: number }[] };
    const slices = traceEvents.filter(({ ph }) => ph === "X");
    expect(slices.length).toBeGreaterThan(0);
    expect(slices.every(({ dur }) => (dur ?? 0) > 0)).toBe(true);
    const { problem, offsets } = parseCsv(readFileSync(csv, "utf8"));
    const tops = problem.buffers.map(({ bytes }, i) => bytes + (offsets?.[i] ?? 0));
    expect(Math.max(...tops)).toBeLessThanOrEqual(arenaBytes as number);
    const page = join(folder, "page.html");
    for (const words of [[file("view.ir", GRAPH)], [plan], [csv], [plan, plan]]) {
      const { code, err } = await tidemark("view", ...words, "--html", page);
      expect([code, err]).toEqual([0, `${page}: open it in a browser\n`]);
      expect(readFileSync(page, "utf8")).toMatch(/^<!doctype html>.*<script>.+<\/script>\n<\/body>\n<\/html>\n$/s);
    }
  });

  it("refuses files that it cannot show, with what is wrong with them", async () => {
    expectRefusal(await tidemark("view", join(folder, "gone.json")), "UsageError: cannot read");
    expectRefusal(await tidemark("view", file("cut.json", '{"version": 1, "na')), "ParseError: plan file: not JSON");
    expectRefusal(await tidemark("view", file("new.json", '{"version": 7}')), "ParseError: plan file: version 7");
    expectRefusal(await tidemark("view", file("no.json", "[1, 2]")), "ParseError: plan file: there is no version");
    expectRefusal(
      await tidemark("view", file("evil.pickle", "cos\nsystem\n.")),
      "ParseError: pickle: the instruction GLOBAL",
    );
    expectRefusal(await tidemark("view", file("bare.csv", "id,lower,upper,size\na,0,1,4\n")), "ParseError: csv:");
    expectRefusal(await tidemark("view", "no-program"), "UnknownProgram: there is no program no-program");
    expectRefusal(await tidemark("view", "mlp", "--port", "x"), "UsageError: --port x");
    const nowhere = join(folder, "no", "page.html");
    expectRefusal(await tidemark("view", file("view.ir", GRAPH), "--html", nowhere), "UsageError: cannot write");
  });
});

describe("tidemark build", () => {
  it("refuses what a build is not for", async () => {
    const graph = file("build.ir", GRAPH);
    const out = join(folder, "built");
    expectRefusal(await tidemark("build", graph), "UsageError: build: --out is missing");
    expectRefusal(
      await tidemark("build", graph, "--out", out, "--target", "native"),
      "TargetUnsupported: build: programs are built for wasm",
    );
    expectRefusal(
      await tidemark("build", graph, "--out", out, "--threads", "2"),
      "TargetUnsupported: build: programs are built for one thread",
    );
    expectRefusal(await tidemark("build", graph, "--out", out, "--budget", "1KB"), "PlanInfeasible");
    expectRefusal(await tidemark("build", "nothing", "--out", out), "UnknownProgram: there is no program nothing");
  });
});

describe("the command line", () => {
  it("explains itself and every command", async () => {
    const { code, out } = await tidemark("--help");
    expect(code).toBe(0);
    const names = [...out.matchAll(/^ {2}([a-z]+) {2,}/gm)].map((match) => match[1] as string);
    const commands = names.slice(0, names.indexOf("mlp"));
    expect(commands).toEqual([
      "plan",
      "view",
      "playground",
      "bench",
      "build",
      "curve",
      "fit",
      "scale",
      "tape",
      "trace",
      "import",
      "export",
      "opt",
      "pack",
      "remat",
      "revolve",
      "calibrate",
      "doctor",
    ]);
    for (const name of commands) {
      const help = await tidemark(name, "--help");
      expect([help.code, help.err]).toEqual([0, ""]);
      expect(help.out).toContain(`usage: tidemark ${name}`);
      expect(await tidemark(name, "-h")).toEqual(help);
    }
  });

  it("has the version of the package", async () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect(await tidemark("--version")).toEqual({ code: 0, out: `${manifest.version}\n`, err: "" });
  });

  it("refuses commands, options and arguments that it does not know", async () => {
    expectRefusal(await tidemark(), "UsageError: no command given");
    expectRefusal(await tidemark("paln", "mlp"), "UsageError: there is no command paln");
    expectRefusal(await tidemark("plan"), "UsageError: plan: PROGRAM missing");
    expectRefusal(await tidemark("plan", "mlp", "cnn"), "UsageError: plan: unexpected argument cnn");
    expectRefusal(await tidemark("plan", "mlp", "--jsno"), "UsageError: plan: unknown option --jsno");
    expectRefusal(await tidemark("plan", "mlp", "--budget"), "UsageError: plan: Option '--budget <value>'");
  });

  it("exits with 2 and a stack for what is not the user's mistake", async () => {
    let err = "";
    const broken = { out: undefined as never, err: (text: string) => (err += text) };
    expect(await main(["--version"], broken)).toBe(2);
    expect(err).toMatch(/^TypeError: .*\n\s+at .*main\.ts/);
  });

  it("tells what a module must export", async () => {
    for (const name of ["plan", "bench", "trace"]) {
      const { out } = await tidemark(name, "--help");
      for (const part of ["init()", "batch()", "step(state, ...batch)", "[next state, loss]"])
        expect(out).toContain(part);
    }
  });

  it("tells what the machine can do", async () => {
    const found = lastLine((await tidemark("doctor", "--json")).out);
    expect(found).toMatchObject({ node: process.versions.node, wasm: { simd: true } });
    expect(found.targets).toContainEqual(expect.objectContaining({ name: "wasm", available: true }));
    expect((await tidemark("doctor")).out).toContain("compiler");
  });
});
