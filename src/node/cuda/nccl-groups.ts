/**
 * @file Groups of devices that NCCL connects. A process has one device; the devices of a group learn of each other by MPI, which started
 * the processes (node/mpi), and groups are made once and kept:
 *
 *   rank of the first device ── ncclGetUniqueId ── MPI ──→ all of the group: ncclCommInitRank
 *
 * The only device of a group needs neither MPI nor others.
 */
import { TidemarkError } from "../../base/errors.ts";
import { at, invariant } from "../../base/invariant.ts";
import { type CudaExchange, orderedAs } from "../../codegen/cuda/exchange.ts";
import { type DeviceGroup, groupRanks, groupText, meshSize } from "../../kernel/device-group.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { askedText } from "../../runtime/communicator.ts";
import { type Communicator, communicatorOf, type RankProgram } from "../mpi/communicator.ts";
import type { CudaContext } from "./context.ts";
import { combinedAs, ID_BYTES, INSTALL_NCCL, movedAs, Nccl } from "./nccl.ts";

/** The devices of a group, as this one knows them. */
interface Group {
  readonly handle: bigint;
  /** Of this one among them. */
  readonly number: number;
  readonly size: number;
}

/** The part of a device in a program with collectives. */
export interface Connection {
  /** The program runs from now on. */
  enter(): void;
  /** The number of this device in a group. */
  numberIn(group: DeviceGroup): number;
  /** Puts an exchange into a stream. */
  start(exchange: CudaExchange, to: bigint, from: bigint, stream: bigint): void;
}

/** What NCCL takes of a device. */
export interface NcclFigures {
  readonly version: string;
  /** Bytes of the device that it took when groups were made; no plan has them. */
  readonly startBytes: number;
}

/** A program, as devices compare it. */
export interface ConnectedProgram extends RankProgram {
  /** Equal for equal code and plans. */
  readonly text: string;
  readonly groups: readonly DeviceGroup[];
}

export class NcclGroups {
  readonly #context: CudaContext;
  readonly #nccl: Nccl;
  readonly #groups = new Map<string, Group>();
  #startBytes = 0;
  /** What went wrong; nothing can be exchanged after it. */
  #loss: TidemarkError | null = null;

  constructor(context: CudaContext, nccl: Nccl) {
    this.#context = context;
    this.#nccl = nccl;
  }

