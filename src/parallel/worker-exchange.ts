/**
 * @file Collectives between the devices of one process: what a device sends goes through its room (mailbox.ts), in pieces where it is larger. Sums
 * are ((x0 + x1) + x2) + … in the order of ranks, so there is one order with `deterministic` and without.
 *
 *   all_reduce        of two devices, and of little: all read all            all_gather       all read all
 *                     else: device i adds up piece i of all, all read that   reduce_scatter   room: a piece for each; i adds up pieces i
 *   broadcast         all read the root's                                    all_to_all       room: a piece for each; i reads pieces i
 *   permute           one reads one
 */
import { at, invariant } from "../base/invariant.ts";
import type { Exchange } from "../codegen/wasm/exchange.ts";
import { type DeviceGroup, groupRanks, meshSize } from "../kernel/device-group.ts";
import { bytesOf, type DType, isFloat } from "../kernel/dtype.ts";
import {
  type Communicator,
  type ConnectedProgram,
  type Connection,
  exchangeText,
  meshesOf,
  requireMember,
  requireSame,
} from "../runtime/communicator.ts";
import type { Mailbox } from "./mailbox.ts";

/** Elements up to which all devices add up everything themselves. */
const FEW_ELEMENTS = 1024;
/** Characters of a digest. */
const DIGEST_LENGTH = 32;
/** The tag of a comparison of programs. */
const COMPARING = 1;

/** Numbers that are added or compared; i64 as whole numbers of any size. */
type Numbers = Float32Array | Float64Array | Int32Array | BigInt64Array;

const ARRAYS: Readonly<Partial<Record<DType, new (buffer: ArrayBuffer, start: number, elements: number) => Numbers>>> =
  { f32: Float32Array, f64: Float64Array, i32: Int32Array, i64: BigInt64Array };

function numbersIn(dtype: DType, buffer: ArrayBuffer, start: number, elements: number): Numbers {
  const Numbers = ARRAYS[dtype];
  invariant(Numbers, () => `${dtype} is not computed`);
  return new Numbers(buffer, start, elements);
}

function addTo(into: Numbers, more: Numbers): void {
  const [a, b] = [into as Float32Array, more as Float32Array];
  // whole numbers wrap around as they are stored
  for (let i = 0; i < a.length; i++) a[i] = (a[i] as number) + (b[i] as number);
}

function raiseTo(into: Numbers, more: Numbers): void {
  const [a, b] = [into as Float32Array, more as Float32Array];
  for (let i = 0; i < a.length; i++) if ((b[i] as number) > (a[i] as number)) a[i] = b[i] as number;
}

/** NaN where one is, and +0 above -0. */
function raiseFloats(into: Numbers, more: Numbers): void {
  const [a, b] = [into as Float32Array, more as Float32Array];
  for (let i = 0; i < a.length; i++) a[i] = Math.max(a[i] as number, b[i] as number);
}

/** What one collective is for one device. */
interface Call {
  readonly exchange: Exchange;
  /** Of the group, in order; the own place in it. */
  readonly ranks: readonly number[];
  readonly place: number;
  readonly others: readonly number[];
  readonly tag: number;
  readonly elementBytes: number;
}

/** Where a collective reads and writes. */
interface Memory {
  readonly buffer: ArrayBuffer;
  readonly to: number;
  readonly from: number;
}

/** This thread as one device. */
export class WorkerCommunicator implements Communicator {
  readonly #mail: Mailbox;
  #state = "before its first program";

  constructor(mail: Mailbox) {
    this.#mail = mail;
  }

  /** What this device does, for messages. */
  get state(): string {
    return this.#state;
  }

