/**
 * @file Runs the program of one device of several in one block of memory, with collectives in flight as early or as late as a network may
 * be: what is sent is read at the start or at the wait, and what is received is noise until the wait. What the other devices send is made
 * up from what this one does, so that results depend on everything that is exchanged and on nothing else.
 */
import { at } from "../../src/base/invariant.ts";
import { type PlacedProgram, statementsOf } from "../../src/codegen/placed.ts";
import type { CollectiveNest } from "../../src/kernel/collective.ts";
import { bytesOf, elementsIn } from "../../src/kernel/dtype.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import type { Kernel } from "../../src/kernel/loops.ts";
import { ScriptMachine } from "./script-machine.ts";

/** When what is sent is read. */
export type Reading = "at start" | "at wait";

interface Sent {
  readonly nest: CollectiveNest;
  readonly from: Uint8Array<ArrayBuffer>;
  readonly to: Uint8Array<ArrayBuffer>;
  /** What was sent at the start; null: it is read at the wait. */
  readonly read: Uint8Array | null;
}

/** What arrives: the parts of all others are this one's, and sums are twice it. */
function arrive({ nest, from, to, read }: Sent): void {
  const sent = (read ?? from).slice();
  for (let i = 0; i < to.length; i++) to[i] = at(sent, i % sent.length);
  if (nest.combine !== "add" || nest.what === "permute" || nest.storage !== "f32") return;
  const numbers = new Float32Array(to.buffer, to.byteOffset, to.length / 4);
  for (const [i, x] of numbers.entries()) numbers[i] = 2 * x;
}

export class FlightMachine {
  readonly #placed: PlacedProgram;
  readonly #memory: Uint8Array<ArrayBuffer>;
  readonly #reading: Reading;
  readonly #index: number;
  readonly #flying = new Map<object, Sent>();
  /** Collectives that were in flight. */
  flights = 0;

  /** @param index the number of the device along every axis */
  constructor(placed: PlacedProgram, index: number, reading: Reading) {
    this.#placed = placed;
    this.#memory = new Uint8Array(placed.base + placed.plan.height).fill(0xa5);
    this.#index = index;
    this.#reading = reading;
  }

  /** The bytes of the results for such parameters. */
  run(params: readonly Uint8Array[]): readonly string[] {
    const { kernels, copies, results, graph } = this.#placed;
    for (const [i, param] of params.entries()) this.#memory.set(param, at(this.#placed.params, i));
    const machine = new ScriptMachine({
      onKernel: (kernel, addresses) => this.#kernel(kernel, addresses),
      onStart: (kernel, addresses, flight) => this.#start(kernel, addresses, flight),
      onWait: (flight) => this.#wait(flight),
      onCopy: (to, from, bytes) => this.#memory.copyWithin(to, from, from + bytes),
      load: (place, bytes) => (bytes === 1 ? at(this.#memory, place) : at(this.#words(place), 0)),
      store: (place, value) => this.#words(place).set([value]),
    });
    for (const step of kernels) machine.run(statementsOf(step, "this machine"));
    if (this.#flying.size > 0) throw new Error(`${this.#flying.size} collectives are never waited for`);
    for (const { to, from, bytes } of copies) this.#memory.copyWithin(to, from, from + bytes);
    return graph.results.map(({ type }, i) => {
      const bytes = type.shape.reduce((n, extent) => n * extent, bytesOf(type.dtype));
      return Buffer.from(this.#view(at(results, i), bytes)).toString("hex");
    });
  }

  #view(address: number, bytes: number): Uint8Array<ArrayBuffer> {
    if (address < 0 || address + bytes > this.#memory.length) throw new Error(`${bytes} bytes at ${address}`);
    return this.#memory.subarray(address, address + bytes);
  }

  #words(address: number): Int32Array {
    return new Int32Array(this.#memory.buffer, address, 1);
  }

  #operands({ operands }: Kernel, addresses: readonly number[]): readonly Uint8Array<ArrayBuffer>[] {
    return operands.map(({ dtype, elements }, i) => this.#view(at(addresses, i), elements * bytesOf(dtype)));
  }

  #kernel(kernel: Kernel, addresses: readonly number[]): void {
    const views = this.#operands(kernel, addresses);
    const [nest] = kernel.nests;
    if (nest?.kind === "collective") {
      if (nest.read) arrive(this.#sent(nest, views, "at start"));
      else this.#words(at(addresses, nest.to)).set([this.#index]);
      return;
    }
    const elements = kernel.operands.map(({ dtype, elements: count, role }, i) => {
      const view = at(views, i);
      if (role === "scratch") view.fill(0xa5);
      return elementsIn(dtype, view.buffer, view.byteOffset, count);
    });
    interpretKernel(kernel, elements);
  }

  #sent(nest: CollectiveNest, views: readonly Uint8Array<ArrayBuffer>[], reading: Reading): Sent {
    const [from, to] = [at(views, nest.read?.operand ?? -1), at(views, nest.to)];
    // written over what it reads: noise would hide it
    const isOver = from.byteOffset < to.byteOffset + to.length && to.byteOffset < from.byteOffset + from.length;
    return { nest, from, to, read: reading === "at start" || isOver ? from.slice() : null };
  }

  #start(kernel: Kernel, addresses: readonly number[], flight: object): void {
    const [nest] = kernel.nests;
    if (nest?.kind !== "collective" || this.#flying.has(flight)) throw new Error("starts what it may not");
    const sent = this.#sent(nest, this.#operands(kernel, addresses), this.#reading);
    this.#flying.set(flight, sent);
    sent.to.fill(0xff);
    this.flights++;
  }

  #wait(flight: object): void {
    const sent = this.#flying.get(flight);
    if (!sent) throw new Error("waits for a collective that was not started");
    this.#flying.delete(flight);
    if (!sent.to.every((byte) => byte === 0xff)) throw new Error(`${sent.nest.what} was written over in flight`);
    arrive(sent);
  }
}