  get figures(): NcclFigures {
    return { version: this.#nccl.version, startBytes: this.#startBytes };
  }

  /** Joins a program with the devices that run it; `processes`: null where this is the only device of all groups. */
  connect(program: ConnectedProgram, processes: Communicator | null, numbers: Int32Array): Connection {
    const { groups } = program;
    const own = new Map(
      groups.map((group, i) => [groupText(group), this.#group(group, processes, at([...numbers], i))]),
    );
    const groupOf = (group: DeviceGroup): Group => {
      const found = own.get(groupText(group));
      invariant(found, () => `a collective over ${groupText(group)}, which the program was not connected along`);
      return found;
    };
    return {
      enter: () => {
        if (this.#loss) throw this.#loss;
        processes?.enter(program);
      },
      numberIn: (group) => groupOf(group).number,
      start: (exchange, to, from, stream) => this.#start(exchange, groupOf(exchange.group), { to, from, stream }),
    };
  }

  #group(group: DeviceGroup, processes: Communicator | null, number: number): Group {
    const key = groupText(group);
    const known = this.#groups.get(key);
    if (known) return known;
    const before = this.#context.memory().free;
    const made = this.#made(group, processes, number);
    this.#startBytes += before - this.#context.memory().free;
    this.#groups.set(key, made);
    if (!this.#context.watch) {
      this.#context.watch = () => this.#check();
      processes?.beforeEnd(() => this.#context.wait());
    }
    return made;
  }

  #made(group: DeviceGroup, processes: Communicator | null, number: number): Group {
    if (!processes) return { handle: this.#nccl.join(this.#nccl.uniqueId(), 1, 0), number: 0, size: 1 };
    const ranks = groupRanks(group, processes.rank);
    const own = ranks.indexOf(processes.rank);
    // the id of the first one counts
    const mine = new Uint8Array([...this.#nccl.uniqueId(), ...this.#context.uuid]);
    const all = processes.gathered(number, mine);
    requireOwnDevices(
      group,
      ranks,
      all.map((bytes) => Buffer.from(bytes.subarray(ID_BYTES)).toString("hex")),
    );
    const handle = this.#nccl.join(at(all, 0).slice(0, ID_BYTES), ranks.length, own);
    return { handle, number: own, size: ranks.length };
  }

  /** Ends all groups where one has failed: the device would wait for ever, and what it has then is nothing. */
  #check(): void {
    if (this.#loss) throw this.#loss;
    for (const [name, { handle }] of this.#groups) {
      const failure = this.#nccl.failure(handle);
      if (failure === null) continue;
      for (const group of this.#groups.values()) this.#nccl.release("ncclCommAbort", group.handle);
      this.#loss = new TidemarkError("TargetUnsupported", `NCCL lost a device of the group over ${name}: ${failure}`, {
        help: "what the other processes say comes first; NCCL_DEBUG=WARN in the environment makes it say more",
      });
      throw this.#loss;
    }
  }

  #start(exchange: CudaExchange, group: Group, place: Place): void {
    const { what, combine, storage, elements, root, pairs } = exchange;
    if (elements === 0) return;
    const nccl = this.#nccl;
    const { to, from, stream } = place;
    const [moved, over] = [movedAs(storage), [group.handle, stream]];
    const partBytes = BigInt(elements * bytesOf(storage));
    switch (what) {
      case "all_reduce": {
        const ordered = orderedAs(exchange);
        const [type, op] = combinedAs(ordered ?? storage, combine);
        nccl.call("ncclAllReduce", ordered === null ? from : to, to, elements, type, op, ...over);
        return;
      }
      case "reduce_scatter": {
        invariant(combine === "add", () => "parts are added");
        const [type, op] = combinedAs(storage, combine);
        nccl.call("ncclReduceScatter", from, to, elements, type, op, ...over);
        return;
      }
      case "all_gather":
        nccl.call("ncclAllGather", from, to, elements, moved, ...over);
        return;
      case "broadcast":
        nccl.call("ncclBroadcast", from, to, elements, moved, root, ...over);
        return;
      case "all_to_all":
        nccl.together(() => {
          for (let peer = 0; peer < group.size; peer++) {
            const part = BigInt(peer) * partBytes;
            nccl.call("ncclSend", from + part, elements, moved, peer, ...over);
            nccl.call("ncclRecv", to + part, elements, moved, peer, ...over);
          }
        });
        return;
      case "permute":
        this.#permute(pairs, group, { ...place, elements, type: moved, bytes: Number(partBytes) });
        return;
      case "device_index":
        invariant(false, () => "a number is not exchanged");
    }
  }

  /** What comes from nowhere is zeros. */
  #permute(pairs: CudaExchange["pairs"], { handle, number }: Group, { to, from, stream, ...part }: Moved): void {
    const { driver } = this.#context;
    const source = pairs.find(([, target]) => target === number)?.[0];
    const target = pairs.find(([start]) => start === number)?.[1];
    if (source === number) {
      driver.call("cuMemcpyDtoDAsync_v2", to, from, part.bytes, stream);
      return;
    }
    if (source === undefined) driver.call("cuMemsetD8Async", to, 0, part.bytes, stream);
    if (source === undefined && target === undefined) return;
    this.#nccl.together(() => {
      const { elements, type } = part;
      if (target !== undefined) this.#nccl.call("ncclSend", from, elements, type, target, handle, stream);
      if (source !== undefined) this.#nccl.call("ncclRecv", to, elements, type, source, handle, stream);
    });
  }
}

/** Addresses on the device, and where the exchange goes on. */
interface Place {
  readonly to: bigint;
  readonly from: bigint;
  readonly stream: bigint;
}

interface Moved extends Place {
  readonly elements: number;
  readonly type: number;
  readonly bytes: number;
}

/** Throws where processes have one GPU together, which NCCL cannot connect. */
function requireOwnDevices(group: DeviceGroup, ranks: readonly number[], devices: readonly string[]): void {
  const second = devices.findIndex((device, i) => devices.indexOf(device) < i);
  if (second < 0) return;
  const first = devices.indexOf(at(devices, second));
  const summary = `ranks ${at(ranks, first)} and ${at(ranks, second)} of the group over ${groupText(group)} have one GPU together`;
  throw new TidemarkError("TargetUnsupported", summary, {
    help: "start no more processes on a machine than it has GPUs, and let each see all of them or one of its own (CUDA_VISIBLE_DEVICES)",
  });
}

/** By device: groups are made once. */
const known = new Map<CudaContext, NcclGroups>();

/** The library, where a program asks for it. */
function groupsOf(context: CudaContext, asked: string, path: string | undefined): NcclGroups {
  const made = known.get(context);
  if (made) return made;
  const nccl = Nccl.open(path);
  if (typeof nccl === "string") {
    throw new TidemarkError("TargetUnsupported", `${asked} needs NCCL on the target cuda: ${nccl}`, {
      help: INSTALL_NCCL,
    });
  }
  const groups = new NcclGroups(context, nccl);
  known.set(context, groups);
  return groups;
}

/** What NCCL takes of the devices of this process; null before it is needed. */
export function ncclFigures(): NcclFigures | null {
  const [first] = known.values();
  return first?.figures ?? null;
}

/** What runs a program with collectives: who else does, and the code, which one process of each machine makes. */
export interface Joined<T> {
  readonly connection: Connection;
  readonly made: T;
}

/** Joins a program with the devices that run it, and makes what is kept on disk in turn. */
export function joined<T>(
  context: CudaContext,
  program: ConnectedProgram,
  { make, library }: { make(): T; readonly library: string | undefined },
): Joined<T> {
  const { name, groups } = program;
  const isAlone = groups.every((group) => meshSize(group) === 1);
  const processes = isAlone ? null : communicatorOf(name, groups);
  processes?.enter(program);
  const numbers = processes?.join(program, program.text, groups) ?? new Int32Array(groups.length);
  const made = processes ? processes.inTurn(groups, make) : make();
  const connection = groupsOf(context, askedText(name, groups), library).connect(program, processes, numbers);
  return { connection, made };
}
