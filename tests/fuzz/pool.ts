/**
 * @file Child processes that check programs. One that crashes, takes too much processor time or memory, or hangs is ended and
 * replaced; that is a finding about its program, not the end of the suite.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Finding, noCounts, type Outcome } from "./findings.ts";
import type { Job, Word } from "./jobs.ts";

export interface Limits {
  /** Of processor time for one program. */
  readonly cpuSeconds: number;
  readonly residentBytes: number;
}

/** A program that waits for something may take this many times as long. */
const WAITING = 20;
const POLL_MS = 500;
/** Programs that one process checks before it is replaced: what it leaves behind must not add up. */
const LIFE = 40;
const HEAP_MIB = 2048;
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

interface Usage {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
}

/** What a process and the compilers it called have used; null where the system does not say. */
function usageOf(pid: number): Usage | null {
  try {
    // The name of the command, in brackets, may have spaces in it.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    const [user, system, childUser, childSystem] = fields.slice(11, 15).map(Number) as [number, number, number, number];
    const ticks = user + system + childUser + childSystem;
    return { cpuSeconds: ticks / TICKS_PER_SECOND, residentBytes: Number(fields[21]) * PAGE_BYTES };
  } catch {
    return null;
  }
}

export class Child {
  readonly #script: string;
  readonly #limits: Limits;
  #process: ChildProcess | null = null;
  #checked = 0;
  #errors = "";

  constructor(script: string, limits: Limits) {
    this.#script = script;
    this.#limits = limits;
  }

  async run(job: Job): Promise<Outcome> {
    const child = this.#ready();
    const seconds = { wall: performance.now() / 1000, cpu: usageOf(child.pid as number)?.cpuSeconds ?? 0 };
    let stage = "start";
    return new Promise((resolve) => {
      const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
      const finish = (outcome: Outcome): void => {
        clearInterval(timer);
        lines.close();
        child.removeAllListeners("exit");
        resolve(outcome);
      };
      const end = (finding: Finding): void => {
        this.#process = null;
        child.removeAllListeners("exit");
        child.kill("SIGKILL");
        const used = (usageOf(child.pid as number)?.cpuSeconds ?? seconds.cpu) - seconds.cpu;
        const about = job.without ? `without ${job.without.length} steps` : "";
        finish({
          seed: job.seed,
          target: job.target ?? "drawn",
          about,
          findings: [finding],
          counts: noCounts(),
          cpuSeconds: used,
        });
      };
      const timer = setInterval(() => {
        const finding = this.#excess(child.pid as number, seconds, stage);
        if (finding) end(finding);
      }, POLL_MS);
      lines.on("line", (line) => {
        const word = JSON.parse(line) as Word;
        if ("stage" in word) stage = word.stage;
        else finish(word.outcome);
      });
      child.on("exit", (code, signal) =>
        end({ kind: "crash", what: `${signal ?? `exit code ${code}`} in ${stage}: ${this.#errors.slice(-400)}` }),
      );
      child.stdin?.write(`${JSON.stringify(job)}\n`);
    });
  }

  close(): void {
    this.#process?.removeAllListeners("exit");
    this.#process?.stdin?.end();
    this.#process = null;
  }

  #ready(): ChildProcess {
    if (this.#checked++ % LIFE === 0) this.close();
    if (this.#process) return this.#process;
    this.#errors = "";
    const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MIB}`, this.#script, "--child"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    child.stderr.on("data", (text) => {
      this.#errors = (this.#errors + String(text)).slice(-4000);
    });
    this.#process = child;
    return child;
  }

  /** What a process has too much of. */
  #excess(pid: number, began: { readonly wall: number; readonly cpu: number }, stage: string): Finding | null {
    const { cpuSeconds, residentBytes } = this.#limits;
    const usage = usageOf(pid);
    const wall = performance.now() / 1000 - began.wall;
    const cpu = usage ? usage.cpuSeconds - began.cpu : wall;
    if (cpu > cpuSeconds) return { kind: "slow", what: `more than ${cpuSeconds} s of processor time, in ${stage}` };
    if (wall > cpuSeconds * WAITING) return { kind: "slow", what: `waits without end, in ${stage}` };
    if (usage && usage.residentBytes > residentBytes) {
      return { kind: "memory", what: `${usage.residentBytes} bytes resident, in ${stage}` };
    }
    return null;
  }
}

/** Runs jobs on some processes at a time; outcomes come as they are there. */
export async function runJobs(
  jobs: Iterable<Job>,
  children: readonly Child[],
  done: (outcome: Outcome, job: Job) => void,
): Promise<void> {
  const queue = jobs[Symbol.iterator]();
  const work = async (child: Child): Promise<void> => {
    for (let next = queue.next(); !next.done; next = queue.next()) done(await child.run(next.value), next.value);
    child.close();
  };
  await Promise.all(children.map(work));
}
