/** @file The processes of a mesh as those that agree (ranks/meeting.ts): texts go through MPI, asleep until all have given theirs. */
import type { Mesh } from "../../parallel/mesh.ts";
import { ALONE, type Ranks } from "../ranks/meeting.ts";
import { type Communicator, communicatorOf } from "./communicator.ts";
import { launched } from "./launched.ts";

/** Most texts fit into one message of each process: their length, and as many bytes. */
const MESSAGE_BYTES = 256;
const LENGTH_BYTES = 4;

/** Texts of all, in the order of ranks: those that are longer in a second message, as long as the longest. */
function exchanged(processes: Communicator, mesh: Parameters<Communicator["collect"]>[0], own: string): string[] {
  const text = new TextEncoder().encode(own);
  const short = new Uint8Array(MESSAGE_BYTES);
  new DataView(short.buffer).setUint32(0, text.length);
  short.set(text.subarray(0, MESSAGE_BYTES - LENGTH_BYTES), LENGTH_BYTES);
  const all = processes.collect(mesh, short);
  const view = new DataView(all.buffer);
  const lengths = Array.from({ length: all.length / MESSAGE_BYTES }, (_, rank) => view.getUint32(rank * MESSAGE_BYTES));
  const longest = Math.max(...lengths);
  const read = (bytes: Uint8Array, rank: number, from: number): string => {
    const start = rank * (bytes.length / lengths.length) + from;
    return new TextDecoder().decode(bytes.subarray(start, start + (lengths[rank] ?? 0)));
  };
  if (longest <= MESSAGE_BYTES - LENGTH_BYTES) return lengths.map((_, rank) => read(all, rank, LENGTH_BYTES));
  const whole = new Uint8Array(longest);
  whole.set(text);
  const second = processes.collect(mesh, whole);
  return lengths.map((_, rank) => read(second, rank, 0));
}

/** Those of a mesh; an error that says how to start them where this process is none of them. */
export function ranksOf(name: string, { axes, size }: Mesh): Ranks {
  if (size === 1 && !launched()) return ALONE;
  const mesh = { mesh: Object.entries(axes) };
  const processes = communicatorOf(name, [{ ...mesh, over: [] }]);
  return {
    rank: processes.rank,
    size,
    exchange: async (own) => exchanged(processes, mesh, own),
    fail: (error) => processes.fail(error),
  };
}
