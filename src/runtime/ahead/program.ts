/**
 * @file A program that was compiled ahead of time, ready to run: a function from the arguments that are given for each call to
 * the results that are handed out. Parameters, constants and state stay in the arena and are read and written by name.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { guess } from "../../base/suggest.ts";
import { byteLength } from "../../ir/type.ts";
import type { TypedArray } from "../../kernel/dtype.ts";
import { elementsAt } from "../executable.ts";
import type { PlacedTensor, ProgramFile, ProgramParam, ProgramTree } from "./format.ts";
import { filled, type Given, isAbsent, paramsOf, partAt, ValueReader, without } from "./values.ts";
import { weightsFile, weightsFrom } from "./weights.ts";

/** What the runtime needs of an instance. */
export interface Instance {
  readonly memory: WebAssembly.Memory;
  run(): void;
}

export interface AheadProgram {
  /** Runs it once on the arguments that do not stay; in the place of a result that is state there is `undefined`. */
  (...args: readonly unknown[]): unknown;
  /** Of the arena, and of the memory that it is in: whole pages. */
  readonly arenaBytes: number;
  readonly memoryBytes: number;
  /** Names and types of tensors that are given for each call, that are handed out, and that stay. */
  readonly inputs: readonly PlacedTensor[];
  readonly results: readonly PlacedTensor[];
  readonly resident: readonly ProgramParam[];
  /** A copy of what stays: of the tensor of that name, or of all below it, as a tree. */
  read(name: string): unknown;
  /** Replaces what stays. */
  write(name: string, value: unknown): void;
  /** Everything that stays, as a safetensors file. */
  save(): Uint8Array;
}

/** Names in a message. */
const MOST_NAMED = 3;

class Running {
  readonly #program: ProgramFile;
  readonly #instance: Instance;
  /** Parameters that stay and have a value, and the number of all that stay. */
  readonly #present = new Set<number>();
  readonly #residents: number;
  readonly #isResident: (param: number) => boolean;
  /** Those with something to give. */
  readonly #arguments: ProgramFile["arguments"];
  /** Without state. */
  readonly #result: ProgramTree;

  constructor(program: ProgramFile, instance: Instance) {
    this.#program = program;
    this.#instance = instance;
    this.#isResident = (param) => program.params[param]?.kind !== "input";
    this.#residents = this.resident.length;
    this.#arguments = program.arguments.filter(({ tree }) => !isAbsent(tree, this.#isResident));
    this.#result = without(program.result, (i) => program.results[i]?.state !== null);
  }

  #at(tensor: PlacedTensor): TypedArray {
    return elementsAt(this.#instance.memory.buffer, tensor, tensor.address);
  }

