/**
 * @file A program in a device's memory. WebGPU has no commands that are recorded once and run again, so every run encodes its commands;
 * what they refer to (pipelines, bindings, numbers) is made once for each row of them and each buffer that the arena was in.
 */
import { at, InternalError } from "../../base/invariant.ts";
import { runScript } from "../../codegen/script-run.ts";
import type { Dispatch } from "../../codegen/wgsl/library.ts";
import { type Command, commandsOf, type WebgpuPart, type WebgpuProgram } from "../../codegen/wgsl/program.ts";
import type { Machine } from "../device.ts";
import type { GpuContext, Pipeline } from "./context.ts";
import { type GpuBindGroup, type GpuBuffer, type GpuEncoder, type GpuPass, USAGE } from "./gpu.ts";
import type { GpuMemory } from "./memory.ts";

/** Commands that are handed over at once: systems end programs that keep a device busy for seconds. */
const COMMANDS_AT_ONCE = 128;
/** Bytes; where numbers for a dispatch start. */
const UNIFORM_ALIGNMENT = 256;
const WORD = 4;

type Ready =
  | { readonly kind: "dispatch"; readonly pipeline: Pipeline; readonly group: GpuBindGroup; readonly of: Dispatch }
  /** From a byte of the numbers to a byte of the arena. */
  | { readonly kind: "store"; readonly from: number; readonly to: number };

/** Commands with everything that they refer to. */
interface Row {
  readonly commands: readonly Ready[];
  readonly arena: GpuBuffer;
  readonly numbers: GpuBuffer | null;
}

/** Numbers that commands need, in one buffer. */
class Numbers {
  readonly #words: number[] = [];
  readonly #known = new Map<string, number>();

