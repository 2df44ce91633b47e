/** @file Collectives of programs on WebAssembly between processes: their code calls this thread, which calls MPI. */
import { at } from "../../base/invariant.ts";
import { exchangeNumbers, requireMessage } from "../../codegen/native/exchange.ts";
import type { Exchange } from "../../codegen/wasm/exchange.ts";
import { groupRanks, groupSize } from "../../kernel/device-group.ts";
import { bytesOf } from "../../kernel/dtype.ts";
import { type Communicator, exchangeText } from "../../runtime/communicator.ts";
import type { OwnExchange, Communicator as Processes } from "./communicator.ts";

/** How many parts of a tensor a collective reads and writes. */
function partsOf({ what, group }: Exchange): { readonly read: number; readonly written: number } {
  const p = groupSize(group);
  return {
    read: what === "reduce_scatter" || what === "all_to_all" ? p : 1,
    written: what === "all_gather" || what === "all_to_all" ? p : 1,
  };
}

function ownOf(exchange: Exchange, number: number): OwnExchange {
  const { elements, pairs, place: _, ...rest } = exchange;
  return {
    numbers: Int32Array.from([...exchangeNumbers({ ...rest, pairs }), ...pairs.flat()]),
    elements,
    label: `${number}: ${exchangeText({ ...exchange, place: "" })}`,
  };
}

/** The processes of a run by `mpirun`, for the target `wasm`. */
export const wasmProcesses = (processes: Processes): Communicator => ({
  connect({ name, digest, exchanges }) {
    const program = { name, places: exchanges.map(({ place }) => place) };
    const groups = exchanges.map(({ group }) => group);
    processes.enter(program);
    const numbers = processes.join(program, digest, groups);
    exchanges.forEach(requireMessage);
    const own = exchanges.map((exchange, i) =>
      exchange.what === "device_index" ? -1 : processes.prepare(ownOf(exchange, i)),
    );
    return {
      enter: () => processes.enter(program),
      exchange(number, memory, to, from) {
        const exchange = at(exchanges, number);
        if (exchange.what === "device_index") {
          new Int32Array(memory, to, 1)[0] = groupRanks(exchange.group, processes.rank).indexOf(processes.rank);
          return;
        }
        const partBytes = exchange.elements * bytesOf(exchange.storage);
        const { read, written } = partsOf(exchange);
        const [into, source] = [
          new Uint8Array(memory, to, written * partBytes),
          new Uint8Array(memory, from, read * partBytes),
        ];
        processes.exchange(at(own, number), at(numbers, number), into, source);
      },
    };
  },
});
