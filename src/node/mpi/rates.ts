/**
 * @file How fast processes exchange, measured by MPI itself under the load that there is: sums of one number, and of many, over all of them.
 * By the model of target/exchange.ts such a sum takes 2 (p - 1) messages and 2 n (p - 1) / p bytes, so that
 *
 *   messageSeconds = time of one number / 2 (p - 1)      networkRate = 2 n (p - 1) / p / (time of n bytes - time of one number)
 *
 * Rank 0's figures are those of all.
 */
import { exchangeNumbers } from "../../codegen/native/exchange.ts";
import type { CostModel } from "../../target/work.ts";
import type { Communicator } from "./communicator.ts";

export type NetworkRates = Required<Pick<CostModel, "networkRate" | "messageSeconds">>;

const [ELEMENTS, WARM_UP] = [2 ** 18, 3];
/** Of a float. */
const BYTES = 4;

/** Seconds of the run in the middle. */
function medianSeconds(repetitions: number, run: () => void): number {
  for (let i = 0; i < WARM_UP; i++) run();
  const all = Array.from({ length: repetitions }, () => {
    const started = performance.now();
    run();
    return (performance.now() - started) / 1000;
  }).sort((a, b) => a - b);
  return all[Math.floor(repetitions / 2)] as number;
}

/** What a sum of n bytes over p processes says. */
export function ratesOf(p: number, one: number, many: number, bytes: number): NetworkRates {
  const messageSeconds = one / (2 * (p - 1));
  // a clock that is too coarse leaves the whole time, so that the rate stays positive
  const networkRate = (2 * bytes * (p - 1)) / p / (many > one ? many - one : many);
  return { networkRate, messageSeconds };
}

/** All processes measure together; null where there is one. */
export function measuredRates(processes: Communicator): NetworkRates | null {
  const { size } = processes;
  if (size === 1) return null;
  const sum = (elements: number): (() => void) => {
    const numbers = exchangeNumbers({ what: "all_reduce", storage: "f32", combine: "add", root: 0, pairs: [] });
    const own = { numbers: Int32Array.from(numbers), elements, label: `0: sum of ${elements} f32, to be timed` };
    const what = processes.prepare(own);
    const [to, from] = [new Uint8Array(BYTES * elements), new Uint8Array(BYTES * elements)];
    // group 0 is all processes
    return () => processes.exchange(what, 0, to, from);
  };
  const [one, many] = [medianSeconds(101, sum(1)), medianSeconds(21, sum(ELEMENTS))];
  return JSON.parse(processes.told(JSON.stringify(ratesOf(size, one, many, BYTES * ELEMENTS)))) as NetworkRates;
}
