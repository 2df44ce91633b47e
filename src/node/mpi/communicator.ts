/**
 * @file The processes that run a program together. MPI is begun once in a process and ends with it; groups of processes are made once
 * for each set of axes of a mesh. A device's number is its place in the mesh, in row-major order, first axis slowest:
 *
 *   mesh data=2,tensor=2     device 0: (0, 0)   1: (0, 1)   2: (1, 0)   3: (1, 1)
 *   over tensor              {0, 1}  {2, 3}
 *   over data                {0, 2}  {1, 3}
 *
 * A mesh of fewer devices than there are processes is made of the first ones.
 *
 * A process that fails ends all of them: the others would wait for it. It says which one it was and what it did last.
 */
import { writeSync } from "node:fs";
import { hostname } from "node:os";
import { isMainThread } from "node:worker_threads";
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { type DeviceGroup, groupRanks, groupText, meshSize } from "../../kernel/device-group.ts";
import { askedText, meshesOf, meshText, requireMember, requireSame } from "../../runtime/communicator.ts";
import { digest } from "../native/compiler.ts";
import { type Launched, launched } from "./launched.ts";
import { type MpiLibrary, requireMpiLibrary } from "./library.ts";
import { INSTALL_MPI } from "./toolchain.ts";

/** Room for texts of the library. */
const TEXT_BYTES = 1024;
/** How long a process that has failed alone may take to say so and end by itself. */
const GRACE_MS = 1000;