  put(given: Iterable<Given>): void {
    for (const { param, elements } of given) {
      this.#at(this.#program.params[param] as ProgramParam).set(elements);
      if (this.#isResident(param)) this.#present.add(param);
    }
  }

  call(args: readonly unknown[]): unknown {
    const { params, results } = this.#program;
    const wanted = this.#arguments;
    if (args.length > wanted.length) {
      const names = wanted.map(({ name }) => name).join(", ");
      const help = `a call takes ${names || "none"}; what stays in the arena is written with write(name, value)`;
      throw new TidemarkError("InvalidArgument", `${args.length} arguments were given, not ${wanted.length}`, { help });
    }
    const reader = new ValueReader(params, this.#isResident);
    for (const [i, { name, tree }] of wanted.entries()) reader.read(tree, name, args[i]);
    this.#requirePresent();
    this.put(reader.given);
    this.#instance.run();
    return filled(this.#result, (i) => this.#at(results[i] as PlacedTensor).slice());
  }

  #requirePresent(): void {
    if (this.#present.size === this.#residents) return;
    const absent = this.#program.params.filter((_, i) => this.#isResident(i) && !this.#present.has(i));
    const names = absent.slice(0, MOST_NAMED).map(({ name }) => name);
    const more = absent.length > MOST_NAMED ? ` and ${absent.length - MOST_NAMED} more` : "";
    throw new TidemarkError("NotReady", `${names.join(", ")}${more} have no value yet`, {
      help: "give load the weights, or write(name, value) before the first call",
    });
  }

  /** What stays at a name: a tree of parameters. */
  #part(name: string): ProgramTree {
    const known = this.#program.params.findIndex((param, i) => param.name === name && this.#isResident(i));
    if (known >= 0) return { tensor: known };
    const trees = Object.fromEntries(this.#program.arguments.map((argument) => [argument.name, argument.tree]));
    const part = partAt({ object: trees }, String(name).split("."));
    if (part && paramsOf(part).some(this.#isResident)) return part;
    const names = this.resident.map((param) => param.name);
    const list = names.slice(0, 8).join(", ") + (names.length > 8 ? `, … (${names.length})` : "");
    throw new TidemarkError("InvalidArgument", `nothing that stays in the arena is called ${name}`, {
      help: `${guess(String(name), names)}${names.length === 0 ? "this program keeps nothing" : `it has ${list}`}`,
    });
  }

  get resident(): readonly ProgramParam[] {
    return this.#program.params.filter((_, i) => this.#isResident(i));
  }

  read(name: string): unknown {
    const elements = (param: number): TypedArray => {
      const place = this.#program.params[param] as ProgramParam;
      if (this.#present.has(param)) return this.#at(place).slice();
      const help = "give load the weights, or write(name, value) first";
      throw new TidemarkError("NotReady", `${place.name} has no value yet`, { help });
    };
    return filled(
      without(this.#part(name), (param) => !this.#isResident(param)),
      elements,
    );
  }

  write(name: string, value: unknown): void {
    const reader = new ValueReader(this.#program.params, () => false);
    const part = this.#part(name);
    const given = paramsOf(part).find((param) => !this.#isResident(param));
    if (given !== undefined) {
      const { name: input } = this.#program.params[given] as ProgramParam;
      const help = "write the tensors that stay one by one";
      throw new TidemarkError("InvalidArgument", `${name} has ${input} in it, which is given for each call`, { help });
    }
    reader.read(part, name, value);
    this.put(reader.given);
  }

  save(): Uint8Array {
    this.#requirePresent();
    return weightsFile(this.resident, (param) => this.#at(param));
  }
}

/** Throws where an engine has not got the memory. */
export function memoryFor({ pages, arenaBytes }: ProgramFile): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const summary = `an arena of ${grouped(arenaBytes)} bytes cannot be allocated: ${error.message}`;
    throw new TidemarkError("TargetUnsupported", summary, { help: "build it with a smaller --budget" });
  }
}

export function aheadProgram(program: ProgramFile, instance: Instance, weights: Uint8Array | null): AheadProgram {
  const running = new Running(program, instance);
  const { resident } = running;
  if (weights) {
    const places = program.params.map((param) => (param.kind === "input" ? { ...param, name: "" } : param));
    running.put(weightsFrom(weights, places));
  }
  // One without elements has nothing to be given.
  running.put(program.params.flatMap((param, i) => (byteLength(param) === 0 ? [{ param: i, elements: NOTHING }] : [])));
  const call = (...args: readonly unknown[]): unknown => running.call(args);
  Object.defineProperty(call, "name", { value: program.name });
  return Object.assign(call, {
    arenaBytes: program.arenaBytes,
    memoryBytes: instance.memory.buffer.byteLength,
    inputs: program.params.filter(({ kind }) => kind === "input"),
    results: program.results.filter(({ state }) => state === null),
    resident,
    read: (name: string) => running.read(name),
    write: (name: string, value: unknown) => running.write(name, value),
    save: () => running.save(),
  });
}

const NOTHING: TypedArray = new Uint8Array(0);