  connect({ name, digest, exchanges }: ConnectedProgram): Connection {
    this.#state = `in ${name}, before its first collective`;
    const { rank, size } = this.#mail;
    const running = size === 1 ? "one device runs" : `${size} devices run`;
    const start = (devices: number): string => `start as many: runDevices(module, { devices: ${devices} })`;
    for (const mesh of meshesOf(exchanges.map(({ group }) => group))) {
      requireMember(mesh, { rank, size }, { running, start });
      requireSame(name, mesh, this.#gathered(digest, mesh));
    }
    const program = Number.parseInt(digest.slice(0, 8), 16);
    const calls = exchanges.map((exchange, i) => callOf(exchange, rank, (program ^ Math.imul(i + 1, 0x9e3779b1)) | 0));
    return {
      enter: () => {
        this.#state = `in ${name}, before its first collective`;
      },
      exchange: (number, buffer, to, from) => {
        const call = at(calls, number);
        this.#state = `in ${name}, last collective: ${number}: ${exchangeText(call.exchange)}`;
        this.#do(call, { buffer, to, from });
      },
    };
  }

  /** What all devices of a mesh give, in the order of ranks. */
  #gathered(text: string, mesh: Pick<DeviceGroup, "mesh">): readonly string[] {
    const mail = this.#mail;
    const ranks = Array.from({ length: meshSize(mesh) }, (_, rank) => rank);
    const others = ranks.filter((rank) => rank !== mail.rank);
    mail.clear();
    const read = (rank: number): Uint8Array => new Uint8Array(mail.block, mail.roomAt(rank), DIGEST_LENGTH);
    read(mail.rank).set(Uint8Array.from(text, (character) => character.charCodeAt(0)));
    mail.post(others, COMPARING);
    return ranks.map((rank) => {
      if (rank === mail.rank) return text;
      mail.receive(rank, COMPARING);
      const given = String.fromCharCode(...read(rank));
      mail.take(rank);
      return given;
    });
  }