const unsupported = (summary: string, help: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", summary, { help });

type Mesh = Pick<DeviceGroup, "mesh">;

function textOf(read: (text: Uint8Array, room: number) => number): string {
  const bytes = new Uint8Array(TEXT_BYTES);
  read(bytes, TEXT_BYTES);
  return Buffer.from(bytes.subarray(0, bytes.indexOf(0))).toString("utf8");
}

/** A program, as messages name it. */
export interface RankProgram {
  readonly name: string;
  /** Where each of its collectives is, by number. */
  readonly places: readonly string[];
  /** What is known of a program whose collectives a device carries out. */
  readonly onDevice?: string;
}

/** A collective that is no C text. */
export interface OwnExchange {
  /** Kind, type, combination, root, number of pairs, and the pairs. */
  readonly numbers: Int32Array;
  readonly elements: number;
  /** Its number and what it is, for messages. */
  readonly label: string;
}

/** A mesh, as the processes of it that run programs. */
interface Members {
  /** All of them; those on this machine. */
  readonly all: number;
  readonly near: number;
}

export class Communicator implements Launched {
  readonly rank: number;
  readonly size: number;
  /** The name and version of the library. */
  readonly version: string;
  readonly #library: MpiLibrary;
  readonly #members = new Map<string, Members>();
  readonly #groups = new Map<string, number>();
  #program: RankProgram | null = null;
  /** What is done before this process leaves the others. */
  readonly #last: (() => void)[] = [];
  /** Of this process, which the others do not know of. */
  #failure: string | null = null;

  constructor(library: MpiLibrary) {
    this.#library = library;
    this.rank = library.rank(0);
    this.size = library.size(0);
    this.version = textOf(library.version).split("\n")[0] ?? "";
  }

  /** The table of functions that programs call. */
  get functions(): bigint {
    return this.#library.functions();
  }

  /** What this process does, for a message that others read. */
  get state(): string {
    if (!this.#program) return "before its first program";
    const { name, places, onDevice } = this.#program;
    if (onDevice !== undefined) return `in ${name}, ${onDevice}`;
    const [, number, what] = /^(\d+): (.*)$/.exec(textOf(this.#library.current)) ?? [];
    if (what === undefined) return `in ${name}, before its first collective`;
    const place = places[Number(number)];
    return `in ${name}, last collective: ${what}${place === undefined ? "" : `, ${place}`}`;
  }

  /** A program is loaded, or runs. */
  enter(program: RankProgram): void {
    if (this.#failure !== null) this.#abort(this.#failure);
    this.#program = program;
  }

  /**
   * This process alone has failed, and the others wait for it: all end when it does, whatever its status, when it runs a program, and
   * shortly after in any case.
   */
  fail({ message }: Error): void {
    this.#failure ??= message;
    setTimeout(() => this.#abort(message), GRACE_MS).unref();
  }

  #abort(text: string): void {
    this.#say(`${text}\nthe other ranks are ended too`);
    this.#library.abort(1);
  }

  #say(text: string): void {
    writeSync(2, `${this.#name}: ${text}\n`);
  }

  get #name(): string {
    return `rank ${this.rank} of ${this.size} (process ${process.pid} on ${hostname()})`;
  }

  #membersOf({ mesh }: Mesh): Members {
    const key = meshText({ mesh });
    const known = this.#members.get(key);
    if (known) return known;
    const devices = meshSize({ mesh });
    const running = this.size === 1 ? "one process runs" : `${this.size} processes run`;
    requireMember({ mesh }, this, { running, start: (count) => `start it with mpirun -n ${count} …` });
    const all = devices === this.size ? 0 : this.#library.first(devices);
    const members = { all, near: this.#library.near(all) };
    this.#members.set(key, members);
    return members;
  }

  /** The number by which programs name a group. */
  #groupNumber(group: DeviceGroup): number {
    const key = groupText(group);
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const { all } = this.#membersOf(group);
    const rank = this.#library.rank(all);
    const ranks = groupRanks(group, rank);
    const number = this.#library.split(all, at(ranks, 0), ranks.indexOf(rank));
    this.#groups.set(key, number);
    return number;
  }

  /** Of a program with collectives: makes sure that all have the same one, and gives the numbers of its groups. */
  join({ name }: RankProgram, text: string, groups: readonly DeviceGroup[]): Int32Array {
    for (const mesh of meshesOf(groups)) this.#agree(name, text, mesh);
    return Int32Array.from(groups, (group) => this.#groupNumber(group));
  }

  /** Bytes of all devices of a mesh, as many of each, in the order of ranks; this process sleeps until all have given theirs. */
  collect(mesh: Mesh, own: Uint8Array): Uint8Array {
    const { all } = this.#membersOf(mesh);
    return this.#collected(all, own);
  }

  #agree(name: string, text: string, mesh: Mesh): void {
    const { all } = this.#membersOf(mesh);
    const digests = this.gathered(all, Buffer.from(digest(text), "latin1"));
    requireSame(
      name,
      mesh,
      digests.map((own) => Buffer.from(own).toString("latin1")),
    );
  }

  /** As many bytes of each process of a group with a number, in their order. */
  gathered(group: number, mine: Uint8Array): readonly Uint8Array[] {
    const [all, bytes] = [this.#collected(group, mine), mine.length];
    return Array.from({ length: this.#library.size(group) }, (_, i) => all.subarray(i * bytes, (i + 1) * bytes));
  }

  #collected(group: number, mine: Uint8Array): Uint8Array {
    const all = new Uint8Array(this.#library.size(group) * mine.length);
    this.#library.collect(group, mine, all, mine.length);
    return all;
  }

  /** A text of rank 0, for all processes; those that are given none wait asleep. */
  told(text: string): string {
    const own = Buffer.from(this.rank === 0 ? text : "", "utf8");
    const [bytes = 0] = this.numbers(own.length);
    const mine = new Uint8Array(bytes);
    mine.set(own);
    return Buffer.from(this.#collected(0, mine).subarray(0, bytes)).toString("utf8");
  }

  /** A number of each process, by rank. */
  numbers(own: number): readonly number[] {
    const all = this.#collected(0, new Uint8Array(Float64Array.of(own).buffer));
    return Array.from(new Float64Array(all.buffer));
  }

  /** How many processes of this run are on this machine; all of them ask together. */
  countNear(): number {
    return this.#library.size(this.#library.near(0));
  }

  /** A collective of a program that is no C: its number. */
  prepare({ numbers, elements, label }: OwnExchange): number {
    return this.#library.prepare(numbers, elements, label);
  }

  /** Carries one out in a group with a number; done when it returns. */
  exchange(what: number, group: number, to: Uint8Array, from: Uint8Array): void {
    this.#library.exchange(what, group, to, from);
  }

  /** Makes what is kept on disk: one process of each machine first, then the others, who find it there. */
  inTurn<T>(groups: readonly DeviceGroup[], make: () => T): T {
    const [first] = groups;
    if (first === undefined) return make();
    const { near } = this.#membersOf(first);
    const isFirst = this.#library.rank(near) === 0;
    if (!isFirst) this.#library.meet(near);
    try {
      return make();
    } finally {
      if (isFirst) this.#library.meet(near);
    }
  }

  /** Before the process ends well: others may need what its device still does. */
  beforeEnd(last: () => void): void {
    this.#last.push(last);
  }

  /** Whether everything was done that others may need. */
  #isDone(): boolean {
    try {
      for (const last of this.#last) last();
      return true;
    } catch (error) {
      this.#say(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Ends with the process: all of them where it failed. */
  endWithProcess(): void {
    process.on("uncaughtExceptionMonitor", (error: Error) => {
      const text = error instanceof TidemarkError ? error.message : (error.stack ?? String(error));
      this.#say(`${text}\n${this.#name}: ${this.state}`);
    });
    process.on("exit", (code) => {
      if (code === 0 && this.#failure !== null) this.#abort(this.#failure);
      if (code === 0 && this.#isDone()) {
        this.#library.end();
        return;
      }
      const status = code === 0 ? 1 : code;
      this.#say(`ended with status ${status}, ${this.state}; the other ranks are ended too`);
      this.#library.abort(status);
    });
  }
}

let begun: Communicator | undefined;

/** The processes of this run; throws where there is no MPI. */
export function communicator(asked: string): Communicator {
  if (begun) return begun;
  if (!isMainThread) {
    throw unsupported(`${asked} in a worker thread: only the main thread calls MPI`, "compile it on the main thread");
  }
  const library = requireMpiLibrary(asked);
  const error = library.begin();
  if (error !== 0) throw unsupported(`${asked}: MPI does not start (error ${error})`, INSTALL_MPI);
  begun = new Communicator(library);
  begun.endWithProcess();
  return begun;
}

/** The processes that a program's groups are among; an error that says how to start them where this one is alone. */
export function communicatorOf(name: string, groups: readonly DeviceGroup[]): Communicator {
  const asked = askedText(name, groups);
  if (launched()) return communicator(asked);
  const devices = Math.max(...groups.map(meshSize));
  throw unsupported(
    `${asked} needs ${devices} processes, and this one was started alone`,
    `${INSTALL_MPI} and start it with mpirun -n ${devices} node …`,
  );
}
