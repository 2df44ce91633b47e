/**
 * @file Kills real processes with a real SIGKILL, at moments drawn from a seed, and starts them again in the same folder
 * until they get to the end. The result must be that of a process that nobody touched.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostRandom } from "../../src/base/random.ts";
import { ROOT } from "../support/project.ts";

export const KINDS = ["memory", "disk", "train", "simulate"] as const;
export type Kind = (typeof KINDS)[number];

export interface Ended {
  /** What the process said last; `done HASH` at the end. */
  readonly last: string;
  readonly killed: boolean;
  /** From being ready on. */
  readonly ms: number;
}

/** When to kill. */
export interface Shot {
  readonly from: "ready" | "stepping";
  readonly afterMs: number;
}

/** One in so many kills may come before the first step: while programs are compiled and files are read. */
const EARLY = 8;

/** A folder for runs, with the child as one file that plain Node can run. */
export class KillRange {
  readonly folder: string = mkdtempSync(join(tmpdir(), "tidemark-kill-"));
  readonly #child: string = join(this.folder, "child.mjs");

  constructor() {
    const rolldown = join(ROOT, "node_modules", "rolldown", "bin", "cli.mjs");
    // without tree-shaking: the methods of tensors are installed by a module that nobody imports a name from
    const source = join(ROOT, "tests", "node", "kill-child.ts");
    const flags = "-p node --no-treeshake --no-codeSplitting --log-level silent --file".split(" ");
    execFileSync(process.execPath, [rolldown, source, ...flags, this.#child], { cwd: ROOT, stdio: "ignore" });
  }

  get child(): string {
    return this.#child;
  }

  runFolder(): string {
    return mkdtempSync(join(this.folder, "run-"));
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs the child; `kill`: how long after which line, the first one or the first about steps; null to let it be. */
  run(kind: Kind, directory: string, kill: Shot | null): Promise<Ended> {
    mkdirSync(directory, { recursive: true });
    const child = spawn(process.execPath, [this.#child, kind, directory], { stdio: ["ignore", "pipe", "inherit"] });
    let last = "";
    let started = 0;
    let timer: NodeJS.Timeout | undefined;
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text: string) => {
      last = text.trimEnd().split("\n").at(-1) ?? last;
      if (last === "ready" || started === 0) started = performance.now();
      if (!kill || timer || (last === "ready" && kill.from === "stepping")) return;
      timer = setTimeout(() => child.kill("SIGKILL"), kill.afterMs);
    });
    return new Promise((resolve) => {
      child.on("close", (_, signal) => {
        clearTimeout(timer);
        resolve({ last, killed: signal === "SIGKILL", ms: performance.now() - started });
      });
    });
  }
}

export interface Killings {
  readonly kills: number;
  /** Kills by what the process was doing. */
  readonly during: Readonly<Record<string, number>>;
  /** Kills that left a file that was being written. */
  readonly inWrites: number;
  /** Runs that came to their end after being killed, with what they printed. */
  readonly ends: readonly string[];
}

/** Kills runs of one kind until it has been done `kills` times; then all that were begun are brought to their end. */
export async function killRuns(range: KillRange, kind: Kind, kills: number, wholeMs: number, seed: number) {
  const random = hostRandom(seed);
  const during: Record<string, number> = {};
  const ends: string[] = [];
  let [done, inWrites] = [0, 0];
  let directory = range.runFolder();
  while (done < kills) {
    const from = random.next() * EARLY < 1 ? "ready" : "stepping";
    const ended = await range.run(kind, directory, { from, afterMs: random.next() * wholeMs * 0.4 });
    if (!ended.killed) {
      ends.push(ended.last);
      directory = range.runFolder();
      continue;
    }
    done++;
    const doing = ended.last.split(" ")[0] ?? "";
    during[doing] = (during[doing] ?? 0) + 1;
    if (readdirSync(directory).some((name) => name.endsWith(".tmp"))) inWrites++;
  }
  ends.push((await range.run(kind, directory, null)).last);
  return { kills: done, during, inWrites, ends } satisfies Killings;
}