  /** The byte at which words start. */
  add(words: readonly number[], alignment: number): number {
    const key = `${alignment} ${words.join()}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    while ((this.#words.length * WORD) % alignment !== 0) this.#words.push(0);
    const start = this.#words.length * WORD;
    this.#words.push(...words);
    this.#known.set(key, start);
    return start;
  }

  buffer({ device }: GpuContext): GpuBuffer | null {
    if (this.#words.length === 0) return null;
    // a binding of numbers is a multiple of four words
    const data = new Int32Array(Math.ceil(this.#words.length / 4) * 4);
    data.set(this.#words);
    const usage = USAGE.uniform | USAGE.copyFrom | USAGE.copyTo;
    const buffer = device.createBuffer({ size: data.byteLength, usage });
    device.queue.writeBuffer(buffer, 0, new Uint8Array(data.buffer));
    return buffer;
  }
}

const shiftBytes = ({ shifts }: Dispatch): number => Math.ceil(shifts.length / 4) * 4 * WORD;

export class GpuMachine implements Machine {
  readonly memory: GpuMemory;
  readonly #context: GpuContext;
  readonly #program: WebgpuProgram;
  readonly #pipelines: Pipeline[] = [];
  readonly #rows = new Map<WebgpuPart, Row>();

  constructor(context: GpuContext, program: WebgpuProgram, memory: GpuMemory) {
    this.#context = context;
    this.#program = program;
    this.memory = memory;
    // all at once, before the first run waits for them
    for (const { text, parts, hasShifts } of program.library.modules) {
      context.pipeline(text, parts, hasShifts).catch(() => undefined);
    }
  }

  get moduleBytes(): number {
    return this.#program.library.modules.reduce((bytes, { text }) => bytes + text.length, 0);
  }

  get kernelFunctions(): number {
    return this.#program.library.modules.length;
  }

  run(): void {
    this.#submit(this.#program.parts);
  }

  step(i: number): void {
    this.#submit([at(this.#program.parts, i)]);
  }

  close(): void {
    this.#context.line.submit(() => {
      for (const { numbers } of this.#rows.values()) numbers?.destroy();
      this.#rows.clear();
    });
  }

  #submit(parts: readonly WebgpuPart[]): void {
    this.#context.line.submit(async () => {
      await this.#context.room();
      for (const part of parts) {
        if (part.kind === "row") await this.#runRow(part);
        else await this.#runScript(part);
      }
      this.#context.started();
    });
  }

  async #runRow(part: Extract<WebgpuPart, { kind: "row" }>): Promise<void> {
    const known = this.#rows.get(part);
    if (known && known.arena === this.memory.buffer) {
      this.#encode(known);
      return;
    }
    known?.numbers?.destroy();
    await this.#compile();
    await this.#checked(() => {
      const row = this.#prepare(part.commands);
      this.#rows.set(part, row);
      this.#encode(row);
    });
  }

  /** Waits for words of the arena where the script asks for them; nothing else of this device runs meanwhile. */
  async #runScript(part: Extract<WebgpuPart, { kind: "script" }>): Promise<void> {
    const { library } = this.#program;
    let commands: Command[] = [];
    const flush = async (): Promise<void> => {
      await this.#compile();
      await this.#checked(() => {
        const row = this.#prepare(commands);
        this.#encode(row);
        row.numbers?.destroy();
      });
      commands = [];
    };
    const run = runScript(part.script);
    let next = run.next();
    while (!next.done) {
      const action = next.value;
      if (action.kind === "load") {
        await flush();
        next = run.next(await this.#word(action.at, action.bytes));
      } else {
        commands.push(...commandsOf(library, action));
        if (commands.length >= COMMANDS_AT_ONCE) await flush();
        next = run.next();
      }
    }
    await flush();
  }

  async #word(address: number, bytes: 1 | 4): Promise<number> {
    const from = address - (address % WORD);
    const word = await this.#context.read(this.memory.buffer, from, WORD);
    return bytes === 1 ? at(word, address - from) : new DataView(word.buffer).getInt32(0, true);
  }

  /** Waits for the pipelines of all modules so far. */
  async #compile(): Promise<void> {
    const { modules } = this.#program.library;
    const missing = modules.slice(this.#pipelines.length);
    if (missing.length === 0) return;
    const made = missing.map(({ text, parts, hasShifts }) => this.#context.pipeline(text, parts, hasShifts));
    this.#pipelines.push(...(await Promise.all(made)));
  }

  /** Commands that the device rejects are an internal error, which it tells later. */
  async #checked(work: () => void): Promise<void> {
    const { device, line } = this.#context;
    device.pushErrorScope("validation");
    work();
    const error = await device.popErrorScope();
    if (error) line.fail(new InternalError(`the WebGPU device rejected a program: ${error.message}`));
  }

  #prepare(commands: readonly Command[]): Row {
    const numbers = new Numbers();
    const starts = commands.map((command) => {
      if (command.kind === "store") return numbers.add([command.value], WORD);
      return command.shifts.length > 0 ? numbers.add(command.shifts, UNIFORM_ALIGNMENT) : 0;
    });
    const [buffer, arena] = [numbers.buffer(this.#context), this.memory.buffer];
    const ready = commands.map((command, i): Ready => {
      if (command.kind === "store") return { kind: "store", from: at(starts, i), to: command.at };
      const pipeline = at(this.#pipelines, command.module);
      return {
        kind: "dispatch",
        pipeline,
        group: this.#group(command, pipeline, [buffer, at(starts, i)]),
        of: command,
      };
    });
    return { commands: ready, arena, numbers: buffer };
  }

  #group(
    command: Dispatch,
    { layout }: Pipeline,
    [numbers, start]: readonly [numbers: GpuBuffer | null, start: number],
  ): GpuBindGroup {
    const entries = command.parts.map(({ from, to }, binding) => {
      return { binding, resource: { buffer: this.memory.buffer, offset: from, size: to - from } };
    });
    if (numbers && command.shifts.length > 0) {
      const resource = { buffer: numbers, offset: start, size: shiftBytes(command) };
      entries.push({ binding: entries.length, resource });
    }
    return this.#context.device.createBindGroup({ layout, entries });
  }

  #encode({ commands, arena, numbers }: Row): void {
    const { device } = this.#context;
    for (let first = 0; first < commands.length; first += COMMANDS_AT_ONCE) {
      const encoder = device.createCommandEncoder();
      const passes = new Passes(encoder);
      const end = Math.min(first + COMMANDS_AT_ONCE, commands.length);
      for (let i = first; i < end; i++) {
        const command = at(commands, i);
        if (command.kind === "dispatch") passes.dispatch(command);
        else {
          passes.end();
          if (numbers) encoder.copyBufferToBuffer(numbers, command.from, arena, command.to, WORD);
        }
      }
      passes.end();
      device.queue.submit([encoder.finish()]);
    }
  }
}

/** Dispatches one after the other, in as few passes as there can be. */
class Passes {
  readonly #encoder: GpuEncoder;
  #pass: GpuPass | null = null;
  #pipeline: Pipeline | null = null;

  constructor(encoder: GpuEncoder) {
    this.#encoder = encoder;
  }

  dispatch({ pipeline, group, of }: Extract<Ready, { kind: "dispatch" }>): void {
    this.#pass ??= this.#encoder.beginComputePass();
    if (this.#pipeline !== pipeline) this.#pass.setPipeline(pipeline.pipeline);
    this.#pipeline = pipeline;
    this.#pass.setBindGroup(0, group);
    this.#pass.dispatchWorkgroups(of.blocks[0], of.blocks[1]);
  }

  end(): void {
    this.#pass?.end();
    this.#pass = null;
    this.#pipeline = null;
  }
}