  #do(call: Call, memory: Memory): void {
    switch (call.exchange.what) {
      case "device_index":
        new Int32Array(memory.buffer, memory.to, 1)[0] = call.place;
        return;
      case "all_reduce":
        this.#allReduce(call, memory);
        return;
      case "all_gather":
        this.#allGather(call, memory);
        return;
      case "reduce_scatter":
        this.#forEachOther(call, memory, (piece) => {
          const into = this.#numbers(call, memory.buffer, memory.to + piece.start, piece.bytes);
          this.#sum(call, into, call.place * piece.bytes);
        });
        return;
      case "all_to_all":
        this.#forEachOther(call, memory, (piece) => this.#placePieces(call, memory, piece));
        return;
      case "permute":
        this.#permute(call, memory);
        return;
      case "broadcast": {
        const root = call.exchange.root;
        this.#relay(call, memory, root, root === call.place ? call.others : []);
      }
    }
  }

  #bytes(rank: number, start: number, bytes: number): Uint8Array {
    const mail = this.#mail;
    return new Uint8Array(mail.block, mail.roomAt(rank) + start, bytes);
  }

  #numbers({ exchange, elementBytes }: Call, buffer: ArrayBuffer, start: number, bytes: number): Numbers {
    return numbersIn(exchange.storage, buffer, start, bytes / elementBytes);
  }

  /** The own room, filled and given to others. */
  #send({ tag }: Call, to: readonly number[], fill: (room: Uint8Array) => void): void {
    const mail = this.#mail;
    mail.clear();
    fill(this.#bytes(mail.rank, 0, mail.roomBytes));
    mail.post(to, tag);
  }

  /** What every device of the group has sent, in order; the own as well. */
  #eachSent({ ranks, tag }: Call, read: (rank: number, place: number) => void): void {
    const mail = this.#mail;
    for (const [place, rank] of ranks.entries()) {
      const isOwn = rank === mail.rank;
      if (!isOwn) mail.receive(rank, tag);
      read(rank, place);
      if (!isOwn) mail.take(rank);
    }
  }

  /** The sum, or maximum, of what all have sent, in the order of ranks, from a place of every device's room on. */
  #sum(call: Call, into: Numbers, start: number): void {
    const { combine, storage } = call.exchange;
    const raise = isFloat(storage) ? raiseFloats : raiseTo;
    const join = combine === "add" ? addTo : raise;
    const mail = this.#mail;
    this.#eachSent(call, (rank, place) => {
      const part = this.#numbers(call, mail.block, mail.roomAt(rank) + start, into.byteLength);
      if (place === 0) into.set(part as never);
      else join(into, part);
    });
  }

  #allReduce(call: Call, { buffer, to, from }: Memory): void {
    const { exchange, ranks, others, elementBytes } = call;
    const isDirect = ranks.length === 2 || exchange.elements <= FEW_ELEMENTS;
    for (const { start, bytes } of this.#pieces(call, 1)) {
      this.#send(call, others, (room) => room.set(new Uint8Array(buffer, from + start, bytes)));
      if (isDirect) {
        this.#sum(call, this.#numbers(call, buffer, to + start, bytes), 0);
        continue;
      }
      // what each device adds up
      const elements = bytes / elementBytes;
      const bound = (place: number): number => Math.floor((elements * place) / ranks.length) * elementBytes;
      const own = { start: bound(call.place), bytes: bound(call.place + 1) - bound(call.place) };
      const into = this.#numbers(call, buffer, to + start + own.start, own.bytes);
      this.#sum(call, into, own.start);
      this.#send(call, others, (room) => room.set(new Uint8Array(buffer, to + start + own.start, own.bytes)));
      this.#eachSent(call, (rank, place) => {
        const [first, end] = [bound(place), bound(place + 1)];
        new Uint8Array(buffer, to + start + first, end - first).set(this.#bytes(rank, 0, end - first));
      });
    }
  }

  #allGather(call: Call, { buffer, to, from }: Memory): void {
    const { exchange, others, elementBytes } = call;
    const partBytes = exchange.elements * elementBytes;
    for (const { start, bytes } of this.#pieces(call, 1)) {
      this.#send(call, others, (room) => room.set(new Uint8Array(buffer, from + start, bytes)));
      this.#eachSent(call, (rank, place) => {
        new Uint8Array(buffer, to + place * partBytes + start, bytes).set(this.#bytes(rank, 0, bytes));
      });
    }
  }

  /** Rooms with a piece of the part for each device. */
  #forEachOther(call: Call, { buffer, from }: Memory, read: (piece: Piece) => void): void {
    const { exchange, ranks, others, elementBytes } = call;
    const partBytes = exchange.elements * elementBytes;
    for (const piece of this.#pieces(call, ranks.length)) {
      const { start, bytes } = piece;
      this.#send(call, others, (room) => {
        for (const place of ranks.keys()) {
          room.set(new Uint8Array(buffer, from + place * partBytes + start, bytes), place * bytes);
        }
      });
      read(piece);
    }
  }

  #placePieces(call: Call, { buffer, to }: Memory, piece: Piece): void {
    const { exchange, elementBytes } = call;
    const partBytes = exchange.elements * elementBytes;
    this.#eachSent(call, (rank, place) => {
      const given = this.#bytes(rank, call.place * piece.bytes, piece.bytes);
      new Uint8Array(buffer, to + place * partBytes + piece.start, piece.bytes).set(given);
    });
  }

  #permute(call: Call, memory: Memory): void {
    const { exchange, place, ranks, elementBytes } = call;
    const source = exchange.pairs.find(([, target]) => target === place)?.[0] ?? null;
    const target = exchange.pairs.find(([from]) => from === place)?.[1] ?? null;
    const to = target === null || target === place ? [] : [at(ranks, target)];
    if (source === null) {
      for (const { start, bytes } of this.#pieces(call, 1)) this.#pass(call, memory, { start, bytes }, to);
      new Uint8Array(memory.buffer, memory.to, exchange.elements * elementBytes).fill(0);
      return;
    }
    this.#relay(call, memory, source, to);
  }

  /** Sends a piece to devices, if there are any. */
  #pass(call: Call, { buffer, from }: Memory, { start, bytes }: Piece, to: readonly number[]): void {
    if (to.length > 0) this.#send(call, to, (room) => room.set(new Uint8Array(buffer, from + start, bytes)));
  }

  /** Sends the own part to devices, and gets that of the one at a place. */
  #relay(call: Call, memory: Memory, source: number, targets: readonly number[]): void {
    const mail = this.#mail;
    const { buffer, to, from } = memory;
    const rank = at(call.ranks, source);
    for (const piece of this.#pieces(call, 1)) {
      const { start, bytes } = piece;
      this.#pass(call, memory, piece, targets);
      const into = new Uint8Array(buffer, to + start, bytes);
      if (rank === mail.rank) {
        into.set(new Uint8Array(buffer, from + start, bytes));
        continue;
      }
      mail.receive(rank, call.tag);
      into.set(this.#bytes(rank, 0, bytes));
      mail.take(rank);
    }
  }

  /** The pieces of a part of which so many are in a room at once. */
  #pieces({ exchange, elementBytes }: Call, parts: number): readonly Piece[] {
    const most = Math.floor(this.#mail.roomBytes / parts / elementBytes) * elementBytes;
    const all = exchange.elements * elementBytes;
    const count = Math.ceil(all / most);
    return Array.from({ length: count }, (_, i) => ({ start: i * most, bytes: Math.min(most, all - i * most) }));
  }
}

/** Bytes of a part. */
interface Piece {
  readonly start: number;
  readonly bytes: number;
}

function callOf(exchange: Exchange, rank: number, tag: number): Call {
  const ranks = groupRanks(exchange.group, rank);
  return {
    exchange,
    ranks,
    place: ranks.indexOf(rank),
    others: ranks.filter((other) => other !== rank),
    tag,
    elementBytes: bytesOf(exchange.storage),
  };
}
